"""``fastlayers run``: feeds a model with the arrays of a file, and writes what comes out to another."""

from __future__ import annotations

import argparse
import os
from typing import TextIO

import numpy as np

from ..errors import ArgumentError
from ..formats._write import whole
from ._model import add_arguments, feeds, load, read_inputs, say

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument(
        "inputs",
        nargs="?",
        help="an npz or safetensors file with an array for every input, or an npy file for the only one; else seeded numbers",
    )
    parser.add_argument("-o", "--output", metavar="OUT.npz", help="where results go; without it they are only described")


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Runs once."""
    target = _target(options.output)
    model = load(options)
    given = read_inputs(options.inputs, model) if options.inputs else feeds(model, options, out)
    results = model.run(given)
    for name, array in results.items():
        about = ""
        if array.size and array.dtype.kind in "fiu":
            about = f" from {array.min():.6g} to {array.max():.6g}, mean {array.mean(dtype=np.float64):.6g}"
        say(out, f"{name} {array.dtype.name}{list(array.shape)}{about}")
    if target:
        with whole(target) as file:
            np.savez(file, **results)  # type: ignore[arg-type]
        say(out, f"written to {target}")
    out.write(f"variant={model.variant}\n")
    return 0


def _target(given: str | None) -> str | None:
    """The file to write, known before anything runs: npz, whose suffix may be left out as for numpy.savez."""
    suffix = os.path.splitext(given or "")[1]
    if suffix not in ("", ".npz"):
        raise ArgumentError(f"--output {given}: results are written as npz: expected a name ending in .npz")
    return given if given is None or suffix else f"{given}.npz"

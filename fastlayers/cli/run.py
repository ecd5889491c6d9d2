"""``fastlayers run``: feeds a model with the arrays of a file, and writes what comes out to another."""

from __future__ import annotations

import argparse
from typing import TextIO

import numpy as np

from ..formats._write import whole
from ._draw import printable
from ._model import add_arguments, feeds, load, read_inputs

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument(
        "inputs", nargs="?", help="an npz or safetensors file with an array for every input; seeded numbers without it"
    )
    parser.add_argument("-o", "--output", metavar="OUT.npz", help="where results go; without it they are only described")


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Runs once."""
    model = load(options)
    given = read_inputs(options.inputs) if options.inputs else feeds(model, options)
    results = model.run(given)
    for name, array in results.items():
        about = ""
        if array.size and array.dtype.kind in "fiu":
            about = f" from {array.min():.6g} to {array.max():.6g}, mean {array.mean(dtype=np.float64):.6g}"
        out.write(printable(f"{name} {array.dtype.name}{list(array.shape)}{about}", out.encoding or "ascii") + "\n")
    if options.output:
        # As np.savez would name it.
        with whole(options.output if options.output.endswith(".npz") else f"{options.output}.npz") as file:
            np.savez(file, **results)  # type: ignore[arg-type]
    out.write(f"variant={model.variant}\n")
    return 0

"""``fastlayers run``: feeds a model with the arrays of a file, and writes what comes out to another."""

from __future__ import annotations

import argparse
import os
from typing import Any, TextIO

import numpy as np

from ..errors import ArgumentError
from ..formats.write import whole
from ._model import add_arguments, feeds, load, notes, read_inputs, say, tell
from ._progress import waiting

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = (
    "fastlayers run model.onnx inputs.npz -o outputs.npz",
    "fastlayers run model.onnx --shape tokens=1,16 --value sr=16000",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument(
        "inputs",
        nargs="?",
        help="an npz or safetensors file with an array for every input, or an npy file for the only one; else seeded values",
    )
    parser.add_argument("-o", "--output", metavar="OUT.npz", help="where results go; without it they are only described")


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Runs once."""
    target = _target(options.output)
    model = load(options)
    given = read_inputs(options.inputs, model) if options.inputs else feeds(model, options, notes(options, out))
    with waiting("running"):
        results = model.run(given)
    if target:
        with whole(target) as file:
            np.savez(file, **results)  # type: ignore[arg-type]
    found = {name: _about(value) for name, value in results.items()}
    if options.json:
        tell(out, {"variant": model.variant, "outputs": found, "written": target})
        return 0
    for name, about in found.items():
        if "dtype" not in about:
            say(out, f"{name} {about['type']} of {about['length']}")
            continue
        spread = f" from {about['min']:.6g} to {about['max']:.6g}, mean {about['mean']:.6g}" if "min" in about else ""
        say(out, f"{name} {about['dtype']}{about['shape']}{spread}")
    if target:
        say(out, f"written to {target}")
    say(out, f"variant={model.variant}")
    return 0


def _about(value: Any) -> dict[str, Any]:
    """Description of a result; for a sequence, which some networks have as an output, its length."""
    if not isinstance(value, np.ndarray):
        return {"type": type(value).__name__, "length": len(value) if hasattr(value, "__len__") else 0}
    found: dict[str, Any] = {"dtype": value.dtype.name, "shape": list(value.shape)}
    if value.size and value.dtype.kind in "fiu":
        found |= {"min": value.min().item(), "max": value.max().item(), "mean": float(value.mean(dtype=np.float64))}
    return found


def _target(given: str | None) -> str | None:
    """The file to write, known before anything runs: npz, whose suffix may be left out as for numpy.savez."""
    suffix = os.path.splitext(given or "")[1]
    if suffix not in ("", ".npz"):
        raise ArgumentError(f"--output {given}: results are written as npz: expected a name ending in .npz")
    return given if given is None or suffix else f"{given}.npz"

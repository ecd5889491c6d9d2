"""``fastlayers convert``: any network as our one file; any weights as a safetensors or npz file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TextIO

import numpy as np

import fastlayers as fl

from ..errors import ArgumentError, Error, FormatError, UnsupportedError
from ..formats.safetensors import DTYPES
from ..formats.safetensors_write import write
from ..formats.write import whole
from ..model.comparison import difference
from ..report.text import plural
from ._draw import printable
from ._model import add_arguments, check, feeds, load, tell
from ._progress import waiting

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = (
    "fastlayers convert model.onnx model.safetensors --packed --shape 1,3,224,224",
    "fastlayers convert checkpoint.pt weights.npz --arrays",
    "fastlayers convert model.onnx small.safetensors --weights int8",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument("target", help="the file to write: .safetensors, or with --arrays also .npz")
    parser.add_argument("--arrays", action="store_true", help="write the arrays alone, by name, of a file of any format")
    parser.add_argument(
        "--packed",
        action="store_true",
        help="write weights also as the compiled engine reads them: two to four times the size, and a sooner first answer",
    )


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Writes, reads back, and compares."""
    target = Path(options.target)
    suffixes = (".safetensors", ".npz") if options.arrays else (".safetensors",)
    if target.suffix not in suffixes:
        raise ArgumentError(f"convert: target {options.target!r}: expected a name ending in {' or '.join(suffixes)}")
    if target.exists() and Path(options.model).exists() and os.path.samefile(target, options.model):
        raise ArgumentError("convert: the target is the source: expected another file")
    with waiting("converting"):
        about = _weights(options, target) if options.arrays else _model(options, target)
    before, after = Path(options.model).stat().st_size, target.stat().st_size
    if options.json:
        tell(out, {"written": str(target), "about": about, "bytes": after, "bytes_of_source": before})
        return 0
    out.write(printable(f"{target}: {about}; {after:,} bytes, from {before:,}", out.encoding or "ascii") + "\n")
    return 0


def _weights(options: argparse.Namespace, target: Path) -> str:
    if options.packed:
        raise ArgumentError("convert: --packed is for networks: expected it without --arrays")
    weights = fl.load_weights(options.model)
    if target.suffix == ".npz":
        with whole(target) as file:
            np.savez(file, **weights)  # type: ignore[arg-type]
    else:
        if odd := [f"{name} ({array.dtype})" for name, array in weights.items() if array.dtype.name not in DTYPES]:
            raise UnsupportedError(f"convert: a safetensors file cannot hold {odd[:5]}: expected numeric dtypes; .npz holds any")
        if "__metadata__" in weights:
            raise UnsupportedError("convert: a safetensors file cannot hold an array called '__metadata__': .npz can")
        write(target, weights, {})
    again = fl.load_weights(target)
    if again.keys() != weights.keys() or any(again[k].tobytes() != weights[k].tobytes() for k in weights):
        raise FormatError(f"convert: {target} does not read back as it was written")
    return f"{plural(len(weights), 'array')}, read back the same"


def _model(options: argparse.Namespace, target: Path) -> str:
    model = load(options)
    check(model, options)
    try:
        given = feeds(model, options)
        expected = model.run(given)
    except Error as error:
        if options.packed:
            raise
        expected, reason = None, " ".join(str(error).split())
    model.save(target, packed=options.packed)
    again = fl.load(target, optimize=not options.no_passes)
    if expected is None:
        return f"not run: {reason}"
    got = again.run(given)
    worst = max(
        (difference(got[name], expected[name])[0] for name in expected if expected[name].dtype.kind in "fiub"), default=0.0
    )
    if not worst <= 1e-4:
        raise FormatError(f"convert: {target} gives other values than its source, off by {worst:.2g}")
    sides = f"{plural(len(model.inputs), 'input')}, {plural(len(model.outputs), 'output')}"
    return f"{sides}, run on seeded random values, off by {worst:.2g}"

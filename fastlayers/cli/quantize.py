"""``fastlayers quantize``: a network of integers from one of float32, and what that costs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

import numpy as np

import fastlayers as fl

from ..errors import ArgumentError
from ..model.model import Model
from ._model import add_arguments, check, load, number, read_inputs, say, tell, write
from ._progress import waiting

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = (
    "fastlayers quantize model.onnx --samples images.npz -o small.onnx --max-error 0.05",
    "fastlayers quantize model.onnx --samples a.npz b.npz c.npz -o small.safetensors --page report.html",
    "fastlayers quantize model.onnx --weights int4 -o small.safetensors",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write: .onnx or .safetensors")
    parser.add_argument(
        "--samples",
        nargs="+",
        default=[],
        metavar="FILE",
        help="npz or safetensors files with an array for every input, or npy files for the only one: each is a sample, or many, "
        "along a first axis that the input has not. Without them weights alone are quantized",
    )
    parser.add_argument(
        "--max-error",
        type=number(float, 0.0),
        default=0.1,
        metavar="E",
        help="the largest relative error of the results; without samples, of each matrix (0.1)",
    )
    parser.add_argument("--weights-only", action="store_true", help="leave what weights multiply in float32")
    parser.add_argument(
        "--keep", action="append", default=[], metavar="NAME", help="a layer, or an operator, that stays in float32"
    )
    parser.add_argument("--allow-slower", action="store_true", help="write the file even if it is not faster")
    parser.add_argument("--page", metavar="FILE", help="write the report as a page of HTML, too")


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Quantizes, writes, and prints the table."""
    target = Path(options.output)
    if target.suffix not in (".onnx", ".safetensors"):
        raise ArgumentError(f"quantize: --output {options.output!r}: expected a name ending in .onnx or .safetensors")
    if target.exists() and Path(options.model).exists() and target.samefile(options.model):
        raise ArgumentError("quantize: the output is the source: expected another file")
    weights, options.weights = "int8" if options.weights == "float32" else options.weights, "float32"
    model = load(options)
    check(model, options)
    model.num_threads = options.threads
    with waiting("quantizing") as told:
        small = fl.quantize(
            model,
            _samples(options.samples, model) if options.samples else None,
            max_error=options.max_error,
            activations=not options.weights_only,
            weights=weights,
            keep=options.keep,
            allow_slower=options.allow_slower,
            progress=told,
        )
    found = small.quantization
    assert found is not None
    if target.suffix == ".onnx":
        small.export(target)
    else:
        small.save(target)
    if options.page:
        write(options.page, found.html(f"{Path(options.model).name}, quantized"))
    size, before = target.stat().st_size, sum(file.stat().st_size for file in [Path(options.model)] if file.is_file())
    if options.json:
        layers = [
            {**row._asdict(), "seconds": row.seconds and list(row.seconds), "bytes": list(row.bytes)} for row in found.layers
        ]
        whole = {key: list(v) if isinstance(v, tuple) else v for key, v in found._asdict().items() if key != "layers"}
        tell(out, {"written": str(target), "file_bytes": size, "file_bytes_of_source": before, **whole, "layers": layers})
        return 0
    say(out, *str(found).splitlines(), f"{target}: {size:,} bytes, from {before:,}")
    return 0


def _samples(paths: list[str], model: Model) -> Iterator[Mapping[str, np.ndarray]]:
    """Samples of files, which are opened one at a time."""
    for path in paths:
        arrays = read_inputs(path, model)
        counts = {name: _many(array, model, name) for name, array in arrays.items()}
        many = {count for count in counts.values() if count is not None}
        if len(many) > 1:
            raise ArgumentError(f"quantize: --samples {path}: its arrays have {sorted(many)} samples: expected as many of each")
        for i in range(next(iter(many), 1)):
            yield {name: array if counts[name] is None else array[i] for name, array in arrays.items()}


def _many(array: np.ndarray, model: Model, name: str) -> int | None:
    """The number of samples that an array has, along an axis of theirs; None if it is one."""
    shape = next((spec.shape for spec in model.inputs if spec.name == name), None)
    return len(array) if shape is not None and array.ndim == len(shape) + 1 else None

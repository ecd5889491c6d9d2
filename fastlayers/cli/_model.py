"""Shared parts of the commands about a model file: the file, the sizes of its inputs, values to feed it with."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np

import fastlayers as fl

from .._example import FILES
from ..errors import ArgumentError, LimitError, ShapeError
from ..formats.write import whole
from ..model.model import Model
from ..model.precision import PRECISIONS, WEIGHTS
from ..program.memory import LARGEST, within_machine
from ..report.json import dumps
from ._draw import printable
from ._progress import waiting
from ._sizes import candidates, given_sizes, hint, shown_name

__all__ = [
    "add_arguments", "add_inputs", "add_storage", "check", "feeds", "file", "given", "load", "notes", "number", "read_inputs",
    "say", "storage", "tell", "write",
]  # fmt: skip


def number(kind: type, least: float, most: float = math.inf) -> Any:
    """Returns a parser of numbers for argparse, whose errors state the range."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            about = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected {'an integer' if kind is int else 'a number'} {about}, got {text!r}")
        return value

    return read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that name the model file and the sizes of its inputs."""
    parser.add_argument(
        "model",
        type=file,
        help="an ONNX, Keras (.keras, .h5), TensorFlow Lite or GGUF file, one that Model.save wrote, a checkpoint's folder, or "
        "silero_vad for the packaged example",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,224,224",
        help="the shape of an input, where the file leaves it open (may be given again); without NAME= for the only one; or a "
        "size by its name, as in batch=2. Sizes that are not given are guessed: 1 for a batch, else the least that will do",
    )
    parser.add_argument(
        "--value", action="append", default=[], metavar="NAME=16000", help="the value that fills an input (may be given again)"
    )
    parser.add_argument("--threads", type=number(int, 1, 256), default=1, metavar="N", help="how many threads run it (1)")
    add_storage(parser)
    parser.add_argument("--streaming", action="store_true", help="compute a whole sequence as streams compute its pieces")
    parser.add_argument("--max-bytes", type=number(int, 1), metavar="N", help="the most memory that the file may ask for")
    parser.add_argument("--no-mmap", action="store_true", help="read the file into memory instead of mapping it")
    parser.add_argument("--no-passes", action="store_true", help="run the graph as it is written")


def file(text: str) -> str:
    """The path if there is such a file, else the path of the packaged file of this name."""
    return fl.example(text) if text in FILES and not os.path.exists(text) else text


def add_storage(parser: Any) -> None:
    """Options about the rounding and storage of weights."""
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="default",
        help="strict: direct algorithms, nothing folded; float16, bfloat16: weights rounded to 16 bits",
    )
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="float32",
        help="how weights are stored: large matrices in 8 or 4 bits, products and recurrent layers in 16 (float32)",
    )


def storage(arguments: argparse.Namespace) -> dict[str, Any]:
    """Values that `add_storage` has read, as `fastlayers.load` takes it."""
    return {"precision": arguments.precision, "weights": arguments.weights}


def load(arguments: argparse.Namespace) -> Model:
    """The model, with the process set to the wanted number of threads."""
    fl.set_num_threads(arguments.threads)
    limit = {} if arguments.max_bytes is None else {"max_bytes": arguments.max_bytes}
    with waiting("loading"):
        model: Model = fl.load(
            arguments.model,
            optimize=not arguments.no_passes,
            **storage(arguments),
            streaming=arguments.streaming,
            mmap=not arguments.no_mmap,
            **limit,
        )
    return model


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """A file that inputs are taken from."""
    parser.add_argument(
        "--inputs",
        metavar="FILE",
        help="an npz or safetensors file with an array for every input, or an npy file for the only one; else seeded values",
    )


def given(model: Model, arguments: argparse.Namespace, out: TextIO) -> Mapping[str, np.ndarray]:
    """The arrays of ``--inputs``, or seeded ones."""
    return read_inputs(arguments.inputs, model) if arguments.inputs else feeds(model, arguments, notes(arguments, out))


def notes(arguments: argparse.Namespace, out: TextIO) -> TextIO:
    """The stream for remarks: standard error if `out` carries JSON, which remarks would spoil."""
    return sys.stderr if arguments.json else out


def tell(out: TextIO, value: Any) -> None:
    """Prints JSON."""
    out.write(dumps(value) + "\n")


def write(path: str, text: str) -> None:
    """A file that appears whole or not at all."""
    with whole(path) as file:
        file.write(text.encode())


def say(out: TextIO, *lines: str) -> None:
    """Prints lines, with question marks for what the output's encoding lacks."""
    out.writelines(printable(line, out.encoding or "ascii") + "\n" for line in lines)


def check(model: Model, arguments: argparse.Namespace) -> None:
    """Raises where the options about sizes and values are none of this model's."""
    given_sizes(arguments.shape, model.inputs)
    _values(model, arguments.value)


def feeds(model: Model, arguments: argparse.Namespace, out: TextIO | None = None) -> dict[str, np.ndarray]:
    """Seeded normal values in the shapes that the file and the command line give; what they leave open is guessed, and told.

    Raises:
        ShapeError: the network cannot take these sizes, or any that were tried.
    """
    sizes, values = given_sizes(arguments.shape, model.inputs), _values(model, arguments.value)
    first: ArgumentError | None = None
    # Integers are 0, which as sizes that a network reads may not do where 1 does.
    values = {**model._only, **values}
    counts = [spec.name for spec in model.inputs if spec.dtype.kind in "iu" and spec.name not in values]
    for guess in candidates(model.inputs, sizes):
        for ones in ({}, dict.fromkeys(counts, 1.0)) if counts else ({},):
            made = _made(model, guess.shapes, {**values, **ones})
            try:
                if counts or not guess.only:
                    _try(model, made)
            except ArgumentError as error:
                first = first or error
                continue
            told = [hint(model.inputs, sizes, guess.shapes), *(f"--value {shown_name(name)}=1" for name in ones)]
            if out is not None and any(told):
                say(out, f"sizes are guessed: {' '.join(filter(None, told))}")
            return made
        if guess.only:  # whatever is wrong with the only ones, the command itself will say
            return _made(model, guess.shapes, values)
    raise ShapeError(
        f"{first}; none of the sizes that were tried for the file's open dimensions works: give them, as in "
        f"{hint(model.inputs, sizes, None)}"
    )


def _try(model: Model, made: Mapping[str, np.ndarray]) -> None:
    """Raises where a network cannot take these sizes."""
    binding = model._main.binding(model._placeholders(made))
    if binding.staged:  # sizes are settled when it runs
        model.run(made)


def _values(model: Model, given: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or name not in model.inputs.names:
            raise ArgumentError(f"--value {text}: expected NAME=..., with one of the names {', '.join(model.inputs.names)}")
        try:
            found[name] = float(value)
        except ValueError:
            raise ArgumentError(f"--value {text}: expected a number") from None
    return found


def _made(model: Model, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, float]) -> dict[str, np.ndarray]:
    rng, result = np.random.default_rng(0), {}
    limit = within_machine(LARGEST)
    for spec in model.inputs:
        shape = shapes[spec.name]
        nbytes = math.prod(shape) * max(spec.dtype.itemsize, 8)  # values are drawn as float64
        if nbytes > limit:
            raise LimitError(
                f"--shape {spec.name}={','.join(map(str, shape))}: would take {nbytes} bytes: at most {limit} can be had"
            )
        if spec.name in values:
            result[spec.name] = np.full(shape, values[spec.name]).astype(spec.dtype)
        elif spec.dtype.kind == "f":
            result[spec.name] = rng.standard_normal(shape).astype(spec.dtype)
        elif spec.dtype.kind == "O":  # strings
            result[spec.name] = np.full(shape, "", object)
        else:
            result[spec.name] = np.zeros(shape, spec.dtype)
    return result


def read_inputs(path: str, model: Model) -> Mapping[str, np.ndarray]:
    """Arrays by name from an npz, npy or safetensors file; a leading "in_" of a name is dropped. One array for one input may have
    any name.
    """
    found = {name.removeprefix("in_"): array for name, array in fl.load_weights(path).items() if not name.startswith("out_")}
    names = model.inputs.names
    return {names[0]: next(iter(found.values()))} if len(found) == len(names) == 1 else found

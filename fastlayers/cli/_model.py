"""What the commands about a model file share: the file, the sizes of its inputs, numbers to feed it with."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import fastlayers as fl

from ..errors import ShapeError
from ..model.model import Model

__all__ = ["add_arguments", "feeds", "load", "read_inputs"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model file, and what says how large its inputs are."""
    parser.add_argument("model", help="an ONNX file, or one that Model.save wrote")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,224,224",
        help="the shape of an input, where the file leaves it open (may be given again); a size that is left out of this is 1",
    )
    parser.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="NAME=16000",
        help="the number that an input of one element gets (may be given again)",
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="how many threads run it (1)")
    parser.add_argument("--no-passes", action="store_true", help="run the graph as it is written")


def load(arguments: argparse.Namespace) -> Model:
    """The model, with the process set to the wanted number of threads."""
    fl.set_num_threads(arguments.threads)
    model: Model = fl.load(arguments.model, optimize=not arguments.no_passes)
    return model


def _pairs(given: Sequence[str], option: str, names: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or name not in names:
            raise ShapeError(f"{option} {text}: expected NAME=..., with one of the names {', '.join(names)}")
        found[name] = value
    return found


def feeds(model: Model, arguments: argparse.Namespace) -> dict[str, np.ndarray]:
    """Seeded normal numbers in the shapes that the file and the command line give."""
    names = [spec.name for spec in model.inputs]
    shapes, values = _pairs(arguments.shape, "--shape", names), _pairs(arguments.value, "--value", names)
    rng, result = np.random.default_rng(0), {}
    for spec in model.inputs:
        shape = _shape(spec.shape, shapes.get(spec.name), spec.name)
        if spec.name in values:
            try:
                result[spec.name] = np.full(shape, float(values[spec.name])).astype(spec.dtype)
            except ValueError:
                raise ShapeError(f"--value {spec.name}={values[spec.name]}: expected a number") from None
        elif spec.dtype.kind == "f":
            result[spec.name] = rng.standard_normal(shape).astype(spec.dtype)
        else:
            result[spec.name] = np.zeros(shape, spec.dtype)
    return result


def _shape(known: Any, given: str | None, name: str) -> tuple[int, ...]:
    if given is not None:
        try:
            return tuple(int(part) for part in given.split(",") if part)
        except ValueError:
            raise ShapeError(f"--shape {name}={given}: expected sizes separated by commas") from None
    if known is None:
        raise ShapeError(f"the model leaves the rank of {name} open: give --shape {name}=...")
    return tuple(d if isinstance(d, int) else 1 for d in known)


def read_inputs(path: str) -> Mapping[str, np.ndarray]:
    """Arrays by name from an npz or safetensors file; a leading "in_" of a name is dropped."""
    return {name.removeprefix("in_"): array for name, array in fl.load_weights(path).items() if not name.startswith("out_")}

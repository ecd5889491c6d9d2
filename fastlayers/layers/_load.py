"""From a mapping of arrays to the tensors that layers want: every name, shape and dtype is checked before any is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._arguments import shown
from .._tuples import NamedTuple
from ..errors import DTypeError, WeightsError
from ..graph.arrays import as_float32, is_constant

__all__ = ["Loaded", "as_tensor", "load_into", "named", "read_only"]

# What files hold besides weights, by the last part of its name: torch's count of training batches.
MAY_STAY_UNUSED = frozenset({"num_batches_tracked"})


class Loaded(NamedTuple):
    """Names that `load_state_dict` did not find, and names that it did not use."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def named(layer: str, weights: Any, prefix: str) -> dict[str, Any]:
    """The entries of a mapping whose names begin with `prefix`, without it."""
    if not isinstance(weights, Mapping):
        raise DTypeError(
            f"{layer}.load_state_dict: weights of type {type(weights).__name__}: expected a mapping of names to arrays, as "
            "load_weights reads a file"
        )
    if not isinstance(prefix, str):
        raise DTypeError(f"{layer}.load_state_dict: prefix is {shown(prefix)} of type {type(prefix).__name__}: expected a str")
    if odd := [name for name in weights if not isinstance(name, str)]:
        raise DTypeError(
            f"{layer}.load_state_dict: weights has the name {shown(odd[0])} of type {type(odd[0]).__name__}: expected str"
        )
    return {name[len(prefix) :]: value for name, value in weights.items() if name.startswith(prefix)}


def load_into(
    where: str, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, Any], strict: bool, prefix: str
) -> tuple[dict[str, np.ndarray], Loaded]:
    """The tensors named in `shapes` as fresh float32 arrays, and the names that were missing or left over."""
    missing = [name for name in shapes if name not in given]
    unused = [name for name in given if name not in shapes and name.rpartition(".")[2] not in MAY_STAY_UNUSED]
    problems = []
    if strict and missing:
        problems.append("missing " + ", ".join(f"{prefix}{name} {shapes[name]}" for name in missing))
    if strict and unused:
        problems.append("not used " + ", ".join(prefix + name for name in unused))
    tensors: dict[str, np.ndarray] = {}
    wrong = []
    for name, shape in shapes.items():
        if name in given:
            try:
                array = as_tensor(given[name], where, prefix + name)
            except DTypeError as error:
                wrong.append(str(error.args[0]).partition(": ")[2])
                continue
            if array.shape != shape:
                wrong.append(f"{prefix}{name} has shape {array.shape}, expected {shape}")
            tensors[name] = array
    problems += ["wrong: " + "; ".join(wrong)] if wrong else []
    if problems:
        hint = _hint(shapes, given, prefix) if missing else ""
        raise WeightsError(f"{where}: {hint}" + "; ".join(problems) + f" (expected {len(shapes)} tensors)")
    return tensors, Loaded(missing, unused)


def _hint(shapes: Mapping[str, Any], given: Mapping[str, Any], prefix: str) -> str:
    """A sentence about names that only begin differently, or are one level further down."""
    first = next(iter(shapes))
    for name, value in given.items():
        if isinstance(value, Mapping):
            return f"the arrays seem to be in weights[{name!r}]; "
        before = name.removesuffix(first)
        if before != name and sum(before + wanted in given for wanted in shapes) * 2 > len(shapes):
            return f"prefix={prefix + before!r} would find them; "
        if first.endswith(f".{name}"):
            more = first.removesuffix(name)
            if sum(wanted.removeprefix(more) in given for wanted in shapes if wanted.startswith(more)) * 2 > len(shapes):
                return f"names lack {more!r}: expected {{{more!r} + name: array}}; "
    return ""


def as_tensor(value: Any, layer: str, name: str) -> np.ndarray:
    """A weight as a float32 array that nothing else can change."""
    try:
        array = as_float32(value, layer, name)
    except DTypeError:
        # torch's parameters (which require gradients) and its bfloat16 tensors cannot be read by numpy as they are.
        if not (hasattr(value, "detach") and hasattr(value, "float")):
            raise
        array = as_float32(value.detach().float().cpu(), layer, name)
    return array if is_constant(array) else array.copy()


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, marked as one that cannot be written."""
    array.flags.writeable = False
    return array

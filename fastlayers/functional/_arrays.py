"""From whatever a caller gives to the arrays that kernels take, and back. No operation is here."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..kernels import _dispatch

__all__ = [
    "as_float32",
    "as_int64",
    "as_mask",
    "empty",
    "is_constant",
    "is_masked",
    "optional_float32",
    "optional_int64",
    "optional_mask",
]

FLOAT32, INT64 = np.dtype(np.float32), np.dtype(np.int64)
_CONTIGUOUS_ALIGNED = 0x0001 | 0x0100  # NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED

empty = _dispatch.empty


def is_masked(value: Any) -> bool:
    """Whether it is a masked array. Nobody has one before numpy.ma is there, whose import takes longer than a small model's."""
    return isinstance(value, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))


def as_float32(value: Any, op: str, argument: str) -> np.ndarray:
    """`value` as a C-contiguous, aligned float32 array: itself if it is one, else a copy.

    Booleans, integers and reals of any width and byte order are converted; everything else is a DTypeError.
    """
    if type(value) is np.ndarray and value.dtype is FLOAT32 and value.flags.num & _CONTIGUOUS_ALIGNED == _CONTIGUOUS_ALIGNED:
        return value
    return _convert(value, op, argument)


def optional_float32(value: Any, op: str, argument: str) -> np.ndarray | None:
    """`as_float32`, or None for None."""
    return None if value is None else as_float32(value, op, argument)


def as_int64(value: Any, op: str, argument: str) -> np.ndarray:
    """`value` as a C-contiguous int64 array: integers of any width; everything else, booleans among them, is a DTypeError.

    An empty sequence has no dtype of its own and is taken as one of integers.
    """
    if type(value) is np.ndarray and value.dtype is INT64 and value.flags.num & _CONTIGUOUS_ALIGNED == _CONTIGUOUS_ALIGNED:
        return value
    array = _read(value, op, argument)
    if not array.size and not hasattr(value, "dtype"):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: {argument} has dtype {array.dtype}: expected integers")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ShapeError(f"{op}: {argument} has {array.max()}: expected integers below 2**63")
    return np.require(array, np.int64, ["C", "A"])


def optional_int64(value: Any, op: str, argument: str) -> np.ndarray | None:
    """`as_int64`, or None for None."""
    return None if value is None else as_int64(value, op, argument)


def as_mask(value: Any, op: str, argument: str) -> np.ndarray:
    """`value` as a C-contiguous array: booleans as they are, all else as `as_float32`."""
    array = value if isinstance(value, np.ndarray) else _read(value, op, argument)
    return np.require(array, None, ["C", "A"]) if array.dtype == np.bool_ else as_float32(value, op, argument)


def optional_mask(value: Any, op: str, argument: str) -> np.ndarray | None:
    """`as_mask`, or None for None."""
    return None if value is None else as_mask(value, op, argument)


def is_constant(array: np.ndarray) -> bool:
    """Whether nobody can write to the array's memory: such a one, a mapped file for example, needs no copy."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None or (isinstance(base, (bytes, memoryview)) and memoryview(base).readonly)


def _read(value: Any, op: str, argument: str) -> np.ndarray:
    """`value` as an array of whatever dtype it has."""
    if value is None:
        raise DTypeError(f"{op}: {argument} is None: expected an array")
    if is_masked(value):
        raise DTypeError(f"{op}: {argument} is a masked array: expected a plain one, for example {argument}.filled(0)")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(
            f"{op}: {argument} of type {type(value).__name__} cannot be read as an array of numbers ({error})"
        ) from error


def _convert(value: Any, op: str, argument: str) -> np.ndarray:
    array = _read(value, op, argument)
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise DTypeError(
            f"{op}: {argument} has dtype {array.dtype}: expected float32, or a real, integer or boolean dtype to convert"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return np.require(array, FLOAT32, ["C", "A"])

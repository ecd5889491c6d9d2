"""From whatever a caller gives to the arrays that kernels take, and back. No operation is here."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arguments import no_memory, shown
from .._foreign import as_numpy
from .._masked import is_masked
from ..errors import ArgumentError, DTypeError, Error
from ..kernels import dispatch

__all__ = [
    "as_array",
    "as_float32",
    "as_int64",
    "as_mask",
    "contiguous",
    "empty",
    "is_constant",
    "is_masked",
    "optional_float32",
    "optional_int64",
    "optional_mask",
]

FLOAT32, INT64 = np.dtype(np.float32), np.dtype(np.int64)
_CONTIGUOUS_ALIGNED = 0x0001 | 0x0100  # NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED

empty = dispatch.empty


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
    array = as_array(value, op, argument)
    if not array.size and not hasattr(value, "dtype"):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: {argument} has dtype {array.dtype}: expected integers")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ArgumentError(f"{op}: {argument} has {array.max()}: expected integers below 2**63")
    return _require(array, INT64, op, argument)


def optional_int64(value: Any, op: str, argument: str) -> np.ndarray | None:
    """`as_int64`, or None for None."""
    return None if value is None else as_int64(value, op, argument)


def as_mask(value: Any, op: str, argument: str) -> np.ndarray:
    """`value` as a C-contiguous array: booleans as they are, all else as `as_float32`."""
    array = value if isinstance(value, np.ndarray) else as_array(value, op, argument)
    return _require(array, None, op, argument) if array.dtype == np.bool_ else as_float32(value, op, argument)


def optional_mask(value: Any, op: str, argument: str) -> np.ndarray | None:
    """`as_mask`, or None for None."""
    return None if value is None else as_mask(value, op, argument)


def is_constant(array: np.ndarray) -> bool:
    """Whether nothing can write to the array's memory: such a one, a mapped file for example, needs no copy."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None or (isinstance(base, (bytes, memoryview)) and memoryview(base).readonly)


def as_array(value: Any, op: str, argument: str) -> np.ndarray:
    """`value` as an array of whatever dtype it has."""
    if value is None:
        raise DTypeError(f"{op}: {argument} is None: expected an array")
    if isinstance(value, (str, bytes)):
        raise DTypeError(
            f"{op}: {argument} is {shown(value)} of type {type(value).__name__}: expected an array; files are not opened"
        )
    if is_masked(value):
        raise DTypeError(f"{op}: {argument} is a masked array: expected a plain one, for example {argument}.filled(0)")
    try:
        return as_numpy(value)
    except Error:  # of a symbolic value
        raise
    except MemoryError as error:
        raise no_memory(f"{op}: {argument}") from error
    except Exception as error:  # a third-party type may raise anything
        raise DTypeError(
            f"{op}: {argument} of type {type(value).__name__} cannot be read as an array of values ({error!s:.200})"
        ) from error


def _convert(value: Any, op: str, argument: str) -> np.ndarray:
    array = as_array(value, op, argument)
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise DTypeError(
            f"{op}: {argument} has dtype {array.dtype}: expected float32, or a real, integer or boolean dtype to convert"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return _require(array, FLOAT32, op, argument)


def _require(array: np.ndarray, dtype: Any, op: str, argument: str) -> np.ndarray:
    """The array as kernels take it: itself, or a copy of another dtype or order."""
    try:
        return np.require(array, dtype, ["C", "A"])
    except MemoryError as error:
        raise no_memory(f"{op}: {argument}") from error


def contiguous(array: np.ndarray, op: str, argument: str = "x") -> np.ndarray:
    """The array itself if it is C-contiguous, else a copy that is."""
    try:
        return np.ascontiguousarray(array)
    except MemoryError as error:
        raise no_memory(f"{op}: {argument}") from error

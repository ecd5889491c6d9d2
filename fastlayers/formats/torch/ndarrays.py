"""numpy's arrays in a torch file: read if their elements are numeric, left out if they are text."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from .._arrays import Array, Codec, count_bytes, decode
from ..budget import Budget
from ..source import quote
from .records import Context, Global, Record, Refused

_NUMBERS = frozenset(("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"))
NAME = "numpy.ndarray"  # of the records that stand for arrays


class NumpyArray(NamedTuple):
    """A checked array, its data in the order and byte order of the pickle."""

    kind: Codec
    shape: tuple[int, ...]
    fortran: bool
    data: bytes


def reconstruct(args: tuple[Any, ...], context: Context) -> object:
    """An array that is empty until its state is set."""
    return Record(NAME, ())


def from_buffer(args: tuple[Any, ...], context: Context) -> object:
    """Protocol 5: data, dtype, shape and order, as a record like that of `reconstruct` with its state."""
    if len(args) != 4:
        context.fail(f"an array of numpy is made of {len(args)} values, expected data, dtype, shape and order")
    data, dtype, shape, order = args
    made = Record(NAME, ())
    made.parts.append((1, shape, dtype, order == "F", data))
    return made


def checked(record: Record, context: Context) -> NumpyArray | Refused | None:
    """The array that a record `NAME` in the pickle describes; None if its elements are text or dates."""
    state = record.parts[0] if len(record.parts) == 1 else None
    if type(state) is not tuple or len(state) != 5:
        context.fail("an array of numpy has no state, or one that is not of 5 values")
    _, shape, dtype, fortran, data = state
    found = _codec(dtype)
    if isinstance(found, Refused):
        return found
    if found is None:
        return None
    if type(data) is str:  # how Python 2 wrote bytes, if they are ASCII
        data = data.encode("latin-1", "replace")
    if type(shape) is not tuple or not all(type(n) is int and 0 <= n < 1 << 63 for n in shape) or type(data) is not bytes:
        context.fail(f"an array of numpy has shape {quote(shape)} and data of {type(data).__name__}, expected sizes and bytes")
    nbytes = count_bytes(shape, found, f"{context.where}: an array of numpy")
    if nbytes != len(data):
        context.fail(f"an array of numpy with shape {shape} takes {nbytes} bytes, {len(data)} are there")
    return NumpyArray(found, shape, bool(fortran), data)


def read(array: NumpyArray, budget: Budget, where: str) -> Array:
    """The array, in place where it can be."""
    return decode(memoryview(array.data), array.kind, array.shape, budget, where, fortran=array.fortran)


def _codec(dtype: Any) -> Codec | Refused | None:
    """Codec of a pickled dtype: its args are ("f4", False, True), its state (3, "<", ...)."""
    if type(dtype) is Global:
        return Refused(f"of numpy's dtype {quote(dtype.name)}")
    if type(dtype) is not Record or dtype.name != "numpy.dtype" or type(dtype.args) is not tuple or not dtype.args:
        return Refused("of an unknown dtype of numpy")
    code, state = dtype.args[0], dtype.parts[0] if dtype.parts else ("", "=")
    order = state[1] if type(state) is tuple and len(state) > 1 else None
    if not isinstance(code, str) or order not in ("<", ">", "|", "="):
        return Refused("of an unknown dtype of numpy")
    if code[:1] in ("U", "S", "M", "m"):
        return None
    if code not in _NUMBERS:
        return Refused(f"of numpy's dtype {quote(code)}")
    return Codec(np.dtype(f"{'<' if order == '=' else order}{code}"))

"""From the bytes of one tensor to a read-only array: shapes checked, odd floats widened, byte order and alignment put right."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._tuples import NamedTuple
from ..errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    from .budget import Budget

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

MAX_RANK = 32  # numpy 1.26's; numpy 2 has 64, but a file must not load with one and fail with the other
BFLOAT16 = np.dtype([("bfloat16", np.uint16)], align=True)  # dtypes that matrices may keep where `Budget.narrow`
_BLOCK = 1 << 16  # elements looked up at once: numpy widens indices to 8 bytes each


class Codec(NamedTuple):
    """Storage of a tensor's elements, and the function that widens them (`result`) if numpy lacks the type."""

    stored: np.dtype[Any]
    widen: Callable[[Array, Array], None] | None = None
    result: np.dtype[Any] = np.dtype(np.float32)

    @property
    def itemsize(self) -> int:
        """Bytes that an element takes in the result."""
        return self.result.itemsize if self.widen else self.stored.itemsize


def codec(stored: str, widen: Callable[[Array, Array], None] | None = None) -> Codec:
    """The codec of a numpy dtype string such as "<f4"."""
    return Codec(np.dtype(stored), widen)


def count_bytes(shape: tuple[int, ...], kind: Codec, where: object) -> int:
    """The bytes that a tensor of this shape has in the file. Raises if numpy could not hold it, empty dimensions or not."""
    if len(shape) > MAX_RANK:
        raise UnsupportedError(f"{where}: has {len(shape)} dimensions, at most {MAX_RANK} are supported")
    widest = math.prod(n for n in shape if n) * max(kind.itemsize, kind.stored.itemsize)
    if widest > sys.maxsize:
        raise FormatError(f"{where}: shape {shape} of {kind.stored.name} is beyond any memory")
    return math.prod(shape) * kind.stored.itemsize


def decode(
    view: memoryview, kind: Codec, shape: tuple[int, ...], budget: Budget, where: object, *, fortran: bool = False
) -> Array:
    """The read-only array that `view` holds: in place where it can be, else a copy that `budget` pays for.

    `view` must be read-only and exactly `count_bytes(shape, kind, where)` long (or what `kind.widen` takes for as many elements).
    `where` is what errors begin with, made into text only if there is one. Matrices of bfloat16 are widened, too, or are
    `BFLOAT16` in place where `budget.narrow`.
    """
    flat = np.frombuffer(view, kind.stored) if len(view) else np.empty(0, kind.stored)
    if kind.stored.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise FormatError(f"{where}: holds bool elements other than 0 and 1")
    if kind.widen is widen_bfloat16 and budget.narrow and len(shape) == 2 and flat.flags.aligned and flat.dtype.isnative:
        out = flat.reshape(shape).view(BFLOAT16)
    elif kind.widen is not None:
        out = budget.empty(shape, kind.result, where)
        kind.widen(flat, out.reshape(-1))
    elif flat.flags.aligned and flat.dtype.isnative and not (fortran and len(shape) > 1):
        out = flat.reshape(shape)
    else:
        out = budget.empty(shape, flat.dtype.newbyteorder("="), where)
        out[...] = flat.reshape(shape, order="F" if fortran else "C")
    out.flags.writeable = False
    return out


def widened(array: Array, budget: Budget, where: object) -> Array:
    """Floats of any width as float32."""
    if array.dtype == np.float32:
        return array
    out = budget.empty(array.shape, np.float32, where)
    if array.dtype == BFLOAT16:
        widen_bfloat16(array.view(np.uint16), out)
    else:
        out[...] = array
    return out


def widen_bfloat16(raw: Array, out: Array) -> None:
    """bfloat16 is the upper half of a float32: every value, NaN payloads included, is retained."""
    # dtype= is needed: numpy 1.26 goes by the value of a scalar, and would shift 16-bit values.
    np.left_shift(raw, 16, out=out.view(np.uint32), dtype=np.uint32)


def widen_float8(exponent_bits: int, bias: int, special: str) -> Callable[[Array, Array], None]:
    """Widens 8-bit floats of a sign, `exponent_bits` and the mantissa; see `float8_values` for `special`."""

    def widen(raw: Array, out: Array) -> None:
        from .._codes import float8_values

        values = float8_values(exponent_bits, bias, special)
        for start in range(0, raw.size, _BLOCK):
            # "clip" spares the check of indices that cannot be out of range: three times faster.
            np.take(values, raw[start : start + _BLOCK], out=out[start : start + _BLOCK], mode="clip")

    return widen

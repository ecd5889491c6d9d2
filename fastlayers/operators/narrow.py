"""Element types that numpy lacks: how a number becomes the nearest one that such a type has. Stores nothing in few bits.

An array of such a type is one of a wider dtype (float32, int8 or uint8), all of whose values the type has; what a node computes
of bfloat16 values stays float32 until something is cast to bfloat16 again. Values that a caller gives are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .._tuples import NamedTuple

__all__ = ["NARROW", "Narrow", "narrowed"]

F32 = np.dtype(np.float32)
Round = Callable[[np.ndarray, bool, str], np.ndarray]


class Narrow(NamedTuple):
    """One type: its name, the dtype of its arrays, and ``round(x, saturate, mode)``."""

    name: str
    dtype: np.dtype[Any]
    round: Round


def narrowed(x: np.ndarray, number: int, saturate: bool = True, mode: str = "up") -> np.ndarray:
    """The values of ONNX's type `number` for those of x.

    Args:
        x: of any real dtype.
        number: a key of `NARROW`.
        saturate: whether what is too large for an 8-bit float becomes the largest one, and not infinity or NaN.
        mode: where to round for float8e8m0: up, down or nearest.
    """
    kind = NARROW[number]
    if x.dtype.kind == "c":
        x = x.real
    with np.errstate(all="ignore"):
        return kind.round(x, saturate, mode).astype(kind.dtype, copy=False)


def _bfloat16(x: np.ndarray, saturate: bool, mode: str) -> np.ndarray:
    """Half of a float32's bits, rounded to even."""
    wide = np.array(x, F32, order="C")  # a copy
    bits = wide.view(np.uint32)
    bits += ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    bits &= np.uint32(0xFFFF0000)
    wide[np.isnan(x)] = np.nan
    return wide


def _float(x: np.ndarray, saturate: bool, mode: str, mantissa: int, least: int, largest: float, special: str) -> np.ndarray:
    """Rounds to `mantissa` bits after the point, to even; `least` is the smallest normal number's exponent.

    `special`: the type has "ieee" infinities; "fn" none; "fnuz" none and no -0 either; "finite" not even a NaN: 0 stands for it.
    """
    wide = x.astype(np.float64)
    exponent = np.maximum(np.frexp(wide)[1] - 1, least)
    step = np.ldexp(1.0, exponent - mantissa)
    found: np.ndarray = np.where(np.isinf(wide), wide, np.rint(wide / step) * step)
    if saturate or special == "finite":
        found = np.clip(found, -largest, largest)
    else:
        beyond = np.inf if special == "ieee" else np.nan
        found = np.where(np.abs(found) > largest, np.copysign(beyond, found), found)
    if special == "finite":
        found = np.where(np.isnan(wide), 0.0, found)
    return found + 0.0 if special == "fnuz" else found


def _scale(x: np.ndarray, saturate: bool, mode: str) -> np.ndarray:
    """A power of two from 2**-127 to 2**127; signs are lost."""
    wide = np.abs(x.astype(np.float64))
    fraction, exponent = np.frexp(wide)
    above = {"up": fraction > 0.5, "down": np.zeros(wide.shape, bool), "nearest": fraction >= 0.75}[mode]
    power = np.where(wide > 0, exponent - 1 + above, -1000)
    power = np.where(np.isinf(wide), 1000, power)
    found = np.ldexp(1.0, np.clip(power, -127, 127))
    lost = np.isnan(wide) if saturate else np.isnan(wide) | (np.abs(power) > 127)
    return np.where(lost, np.nan, found)


def _integer(x: np.ndarray, saturate: bool, mode: str, bits: int, signed: bool) -> np.ndarray:
    """Cut off toward 0; of what is too large the lowest bits, as for integers of usual sizes. 0 for infinity and NaN."""
    size = 1 << bits
    if x.dtype.kind == "f":
        x = np.where(np.isfinite(x), np.fmod(np.trunc(x.astype(np.float64)), size), 0.0).astype(np.int64)
    low = (x.astype(np.int64, copy=False) & (size - 1)).astype(np.int64)
    return np.where(low >= size // 2, low - size, low) if signed else low


def _float_type(name: str, mantissa: int, least: int, largest: float, special: str) -> Narrow:
    return Narrow(name, F32, partial(_float, mantissa=mantissa, least=least, largest=largest, special=special))


def _integer_type(name: str, bits: int, signed: bool) -> Narrow:
    return Narrow(name, np.dtype(np.int8 if signed else np.uint8), partial(_integer, bits=bits, signed=signed))


# By TensorProto.DataType.
NARROW: Mapping[int, Narrow] = {
    16: Narrow("BFLOAT16", F32, _bfloat16),
    17: _float_type("FLOAT8E4M3FN", 3, -6, 448.0, "fn"),
    18: _float_type("FLOAT8E4M3FNUZ", 3, -7, 240.0, "fnuz"),
    19: _float_type("FLOAT8E5M2", 2, -14, 57344.0, "ieee"),
    20: _float_type("FLOAT8E5M2FNUZ", 2, -15, 57344.0, "fnuz"),
    21: _integer_type("UINT4", 4, False),
    22: _integer_type("INT4", 4, True),
    23: _float_type("FLOAT4E2M1", 1, 0, 6.0, "finite"),
    24: Narrow("FLOAT8E8M0", F32, _scale),
    25: _integer_type("UINT2", 2, False),
    26: _integer_type("INT2", 2, True),
    27: _float_type("FLOAT6E2M3", 3, 0, 7.5, "finite"),
    28: _float_type("FLOAT6E3M2", 2, -2, 28.0, "finite"),
}

"""The numbers that codes of 8 bits and fewer stand for, in formats and in kernels that look them up."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np

__all__ = ["CODES", "float8_values", "small_values", "values_of"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_EXPONENT_BITS = {"FLOAT4E2M1": 2, "FLOAT6E2M3": 2, "FLOAT6E3M2": 3}
_FLOAT8: dict[str, tuple[int, int, str]] = {
    "FLOAT8E4M3FN": (4, 7, "fn"), "FLOAT8E4M3FNUZ": (4, 8, "fnuz"), "FLOAT8E5M2": (5, 15, "ieee"),
    "FLOAT8E5M2FNUZ": (5, 16, "fnuz"),
}  # fmt: skip
# Sixteen numbers of bitsandbytes: FP4 (a sign, then those of the three other bits), NF4.
_FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
CODES = (*_FLOAT8, "FP4", "NF4")


@functools.cache
def values_of(name: str) -> Array:
    """The float32 of each code of one of `CODES`: 256, or 16."""
    if name in _FLOAT8:
        return float8_values(*_FLOAT8[name])
    return _frozen(np.array(_NF4 if name == "NF4" else (*_FP4, *(-v for v in _FP4))))


@functools.cache
def small_values(name: str, bits: int) -> Array:
    """The value of each code of a type of less than a byte (OCP Microscaling formats: no infinity and no NaN)."""
    codes = np.arange(1 << bits)
    if name.startswith("UINT"):
        table: Array = codes.astype(np.uint8)
    elif name.startswith("INT"):
        table = (codes - ((codes >> (bits - 1)) << bits)).astype(np.int8)
    else:
        exponent_bits = _EXPONENT_BITS[name]
        mantissa_bits = bits - 1 - exponent_bits
        exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = codes & ((1 << mantissa_bits) - 1)
        implicit = np.where(exponent > 0, 1 << mantissa_bits, 0)
        bias = (1 << (exponent_bits - 1)) - 1
        power = (np.maximum(exponent, 1) - (bias + mantissa_bits)).astype(np.int32)
        values = np.ldexp((implicit + mantissa).astype(np.float64), power)
        table = np.copysign(values, np.where(codes >> (bits - 1), -1.0, 1.0)).astype(np.float32)
    table.flags.writeable = False
    return table


@functools.cache
def float8_values(exponent_bits: int, bias: int, special: str) -> Array:
    """The float32 value of each of the 256 codes; all of them are exact in float32.

    `special` says which codes are infinite or NaN (OCP 8-bit floating point specification; FNUZ as in ONNX and torch):
    "ieee": the largest exponent means infinity (mantissa 0) or NaN (else), as in E5M2.
    "fn": no infinity; the codes 0x7f and 0xff alone are NaN, as in E4M3.
    "fnuz": no infinity and no negative zero; the code 0x80 alone is NaN.
    "scale": unsigned powers of two, 0xff is NaN, as in E8M0.
    """
    code = np.arange(256, dtype=np.int32)  # ldexp takes no int64 where C's long has 32 bits
    if special == "scale":
        values = np.ldexp(1.0, code - bias)
        values[0xFF] = np.nan
        return _frozen(values)
    mantissa_bits = 7 - exponent_bits
    exponent = (code & 0x7F) >> mantissa_bits
    mantissa = code & ((1 << mantissa_bits) - 1)
    implicit = np.where(exponent > 0, 1 << mantissa_bits, 0)
    values = np.ldexp((implicit + mantissa).astype(np.float64), np.maximum(exponent, 1) - (bias + mantissa_bits))
    if special == "ieee":
        largest = exponent == (1 << exponent_bits) - 1
        values[largest] = np.where(mantissa[largest] > 0, np.nan, np.inf)
    elif special == "fn":
        values[(code & 0x7F) == 0x7F] = np.nan
    values = np.copysign(values, np.where(code & 0x80, -1.0, 1.0))
    if special == "fnuz":
        values[0x80] = np.nan
    return _frozen(values)


def _frozen(values: Array) -> Array:
    table: Array = values.astype(np.float32)
    table.flags.writeable = False
    return table

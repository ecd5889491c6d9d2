"""The element types of ONNX: how each is stored, which field may hold it, and what numpy dtype comes out. Reads no file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._codes import small_values
from ..._tuples import NamedTuple
from .._arrays import Array, Codec, codec, widen_bfloat16, widen_float8

# The fields of TensorProto that hold elements.
FLOAT_DATA, INT32_DATA, STRING_DATA, INT64_DATA, RAW_DATA, DOUBLE_DATA, UINT64_DATA = 4, 5, 6, 7, 9, 10, 11
FIELD_NAMES = {
    FLOAT_DATA: "float_data",
    INT32_DATA: "int32_data",
    STRING_DATA: "string_data",
    INT64_DATA: "int64_data",
    RAW_DATA: "raw_data",
    DOUBLE_DATA: "double_data",
    UINT64_DATA: "uint64_data",
}
STRING, BOOL = 8, 9

_BLOCK = 3 << 12  # packed bytes unpacked at once; whole groups of three


class Elements(NamedTuple):
    """One element type.

    `codec` decodes raw_data; None if the type is not supported as a plain tensor.
    `dtype` is that of the array that comes out.
    `field` may hold the elements where raw_data does not.
    `bits` is the size of an element in raw_data.
    """

    name: str
    codec: Codec | None
    dtype: np.dtype[Any]
    field: int
    bits: int

    @property
    def widened(self) -> bool:
        """Whether numpy lacks the type, so that the array is of a wider one."""
        return self.codec is not None and self.codec.widen is not None

    def size(self, count: int) -> int:
        """The bytes of `count` elements in raw_data."""
        return (count * self.bits + 7) >> 3


def unpacked(raw: Array, bits: int) -> Array:
    """The codes of `bits` bits in packed bytes, lowest bits first: two or four in a byte, or (six bits) four in three bytes."""
    if bits == 6:
        words = np.zeros(-(-raw.size // 3) * 3, np.uint8)
        words[: raw.size] = raw
        groups = words.reshape(-1, 3).astype(np.int32) @ np.array([1, 1 << 8, 1 << 16], np.int32)
    else:
        groups = raw.astype(np.int32)
    shifts = np.arange(0, 24 if bits == 6 else 8, bits, dtype=np.int32)
    codes: Array = (groups[:, None] >> shifts) & ((1 << bits) - 1)
    return codes.reshape(-1)


def _widen_packed(name: str, bits: int) -> Callable[[Array, Array], None]:
    """Unpacks and widens; the bits after the last element mean nothing."""

    def widen(raw: Array, out: Array) -> None:
        values = small_values(name, bits)
        for start in range(0, raw.size, _BLOCK):
            codes = unpacked(raw[start : start + _BLOCK], bits)
            at = start * 8 // bits
            part = out[at : at + codes.size]
            np.take(values, codes[: part.size], out=part, mode="clip")

    return widen


def _plain(name: str, stored: str, field: int) -> Elements:
    kind = codec(stored)
    return Elements(name, kind, kind.stored.newbyteorder("="), field, 8 * kind.stored.itemsize)


def _wide(name: str, kind: Codec) -> Elements:
    return Elements(name, kind, kind.result, INT32_DATA, 8 * kind.stored.itemsize)


def _small(name: str, bits: int, dtype: type[np.generic]) -> Elements:
    return Elements(name, Codec(np.dtype("u1"), _widen_packed(name, bits), np.dtype(dtype)), np.dtype(dtype), INT32_DATA, bits)


def _complex(name: str, dtype: type[np.generic], field: int) -> Elements:
    return Elements(name, None, np.dtype(dtype), field, 8 * np.dtype(dtype).itemsize)


# By TensorProto.DataType.
ELEMENTS: dict[int, Elements] = {
    1: _plain("FLOAT", "<f4", FLOAT_DATA),
    2: _plain("UINT8", "u1", INT32_DATA),
    3: _plain("INT8", "i1", INT32_DATA),
    4: _plain("UINT16", "<u2", INT32_DATA),
    5: _plain("INT16", "<i2", INT32_DATA),
    6: _plain("INT32", "<i4", INT32_DATA),
    7: _plain("INT64", "<i8", INT64_DATA),
    STRING: Elements("STRING", None, np.dtype(object), STRING_DATA, 0),
    BOOL: _plain("BOOL", "?", INT32_DATA),
    10: _plain("FLOAT16", "<f2", INT32_DATA),
    11: _plain("DOUBLE", "<f8", DOUBLE_DATA),
    12: _plain("UINT32", "<u4", UINT64_DATA),
    13: _plain("UINT64", "<u8", UINT64_DATA),
    14: _complex("COMPLEX64", np.complex64, FLOAT_DATA),
    15: _complex("COMPLEX128", np.complex128, DOUBLE_DATA),
    16: _wide("BFLOAT16", codec("<u2", widen_bfloat16)),
    17: _wide("FLOAT8E4M3FN", codec("u1", widen_float8(4, 7, "fn"))),
    18: _wide("FLOAT8E4M3FNUZ", codec("u1", widen_float8(4, 8, "fnuz"))),
    19: _wide("FLOAT8E5M2", codec("u1", widen_float8(5, 15, "ieee"))),
    20: _wide("FLOAT8E5M2FNUZ", codec("u1", widen_float8(5, 16, "fnuz"))),
    21: _small("UINT4", 4, np.uint8),
    22: _small("INT4", 4, np.int8),
    23: _small("FLOAT4E2M1", 4, np.float32),
    24: _wide("FLOAT8E8M0", codec("u1", widen_float8(8, 127, "scale"))),
    25: _small("UINT2", 2, np.uint8),
    26: _small("INT2", 2, np.int8),
    27: _small("FLOAT6E2M3", 6, np.float32),
    28: _small("FLOAT6E3M2", 6, np.float32),
}

# Types of which any bytes are elements, in the machine's own order.
PLAIN = {
    code: kind.codec.stored
    for code, kind in ELEMENTS.items()
    if kind.codec and kind.codec.stored.isnative and not kind.widened and code != BOOL
}

"""Shapes and element types as HDF5's messages tell them."""

from __future__ import annotations

import math

from ..._tuples import NamedTuple
from .._arrays import MAX_RANK, Codec, codec, widen_bfloat16
from .raw import Cursor

__all__ = ["BFLOAT16", "Kind", "dataspace", "datatype", "strings"]

_FLOATS = {(2, 10, 5): "f2", (4, 23, 8): "f4", (8, 52, 11): "f8"}  # (bytes, mantissa, exponent)
_CLASSES = {2: "times", 4: "bit fields", 5: "opaque elements", 6: "compounds", 7: "references", 10: "arrays"}
_VLEN = 16  # a length, the address of a global heap and an index
DEEPEST = 4  # types in types


class Kind(NamedTuple):
    """The type of elements: `codec` of numeric ones; `text` is "fixed" or "variable" for strings; both None: something else."""

    size: int
    codec: Codec | None = None
    text: str | None = None
    name: str = ""


def dataspace(cursor: Cursor) -> tuple[int, ...] | None:
    """The shape; None for a null dataspace, which has no elements."""
    version, rank, flags = cursor.number(1), cursor.number(1), cursor.number(1)
    if version == 1:
        cursor.skip(5)
    elif version == 2:
        if cursor.number(1) == 2:
            return None
    else:
        cursor.raw.refuse(f"{cursor.what}: a dataspace of version {version}")
    if rank > MAX_RANK or flags & ~3:
        cursor.raw.fail(f"{cursor.what}: a dataspace of {rank} axes with flags {flags:#x}")
    shape = tuple(cursor.number(8) for _ in range(rank))
    if math.prod(n for n in shape if n) > 1 << 62:
        cursor.raw.fail(f"{cursor.what}: shape {shape} is beyond any memory")
    return shape


def datatype(cursor: Cursor, depth: int = 0) -> Kind:
    """The type of elements."""
    first = cursor.number(1)
    bits, size = cursor.number(3), cursor.number(4)
    kind, version = first & 15, first >> 4
    if not 1 <= version <= 5 or size == 0:
        cursor.raw.fail(f"{cursor.what}: a datatype of version {version} and {size} bytes")
    order = ">" if bits & 1 else "<"
    if kind == 0:
        offset, precision = cursor.number(2), cursor.number(2)
        if size in (1, 2, 4, 8) and offset == 0 and precision == 8 * size:
            return Kind(size, codec(f"{order}{'i' if bits & 8 else 'u'}{size}"))
        return Kind(size, name=f"integers of {precision} bits in {size} bytes")
    if kind == 1:
        return _float(cursor, bits, size, order)
    if kind == 3:
        return Kind(size, text="fixed")
    if kind == 8 and size == 1 and depth < DEEPEST:
        return _enumeration(cursor, bits & 0xFFFF, version, depth)
    if kind == 9:
        return Kind(size, text="variable") if bits & 15 == 1 and size == _VLEN else Kind(size, name="sequences of any length")
    return Kind(size, name=_CLASSES.get(kind, f"elements of class {kind}"))


# What Keras writes as opaque elements of 2 bytes, and an attribute that tells.
BFLOAT16 = Kind(2, codec("<u2", widen_bfloat16))


def _float(cursor: Cursor, bits: int, size: int, order: str) -> Kind:
    offset, precision, exponent_at, exponent, mantissa_at, mantissa = (cursor.number(n) for n in (2, 2, 1, 1, 1, 1))
    bias = cursor.number(4)
    plain = not bits & 0x40 and offset == 0 and precision == 8 * size and mantissa_at == 0 and exponent_at == mantissa
    plain = plain and bias == (1 << (exponent - 1)) - 1 if exponent else False
    if plain and (size, mantissa, exponent) in _FLOATS:
        return Kind(size, codec(order + _FLOATS[size, mantissa, exponent]))
    if plain and (size, mantissa, exponent) == (2, 7, 8):
        return Kind(2, codec(f"{order}u2", widen_bfloat16))
    return Kind(size, name=f"floats of {exponent} and {mantissa} bits in {size} bytes")


def _enumeration(cursor: Cursor, members: int, version: int, depth: int) -> Kind:
    """h5py's booleans: FALSE and TRUE of 8 bits."""
    base = datatype(cursor, depth + 1)
    if members != 2 or base.codec is None or base.codec.stored.itemsize != 1:
        return Kind(1, base.codec)
    names = []
    for _ in range(2):
        rest = bytes(cursor.view[cursor.at :])
        end = rest.find(b"\0")
        if end < 0:
            cursor.raw.fail(f"{cursor.what}: an enumeration's name does not end")
        names.append(rest[:end])
        cursor.skip(end + 1 if version >= 3 else min(-(-(end + 1) // 8) * 8, cursor.left))
    if names == [b"FALSE", b"TRUE"] and bytes(cursor.take(2)) == b"\0\1":
        return Kind(1, codec("?"))
    return Kind(1, base.codec)


def strings(raw: memoryview, size: int) -> list[bytes]:
    """Strings of fixed size, without what pads them."""
    return [bytes(raw[i : i + size]).rstrip(b"\0 ") for i in range(0, len(raw), size)]

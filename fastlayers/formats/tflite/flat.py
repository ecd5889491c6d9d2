"""A reader of flatbuffers that believes nothing: every offset, table, vector and string is compared with the bytes that are
there.

A table begins with the distance back to its vtable, which tells where in the table each field is; fields that refer to tables,
vectors and strings hold distances forward. Many references may lead to the same bytes, so what is read in all is bounded too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ...errors import FormatError
from .._arrays import Array

__all__ = ["Flat", "Table"]

# How often the bytes of a file may be read on average. Tables share vtables and writers share strings; nothing else is shared.
_TIMES = 16
_U32, _I32, _U16 = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")
_SCALARS = {code: struct.Struct(f"<{code}") for code in "bBiIfQq"}
_VECTORS = {
    code: np.dtype(f"<{name}") for code, name in (("B", "u1"), ("H", "u2"), ("i", "i4"), ("I", "u4"), ("q", "i8"), ("f", "f4"))
}


class Flat:
    """The bytes of one flatbuffer."""

    def __init__(self, view: memoryview, where: str) -> None:
        self.view, self.where = view, where
        self._left = _TIMES * len(view) + 1024

    def root(self) -> Table:
        """The table that the first four bytes lead to."""
        return Table(self, self.target(0, "the root"))

    def fail(self, text: str) -> NoReturn:
        """Raises a FormatError that names the file."""
        raise FormatError(f"{self.where}: {text}")

    def check(self, at: int, size: int, what: str) -> None:
        """Raises unless `size` bytes are there from `at` on; counts them as read."""
        if at < 0 or size > len(self.view) - at:
            self.fail(f"{what} is at {at} to {at + size}, the file has {len(self.view)} bytes: truncated?")
        self._left -= size
        if self._left < 0:
            self.fail(f"the same bytes are referred to again and again: more than {_TIMES} times as much as there is")

    def target(self, at: int, what: str) -> int:
        """Position that the reference at `at` leads to."""
        self.check(at, 4, what)
        distance: int = _U32.unpack_from(self.view, at)[0]
        if not distance:
            self.fail(f"{what} refers to itself")
        return at + distance

    def vector(self, at: int, width: int, what: str) -> tuple[int, int]:
        """Position of the first element of the vector at `at`, and the number of elements."""
        self.check(at, 4, what)
        count: int = _U32.unpack_from(self.view, at)[0]
        if count * width > len(self.view):
            self.fail(f"{what} has {count} elements, the file has {len(self.view)} bytes: truncated?")
        return at + 4, count


class Table:
    """One table. Fields are asked for by their number (their place in the schema); one that is not there has its default."""

    __slots__ = ("_at", "_flat", "_offsets", "_size")

    def __init__(self, flat: Flat, at: int) -> None:
        self._flat, self._at = flat, at
        flat.check(at, 4, "a table")
        vtable = at - _I32.unpack_from(flat.view, at)[0]
        flat.check(vtable, 4, "a vtable")
        length, self._size = _U16.unpack_from(flat.view, vtable)[0], _U16.unpack_from(flat.view, vtable + 2)[0]
        if length < 4 or length % 2 or self._size < 4:
            flat.fail(f"the vtable at {vtable} says that it has {length} bytes and its table {self._size}")
        flat.check(vtable, length, "a vtable")
        flat.check(at, self._size, "a table")
        self._offsets = np.frombuffer(flat.view[vtable + 4 : vtable + length], "<u2").tolist()

    def present(self) -> list[int]:
        """The ids of the fields that are there, known or not."""
        return [number for number, offset in enumerate(self._offsets) if offset]

    def _place(self, number: int, width: int) -> int | None:
        """Position of a field, or None if it is absent."""
        offset = self._offsets[number] if number < len(self._offsets) else 0
        if not offset:
            return None
        if offset < 4 or offset + width > self._size:
            self._flat.fail(f"field {number} of the table at {self._at} is at {offset}, the table has {self._size} bytes")
        return self._at + offset

    def number(self, number: int, code: str, default: Any = 0) -> Any:
        """A scalar; `code` is as in struct: b, B, i, I, f, q or Q."""
        kind = _SCALARS[code]
        at = self._place(number, kind.size)
        return default if at is None else kind.unpack_from(self._flat.view, at)[0]

    def _target(self, number: int) -> int | None:
        at = self._place(number, 4)
        return None if at is None else self._flat.target(at, f"field {number} of the table at {self._at}")

    def table(self, number: int) -> Table | None:
        """A table, or None."""
        at = self._target(number)
        return None if at is None else Table(self._flat, at)

    def tables(self, number: int) -> Iterator[Table]:
        """A vector of tables; none if the field is not there."""
        flat, at = self._flat, self._target(number)
        if at is None:
            return
        start, count = flat.vector(at, 4, "a vector of tables")
        flat.check(start, 4 * count, "a vector of tables")
        for i in range(count):
            yield Table(flat, flat.target(start + 4 * i, "an element of a vector"))

    def vector(self, number: int, code: str) -> Array | None:
        """A vector of values (B, H, i, I, q or f), where it is; None if the field is not there."""
        flat, dtype, at = self._flat, _VECTORS[code], self._target(number)
        if at is None:
            return None
        start, count = flat.vector(at, dtype.itemsize, "a vector")
        flat.check(start, count * dtype.itemsize, "a vector")
        return np.frombuffer(flat.view[start : start + count * dtype.itemsize], dtype)

    def ints(self, number: int, code: str = "i") -> tuple[int, ...] | None:
        """A vector of values as a tuple."""
        found = self.vector(number, code)
        return None if found is None else tuple(found.tolist())

    def data(self, number: int, counted: bool = False) -> memoryview | None:
        """A vector of bytes; those that are not looked at, such as weights, are not counted as read."""
        flat, at = self._flat, self._target(number)
        if at is None:
            return None
        start, count = flat.vector(at, 1, "a vector of bytes")
        flat.check(start + (0 if counted else count), count if counted else 0, "a vector of bytes")
        return flat.view[start : start + count]

    def text(self, number: int) -> str:
        """A string, "" if it is not there. What is no UTF-8 is spelled out, since names need not be read by anybody."""
        found = self.data(number, counted=True)
        return "" if found is None else bytes(found).decode("utf-8", "backslashreplace")

"""The bytes of an HDF5 file: integers and pieces by address, every address and length checked."""

from __future__ import annotations

from typing import NoReturn

from ...errors import FormatError, UnsupportedError

__all__ = ["UNDEFINED", "Cursor", "Raw"]

UNDEFINED = (1 << 64) - 1  # the address that stands for nothing


class Raw:
    """The file's bytes from its base address on; `where` is the beginning of errors."""

    def __init__(self, view: memoryview, where: str) -> None:
        self.view, self.where = view, where

    def piece(self, at: int, length: int, what: str) -> memoryview:
        """`length` bytes at address `at`."""
        if at < 0 or length < 0 or at + length > len(self.view):
            self.fail(f"{what}: {length} bytes at {at} are not in the file, which has {len(self.view)}")
        return self.view[at : at + length]

    def cursor(self, at: int, length: int, what: str) -> Cursor:
        """Reads `length` bytes at address `at` one after the other."""
        return Cursor(self.piece(at, length, what), self, what)

    def block(self, at: int, signature: bytes, length: int, what: str) -> Cursor:
        """The `length` bytes at address `at` that must begin with `signature`; the cursor stands after it."""
        cursor = self.cursor(at, length, what)
        if cursor.take(len(signature)) != signature:
            self.fail(f"{what} at {at} does not begin with {signature.decode()}")
        return cursor

    def fail(self, text: str) -> NoReturn:
        """A FormatError about this file."""
        raise FormatError(f"{self.where}: HDF5: {text}")

    def refuse(self, text: str) -> NoReturn:
        """An UnsupportedError about this file."""
        raise UnsupportedError(f"{self.where}: HDF5: {text}")


class Cursor:
    """A piece of the file that is read from front to back."""

    __slots__ = ("at", "raw", "view", "what")

    def __init__(self, view: memoryview, raw: Raw, what: str) -> None:
        self.view, self.raw, self.what, self.at = view, raw, what, 0

    @property
    def left(self) -> int:
        """Bytes that were not read."""
        return len(self.view) - self.at

    def take(self, length: int) -> memoryview:
        """The next bytes."""
        if not 0 <= length <= self.left:
            self.raw.fail(f"{self.what}: ends {length - self.left} bytes too early")
        self.at += length
        return self.view[self.at - length : self.at]

    def number(self, length: int) -> int:
        """The next unsigned integer of `length` bytes."""
        return int.from_bytes(self.take(length), "little")

    def skip(self, length: int) -> None:
        """Leaves out bytes."""
        self.take(length)

    def align(self) -> None:
        """Moves on to the next multiple of 8; at the end of the piece the padding may be missing."""
        self.skip(min(-self.at % 8, self.left))

    def text(self, length: int) -> str:
        """The next bytes as UTF-8, up to a zero byte."""
        raw = bytes(self.take(length)).split(b"\0", 1)[0]
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.raw.fail(f"{self.what}: the name {raw[:80]!r} is not UTF-8")

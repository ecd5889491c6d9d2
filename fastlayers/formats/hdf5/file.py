"""The file: its superblock, the messages of object headers, groups, attributes, and the walk over all datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from ...errors import FormatError
from .._arrays import count_bytes, decode
from ..budget import Budget
from .data import Dataset
from .heaps import GlobalHeaps, fractal_objects
from .links import Links, link, link_info, symbol_table
from .raw import Cursor, Raw
from .signature import find
from .types import BFLOAT16, Kind, dataspace, datatype, strings

__all__ = ["File"]

DEEPEST = 64  # groups in groups
MOST_OBJECTS = 200_000
MOST_MESSAGES = 20_000  # of one object
_SPACE, _LINK_INFO, _TYPE, _LINK, _LAYOUT, _CONTINUED, _SYMBOLS = 0x1, 0x2, 0x3, 0x6, 0x8, 0x10, 0x11
_ATTRIBUTE, _ATTRIBUTE_INFO, _NIL = 0xC, 0x15, 0x0


class Message(NamedTuple):
    """One message of an object header."""

    kind: int
    shared: bool
    data: memoryview


class File:
    """An HDF5 file whose bytes are in memory or mapped.

    Groups and datasets are given by their paths, "" being the root. Every error names `where`.
    """

    def __init__(self, view: memoryview, where: str, budget: Budget) -> None:
        at = find(view)
        if at is None:
            raise FormatError(f"{where}: HDF5: has no signature")
        self.where, self.budget = where, budget
        self.raw = Raw(view[at:].toreadonly(), where)
        self.size = len(view)
        self.decoded = 0  # bytes that datasets and texts have become
        self._texts = 0  # those of the object that is being read
        self._heaps = GlobalHeaps(self.raw)
        self._headers: dict[int, list[Message]] = {}
        self._root = self._superblock()
        self._groups: dict[int, Links] = {}

    def _superblock(self) -> int:
        """The address of the root group's header."""
        raw = self.raw
        cursor = raw.cursor(8, min(len(raw.view) - 8, 120), "the superblock")
        version = cursor.number(1)
        if version > 3:
            raw.refuse(f"a superblock of version {version}")
        if version < 2:
            cursor.skip(4)
        offsets, lengths = cursor.number(1), cursor.number(1)
        if (offsets, lengths) != (8, 8):
            raw.refuse(f"addresses of {offsets} and lengths of {lengths} bytes: expected 8")
        cursor.skip({0: 9, 1: 13}.get(version, 1))
        cursor.skip(8 + 8)  # base, free space or extension
        end = cursor.number(8)
        if end > self.size:
            raw.fail(f"the file has {self.size} bytes, it says {end}: truncated?")
        if version < 2:
            cursor.skip(8 + 8)
        return cursor.number(8)

    # ---- object headers -------------------------------------------------------------------------------------------------

    def messages(self, at: int) -> list[Message]:
        """The messages of the object at an address."""
        found = self._headers.get(at)
        if found is None:
            if len(self._headers) >= MOST_OBJECTS:
                self.raw.fail(f"more than {MOST_OBJECTS} objects")
            found = self._headers[at] = self._header(at)
        return found

    def _header(self, at: int) -> list[Message]:
        new = bytes(self.raw.piece(at, 4, "an object header")) == b"OHDR"
        pieces, tracked = [self._first(at, new)], False
        if new:
            tracked = bool(self.raw.view[at + 5] & 4)
        seen = {at}
        messages: list[Message] = []
        while pieces:
            cursor = pieces.pop(0)
            while cursor.left >= (6 if tracked else 4 if new else 8):
                kind, size = cursor.number(1 if new else 2), cursor.number(2)
                flags = cursor.number(1)
                cursor.skip(2 if tracked else 0 if new else 3)
                data = cursor.take(size)
                if len(messages) >= MOST_MESSAGES:
                    self.raw.fail(f"an object has more than {MOST_MESSAGES} messages")
                messages.append(Message(kind, bool(flags & 2), data))
                if kind == _CONTINUED:
                    pieces.append(self._continued(Cursor(data, self.raw, "a continuation"), new, seen))
        return messages

    def _first(self, at: int, new: bool) -> Cursor:
        raw = self.raw
        if not new:
            head = raw.cursor(at, 16, "an object header")
            if head.number(1) != 1:
                raw.fail(f"there is no object header at {at}")
            head.skip(7)
            return raw.cursor(at + 16, head.number(4), "an object header")
        head = raw.cursor(at, min(len(raw.view) - at, 40), "an object header")
        head.skip(4)
        version, flags = head.number(1), head.number(1)
        if version != 2:
            raw.refuse(f"an object header of version {version}")
        head.skip((16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0))
        size = head.number(1 << (flags & 3))
        return raw.cursor(at + head.at, size, "an object header")

    def _continued(self, place: Cursor, new: bool, seen: set[int]) -> Cursor:
        at, length = place.number(8), place.number(8)
        if at in seen:
            self.raw.fail("an object header continues in itself")
        seen.add(at)
        if not new:
            return self.raw.cursor(at, length, "an object header")
        cursor = self.raw.block(at, b"OCHK", length, "an object header")
        return Cursor(cursor.view[4 : length - 4], self.raw, "an object header")

    def _cursor(self, message: Message, what: str) -> Cursor:
        if message.shared:
            self.raw.refuse(f"{what} that is stored elsewhere (a shared message)")
        return Cursor(message.data, self.raw, what)

    # ---- groups ---------------------------------------------------------------------------------------------------------

    def links(self, at: int) -> Links:
        """Links of the group at an address."""
        found = self._groups.get(at)
        if found is None:
            found = self._groups[at] = Links({}, {})
            for message in self.messages(at):
                if message.kind == _SYMBOLS:
                    symbol_table(self.raw, self._cursor(message, "a symbol table"), found)
                elif message.kind == _LINK:
                    link(self.raw, self._cursor(message, "a link"), found)
                elif message.kind == _LINK_INFO:
                    link_info(self.raw, self._cursor(message, "a message about links"), found)
        if found.refused:
            name, kind = next(iter(found.refused.items()))
            self.raw.refuse(f"{name[:80]!r} is a {kind}: links are not followed")
        return found

    def find(self, path: str) -> int | None:
        """The address of an object, or None if there is none of this path."""
        at: int | None = self._root
        for part in path.split("/") if path else ():
            at = None if at is None or self._is_dataset(at) else self.links(at).objects.get(part)
        return at

    def _is_dataset(self, at: int) -> bool:
        return any(message.kind == _LAYOUT for message in self.messages(at))

    def datasets(self, below: str = "") -> Iterator[tuple[str, Dataset]]:
        """Every dataset below a group with its path, in the order of names; no group may be reached twice."""
        start = self.find(below)
        if start is None:
            return
        seen: set[int] = set()
        waiting: list[tuple[str, int, int]] = [("", start, 0)]
        count = 0
        while waiting:
            path, at, depth = waiting.pop()
            count += 1
            if count > MOST_OBJECTS or depth > DEEPEST:
                self.raw.fail(f"more than {MOST_OBJECTS} objects, or groups more than {DEEPEST} deep")
            if self._is_dataset(at):
                yield path, self._dataset(at, path)
                continue
            if at in seen:
                self.raw.fail(f"group {path[-80:]!r} is reached twice: a cycle")
            seen.add(at)
            inner = sorted(self.links(at).objects.items(), reverse=True)
            waiting += [(f"{path}/{name}" if path else name, target, depth + 1) for name, target in inner]

    def dataset(self, path: str) -> Dataset | None:
        """The dataset of a path, or None."""
        at = self.find(path)
        return None if at is None or not self._is_dataset(at) else self._dataset(at, path)

    def _dataset(self, at: int, path: str) -> Dataset:
        messages = {m.kind: m for m in self.messages(at) if m.kind != _NIL}
        if _SPACE not in messages or _TYPE not in messages:
            self.raw.fail(f"dataset {path[-80:]!r} has no shape or no type")
        what = f"dataset {path[-80:]!r}"
        kind = datatype(self._cursor(messages[_TYPE], what))
        shape = dataspace(self._cursor(messages[_SPACE], what))
        if kind.codec is None and kind.size == 2 and not kind.text and self._attributes(at).get("dtype") == "bfloat16":
            kind = BFLOAT16
        return Dataset(self, what, shape, kind, {k: self._cursor(m, what) for k, m in messages.items() if k in Dataset.READS})

    def claim(self, nbytes: int, what: str) -> None:
        """Counts the bytes made of the file against its size: more than a hundred times as many are refused."""
        self.decoded += nbytes
        if self.decoded > _FREE and self.decoded > _MOST_RATIO * self.size:
            self.raw.fail(
                f"{what}: {self.decoded} bytes of datasets and texts in a file of {self.size}: "
                f"more than {_MOST_RATIO} times is a bomb"
            )

    # ---- attributes -----------------------------------------------------------------------------------------------------

    def attributes(self, path: str) -> dict[str, Any]:
        """The attributes of an object: a str, a list of str, or an array; what is neither text nor numeric is left out."""
        at = self.find(path)
        if at is None:
            self.raw.fail(f"there is no object {path[-80:]!r}")
        return self._attributes(at)

    def _claim_text(self, nbytes: int, count: int) -> None:
        """Counts texts, of which those of one object are held together; many may be the same one of a heap."""
        self._texts += nbytes + _TEXT_BYTES * count
        if self._texts > self.size + _FREE_TEXT:
            self.raw.fail(f"the texts of an object's attributes are longer than the file by more than {_FREE_TEXT} bytes")
        self.claim(nbytes, "an attribute")

    def _attributes(self, at: int) -> dict[str, Any]:
        self._texts = 0
        found: dict[str, Any] = {}
        for message in self.messages(at):
            if message.kind == _ATTRIBUTE:
                self._attribute(self._cursor(message, "an attribute"), found)
            elif message.kind == _ATTRIBUTE_INFO:
                cursor = self._cursor(message, "a message about attributes")
                cursor.skip(1)
                cursor.skip(2 if cursor.number(1) & 1 else 0)
                for data in fractal_objects(self.raw, cursor.number(8), cursor.number(8), 0):
                    self._attribute(Cursor(data, self.raw, "an attribute"), found)
        return found

    def _attribute(self, cursor: Cursor, found: dict[str, Any]) -> None:
        version, flags = cursor.number(1), cursor.number(1)
        if not 1 <= version <= 3:
            self.raw.refuse(f"an attribute of version {version}")
        sizes = [cursor.number(2) for _ in range(3)]
        cursor.skip(1 if version == 3 else 0)
        parts: list[memoryview] = []
        for size in sizes:
            parts.append(cursor.take(size))
            if version == 1:
                # Padded as if it began at a multiple of 8, as it does.
                cursor.skip(min(-size % 8, cursor.left))
        name = Cursor(parts[0], self.raw, "an attribute").text(sizes[0])
        if version > 1 and flags & 3:
            return  # its type is stored elsewhere: not one of Keras'
        what = f"attribute {name[:80]!r}"
        kind = datatype(Cursor(parts[1], self.raw, what))
        shape = dataspace(Cursor(parts[2], self.raw, what))
        if name in found:
            self.raw.fail(f"{what} is there twice")
        value = None if shape is None else self._value(cursor, kind, shape, what)
        if value is not None:
            found[name] = value

    def _value(self, cursor: Cursor, kind: Kind, shape: tuple[int, ...], what: str) -> Any:
        count = int(np.prod(shape, dtype=object))
        if count * kind.size > cursor.left:
            self.raw.fail(f"{what} of shape {shape} has {cursor.left} bytes")
        if kind.codec is not None:
            where = f"{self.where}: {what}"
            return decode(cursor.take(count_bytes(shape, kind.codec, where)), kind.codec, shape, self.budget, where)
        data = cursor.take(count * kind.size)
        if kind.text == "fixed":
            self._claim_text(len(data), count)
            texts = strings(data, kind.size)
        elif kind.text == "variable":
            texts = self._variable(data)
        else:
            return None
        try:
            decoded = [text.decode() for text in texts]
        except UnicodeDecodeError:
            self.raw.fail(f"{what} is not UTF-8")
        return decoded if shape else decoded[0]

    def _variable(self, data: memoryview) -> list[bytes]:
        """Strings of any length: (length, address of a global heap, index) each."""
        cursor, texts = Cursor(data, self.raw, "a string"), list[bytes]()
        while cursor.left:
            length, at, index = cursor.number(4), cursor.number(8), cursor.number(4)
            text = self._heaps.get(at, index)[:length] if length else memoryview(b"")
            self._claim_text(len(text), 1)
            texts.append(bytes(text).rstrip(b"\0"))
        return texts


_FREE = 32 << 20  # below this nothing is said about ratios
_MOST_RATIO = 100
_FREE_TEXT = 4 << 20
_TEXT_BYTES = 64  # that a text takes besides its own

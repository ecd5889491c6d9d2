"""Bytes of a GGUF file as its metadata and the places of its tensors; every count, length and offset is checked before its use.

A file is "GGUF", a version, two counts, pairs of key and value, descriptions of tensors, and their data, aligned. Lists of texts
(vocabularies) are checked and stay where they are until somebody asks for them.
"""

from __future__ import annotations

import struct
from typing import Any, NoReturn

from ..._tuples import NamedTuple
from ...errors import FormatError, LimitError, UnsupportedError
from .._arrays import codec, count_bytes, decode
from .._refused import times
from ..budget import Budget
from ..source import Source, quote
from .types import KINDS, REFUSED, Kind

__all__ = ["File", "Tensor", "parse", "value_of"]

_MOST = 1 << 16  # pairs, or tensors: the largest models have a few thousand
_MOST_TEXTS = 1 << 22  # of a list: the largest vocabularies have 300,000
_LONGEST = 65535  # bytes of a key, as the format has it, or of a tensor's name
_EACH = 512  # bytes that a pair or a tensor takes as Python objects, at the most
_TEXT = 80  # and a text, besides its bytes
_RANK = 4  # of ggml
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")


class Tensor(NamedTuple):
    """One tensor: its shape as numpy has it (rows first), and where its bytes are in which file."""

    name: str
    where: str
    kind: Kind
    shape: tuple[int, ...]
    start: int
    size: int
    view: memoryview


class _Listed(NamedTuple):
    """A list of texts (`code` "") or numbers in the file."""

    code: str
    start: int
    length: int
    end: int


class File(NamedTuple):
    """A file's metadata (lists by their places, see `value_of`) and tensors, in its order."""

    view: memoryview
    where: str
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]


def parse(source: Source, budget: Budget, tensors: bool = True) -> File:
    """The file's description; without `tensors` they are left out, and need be of no known type."""
    reader = _Reader(source.view, source.where, budget)
    version = reader.number("I", 4)
    if version and not version & 0xFFFF:
        raise UnsupportedError(f"{source.where}: the file is big-endian: only little-endian GGUF is read")
    if version not in (2, 3):
        raise UnsupportedError(f"{source.where}: is version {version} of GGUF: versions 2 and 3 are read")
    count, pairs = reader.number("Q", 8), reader.number("Q", 16)
    reader.at = 24
    reader.counted(count, 24, "tensors")
    reader.counted(pairs, 13, "pairs of metadata")
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = reader.name("a key")
        if key in metadata:
            reader.fail(f"has the key {quote(key)} more than once")
        metadata[key] = reader.value(reader.next("I"), key)
    return File(source.view, source.where, metadata, _tensors(reader, count, _alignment(reader, metadata)) if tensors else {})


def value_of(file: File, key: str, budget: Budget) -> Any:
    """The value of a key: a number, bool or text as Python has it, a list of texts, or an array."""
    value = file.metadata[key]
    if not isinstance(value, _Listed):
        return value
    where = f"{file.where}: {quote(key)}"
    if value.code:
        kind = codec(f"<{value.code}")
        size = count_bytes((value.length,), kind, where)
        return decode(file.view[value.start : value.start + size], kind, (value.length,), budget, where)
    budget.take(_TEXT * value.length + value.end - value.start, where)
    made, at = [], value.start
    for _ in range(value.length):
        end = at + 8 + _LENGTH.unpack_from(file.view, at)[0]
        try:
            made.append(str(file.view[at + 8 : end], "utf-8"))
        except UnicodeDecodeError:
            raise FormatError(f"{where}: the text {quote(bytes(file.view[at + 8 : end]))} is not UTF-8") from None
        at = end
    return made


class _Reader:
    """Reads one value after the other, from `at` on."""

    def __init__(self, view: memoryview, where: str, budget: Budget) -> None:
        self.view, self.where, self.budget, self.at = view, where, budget, 0

    def fail(self, text: str) -> NoReturn:
        raise FormatError(f"{self.where}: {text}, before byte {self.at}")

    def number(self, code: str, at: int) -> Any:
        size = struct.calcsize(f"<{code}")
        if size > len(self.view) - at:
            raise FormatError(f"{self.where}: ends within a value at byte {at}: truncated?")
        return struct.unpack_from(f"<{code}", self.view, at)[0]

    def next(self, code: str) -> Any:
        found = self.number(code, self.at)
        self.at += struct.calcsize(f"<{code}")
        return found

    def counted(self, count: int, least: int, what: str) -> None:
        """Raises unless as many things of at least `least` bytes can follow and are allowed."""
        left = len(self.view) - self.at
        if count > left // least:
            self.fail(f"{count} {what} are announced, {left} bytes follow: truncated?")
        if count > _MOST:
            raise LimitError(f"{self.where}: has {count} {what}: at most {_MOST} are read")
        self.budget.take(count * _EACH, f"{self.where}: its description")

    def length(self, what: str) -> int:
        """The length of a text that follows."""
        size: int = self.next("Q")
        left = len(self.view) - self.at
        if size > left:
            self.fail(f"{what} of {size} bytes is announced, {left} follow: truncated?")
        return size

    def text(self, what: str) -> str:
        size = self.length(f"a text of {what}")
        self.budget.take(size, f"{self.where}: its texts")
        raw = bytes(self.view[self.at : self.at + size])
        self.at += size
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.fail(f"{what}: the text {quote(raw)} is not UTF-8")

    def name(self, what: str) -> str:
        if self.length(what) > _LONGEST:
            self.fail(f"{what} is longer than {_LONGEST} bytes")
        self.at -= 8
        return self.text(what)

    def value(self, kind: int, key: str) -> Any:
        if kind == _STRING:
            return self.text(quote(key))
        if kind == _ARRAY:
            return self.listing(key)
        if kind not in _SCALARS:
            self.fail(f"{quote(key)} has type {kind}, expected one from 0 to 12")
        if kind == 7 and self.number("B", self.at) > 1:
            self.fail(f"{quote(key)} is a bool of {self.number('B', self.at)}, expected 0 or 1")
        return self.next(_SCALARS[kind])

    def listing(self, key: str) -> _Listed:
        kind, count = self.next("I"), self.next("Q")
        if kind == _ARRAY:
            raise UnsupportedError(f"{self.where}: {quote(key)} is a list of lists: only lists of numbers and of texts are read")
        if kind != _STRING and kind not in _SCALARS:
            self.fail(f"{quote(key)} is a list of type {kind}, expected one from 0 to 12")
        code = _SCALARS.get(kind, "")
        left, each = len(self.view) - self.at, struct.calcsize(f"<{code}") or 8
        if count > left // each:
            self.fail(f"{quote(key)} is a list of {count} values, {left} bytes follow: truncated?")
        begin = self.at
        if code:
            self.at += count * each
        elif count > _MOST_TEXTS:
            raise LimitError(f"{self.where}: {quote(key)} has {count} texts: at most {_MOST_TEXTS} are read")
        else:
            at, last, read = begin, len(self.view) - 8, _LENGTH.unpack_from
            for _ in range(count):
                if at > last:
                    break
                at += 8 + read(self.view, at)[0]
            else:
                last += 8
            if at > last:
                self.fail(f"{quote(key)} is a list of {count} texts that end beyond the file: truncated?")
            self.at = at
        return _Listed(code, begin, count, self.at)


def _alignment(reader: _Reader, metadata: dict[str, Any]) -> int:
    found = metadata.get("general.alignment", 32)
    if type(found) is not int or found < 1 or found & (found - 1):
        reader.fail(f"general.alignment is {quote(found)}, expected a power of 2")
    return found


def _tensors(reader: _Reader, count: int, alignment: int) -> dict[str, Tensor]:
    """The tensors, one behind the other, each at the next multiple of the alignment, to the file's end."""
    where, refused, described = reader.where, dict[str, int](), []
    names: set[str] = set()
    for _ in range(count):
        name = reader.name("a tensor's name")
        if name in names:
            reader.fail(f"two tensors have the name {quote(name)}")
        names.add(name)
        rank = reader.next("I")
        if rank > _RANK:
            reader.fail(f"tensor {quote(name)} has {rank} dimensions, at most {_RANK} are possible")
        shape = tuple(reader.next("Q") for _ in range(rank))[::-1]
        number, offset = reader.next("I"), reader.next("Q")
        if number in KINDS:
            described.append((name, KINDS[number], shape, offset))
        elif number in REFUSED:
            refused[REFUSED[number]] = refused.get(REFUSED[number], 0) + 1
        else:
            reader.fail(f"tensor {quote(name)} has type {number}, which is not known")
    if refused:
        some = ", ".join(kind.name for kind in KINDS.values())
        raise UnsupportedError(f"{where}: tensors of these types are not read: {', '.join(times(refused))}. Read are {some}")
    begin = reader.at + -reader.at % alignment
    position, end, tensors = begin, reader.at, {}
    for name, kind, shape, offset in described:
        here = f"{where}: tensor {quote(name)}"
        size = kind.bytes_of(shape, here)
        if begin + offset != position:
            raise FormatError(f"{here}: begins at offset {offset} of the data, expected {position - begin}, after the one before")
        end = position + size
        if end > len(reader.view):
            raise FormatError(f"{here}: ends at byte {end}, the file has {len(reader.view)}: truncated?")
        tensors[name] = Tensor(name, here, kind, shape, position, size, reader.view)
        position = end + -end % alignment
    if len(reader.view) not in (end, position):
        raise FormatError(f"{where}: {len(reader.view) - end} bytes follow the last tensor, expected {position - end}")
    return tensors

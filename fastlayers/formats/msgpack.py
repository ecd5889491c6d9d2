"""Reading weights as Flax writes them: MessagePack, in which arrays are an extension. A bounded reader of our own.

An array is extension 1, a number of numpy's extension 3: MessagePack again, [shape, dtype's name, bytes]. Arrays beyond a size
are maps of chunks: {"__msgpack_chunked_array__": true, "shape": {"0": ...}, "chunks": {"0": flat array, ...}}.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from .._tuples import NamedTuple
from ..errors import FormatError, LimitError, UnsupportedError
from ._arrays import MAX_RANK, Array, Codec, codec, count_bytes, decode, widen_bfloat16, widen_float8
from .budget import Budget
from .source import Source, quote

NAME = "msgpack"
LOOKS = "a map whose first key is text"

DEEPEST = 64  # maps in maps
_MOST = 1 << 19  # values; a network of 10,000 arrays has 100,000
_LONGEST = 1000  # characters of an array's name; keys may be long, and each level repeats those above
_EACH = 160  # bytes that a value takes as a Python object, at the least
_ARRAY, _COMPLEX, _SCALAR = 1, 2, 3
_CHUNKED = "__msgpack_chunked_array__"

_CODECS: dict[str, Codec] = {
    **{name: codec(f"<{code}") for name, code in (
        ("float16", "f2"), ("float32", "f4"), ("float64", "f8"), ("int8", "i1"), ("int16", "i2"), ("int32", "i4"),
        ("int64", "i8"), ("uint8", "u1"), ("uint16", "u2"), ("uint32", "u4"), ("uint64", "u8"), ("bool", "?"),
        ("complex64", "c8"),        ("complex128", "c16"), ("int4", "i1"), ("uint4", "u1"),
    )},
    "bfloat16": codec("<u2", widen_bfloat16),
    "float8_e4m3fn": codec("u1", widen_float8(4, 7, "fn")),
    "float8_e5m2": codec("u1", widen_float8(5, 15, "ieee")),
    "float8_e4m3fnuz": codec("u1", widen_float8(4, 8, "fnuz")),
    "float8_e5m2fnuz": codec("u1", widen_float8(5, 16, "fnuz")),
}  # fmt: skip
# First bytes from 0xc4 on: what follows as its length or number, in struct's letters.
_LENGTHS = {0xC4: "B", 0xC5: "H", 0xC6: "I", 0xC7: "B", 0xC8: "H", 0xC9: "I", 0xD9: "B", 0xDA: "H", 0xDB: "I", 0xDC: "H",
            0xDD: "I", 0xDE: "H", 0xDF: "I"}  # fmt: skip
_NUMBERS = {0xCA: "f", 0xCB: "d", 0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}
_PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}


class _Extension(NamedTuple):
    """An extension's number, and where its data is."""

    kind: int
    start: int
    end: int


class _Bytes(NamedTuple):
    """Position of binary data in the file."""

    start: int
    end: int


def sniff(source: Source) -> bool:
    """A map whose first key is a string of letters."""
    first = bytes(source.view[:16])
    if not first:
        return False
    skip = {0xDE: 3, 0xDF: 5}.get(first[0], 1 if 0x81 <= first[0] <= 0x8F else 0)
    if not skip or len(first) < skip + 3:
        return False
    key = first[skip]
    start = skip + 1 if 0xA1 <= key <= 0xBF else skip + 2 if key == 0xD9 else 0
    return bool(start) and (first[start : start + 1].isalnum() or first[start : start + 1] == b"_")


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every array of nested maps and lists, keys and indices joined with "."; scalars, text and null are left out."""
    reader = _Reader(source, budget)
    weights: dict[str, Array] = {}
    for name, array in reader.arrays(reader.whole()):
        if name in weights:
            raise FormatError(f"{source.where}: two arrays have the name {quote(name)}")
        weights[name] = array
    return weights


class _Reader:
    def __init__(self, source: Source, budget: Budget) -> None:
        self.view, self.where, self.budget = source.view, source.where, budget
        self.values = 0
        self.paid = f"{self.where}: its values"

    def fail(self, at: int, text: str) -> NoReturn:
        raise FormatError(f"{self.where}: {text} at byte {at}")

    # ---- MessagePack --------------------------------------------------------------------------------------------------

    def whole(self) -> dict[str, Any]:
        """The file's single value, which must be a map."""
        value, end = self.value(0, len(self.view), 0)
        if end != len(self.view):
            self.fail(end, f"{len(self.view) - end} bytes follow the map")
        if not isinstance(value, dict):
            self.fail(0, "expected a map")
        return value

    def unpacked(self, code: str, at: int, end: int) -> Any:
        size = struct.calcsize(f">{code}")
        if at + size > end:
            self.fail(at, "ends within a value: truncated?")
        return struct.unpack_from(f">{code}", self.view, at)[0]

    def value(self, at: int, end: int, depth: int) -> tuple[Any, int]:
        """The value that begins at `at`, and where it ends; arrays and binary data stay where they are."""
        if depth > DEEPEST:
            self.fail(at, f"maps are in maps more than {DEEPEST} deep")
        self.values += 1
        if self.values > _MOST:
            raise LimitError(f"{self.where}: has more than {_MOST} values: no file of weights needs as many")
        self.budget.take(_EACH, self.paid)
        if at >= end:
            self.fail(at, "ends within a value: truncated?")
        first = self.view[at]
        at += 1
        if first <= 0x7F or first >= 0xE0:
            return (first if first <= 0x7F else first - 256), at
        if first in _PLAIN:
            return _PLAIN[first], at
        if first in _NUMBERS:
            code = _NUMBERS[first]
            return self.unpacked(code, at, end), at + struct.calcsize(f">{code}")
        if 0xD4 <= first <= 0xD8:
            return self.extension(at, 1 << (first - 0xD4), end)
        if first in _LENGTHS:
            code = _LENGTHS[first]
            length = self.unpacked(code, at, end)
            at += struct.calcsize(f">{code}")
        elif first < 0xC0:  # the length is in the first byte
            length = first & (0x1F if first >= 0xA0 else 0x0F)
        else:
            self.fail(at - 1, f"byte 0x{first:02x} does not start a value")
        if first >= 0xDE or 0x80 <= first <= 0x8F:
            return self.mapping(at, length, end, depth)
        if 0xDC <= first <= 0xDD or 0x90 <= first <= 0x9F:
            return self.listing(at, length, end, depth)
        if 0xC7 <= first <= 0xC9:
            return self.extension(at, length, end)
        if length > end - at:
            self.fail(at, f"{length} bytes are announced, {end - at} follow: truncated?")
        if first <= 0xC6 and first >= 0xC4:
            return _Bytes(at, at + length), at + length
        try:
            self.budget.take(length, f"{self.where}: its text")
            return bytes(self.view[at : at + length]).decode("utf-8"), at + length
        except UnicodeDecodeError:
            self.fail(at, "text is not UTF-8")

    def extension(self, at: int, length: int, end: int) -> tuple[_Extension, int]:
        kind = self.unpacked("b", at, end)
        if length > end - at - 1:
            self.fail(at, f"an extension of {length} bytes is announced, {end - at - 1} follow: truncated?")
        return _Extension(kind, at + 1, at + 1 + length), at + 1 + length

    def count(self, at: int, length: int, end: int) -> None:
        if length > end - at:
            self.fail(at, f"{length} values are announced, {end - at} bytes follow: truncated?")

    def mapping(self, at: int, length: int, end: int, depth: int) -> tuple[dict[str, Any], int]:
        self.count(at, 2 * length, end)
        found: dict[str, Any] = {}
        for _ in range(length):
            key, after = self.value(at, end, depth + 1)
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                self.fail(at, "the key of a map is neither text nor a whole number")
            if str(key) in found:
                self.fail(at, f"a map has the key {quote(key)} more than once")
            found[str(key)], at = self.value(after, end, depth + 1)
        return found, at

    def listing(self, at: int, length: int, end: int, depth: int) -> tuple[list[Any], int]:
        self.count(at, length, end)
        found = []
        for _ in range(length):
            value, at = self.value(at, end, depth + 1)
            found.append(value)
        return found, at

    # ---- arrays -------------------------------------------------------------------------------------------------------

    def arrays(self, tree: Any, path: str = "") -> Iterator[tuple[str, Array]]:
        """The arrays of a value with their names."""
        if len(path) > _LONGEST:
            raise LimitError(f"{self.where}: the name {quote(path)} is longer than {_LONGEST} characters")
        if isinstance(tree, dict) and _CHUNKED in tree:
            yield path, self.joined(tree, path)
        elif isinstance(tree, (dict, list)):
            for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
                yield from self.arrays(value, f"{path}.{key}" if path else str(key))
        elif isinstance(tree, _Extension):
            if tree.kind in (_ARRAY, _SCALAR):
                yield path, self.array(tree, path)
            elif tree.kind != _COMPLEX:
                raise UnsupportedError(f"{self.where}: {quote(path)} is extension {tree.kind} of MessagePack, which is not known")

    def array(self, extension: _Extension, path: str) -> Array:
        where = f"{self.where}: array {quote(path)}"
        value, end = self.value(extension.start, extension.end, 0)
        fits = isinstance(value, list) and len(value) == 3 and end == extension.end
        if not fits or not isinstance(value[0], list) or not isinstance(value[2], _Bytes):
            raise FormatError(f"{where}: expected a shape, the name of a dtype and bytes")
        shape, name, data = tuple(value[0]), value[1], value[2]
        self.check_shape(shape, where)
        if isinstance(name, _Bytes):  # as old versions wrote text
            name = bytes(self.view[name.start : name.end]).decode("latin-1")
        if not isinstance(name, str) or name not in _CODECS:
            raise UnsupportedError(f"{where}: has dtype {quote(name)}, which is not supported")
        kind = _CODECS[name]
        size = count_bytes(shape, kind, where)
        if data.end - data.start != size:
            raise FormatError(f"{where}: has {data.end - data.start} bytes, {name} of shape {list(shape)} takes {size}")
        return decode(self.view[data.start : data.end].toreadonly(), kind, shape, self.budget, where)

    def check_shape(self, shape: tuple[Any, ...], where: str) -> None:
        if len(shape) > MAX_RANK or not all(type(n) is int and n >= 0 for n in shape):
            raise FormatError(f"{where}: has the shape {quote(shape)}: expected at most {MAX_RANK} sizes from 0 up")

    def joined(self, tree: dict[str, Any], path: str) -> Array:
        """The array of which a map has flat chunks."""
        where = f"{self.where}: array {quote(path)}"
        shape, chunks = (self.sequence(tree.get(key), where) for key in ("shape", "chunks"))
        self.check_shape(tuple(shape), where)
        if not chunks or not all(isinstance(chunk, _Extension) and chunk.kind == _ARRAY for chunk in chunks):
            raise FormatError(f"{where}: its chunks are no arrays")
        parts = [self.array(chunk, path) for chunk in chunks]
        dtype, size = parts[0].dtype, math.prod(shape)
        if any(p.ndim != 1 or p.dtype != dtype for p in parts) or sum(p.size for p in parts) != size:
            raise FormatError(
                f"{where}: its chunks have {sum(p.size for p in parts)} elements, its shape {list(shape)} has {size}"
            )
        out = self.budget.empty((size,), dtype, where)
        np.concatenate(parts, out=out)
        made: Array = out.reshape(shape)
        made.flags.writeable = False
        return made

    def sequence(self, value: Any, where: str) -> list[Any]:
        """{"0": a, "1": b} as a list."""
        if not isinstance(value, dict) or set(value) != {str(i) for i in range(len(value))}:
            raise FormatError(f"{where}: its chunks or their shape are not numbered from 0")
        return [value[str(i)] for i in range(len(value))]

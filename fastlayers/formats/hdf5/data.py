"""Contents of a dataset: stored in its header, in one piece, or in chunks that may be shuffled and deflated."""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

import numpy as np

from .._arrays import Array, count_bytes, decode
from .raw import UNDEFINED, Cursor
from .types import Kind

if TYPE_CHECKING:
    from .file import File

__all__ = ["Dataset"]

_LAYOUT, _EXTERNAL, _FILTERS = 0x8, 0x7, 0xB
_DEFLATE, _SHUFFLE, _FLETCHER = 1, 2, 3
_NAMES = {4: "szip", 5: "nbit", 6: "scale and offset", 32000: "LZF", 32001: "Blosc", 32004: "LZ4", 32015: "Zstandard"}
DEEPEST = 32
MOST_FILTERS = 8
_CHUNK_RATIO, _CHUNK_FREE = 1100, 1 << 20  # deflate makes at most 1032 bytes of one


class Dataset:
    """A dataset whose header was read; `read` reads its elements."""

    READS = frozenset({_LAYOUT, _EXTERNAL, _FILTERS})

    def __init__(self, file: File, what: str, shape: tuple[int, ...] | None, kind: Kind, messages: dict[int, Cursor]) -> None:
        self.file, self.what, self.shape, self.kind = file, what, shape, kind
        self._messages = messages

    @property
    def numeric(self) -> bool:
        """Whether its elements are numeric; raises for numeric types that numpy lacks and that are not widened."""
        if self.shape is None or self.kind.text:
            return False
        if self.kind.codec is None:
            self.file.raw.refuse(f"{self.what} has {self.kind.name}, which are not read")
        return True

    def read(self) -> Array:
        """The elements, read-only: in place where the file has them in one piece, in order and aligned."""
        raw, kind, shape = self.file.raw, self.kind.codec, self.shape
        if kind is None or shape is None:
            raw.refuse(f"{self.what} is not a numeric array")
        if _EXTERNAL in self._messages:
            raw.refuse(f"{self.what} is stored in other files, which are never opened")
        where = f"{self.file.where}: {self.what}"
        nbytes = count_bytes(shape, kind, where)
        self.file.claim(nbytes, self.what)
        return decode(self._bytes(nbytes), kind, shape, self.file.budget, where)

    def _bytes(self, nbytes: int) -> memoryview:
        """The elements in the file's byte order."""
        raw, cursor = self.file.raw, self._messages[_LAYOUT]
        version, place = cursor.number(1), cursor.number(1)
        if version not in (3, 4):
            raw.refuse(f"{self.what}: a layout of version {version}")
        if place == 0:
            data = cursor.take(cursor.number(2))
        elif place == 1:
            at, size = cursor.number(8), cursor.number(8)
            data = memoryview(b"") if at == UNDEFINED else raw.piece(at, size, self.what)
        elif place == 2:
            return self._chunks(cursor, version, nbytes)
        else:
            raw.refuse(f"{self.what}: is {'virtual: made of datasets of other files' if place == 3 else 'of an unknown layout'}")
        if _FILTERS in self._messages:
            raw.fail(f"{self.what}: has filters, but no chunks")
        if len(data) != nbytes:
            raw.fail(f"{self.what}: has {len(data)} bytes, its shape {self.shape} needs {nbytes}")
        return data

    # ---- chunks ---------------------------------------------------------------------------------------------------------

    def _chunks(self, cursor: Cursor, version: int, nbytes: int) -> memoryview:
        raw, shape, size = self.file.raw, self.shape, self.kind.size
        assert shape is not None
        filters = self._filters()
        entries: list[tuple[tuple[int, ...], int, int, int]]
        if version == 3:
            axes, tree = cursor.number(1), cursor.number(8)
            sizes = [cursor.number(4) for _ in range(axes)]
            chunk = self._checked(sizes)
            entries = [] if tree == UNDEFINED else self._tree(tree, len(shape))
        else:
            flags, axes, wide = cursor.number(1), cursor.number(1), cursor.number(1)
            chunk = self._checked([cursor.number(wide) for _ in range(axes)])
            index = cursor.number(1)
            if index != 1:
                raw.refuse(f"{self.what}: its chunks are found by an index of type {index}; save it with h5py's defaults")
            length, mask = (cursor.number(8), cursor.number(4)) if flags & 2 else (math.prod(chunk) * size, 0)
            entries = [((0,) * len(shape), length, mask, cursor.number(8))]
        whole = math.prod(chunk) * size
        stored = sum(length for _, length, _, _ in entries)
        if nbytes > _CHUNK_FREE and nbytes > _CHUNK_RATIO * stored:
            raw.fail(f"{self.what}: shape {self.shape} needs {nbytes} bytes, {stored} are stored: a bomb")
        counts = [-(-n // c) for n, c in zip(shape, chunk, strict=True)]
        if len(entries) != math.prod(counts):
            raw.fail(f"{self.what}: has {len(entries)} chunks, its shape needs {math.prod(counts)}")
        out = self.file.budget.empty((*shape, size), np.uint8, f"{self.file.where}: {self.what}")
        seen: set[tuple[int, ...]] = set()
        for offset, length, mask, at in entries:
            inside = len(offset) == len(shape) and all(o % c == 0 and o < n for o, c, n in zip(offset, chunk, shape, strict=True))
            if not inside or offset in seen:
                raw.fail(f"{self.what}: a chunk is at {offset}, which is next to the shape {shape}, or there twice")
            seen.add(offset)
            data = self._unfiltered(raw.piece(at, length, self.what), filters, mask, whole)
            parts = np.frombuffer(data, np.uint8).reshape(*chunk, size)
            taken = tuple(slice(0, min(c, n - o)) for o, c, n in zip(offset, chunk, shape, strict=True))
            out[tuple(slice(o, o + c) for o, c in zip(offset, chunk, strict=True))] = parts[taken]
        return memoryview(out.reshape(-1).data).toreadonly()

    def _checked(self, sizes: list[int]) -> tuple[int, ...]:
        """The chunk's shape, without the size of an element, which stands after it."""
        assert self.shape is not None
        *chunk, size = sizes or [0]
        whole = math.prod(chunk) * self.kind.size
        if len(chunk) != len(self.shape) or not all(chunk) or size != self.kind.size or whole > 1 << 32:
            self.file.raw.fail(f"{self.what}: chunks of shape {tuple(chunk)} for an array of shape {self.shape}")
        self.file.budget.check(whole, f"{self.file.where}: {self.what}: a chunk")
        return tuple(chunk)

    def _tree(self, at: int, rank: int) -> list[tuple[tuple[int, ...], int, int, int]]:
        """(offset, stored bytes, filters left out, address) of every chunk, from a version 1 B-tree."""
        raw = self.file.raw
        found: list[tuple[tuple[int, ...], int, int, int]] = []
        seen: set[int] = set()

        def node(at: int, level: int | None) -> None:
            if at in seen:
                raw.fail(f"{self.what}: a node of its B-tree is its own parent, or another's too")
            seen.add(at)
            head = raw.block(at, b"TREE", 24, self.what)
            kind, own, used = head.number(1), head.number(1), head.number(2)
            if kind != 1 or own > DEEPEST or (level is not None and own != level):
                raw.fail(f"{self.what}: a node of type {kind} and level {own} in its B-tree")
            keys = raw.cursor(at + 24, used * (24 + 8 * rank), self.what)
            for _ in range(used):
                length, mask = keys.number(4), keys.number(4)
                offset = tuple(keys.number(8) for _ in range(rank))
                keys.skip(8)
                child = keys.number(8)
                if own:
                    node(child, own - 1)
                else:
                    found.append((offset, length, mask, child))

        node(at, None)
        return found

    # ---- filters --------------------------------------------------------------------------------------------------------

    def _filters(self) -> list[int]:
        """The ids of the filters, in the order in which they were applied."""
        cursor = self._messages.get(_FILTERS)
        if cursor is None:
            return []
        raw = self.file.raw
        version, count = cursor.number(1), cursor.number(1)
        if version not in (1, 2) or count > MOST_FILTERS:
            raw.fail(f"{self.what}: {count} filters, of version {version}")
        cursor.skip(6 if version == 1 else 0)
        found = []
        for _ in range(count):
            number = cursor.number(2)
            name = cursor.number(2) if version == 1 or number >= 256 else 0
            cursor.skip(2)
            values = cursor.number(2)
            cursor.skip(-(-name // 8) * 8 if version == 1 else name)
            cursor.skip(4 * values + (4 if version == 1 and values % 2 else 0))
            if number not in (_DEFLATE, _SHUFFLE, _FLETCHER):
                raw.refuse(
                    f"{self.what}: is compressed by {_NAMES.get(number, f'filter {number}')}: only deflate and shuffle are read"
                )
            found.append(number)
        return found

    def _unfiltered(self, data: memoryview, filters: list[int], mask: int, whole: int) -> bytes | memoryview:
        raw = self.file.raw
        made: bytes | memoryview = data
        for i, number in reversed(list(enumerate(filters))):
            if mask >> i & 1:
                continue
            if number == _FLETCHER:
                made = made[: max(len(made) - 4, 0)]  # its sum is not checked
            elif number == _DEFLATE:
                inflater = zlib.decompressobj()
                try:
                    made = inflater.decompress(made, whole + 4)
                except zlib.error as error:
                    raw.fail(f"{self.what}: a chunk is damaged: {error}")
                if not inflater.eof:
                    raw.fail(f"{self.what}: a chunk inflates to more than the {whole} bytes of its shape, or is cut off")
            elif len(made) % self.kind.size == 0:
                lanes = np.frombuffer(made, np.uint8).reshape(self.kind.size, -1)
                made = np.ascontiguousarray(lanes.T).tobytes()
        if len(made) != whole:
            raw.fail(f"{self.what}: a chunk has {len(made)} bytes, its shape needs {whole}")
        return made

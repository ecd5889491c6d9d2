"""Heaps: names of old groups (local), strings of any length (global), and links and attributes of large objects (fractal)."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from .raw import UNDEFINED, Cursor

if TYPE_CHECKING:
    from .raw import Raw

__all__ = ["GlobalHeaps", "fractal_objects", "local_heap"]

MOST_BLOCKS = 100_000
DEEPEST = 16  # indirect blocks in indirect blocks


def local_heap(raw: Raw, at: int) -> memoryview:
    """The data of a local heap, in which names are."""
    head = raw.block(at, b"HEAP", 32, "a local heap")
    if head.number(1) != 0:
        raw.fail("a local heap of an unknown version")
    head.skip(3)
    size, _, data = head.number(8), head.number(8), head.number(8)
    return raw.piece(data, size, "a local heap's data")


class GlobalHeaps:
    """Objects of global heap collections, each collection being read once."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._collections: dict[int, dict[int, memoryview]] = {}

    def get(self, at: int, index: int) -> memoryview:
        """Object `index` of the collection at an address."""
        found = self._collections.get(at)
        if found is None:
            found = self._collections[at] = self._collection(at)
        if index not in found:
            self._raw.fail(f"a global heap at {at} has no object {index}")
        return found[index]

    def _collection(self, at: int) -> dict[int, memoryview]:
        raw = self._raw
        head = raw.block(at, b"GCOL", 16, "a global heap")
        if head.number(1) != 1:
            raw.fail("a global heap of an unknown version")
        head.skip(3)
        size = head.number(8)
        cursor = raw.cursor(at, size, "a global heap")
        cursor.skip(16)
        objects: dict[int, memoryview] = {}
        while cursor.left >= 16:
            index, _, _, length = cursor.number(2), cursor.number(2), cursor.number(4), cursor.number(8)
            if index == 0:  # the rest is free
                break
            objects[index] = cursor.take(length)
            cursor.align()
        return objects


def fractal_objects(raw: Raw, heap_at: int, tree_at: int, id_at: int) -> list[memoryview]:
    """The objects of a fractal heap that a version 2 B-tree names; in the tree's records the heap's ids stand at `id_at`."""
    if heap_at == UNDEFINED or tree_at == UNDEFINED:
        return []
    heap = _Fractal(raw, heap_at)
    return [heap.object(record[id_at : id_at + heap.id_length]) for record in _records(raw, tree_at)]


class _Fractal:
    """A fractal heap of managed objects, without filters."""

    def __init__(self, raw: Raw, at: int) -> None:
        head = raw.block(at, b"FRHP", 142, "a fractal heap")
        if head.number(1) != 0:
            raw.fail("a fractal heap of an unknown version")
        self.raw = raw
        self.id_length, filters, _ = head.number(2), head.number(2), head.number(1)
        if filters:
            raw.refuse("a fractal heap with filters")
        largest = head.number(4)
        head.skip(12 * 8)
        self.width, start, most = head.number(2), head.number(8), head.number(8)
        bits, _, root, rows = head.number(2), head.number(2), head.number(8), head.number(2)
        if not (self.width and start and most >= start and bits <= 64):
            raw.fail("a fractal heap's sizes contradict each other")
        self.offset_bytes = -(-bits // 8)
        self.length_bytes = min((most.bit_length() + 6) // 8, _width(largest))
        self.start, self.most = start, most
        self.blocks: list[tuple[int, int, int]] = []  # (offset in the heap, size, address), in order
        self.seen: set[int] = set()
        if root != UNDEFINED:
            if rows:
                self._indirect(root, rows, 0, 0)
            else:
                self._direct(root, 0, start)

    def _direct(self, at: int, offset: int, size: int) -> None:
        self._once(at)
        if bytes(self.raw.piece(at, 4, "a block of a fractal heap")) != b"FHDB":
            self.raw.fail("a block of a fractal heap does not begin with FHDB")
        self.blocks.append((offset, size, at))

    def _once(self, at: int) -> None:
        if at in self.seen or len(self.seen) >= MOST_BLOCKS:
            self.raw.fail(f"a fractal heap has a block twice, or more than {MOST_BLOCKS}")
        self.seen.add(at)

    def _size(self, row: int) -> int:
        return self.start << max(row - 1, 0)

    def _indirect(self, at: int, rows: int, offset: int, depth: int) -> None:
        direct_rows = (self.most // self.start).bit_length() + 1
        if depth > DEEPEST or rows > 80:
            self.raw.fail("blocks of a fractal heap are nested too deeply")
        self._once(at)
        cursor = self.raw.block(
            at, b"FHIB", 13 + self.offset_bytes + 8 * self.width * rows, "an indirect block of a fractal heap"
        )
        cursor.skip(9 + self.offset_bytes)
        for row in range(rows):
            for _ in range(self.width):
                child, size = cursor.number(8), self._size(row)
                if child != UNDEFINED:
                    if row < direct_rows:
                        self._direct(child, offset, size)
                    else:
                        inner = (size // self.start // self.width).bit_length()
                        self._indirect(child, inner, offset, depth + 1)
                offset += size

    def object(self, identity: memoryview) -> memoryview:
        """The object of an id."""
        if len(identity) < 1 + self.offset_bytes + self.length_bytes or identity[0] & 0xF0:
            self.raw.refuse("a fractal heap with objects that it does not manage itself")
        offset = int.from_bytes(identity[1 : 1 + self.offset_bytes], "little")
        length = int.from_bytes(identity[1 + self.offset_bytes :][: self.length_bytes], "little")
        i = bisect.bisect_right(self.blocks, (offset, UNDEFINED, 0)) - 1
        start, size, at = self.blocks[i] if i >= 0 else (0, 0, 0)
        if i < 0 or offset + length > start + size:
            self.raw.fail(f"a fractal heap has no object at {offset}")
        return self.raw.piece(at + offset - start, length, "an object of a fractal heap")


def _records(raw: Raw, at: int) -> list[memoryview]:
    """The records of a version 2 B-tree, in order."""
    head = raw.block(at, b"BTHD", 38, "a B-tree")
    head.skip(2)
    node_size, record_size, depth = head.number(4), head.number(2), head.number(2)
    head.skip(2)
    root, count, total = head.number(8), head.number(2), head.number(8)
    if depth > DEEPEST or not record_size or node_size < 10:
        raw.fail("a B-tree's sizes contradict each other")
    if root == UNDEFINED:
        return []
    # The most records of a leaf, and of a tree of each height: the values in the nodes are as wide as these.
    leaf = (node_size - 10) // record_size
    below = [leaf]
    for level in range(1, depth + 1):
        wide = 8 + _width(leaf) + (_width(below[level - 1]) if level > 1 else 0)
        most = max(node_size - 10 - wide, 0) // (record_size + wide)
        below.append((most + 1) * below[level - 1] + most)
    found: list[memoryview] = []
    seen: set[int] = set()

    def node(at: int, level: int, count: int) -> None:
        if at in seen:
            raw.fail("a B-tree has a node that is its own parent, or another's too")
        seen.add(at)
        cursor: Cursor = raw.block(at, b"BTIN" if level else b"BTLF", node_size, "a node of a B-tree")
        cursor.skip(2)
        records = [cursor.take(record_size) for _ in range(count)]
        if not level:
            found.extend(records)
            return
        for i in range(count + 1):
            child, inside = cursor.number(8), cursor.number(_width(leaf))
            if level > 1:
                cursor.skip(_width(below[level - 1]))
            node(child, level - 1, inside)
            found.extend(records[i : i + 1])

    node(root, depth, count)
    if len(found) != total:
        raw.fail(f"a B-tree has {len(found)} records, it says {total}")
    return found


def _width(number: int) -> int:
    return -(-max(number, 1).bit_length() // 8)

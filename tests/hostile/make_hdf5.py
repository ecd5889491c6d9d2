"""HDF5 files that lead elsewhere (CVE-2026-1669), stand for too much (CVE-2026-0897), or whose parts contradict each other."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import numpy as np

from fastlayers.errors import FormatError, LimitError, UnsupportedError

from ..formats.test_hdf5 import (
    DEFLATE,
    END,
    FLOAT,
    HOSTILE,
    behind,
    chunk_file,
    chunked,
    content,
    contiguous,
    file_of,
    hard,
    header,
    message,
    one,
    soft,
    space,
    tree_of,
)
from .cases import Case, Refusal, Sweep, contents, sweeps, weights

F, L, U = FormatError, LimitError, UnsupportedError
FOUR = contiguous(behind(space(4), FLOAT, contiguous(0, 16)), 16)  # where the four floats of `dataset` are
FILL = message(5, struct.pack("<BBBBI4s", 2, 2, 2, 1, 4, b"\0\0\x80?"))  # a fill value of 1
ZEROS = zlib.compress(bytes(1 << 22), 9)


def dataset(*messages: bytes, kind: bytes = FLOAT, data: bytes = bytes(16), layout: bytes = FOUR) -> bytes:
    """A dataset of four floats, with further messages."""
    return one(space(4), kind, layout, *messages, data=data)


def plain() -> bytes:
    """One that is right."""
    return one(space(4), FLOAT, FOUR, data=np.arange(4, dtype="<f4").tobytes())


def deflated() -> bytes:
    return chunk_file((5,), (3,), zlib.compress(bytes(12)), [(0,), (3,)])


def patched(at: int, value: bytes, whole: Callable[[], bytes] = plain) -> bytes:
    """A right file with some bytes replaced."""
    raw = whole()
    return raw[:at] + value + raw[at + len(value) :]


def filtered(number: int, *values: int, twice: int = 1) -> bytes:
    """A chunked dataset after a filter, `twice` times."""
    one_filter = struct.pack("<HHHH", number, 0, 0, len(values)) + b"".join(struct.pack("<I", v) for v in values)
    one_filter += bytes(4 * (len(values) % 2))
    filters = message(11, struct.pack("<BB6x", 1, twice) + one_filter * twice)
    layout = chunked(0, 4)
    at = behind(space(4), FLOAT, filters, layout)
    tree = tree_of(1, ((0,), 16, at + 24 + 32 + 24))
    return one(space(4), FLOAT, filters, chunked(at, 4), data=tree + bytes(16))


def node(level: int, *children: int, kind: int = 1, keys: int = 32) -> bytes:
    """A node of a B-tree of chunks."""
    out = b"TREE" + struct.pack("<BBHQQ", kind, level, len(children), END, END)
    for child in children:
        out += bytes(keys - 8) + struct.pack("<Q", child)
    return out + bytes(24)


def tree(level: int, *more: int) -> bytes:
    """A chunked dataset whose tree's root is of this level, and leads to itself or elsewhere."""
    at = behind(space(4), FLOAT, chunked(0, 4))
    return one(space(4), FLOAT, chunked(at, 4), data=node(level, *(m or at for m in more)))


def deep_tree(depth: int) -> bytes:
    at = behind(space(4), FLOAT, chunked(0, 4))
    size = len(node(1, 0))
    return one(space(4), FLOAT, chunked(at, 4), data=b"".join(node(depth - i, at + (i + 1) * size) for i in range(depth)))


def text_type(size: int = 16, variable: bool = True) -> bytes:
    return struct.pack("<BBBBI", 0x19 if variable else 0x13, 1 if variable else 0, 0, 0, size) + (bytes(8) if variable else b"")


def attribute(name: bytes, kind: bytes, shape: tuple[int, ...], data: bytes, version: int = 3) -> bytes:
    place = struct.pack("<BBB5x", 1, len(shape), 0) + b"".join(struct.pack("<Q", n) for n in shape)
    head = struct.pack("<BBHHHB", version, 0, len(name) + 1, len(kind), len(place), 0)
    return message(12, head + name + b"\0" + kind + place + data)


def heap(*objects: bytes, size: int | None = None) -> bytes:
    """A global heap collection of these objects, numbered from 1."""
    body = b"".join(struct.pack("<HHIQ", i + 1, 0, 0, len(o)) + o + bytes(-len(o) % 8) for i, o in enumerate(objects))
    return b"GCOL" + struct.pack("<B3xQ", 1, 16 + len(body) if size is None else size) + body


def texts(*pointers: tuple[int, int, int], collection: bytes = b"", attributes: int = 1) -> bytes:
    """A dataset with attributes of variable strings: (length, address, index) each; the address 0 is that of the heap after."""

    # The opaque elements make the reader ask for the attribute "dtype".
    kind = message(3, struct.pack("<BBBBI", 0x15, 0, 0, 0, 2) + bytes(8))

    def file(at: int) -> bytes:
        data = b"".join(struct.pack("<IQI", length, place or at, index) for length, place, index in pointers)
        made = [attribute(b"a%d" % i, text_type(), (len(pointers),), data) for i in range(attributes)]
        return one(space(4), kind, FOUR, *made, data=collection)

    return file(len(file(0)) - len(collection))


def superblock(version: int, offsets: int = 8, lengths: int = 8, end: int | None = None) -> bytes:
    """A file with this superblock before an empty root group."""
    raw = bytearray(plain())
    raw[8], raw[13], raw[14] = version, offsets, lengths
    if end is not None:
        raw[40:48] = struct.pack("<Q", end)
    return bytes(raw)


def modern(*, flags: int = 0, size: int | None = None, version: int = 2, body: bytes = b"") -> bytes:
    """A file whose root has a header of the new kind."""
    length = len(body) if size is None else size
    return file_of(b"OHDR" + struct.pack("<BBB", version, flags, min(length, 255)) + body + bytes(64))


def heaped(fields: bytes) -> bytes:
    """A group whose links are in a fractal heap with this header."""
    info = struct.pack("<BBQQ", 0, 0, 0, 0)
    at = 96 + len(header(message(2, info)))
    tree_at = at + 142
    b_tree = b"BTHD" + struct.pack("<BBIHHBBQHQ", 0, 5, 512, 11, 0, 100, 40, END, 0, 0) + bytes(8)
    return file_of(header(message(2, struct.pack("<BBQQ", 0, 0, at, tree_at))), (b"FRHP" + fields).ljust(142, b"\0"), b_tree)


def loops(count: int) -> bytes:
    """Continuations that lead to one another and back."""
    size = len(header(message(16, bytes(16))))
    first = 96
    blocks = [header(message(16, struct.pack("<QQ", first + ((i + 1) % count) * size + 16, 24))) for i in range(count)]
    return file_of(*blocks)


def groups(count: int, depth: int) -> bytes:
    """Groups each of which holds the next one `count` times under other names."""
    size = len(header(*(hard(b"%03d" % i, 0) for i in range(count))))
    return file_of(*(header(*(hard(b"%03d" % i, 96 + (d + 1) * size) for i in range(count))) for d in range(depth)), header())


FILES: dict[str, tuple[Callable[[], bytes], Refusal | None, str]] = {
    "a dataset": (plain, None, ""),
    "a dataset of chunks": (deflated, None, ""),
    # ---- elsewhere
    "a link into /etc": (
        lambda: file_of(header(message(6, struct.pack("<BBBBsH", 1, 8, 64, 1, b"x", 14) + b"\0/etc/passwd\0/"))),
        U, "'x' is a ExternalLink",
    ),
    "a link to itself": (lambda: file_of(header(soft(b"a", 1))), U, "is a SoftLink"),
    "an attribute stored elsewhere": (
        lambda: dataset(message(12, bytes(40), 2), kind=message(3, struct.pack("<BBBBI", 0x15, 0, 0, 0, 2) + bytes(8))), U,
        "a shared message",
    ),
    "a shape stored elsewhere": (lambda: one(message(1, bytes(24), 2), FLOAT, FOUR, data=bytes(16)), U, "a shared message"),
    "a committed type": (lambda: dataset(kind=message(3, struct.pack("<BBQ", 3, 0, 96), 2)), U, "a shared message"),
    "a layout stored elsewhere": (lambda: one(space(4), FLOAT, message(8, bytes(24), 2), data=bytes(16)), U, "a shared message"),
    "external storage in /etc/passwd": (
        lambda: dataset(message(7, struct.pack("<B3xHHQQQQ", 1, 1, 1, 96, 1, 0, 16))), U, "is stored in other files",
    ),
    # ---- the superblock
    "a superblock of version 4": (lambda: superblock(4), U, "a superblock of version 4"),
    "a superblock of version 255": (lambda: superblock(255), U, "a superblock of version 255"),
    "addresses of 4 bytes": (lambda: superblock(0, 4), U, "addresses of 4 and lengths of 8"),
    "lengths of 0 bytes": (lambda: superblock(0, 8, 0), U, "lengths of 0"),
    "addresses of 255 bytes": (lambda: superblock(0, 255), U, "addresses of 255"),
    "an end beyond the file": (lambda: superblock(0, end=1 << 62), F, "truncated?"),
    "a root beyond the file": (lambda: patched(64, struct.pack("<Q", 1 << 62)), F, "are not in the file"),
    "a root that is nowhere": (lambda: patched(64, struct.pack("<Q", END)), F, "are not in the file"),
    "a root in the superblock": (lambda: patched(64, struct.pack("<Q", 0)), F, "no object header"),
    "a signature after a megabyte": (lambda: bytes(1 << 20) + plain(), None, ""),
    "nothing after the signature": (lambda: plain()[:8], F, ""),
    # ---- object headers
    "a header of another version": (lambda: patched(96, b"\2"), F, "there is no object header"),
    "a header of 2**32 bytes": (lambda: patched(104, b"\xff" * 4), F, "are not in the file"),
    "a new header of another version": (lambda: modern(version=9), U, "an object header of version 9"),
    "a new header of 2**64 bytes": (lambda: modern(flags=3, body=b"\xff" * 16), F, "are not in the file"),
    "a new header that ends early": (lambda: modern(size=200), F, "are not in the file"),
    "continuations in a ring": (lambda: loops(50), F, "continues in itself"),
    "a continuation of 2**64 bytes": (
        lambda: file_of(header(message(16, struct.pack("<QQ", 90, END)))), F, "are not in the file",
    ),
    "a message longer than its header": (lambda: patched(114, b"\xff\xff"), F, "too early"),
    "30000 messages": (lambda: file_of(header(*[message(0, b"")] * 30_000)), F, "more than 20000 messages"),
    "no shape": (lambda: one(FLOAT, FOUR, data=bytes(16)), F, "has no shape or no type"),
    # ---- shapes and types
    "a shape of 8 PiB": (lambda: one(space(1 << 51), FLOAT, contiguous(0, 16), data=bytes(16)), F, "a bomb"),
    "a shape that overflows": (lambda: one(space(1 << 32, 1 << 32), FLOAT, FOUR, data=bytes(16)), F, "beyond any memory"),
    "an empty axis next to huge ones": (lambda: one(space(0, 1 << 62, 1 << 62), FLOAT, FOUR), F, "beyond any memory"),
    "a fill value and 16 GB of nothing": (
        lambda: one(space(1 << 32), FLOAT, FILL, contiguous(END, 0)), F,
        "a bomb",
    ),
    "a fill value and 4 MB of nothing": (
        lambda: one(space(1 << 20), FLOAT, FILL, contiguous(END, 0)), F,
        "has 0 bytes",
    ),
    "chunks of which none is stored": (lambda: one(space(1 << 40), FLOAT, chunked(END, 1 << 20)), F, "a bomb"),
    "a smaller place than the shape": (lambda: one(space(4), FLOAT, contiguous(96, 8), data=bytes(16)), F, "has 8 bytes"),
    "a larger place than the shape": (lambda: one(space(4), FLOAT, contiguous(96, 32), data=bytes(16)), F, "has 32 bytes"),
    "a place of 2**64 bytes": (lambda: one(space(4), FLOAT, contiguous(96, END)), F, "are not in the file"),
    "a compact place that ends early": (lambda: one(space(4), FLOAT, message(8, struct.pack("<BBH", 3, 0, 99))), F, "too early"),
    "a layout of version 1": (lambda: one(space(4), FLOAT, message(8, b"\1" + bytes(23))), U, "a layout of version 1"),
    "a type of version 0": (lambda: dataset(kind=message(3, b"\x01" + bytes(23))), F, "a datatype of version 0"),
    "a type of 0 bytes": (lambda: dataset(kind=message(3, b"\x11" + bytes(23))), F, "and 0 bytes"),
    "a type of 2**32 bytes": (lambda: dataset(kind=message(3, b"\x11\x20\x1f\0\xff\xff\xff\xff" + bytes(16))), U, "floats of"),
    "types in types": (lambda: dataset(kind=message(3, struct.pack("<BBBBI", 0x18, 2, 0, 0, 1) * 200)), (F, U), ""),
    "arrays": (lambda: dataset(kind=message(3, struct.pack("<BBBBI", 0x3A, 0, 0, 0, 4) + bytes(16))), U, "arrays, which are not"),
    "references": (lambda: dataset(kind=message(3, struct.pack("<BBBBI", 0x17, 0, 0, 0, 8) + bytes(16))), U, "references, which"),
    "sequences of any length": (
        lambda: dataset(kind=message(3, struct.pack("<BBBBI", 0x19, 0, 0, 0, 16) + bytes(16))), U, "sequences",
    ),
    # ---- chunks
    "chunks of more axes": (lambda: one(space(4), FLOAT, chunked(END, 2, 2)), F, "chunks of shape (2, 2)"),
    "chunks of 2**60 bytes": (lambda: one(space(4), FLOAT, chunked(END, (1 << 32) - 1)), F, "chunks of shape"),
    "chunks of 4 GB": (lambda: one(space(1), FLOAT, chunked(END, (1 << 30) - 1)), (F, L), ""),
    "another size of elements": (
        lambda: one(space(4), FLOAT, message(8, struct.pack("<BBBQII", 3, 2, 2, END, 4, 8))), F, "chunks of shape",
    ),
    "an index of an unknown kind": (
        lambda: one(space(4), FLOAT, message(8, struct.pack("<BBBBBBBB", 4, 2, 0, 2, 1, 4, 4, 9) + bytes(16))), U,
        "index of type 9",
    ),
    "a tree that leads to itself": (lambda: tree(1, 0), F, "its own parent"),
    "a tree twice to one node": (lambda: tree(2, 96, 96), F, ""),
    "a tree of 255 levels": (lambda: tree(255, 0), F, "level 255"),
    "a tree of 33 levels": (lambda: deep_tree(33), F, "level 33"),
    "a tree of 32 levels": (lambda: deep_tree(32), F, ""),
    "a tree of links": (
        lambda: one(space(4), FLOAT, chunked(behind(space(4), FLOAT, chunked(0, 4)), 4), data=node(0, 96, kind=0)), F,
        "of type 0",
    ),
    "a tree nowhere": (lambda: one(space(4), FLOAT, chunked(1 << 50, 4)), F, "are not in the file"),
    "12000 chunks that are one": (
        lambda: chunk_file((12_000 << 10,), (1 << 10,), zlib.compress(bytes(1 << 12)), [(i << 10,) for i in range(12_000)]), F,
        "more than 100 times is a bomb",
    ),
    "a bomb of 400 times": (
        lambda: chunk_file((12 << 20,), (1 << 20,), ZEROS, [(i << 20,) for i in range(12)]), F, "more than 100 times is a bomb",
    ),
    "deflate twice": (lambda: filtered(1, 4, twice=2), F, "is damaged"),
    "fifty filters": (lambda: filtered(1, 4, twice=50), F, "50 filters"),
    "szip": (lambda: filtered(4, 0), U, "compressed by szip"),
    "N-bit": (lambda: filtered(5, 0), U, "compressed by nbit"),
    "scale and offset": (lambda: filtered(6, 0), U, "scale and offset"),
    "a plugin": (lambda: filtered(32015), U, "Zstandard"),
    "a plugin nobody knows": (lambda: filtered(65535), U, "filter 65535"),
    "shuffled by 2**32": (lambda: filtered(2, (1 << 32) - 1), None, ""),
    "fletcher32 of too little": (lambda: filtered(3), F, "a chunk has 12 bytes, its shape needs 16"),
    "filters of 2**16 values": (
        lambda: one(space(4), FLOAT, message(11, struct.pack("<BB6xHHHH", 1, 1, 1, 0, 0, 65535)), chunked(END, 4)), F,
        "too early",
    ),
    "filters without chunks": (lambda: dataset(DEFLATE), F, "has filters, but no chunks"),
    # ---- attributes and heaps
    "a text": (lambda: texts((5, 0, 1), collection=heap(b"hello")), U, "opaque elements"),
    "a text of 2**32 bytes": (lambda: texts(((1 << 32) - 1, 0, 1), collection=heap(b"hello")), U, "opaque elements"),
    "a text of no heap": (lambda: texts((5, 96, 1), collection=heap(b"hello")), F, "does not begin with GCOL"),
    "a text beyond the file": (lambda: texts((5, 1 << 60, 1), collection=heap(b"hello")), F, "are not in the file"),
    "a text that the heap lacks": (lambda: texts((5, 0, 7), collection=heap(b"hello")), F, "has no object 7"),
    "a heap of 2**64 bytes": (lambda: texts((5, 0, 1), collection=heap(b"hello", size=END)), F, "are not in the file"),
    "a heap of 0 bytes": (lambda: texts((5, 0, 1), collection=heap(b"hello", size=0)), F, "too early"),
    "a heap whose objects are longer": (
        lambda: texts((5, 0, 1), collection=b"GCOL" + struct.pack("<B3xQHHIQ", 1, 32, 1, 0, 0, 1 << 40)), F, "too early",
    ),
    "texts that are one": (lambda: texts(*[(1 << 20, 0, 1)] * 100, collection=heap(b"x" * (1 << 20))), F, "longer than the file"),
    "attributes of texts that are one": (
        lambda: texts(*[(1 << 20, 0, 1)] * 20, collection=heap(b"x" * (1 << 20)), attributes=20), F, "longer than the file",
    ),
    "an attribute of 2**40 texts": (
        lambda: dataset(attribute(b"a", text_type(), (1 << 40,), b""),
        kind=message(3, struct.pack("<BBBBI", 0x15, 0, 0, 0, 2) + bytes(8))),
        F, "of shape (1099511627776,) has",
    ),
    "an attribute of fixed texts of no size": (
        lambda: dataset(attribute(b"a", text_type(0, False), (1 << 40,), b""),
        kind=message(3, struct.pack("<BBBBI", 0x15, 0, 0, 0, 2) + bytes(8))),
        F, "and 0 bytes",
    ),
    # ---- groups
    "groups that multiply": (lambda: groups(100, 30), F, "is reached twice: a cycle"),
    "groups that are their parents": (
        lambda: file_of(header(hard(b"a", 96 + len(header(hard(b"a", 0))))), header(hard(b"b", 96))), F, "a cycle",
    ),
    "a name of 60 kB": (
        lambda: file_of(header(message(6, struct.pack("<BBH", 1, 1, 60_000) + b"n" * 60_000 + struct.pack("<Q", 96)))), F,
        "a cycle",
    ),
    "a name that is a path": (lambda: file_of(header(hard(b"../../owned", 96))), F, "has the name '../../owned'"),
    "a name of dots": (lambda: file_of(header(hard(b"..", 96))), F, ""),
    "a name that is no text": (lambda: file_of(header(hard(b"\xff\xfe", 96))), F, "is not UTF-8"),
    "a dataset of many names": (
        lambda: file_of(header(*(hard(b"%04d" % i, 96 + 1000 * 40 + 16) for i in range(1000)))), F, "",
    ),
    "a fractal heap of no width": (lambda: heaped(bytes(130)), F, "sizes contradict each other"),
    "a fractal heap of another version": (lambda: heaped(b"\7" + bytes(130)), F, "unknown version"),
    "a fractal heap with filters": (lambda: heaped(struct.pack("<BHHB", 0, 8, 99, 0)), U, "a fractal heap with filters"),
}  # fmt: skip

CASES: list[Case | Sweep] = [
    *contents(
        "hdf5", {f"once: {name}": (lambda raw=raw: raw, error, text) for name, (raw, error, text) in HOSTILE.items()}, weights
    ),  # type: ignore[misc]
    *contents("hdf5", FILES, weights),
    *sweeps("hdf5", "a small file", plain, weights),
    *sweeps("hdf5", "a file of chunks", deflated, weights, 3),
    *sweeps("hdf5", "a file of the newest kind", lambda: content("v110"), weights, 487),
]

"""HDF5 through load_weights: what h5py wrote with every kind of storage; files that are are refused quickly, in little memory."""

from __future__ import annotations

import gzip
import random
import struct
import time
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import hdf5, load_weights
from fastlayers.formats.budget import Budget

from .measure import allocations

GOLDENS = Path(__file__).parents[1] / "goldens"
KINDS = {"earliest": 300, "userblock": 5, "tracked": 100, "latest": 300, "v110": 20}


@cache
def content(kind: str) -> bytes:
    return gzip.decompress((GOLDENS / f"hdf5_{kind}.h5.gz").read_bytes())


@pytest.mark.parametrize("kind", KINDS)
def test_every_dataset_of_numbers_by_its_path(kind: str) -> None:
    weights = load_weights(content(kind))
    with np.load(GOLDENS / "hdf5.npz") as file:
        expected = {name.replace("|", "/"): file[name] for name in file.files}
    many = {name: weights.pop(name) for name in list(weights) if name.startswith("many/")}
    assert [int(value) for value in many.values()] == list(range(KINDS[kind]))
    chunked = {name for name in expected if name.startswith("chunks/") and (name != "chunks/one" or kind == "latest")}
    assert set(weights) == set(expected) - (chunked if kind in ("latest", "v110") else set())
    for name, array in weights.items():
        want = expected[name]
        assert array.dtype == want.dtype.newbyteorder("=") and array.shape == want.shape, name
        assert np.array_equal(array, want) and not array.flags.writeable and array.flags.c_contiguous, name


@pytest.mark.parametrize("kind", KINDS)
def test_attributes(kind: str) -> None:
    file = hdf5.open_file(memoryview(content(kind)), "test", Budget(1 << 20, "load"))
    found = file.attributes("")
    assert found["text"] == "hällo" * 100 and found["bytes"] == "abc" and found["names"] == ["a", "bcd"]
    assert found["numbers"].tolist() == list(range(5)) and found["one"] == 2.5
    assert file.attributes("a/b") == {f"k{i}": f"v{i}" * i for i in range(12)}


def test_arrays_are_read_in_place_where_they_lie_aligned(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    path.write_bytes(content("earliest"))
    with allocations() as measured:
        weights = load_weights(path)
    assert sum(not array.flags.owndata for array in weights.values()) > 20
    assert measured.peak < 4 << 20


# ---- hand-made files: superblock 0, one object header of version 1 a group or dataset ------------------------------------------


def message(kind: int, data: bytes, flags: int = 0) -> bytes:
    data += bytes(-len(data) % 8)
    return struct.pack("<HHB3x", kind, len(data), flags) + data


def header(*messages: bytes) -> bytes:
    body = b"".join(messages)
    return struct.pack("<BxHII4x", 1, len(messages), 1, len(body)) + body


def hard(name: bytes, at: int) -> bytes:
    return message(6, struct.pack("<BBB", 1, 0, len(name)) + name + struct.pack("<Q", at))


def soft(name: bytes, kind: int) -> bytes:
    return message(6, struct.pack("<BBBB", 1, 8, kind, len(name)) + name + struct.pack("<H", 3) + b"a/b")


def space(*shape: int) -> bytes:
    return message(1, struct.pack("<BBB5x", 1, len(shape), 0) + b"".join(struct.pack("<Q", n) for n in shape))


FLOAT = message(3, bytes.fromhex("11201f000400000000002000170800177f000000"))


def contiguous(at: int, size: int) -> bytes:
    return message(8, struct.pack("<BBQQ", 3, 1, at, size))


def chunked(tree: int, *chunk: int) -> bytes:
    return message(8, struct.pack("<BBBQ", 3, 2, len(chunk) + 1, tree) + b"".join(struct.pack("<I", n) for n in (*chunk, 4)))


DEFLATE = message(11, struct.pack("<BB6xHHHHI4x", 1, 1, 1, 0, 0, 1, 4))
END = (1 << 64) - 1


def file_of(root: bytes, *behind: bytes) -> bytes:
    """The root group's header at 96, the rest at `places` of it."""
    body = root + b"".join(behind)
    superblock = b"\x89HDF\r\n\x1a\n" + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
    superblock += struct.pack("<QQQQ", 0, END, 96 + len(body), END) + struct.pack("<QQII16x", 0, 96, 0, 0)
    assert len(superblock) == 96
    return superblock + body


def one(*messages: bytes, data: bytes = b"") -> bytes:
    """A file whose root holds the dataset x, its messages taking `AT` for where `data` is."""
    root = header(hard(b"x", 0))
    at = 96 + len(root)
    root = header(hard(b"x", at))
    return file_of(root, header(*messages), data)


def behind(*messages: bytes) -> int:
    """Where data after the header of these messages is in `one`."""
    return len(one(*messages))


def tree_of(rank: int, *chunks: tuple[tuple[int, ...], int, int]) -> bytes:
    node = b"TREE" + struct.pack("<BBHQQ", 1, 0, len(chunks), END, END)
    for offset, size, at in chunks:
        node += struct.pack("<II", size, 0) + b"".join(struct.pack("<Q", n) for n in (*offset, 0)) + struct.pack("<Q", at)
    return node + bytes(16 + 8 * rank)


def chunk_file(
    shape: tuple[int, ...], chunk: tuple[int, ...], packed: bytes, offsets: list[tuple[int, ...]], twist: int = 0
) -> bytes:
    """A dataset of chunks that all are the same deflated piece."""
    at = behind(space(*shape), FLOAT, DEFLATE, chunked(0, *chunk))
    size = 24 + len(offsets) * (24 + 8 * len(shape)) + 16 + 8 * len(shape)
    tree = tree_of(len(shape), *((offset, len(packed) + twist, at + size) for offset in offsets))
    assert len(tree) == size
    return one(space(*shape), FLOAT, DEFLATE, chunked(at, *chunk), data=tree + packed)


def test_the_hand_made_files_are_well_made() -> None:
    numbers = np.arange(6, dtype="<f4")
    at = behind(space(2, 3), FLOAT, contiguous(0, 24))
    weights = load_weights(one(space(2, 3), FLOAT, contiguous(at, 24), data=numbers.tobytes()))
    assert np.array_equal(weights["x"], numbers.reshape(2, 3))
    weights = load_weights(chunk_file((5,), (3,), zlib.compress(numbers[:3].tobytes()), [(0,), (3,)]))
    assert weights["x"].tolist() == [0, 1, 2, 0, 1]


def hostile() -> dict[str, tuple[bytes, type[Error], str]]:
    zeros = zlib.compress(bytes(1 << 22), 9)
    at = behind(space(4), FLOAT, contiguous(0, 16))
    deep = [header(hard(b"x", 0))] * 100
    step = len(deep[0])
    nested = [header(hard(b"g", 96 + (i + 1) * step)) for i in range(100)]
    node = b"TREE" + struct.pack("<BBHQQ", 0, 1, 1, END, END)
    heap = b"HEAP" + struct.pack("<B3xQQQ", 0, 8, END, 0)
    root_size = len(header(message(17, bytes(16))))
    heap_at, node_at = 96 + root_size, 96 + root_size + 32
    symbols = header(message(17, struct.pack("<QQ", node_at, heap_at)))
    looped = file_of(symbols, heap, node + struct.pack("<QQQ", 0, node_at, 0))
    wild = file_of(symbols, heap, node[:4] + struct.pack("<BBHQQ", 0, 0, 65535, END, END) + bytes(64))
    many = header(*(hard(b"x%d" % i, 96) for i in range(2)))
    external = message(7, struct.pack("<B3xHHQ", 1, 1, 1, 0) + bytes(24))
    continued = header(message(16, struct.pack("<QQ", 0, 1 << 40)))
    own = 96 + 16
    lzf = message(11, struct.pack("<BB6xHHHH", 1, 1, 32000, 0, 0, 0))
    compound = message(3, bytes.fromhex("1600000004000000"))
    return {
        "soft link": (file_of(header(soft(b"x", 1))), UnsupportedError, "'x' is a SoftLink"),
        "external link": (file_of(header(soft(b"x", 64))), UnsupportedError, "'x' is a ExternalLink"),
        "user link": (file_of(header(soft(b"x", 200))), UnsupportedError, "link of type 200"),
        "a group in itself": (file_of(header(hard(b"a", 96))), FormatError, "is reached twice: a cycle"),
        "a group twice": (file_of(many), FormatError, "is reached twice: a cycle"),
        "groups in groups": (file_of(b"".join(nested), header()), FormatError, "deep"),
        "external storage": (one(space(4), FLOAT, external, contiguous(at, 16), data=bytes(16)), UnsupportedError, "in other"),
        "virtual": (one(space(4), FLOAT, message(8, b"\4\3" + bytes(14))), UnsupportedError, "virtual: made of"),
        "beyond the file": (one(space(4), FLOAT, contiguous(1 << 40, 16)), FormatError, "are not in the file"),
        "more than is stored": (one(space(1 << 40), FLOAT, contiguous(at, 16), data=bytes(16)), FormatError, "a bomb"),
        "shape of no bytes": (one(space(1 << 20), FLOAT, contiguous(END, 0)), FormatError, "has 0 bytes"),
        "shape beyond memory": (one(space(1 << 40, 1 << 40), FLOAT, contiguous(at, 16)), FormatError, "beyond any memory"),
        "200 axes": (one(message(1, bytes([1, 200, 0]) + bytes(5 + 1600)), FLOAT, contiguous(at, 16)), FormatError, "200 axes"),
        "shape bomb": (chunk_file((1 << 34,), (1 << 20,), zeros, [(0,)]), FormatError, "a bomb"),
        "chunks left out": (chunk_file((1_100_000,), (1 << 20,), zeros, [(0,)]), FormatError, "has 1 chunks, its shape needs 2"),
        "a chunk twice": (chunk_file((1 << 21,), (1 << 20,), zeros, [(0,), (0,)]), FormatError, "there twice"),
        "a chunk outside": (chunk_file((1 << 21,), (1 << 20,), zeros, [(0,), (1 << 62,)]), FormatError, "next to the shape"),
        "a chunk that inflates": (chunk_file((8,), (8,), zeros, [(0,)]), FormatError, "inflates to more than the 32 bytes"),
        "a chunk cut off": (chunk_file((1 << 20,), (1 << 20,), zeros, [(0,)], -9), FormatError, "or is cut off"),
        "a chunk too large": (chunk_file((8,), (1 << 31,), zeros, [(0,)]), FormatError, "chunks of shape"),
        "a chunk of nothing": (chunk_file((8,), (0,), zeros, [(0,)]), FormatError, "chunks of shape"),
        "the same chunk again and again": (
            chunk_file((1 << 27,), (1 << 20,), zeros, [(i << 20,) for i in range(128)]), FormatError, "a bomb",
        ),
        "a tree in itself": (looped, FormatError, "its own parent"),
        "65535 entries": (wild, FormatError, "are not in the file"),
        "continued beyond": (file_of(continued), FormatError, "are not in the file"),
        "continued in itself": (file_of(header(message(16, struct.pack("<QQ", own, 24)))), FormatError, "continues in itself"),
        "LZF": (one(space(8), FLOAT, lzf, chunked(END, 8)), UnsupportedError, "LZF"),
        "a name of dots": (file_of(header(hard(b".", 96))), FormatError, "has the name '.'"),
        "a name with a slash": (file_of(header(hard(b"a/b", 96))), FormatError, "has the name 'a/b'"),
        "a name twice": (file_of(header(hard(b"a", 96), hard(b"a", 96))), FormatError, "two links of a group"),
        "shared type": (one(space(4), message(3, bytes(16), 2), contiguous(at, 16)), UnsupportedError, "a shared message"),
        "compound": (one(space(4), compound, contiguous(at, 16)), UnsupportedError, "compounds"),
    }  # fmt: skip


HOSTILE = hostile()


@pytest.mark.parametrize("case", HOSTILE)
def test_what_lies_is_refused(case: str) -> None:
    raw, error, text = HOSTILE[case]
    start = time.perf_counter()
    with allocations() as measured, pytest.raises(error) as caught:
        load_weights(raw)
    assert text in str(caught.value), str(caught.value)
    assert measured.peak < 24 << 20
    assert time.perf_counter() - start < 5


def test_max_bytes_holds() -> None:
    raw = chunk_file((1 << 22,), (1 << 20,), zlib.compress(bytes(1 << 22), 1), [(i << 20,) for i in range(4)])
    assert load_weights(raw)["x"].size == 1 << 22
    with pytest.raises(LimitError, match="max_bytes=1048576"):
        load_weights(raw, max_bytes=1 << 20)


def check(raw: bytes) -> None:
    try:
        for array in load_weights(raw, max_bytes=1 << 20).values():
            array.tobytes()
    except (FormatError, UnsupportedError, LimitError):
        pass


@pytest.mark.parametrize("kind", ["userblock", "v110"])
@pytest.mark.sampled(2)
def test_damage_of_every_kind(kind: str) -> None:
    whole, rng = content(kind), random.Random(0)
    with allocations() as measured:
        for length in range(0, len(whole), 499):
            with pytest.raises((FormatError, UnsupportedError)):
                load_weights(whole[:length])
        for _ in range(100):
            raw = bytearray(whole)
            for _ in range(rng.choice((1, 1, 4, 30))):
                at = rng.randrange(8, len(raw) - 8)
                size = rng.choice((1, 2, 4, 8))
                raw[at : at + size] = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size), raw[at - 8 : at - 8 + size]))
            check(bytes(raw))
    assert measured.peak < 8 << 20

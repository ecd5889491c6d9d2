"""Flax's MessagePack: lengths that are, nesting, keys, extensions, names that grow, and damage of every kind."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError

from ..formats.test_msgpack import LIES, SMALL, TWO, array, mapped, text
from .cases import Case, Sweep, damaged, fixed, table

CHUNKS = "__msgpack_chunked_array__"


def with_good(value: bytes) -> bytes:
    """A map of a good array and of `value`."""
    return mapped(w=TWO, a=value)


def nested(levels: int, opening: bytes = b"\x81\xa1a") -> bytes:
    """Maps in maps."""
    return opening * levels + TWO


def ext32(inner: bytes, length: int | None = None, kind: int = 1) -> bytes:
    """An extension with a length of four bytes."""
    return b"\xc9" + struct.pack(">Ib", len(inner) if length is None else length, kind) + inner


def chunked(shape: dict[str, bytes], chunks: dict[str, bytes]) -> bytes:
    """An array in chunks."""
    parts = {CHUNKS: b"\xc3", "shape": mapped(**shape), "chunks": mapped(**chunks)}
    return mapped(**parts)


def names_that_grow(folder: Path) -> bytes:
    """A long key above many arrays: each array's name would repeat it."""
    long = b"b" * 1_000_000
    inner = b"".join(b"\xa4%04d" % i + array(b"\x91\x00", "float32", b"") for i in range(2000))
    return b"\x82" + text("a") + TWO + b"\xdb" + struct.pack(">I", len(long)) + long + b"\xde" + struct.pack(">H", 2000) + inner


def many_values(folder: Path) -> bytes:
    """More empty lists than any network has values, a byte each."""
    return b"\x82" + text("w") + TWO + text("a") + b"\xdd" + struct.pack(">I", 600_000) + b"\x90" * 600_000


# What is wrong: the file, the error, and words of it.
FILES: dict[str, tuple[bytes, type[Error] | None, str]] = {
    "good": (with_good(b"\x05"), None, ""),
    "text of 4 GiB": (with_good(b"\xdb\xff\xff\xff\xffa"), FormatError, "4294967295 bytes are announced"),
    "binary of 4 GiB": (with_good(b"\xc6\xff\xff\xff\xffa"), FormatError, "4294967295 bytes are announced"),
    "list of 4 Gi values": (with_good(b"\xdd\xff\xff\xff\xff\0"), FormatError, "4294967295 values are announced"),
    "map of 4 Gi values": (with_good(b"\xdf\xff\xff\xff\xff\0"), FormatError, "8589934590 values are announced"),
    "extension of 4 GiB": (with_good(b"\xc9\xff\xff\xff\xff\1"), FormatError, "an extension of 4294967295 bytes is announced"),
    "list of a byte too many": (with_good(b"\x93\1\2"), FormatError, "3 values are announced"),
    "number cut": (with_good(b"\xcf\1\2"), FormatError, "ends within a value"),
    "map cut after a key": (b"\x82" + text("a") + TWO + text("b"), FormatError, "ends within a value"),
    "64 maps": (nested(64), None, ""),
    "66 maps": (nested(66), FormatError, "more than 64 deep"),
    "100,000 maps": (nested(100_000), FormatError, "more than 64 deep"),
    "100,000 lists": (mapped(a=b"\x91" * 100_000 + b"\0"), FormatError, "more than 64 deep"),
    "100,000 maps as keys": (b"\x81" + text("a") + b"\x81" * 100_000, FormatError, "more than 64 deep"),
    "lists within an array": (mapped(a=ext32(b"\x91" * 100_000 + b"\0")), FormatError, "more than 64 deep"),
    "extension -1, a time": (with_good(b"\xd6\xff\0\0\0\0"), UnsupportedError, "extension -1 of MessagePack"),
    "extension 127": (with_good(b"\xd4\x7f\0"), UnsupportedError, "extension 127"),
    "extension 127 in a list": (with_good(b"\x91\xd4\x7f\0"), UnsupportedError, "'a.0' is extension 127"),
    "a complex number": (with_good(b"\xc7\x03\x02\x92\1\2"), None, ""),
    "key twice": (b"\x82" + (text("a") + TWO) * 2, FormatError, "has the key 'a' more than once"),
    "key twice, in other lengths": (b"\x82" + text("a") + TWO + b"\xd9\1a" + TWO, FormatError, "more than once"),
    "key as text and as number": (b"\x83" + text("w") + TWO + text("1") + TWO + b"\1" + TWO, FormatError, "more than once"),
    "key twice, deep below": (with_good(b"\x82" + (text("k") + b"\0") * 2), FormatError, "has the key 'k' more than once"),
    "key of bytes": (b"\x82" + text("a") + TWO + b"\xc4\1b" + TWO, FormatError, "neither text nor a whole number"),
    "key null": (b"\x82" + text("a") + TWO + b"\xc0" + TWO, FormatError, "neither text nor a whole number"),
    "key true": (b"\x82" + text("a") + TWO + b"\xc3" + TWO, FormatError, "neither text nor a whole number"),
    "key 0.5": (b"\x82" + text("a") + TWO + b"\xcb" + struct.pack(">d", 0.5) + TWO, FormatError, "neither text nor"),
    "key a list": (b"\x82" + text("a") + TWO + b"\x90" + TWO, FormatError, "neither text nor a whole number"),
    "key an array": (b"\x82" + text("a") + TWO + TWO + TWO, FormatError, "neither text nor a whole number"),
    "no map": (b"\x91" + mapped(a=TWO), FormatError, "is of no known format"),
    "two maps": (mapped(a=TWO) * 2, FormatError, f"{len(mapped(a=TWO))} bytes follow the map"),
    "array of one byte more": (mapped(a=array(b"\x91\2", "float32", bytes(9))), FormatError, "has 9 bytes, float32"),
    "array of one byte less": (mapped(a=array(b"\x91\2", "float32", bytes(7))), FormatError, "has 7 bytes, float32"),
    "array of a negative size": (mapped(a=array(b"\x91\xff", "uint8", b"")), FormatError, "expected at most 32 sizes from 0 up"),
    "array of size 2.0": (mapped(a=array(b"\x91\xcb" + struct.pack(">d", 2), "uint8", bytes(2))), FormatError, "sizes from 0 up"),
    "array of size true": (mapped(a=array(b"\x91\xc3", "uint8", bytes(1))), FormatError, "sizes from 0 up"),
    "array of a product over 64 bits": (mapped(a=array(b"\x92" + b"\xcf\1" + bytes(7) + b"\xcf\1" + bytes(7), "uint8", b"")),
                                        FormatError, "beyond any memory"),
    "array of 0 times 2**64": (mapped(a=array(b"\x93\0" + (b"\xcf" + b"\xff" * 8) * 2, "uint8", b"")), FormatError, "beyond any"),
    "array of 33 axes": (mapped(a=array(b"\xdc\0\x21" + b"\1" * 33, "uint8", b"\0")), FormatError, "at most 32 sizes"),
    "array of objects": (mapped(a=array(b"\x91\1", "object", bytes(8))), UnsupportedError, "has dtype 'object'"),
    "array of text": (mapped(a=array(b"\x91\1", "<U1", bytes(4))), UnsupportedError, "has dtype '<U1'"),
    "array of a dtype with a call": (mapped(a=array(b"\x91\1", "__import__('os')", b"")), UnsupportedError, "has dtype \"__"),
    "array whose dtype is a number": (mapped(a=ext32(b"\x93\x91\1\5\xc4\1\0")), UnsupportedError, "has dtype 5"),
    "array whose dtype is a list": (mapped(a=ext32(b"\x93\x91\1\x90\xc4\1\0")), UnsupportedError, "has dtype []"),
    "array without bytes": (mapped(a=ext32(b"\x92\x91\1" + text("uint8"))), FormatError, "expected a shape, the name of a dtype"),
    "array with a rest": (mapped(a=ext32(b"\x93\x91\1" + text("uint8") + b"\xc4\1\0\0")), FormatError, "expected a shape"),
    "array that is cut": (mapped(a=ext32(b"\x93\x91\1" + text("uint8") + b"\xc4\2\0")), FormatError, "2 bytes are announced, 1"),
    "array of nothing": (mapped(a=ext32(b"")), FormatError, "ends within a value"),
    "array as text": (mapped(a=ext32(b"\x93\x91\1" + text("uint8") + text("a"))), FormatError, "expected a shape"),
    "bool of 2": (mapped(a=array(b"\x91\1", "bool", b"\2")), FormatError, "bool elements other than 0 and 1"),
    "two names that become one": (mapped(**{"a.b": TWO, "a": mapped(b=TWO)}), FormatError, "two arrays have the name 'a.b'"),
    "chunks": (mapped(a=chunked({"0": b"\4"}, {"0": TWO, "1": TWO})), None, ""),
    "chunks of a larger shape": (mapped(a=chunked({"0": b"\5"}, {"0": TWO, "1": TWO})), FormatError, "chunks have 4 elements"),
    "chunks of a huge shape": (mapped(a=chunked({"0": b"\xcf" + b"\xff" * 8}, {"0": TWO})), FormatError, "chunks have 2"),
    "chunks without the first": (mapped(a=chunked({"0": b"\4"}, {"1": TWO, "2": TWO})), FormatError, "not numbered from 0"),
    "chunks of none": (mapped(a=chunked({"0": b"\0"}, {})), FormatError, "its chunks are no arrays"),
    "chunks of chunks": (mapped(a=chunked({"0": b"\2"}, {"0": chunked({"0": b"\2"}, {"0": TWO})})), FormatError, "no arrays"),
    "chunks of two dtypes": (mapped(a=chunked({"0": b"\4"}, {"0": TWO, "1": array(b"\x91\2", "uint8", bytes(2))})),
                             FormatError, "its chunks have"),
    "chunks without a shape": (mapped(a=mapped(**{CHUNKS: b"\xc3", "chunks": mapped(**{"0": TWO})})), FormatError, "not num"),
}  # fmt: skip


def _damaged() -> Iterator[bytes]:
    return damaged(SMALL)


CASES: list[Case | Sweep] = [
    Case(
        "flax",
        "lengths beyond the end",
        fixed(with_good(b"\xdb\xff\xff\xff\xffa")),
        FormatError,
        "4294967295 bytes are announced",
    ),
    Case("flax", "maps 100,000 deep", fixed(nested(100_000)), FormatError, "more than 64 deep"),
    Case("flax", "lists 10,000,000 deep", fixed(mapped(a=b"\x91" * 10_000_000)), FormatError, "more than 64 deep"),
    Case("flax", "an extension that nobody knows", fixed(with_good(b"\xd4\x7f\0")), UnsupportedError, "extension 127"),
    Case(
        "flax", "an array that lies about its bytes", fixed(mapped(a=array(b"\x91\2", "float32", bytes(7)))), match="has 7 bytes"
    ),
    Case("flax", "names that grow by their keys", names_that_grow, LimitError, "is longer than 1000 characters"),
    Case("flax", "a million values", many_values, LimitError, "has more than 524288 values"),
    Case("flax", "a good file", fixed(SMALL), valid=True),
    table("flax", "lies", FILES),
    table("flax", "is of the reader's tests", LIES),
    Sweep("flax", "damaged", _damaged),
]

"""npy, alone and in npz: objects, headers that are or run on, shapes that overflow, data that is missing or too much."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fastlayers.errors import Error, FormatError, UnsupportedError

from ..formats.build import Entry, archive, npy, npy_header, npy_raw
from ..formats.test_npy import BROKEN
from .cases import Case, Sweep, damaged, fixed, table

EIGHT = bytes(8)
GOOD = npy(np.arange(2, dtype=np.float32))
# What numpy would have unpickled: os.system, in protocol 0 and as an object array holds it.
HARM = b"cos\nsystem\n(S'touch ../harmed'\ntR."


def shaped(shape: str, data: bytes = EIGHT, descr: str = "'<f4'") -> bytes:
    """An array whose header has this text as its shape."""
    return npy_raw(npy_header(descr, shape=shape), data)


def typed(descr: str, data: bytes = EIGHT) -> bytes:
    """An array of two elements whose header has this text as its dtype."""
    return npy_raw(npy_header(descr), data)


def long_header(text: str) -> bytes:
    """A header of version 2, as long as it is."""
    return npy_raw(text, EIGHT, (2, 0))


def huge_header(folder: Path) -> bytes:
    """A valid header but for 20 MB of blanks in it."""
    return long_header(npy_header().replace("\n", " " * (20 << 20) + "\n"))


def in_npz(content: bytes) -> bytes:
    """The array next to a good one, in an archive."""
    return archive(Entry("good.npy", GOOD), Entry("bad.npy", content, deflated=True))


BAD = "malformed npy header"
FILES: dict[str, tuple[bytes, type[Error] | None, str]] = {
    "good": (GOOD, None, ""),
    "good, Fortran's order": (npy_raw(npy_header(order="True", shape="(1, 2)"), EIGHT), None, ""),
    "good, of no elements": (shaped("(0, 7)", b""), None, ""),
    "objects": (typed("'|O'", HARM), UnsupportedError, "holds Python objects (a pickle), and nothing is unpickled"),
    "objects by their size": (typed("'|O8'", HARM), UnsupportedError, "nothing is unpickled"),
    "objects with an order": (typed("'<O8'", HARM), UnsupportedError, "nothing is unpickled"),
    "objects within records": (typed("[('a', '<f4'), ('b', '|O')]", HARM), UnsupportedError, "holds records"),
    "objects within records, deep": (typed("[('a', [('b', '|O')])]", HARM), UnsupportedError, "holds records"),
    "records without end": (long_header("{'descr': " + "[" * 9000), FormatError, BAD),
    "records that never close": (long_header("{'descr': " + "[" * 9000 + "}"), UnsupportedError, "holds records"),
    "dtype of a dict": (typed("{'names': ['a'], 'formats': ['|O']}"), FormatError, BAD),
    "dtype of a call": (typed("eval('1')"), FormatError, BAD),
    "dtype in a string of a call": (typed("'__import__(0)'"), FormatError, "unknown dtype"),
    "dtype joined of two strings": (typed("'<' 'f4'"), FormatError, BAD),
    "dtype with an escape": (typed(r"'\x3cf4'"), FormatError, BAD),
    "dtype with a zero": (typed("'<f4\0'"), FormatError, "unknown dtype"),
    "dtype of bytes": (typed("b'<f4'"), FormatError, BAD),
    "text of 2**31 bytes": (shaped("(0,)", b"", "'|S2147483648'"), FormatError, "unknown dtype '|S2147483648'"),
    "text of 2**33 bytes": (shaped("(0,)", b"", "'<U2147483647'"), FormatError, "unknown dtype"),
    "text of 10**18 bytes": (shaped("(0,)", b"", "'<U999999999999999999'"), FormatError, "unknown dtype"),
    "text of 2**31 - 1 bytes": (shaped("(0,)", b"", "'|S2147483647'"), FormatError, "holds no tensors"),
    "raw bytes of 10**18": (shaped("(0,)", b"", "'|V999999999999999999'"), UnsupportedError, "raw bytes without a type"),
    "header of no length": (npy_raw(npy_header(), EIGHT, length=0), FormatError, "malformed npy header ''"),
    "header a byte short": (npy_raw(npy_header(), EIGHT, length=len(npy_header()) - 2), FormatError, BAD),
    "header into the data": (npy_raw(npy_header(), EIGHT, length=len(npy_header()) + 8), FormatError, BAD),
    "header of 65,535 bytes": (npy_raw(npy_header(), EIGHT, length=65535), FormatError, "at most 10000 are allowed"),
    "header of 4 GiB": (npy_raw(npy_header(), EIGHT, (2, 0), 0xFFFFFFFF), FormatError, "header's length is 4294967295 bytes"),
    "header of 10,000 bytes": (npy_raw(npy_header()[:-1].ljust(9_999) + "\n", EIGHT), None, ""),
    "header of 10,001 bytes": (npy_raw(" " * 10_001), FormatError, "10001 bytes, at most 10000"),
    "deep lists": (long_header("[" * 10_000), FormatError, BAD),
    "many signs": (long_header("-" * 10_000), FormatError, BAD),
    "signs in the shape": (long_header(npy_header(shape="(" + "-" * 9_000 + "1,)")), FormatError, BAD),
    "deep lists as the shape": (long_header(npy_header(shape="(" * 9_000)), FormatError, BAD),
    "a comprehension": (shaped("(*range(2),)"), FormatError, BAD),
    "a lambda": (shaped("(lambda: 2)()"), FormatError, BAD),
    "a line more": (npy_raw(npy_header() + "import os\n", EIGHT), FormatError, BAD),
    "a key more": (npy_raw(npy_header().replace("}", "'x': '1'}"), EIGHT), FormatError, BAD),
    "a key twice": (npy_raw(npy_header().replace("}", "'shape': (1,)}"), EIGHT), FormatError, BAD),
    "blanks and no end": (npy_raw("{" + " " * 9_000), FormatError, BAD),
    "commas in thousands": (shaped("(" + "," * 9_000 + ")"), FormatError, BAD),
    "sizes in thousands": (shaped("(" + "1," * 4_000 + ")"), UnsupportedError, "has 4000 dimensions, at most 32"),
    "size -1": (shaped("(-1,)"), FormatError, BAD),
    "size -2, twice": (shaped("(-2, -1)"), FormatError, BAD),
    "size True": (shaped("(True, 2)"), FormatError, BAD),
    "size 2.0": (shaped("(2.0,)"), FormatError, BAD),
    "size 1e3": (shaped("(1e3,)"), FormatError, BAD),
    "size None": (shaped("(None,)"), FormatError, BAD),
    "size 0x2": (shaped("(0x2,)"), FormatError, BAD),
    "size 1_0": (shaped("(1_0,)"), FormatError, BAD),
    "size of other digits": (npy_raw(npy_header(shape="(٢,)").encode(), EIGHT, (3, 0)), FormatError, BAD),
    "size of 20 digits": (shaped("(99999999999999999999,)"), FormatError, "beyond any memory"),
    "size of 400 digits": (shaped("(1" + "0" * 400 + ",)"), FormatError, BAD),
    "size 2**63": (shaped("(9223372036854775808,)", descr="'|u1'"), FormatError, "beyond any memory"),
    "size 2**62, of 4 bytes": (shaped("(4611686018427387904,)"), FormatError, "beyond any memory"),
    "size that wraps to 8 bytes": (shaped("(4611686018427387906,)"), FormatError, "beyond any memory"),
    "product that wraps to 0": (shaped("(4294967296, 4294967296)", b""), FormatError, "beyond any memory"),
    "0 times huge": (shaped("(0, 9223372036854775807, 9223372036854775807)", b""), FormatError, "beyond any memory"),
    "a terabyte that is not there": (shaped("(250000000000,)"), FormatError, "1000000000000 bytes of data, 8 are there"),
    "a byte of data less": (shaped("(2,)", bytes(7)), FormatError, "takes 8 bytes of data, 7 are there"),
    "a byte of data more": (shaped("(2,)", bytes(9)), FormatError, "takes 8 bytes of data, 9 are there"),
    "a second array after": (GOOD * 2, FormatError, "takes 8 bytes of data"),
    "order 1": (npy_raw(npy_header(order="1"), EIGHT), FormatError, BAD),
    "order in a string": (npy_raw(npy_header(order="'False'"), EIGHT), FormatError, BAD),
    "version 4": (npy_raw(npy_header(), EIGHT, (4, 0)), UnsupportedError, "is npy version 4.0"),
    "version 0": (npy_raw(npy_header(), EIGHT, (0, 0)), UnsupportedError, "is npy version 0.0"),
    "version 1.255": (npy_raw(npy_header(), EIGHT, (1, 255)), UnsupportedError, "is npy version 1.255"),
    "a pickle, not an array": (HARM, FormatError, "is of no known format"),
    "a pickle of protocol 4": (b"\x80\x04\x95\x08" + bytes(7) + b"\x8c\x02os.", UnsupportedError, "which is never unpickled"),
    "bool of 2": (shaped("(2,)", b"\1\2", "'|b1'"), FormatError, "bool elements other than 0 and 1"),
}  # fmt: skip


def _in_npz() -> Iterator[bytes]:
    """All of them once more as members; one that is left out is no tensor's."""
    return (in_npz(content) for content, error, words in FILES.values() if error and words != "holds no tensors")


CASES: list[Case | Sweep] = [
    Case("npy", "objects", fixed(typed("'|O'", HARM)), UnsupportedError, "holds Python objects (a pickle)"),
    Case("npy", "objects in an npz", fixed(in_npz(typed("'|O'", HARM))), UnsupportedError, "member 'bad.npy': dtype '|O' holds"),
    Case("npy", "objects within records", fixed(typed("[('a', '|O')]", HARM)), UnsupportedError, "holds records"),
    Case("npy", "a header of 20 MB", huge_header, FormatError, "at most 10000 are allowed"),
    Case("npy", "a header of 10,000 brackets", fixed(long_header("[" * 10_000)), FormatError, BAD),
    Case("npy", "a header that is called", fixed(typed("__import__('os').system('touch ../harmed')")), FormatError, BAD),
    Case("npy", "a shape over 64 bits", fixed(shaped("(4294967296, 4294967296, 2)")), FormatError, "beyond any memory"),
    Case("npy", "a good file", fixed(GOOD), valid=True),
    Case("npy", "a good npz", fixed(in_npz(GOOD)), valid=True),
    table("npy", "lies", FILES),
    table("npy", "is of the reader's tests", BROKEN),
    Sweep("npy", "is as members of an npz", _in_npz, may_load=False),
    Sweep("npy", "damaged", lambda: damaged(npy_raw(npy_header(shape="(1,)"), struct.pack("<f", 1)))),
    Sweep("npy", "damaged npz", lambda: damaged(archive(Entry("a.npy", GOOD, deflated=True)))),
]

"""Files that scanners of pickles were led past: what a scanner overlooks, does not parse or takes for something else.

Nothing here relies on a scanner; each file must be refused for what it is, or load without what is hidden in it.
"""

from __future__ import annotations

import gzip
import struct
import zlib

from fastlayers.errors import Error, FormatError, UnsupportedError

from ..formats.build import Entry, archive, npy_header, npy_raw
from ..formats.test_torch_hostile import GOOD
from ..formats.torch_build import FLOATS, MAGIC, STOP, call, dict_, legacy, number, text, zipped
from .cases import Case, Sweep, fixed, table
from .make_torch import HARM, NEVER, VIEWED

ROW = "scanner bypass"
PAYLOAD = b"\x80\2" + call("os.system", HARM) + STOP
OLD = b"cos\nsystem\n(S'touch ../harmed'\ntR."  # of protocol 0
FRAMED = b"\x80\4\x95" + struct.pack("<Q", len(PAYLOAD) - 2) + PAYLOAD[2:]
FINE = b"\x80\2" + dict_({"a": GOOD}) + STOP
BAD = zipped(call("os.system", HARM))
PICKLE, DATA = Entry("x/data.pkl", FINE), Entry("x/data/0", FLOATS)
HIDDEN = Entry("x/data.pkl", PAYLOAD)


def patched(content: bytes, mark: bytes, at: int, new: bytes) -> bytes:
    """The content with other bytes, `at` after where the mark is first found."""
    place = content.index(mark) + at
    return content[:place] + new + content[place + len(new) :]


def in_own_header(at: int, new: bytes) -> bytes:
    """A good archive in whose first member's own header something is written that the directory does not say."""
    return patched(archive(PICKLE, DATA), b"PK\3\4", at, new)


def in_directory(at: int, new: bytes) -> bytes:
    """A good archive in whose directory something is written that the first member's own header does not say."""
    return patched(archive(PICKLE, DATA), b"PK\1\2", at, new)


def tar(name: bytes, magic: bytes) -> bytes:
    """A tar archive of one empty file."""
    head = bytearray(name.ljust(100, b"\0") + b"0000644\0" * 3 + b"00000000000\0" * 2 + b" " * 8 + b"0")
    head += bytes(257 - len(head)) + magic
    head += bytes(512 - len(head))
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + bytes(1024)


def pickles(*parts: bytes) -> bytes:
    """A legacy file whose pickles are these, after the magic number."""
    return MAGIC + b"".join(b"\x80\2" + part + STOP for part in parts) + struct.pack("<q", 6) + FLOATS


HARMFUL = call("os.system", HARM)
KEYS = b"](" + text("0") + b"e"
CONTRADICTS = "contradicts the directory"
FILES: dict[str, tuple[bytes, type[Error] | None, str]] = {
    # A plain pickle under any name, which loaders by extension unpickle.
    "a plain pickle": (PAYLOAD, UnsupportedError, "a Python pickle, which is never unpickled"),
    "a plain pickle with a frame": (FRAMED, UnsupportedError, "a Python pickle, which is never unpickled"),
    "a plain pickle of protocol 0": (OLD, FormatError, "is of no known format"),
    "a plain pickle of protocol 1": (b"(cos\nsystem\n" + HARM + b"o.", FormatError, "is of no known format"),
    "a plain pickle that begins with PROTO 0": (b"\x80\0" + OLD, FormatError, "is of no known format"),
    "a pickle after a line's end": (b"\n" + PAYLOAD, FormatError, "is of no known format"),
    "a pickle, compressed": (gzip.compress(PAYLOAD, mtime=0), UnsupportedError, "gzip-compressed"),
    "a pickle, compressed by zlib": (zlib.compress(PAYLOAD), FormatError, "is of no known format"),
    "a pickle in numpy's array": (npy_raw(npy_header("'|O'"), PAYLOAD), UnsupportedError, "is unpickled"),
    "a pickle in an npz": (archive(Entry("a.npy", npy_raw(npy_header("'|O'"), PAYLOAD))), UnsupportedError, "is unpickled"),
    "a pickle as a member of an npz": (archive(Entry("a.npy", PAYLOAD)), FormatError, "member 'a.npy': begins with 80 02"),
    # Pickles that scanners stop in, or stop before.
    "a payload after STOP": (archive(Entry("x/data.pkl", FINE + PAYLOAD), DATA), FormatError, "bytes follow the pickle"),
    "a payload before nonsense": (archive(Entry("x/data.pkl", PAYLOAD[:-1] + b"\xff\xff"), DATA), FormatError, "unknown opcode"),
    "a payload before the end is cut": (archive(Entry("x/data.pkl", PAYLOAD[:-1]), DATA), FormatError, "ends too early"),
    "a payload before an empty stack": (archive(Entry("x/data.pkl", PAYLOAD[:-1] + b"00."), DATA), FormatError, "finds nothing"),
    "a payload whose result is dropped": (zipped(HARMFUL + b"0" + GOOD), UnsupportedError, NEVER),
    "a payload in a list that is dropped": (zipped(b"](" + HARMFUL + b"e0" + GOOD), UnsupportedError, NEVER),
    "a payload remembered, never used": (zipped(HARMFUL + b"q\0" + b"0" + GOOD), UnsupportedError, NEVER),
    "a payload in the legacy numbers": (b"\x80\2" + HARMFUL + b"0" + MAGIC[2:], UnsupportedError, "never unpickled"),
    "a payload in the legacy version": (pickles(HARMFUL, b"}", VIEWED, KEYS), UnsupportedError, NEVER),
    "a payload in the legacy facts": (pickles(number(1001), HARMFUL, VIEWED, KEYS), UnsupportedError, NEVER),
    "a payload in the legacy object": (pickles(number(1001), b"}", HARMFUL, KEYS), UnsupportedError, NEVER),
    "a payload in the legacy keys": (pickles(number(1001), b"}", VIEWED, HARMFUL), UnsupportedError, NEVER),
    "a payload after the legacy storages": (legacy(VIEWED) + PAYLOAD, FormatError, "bytes follow the last storage"),
    "a legacy file": (pickles(number(1001), b"}", VIEWED, KEYS), None, ""),
    # Archives that scanners do not open, or see another content of.
    "a CRC of the pickle that is wrong": (archive(HIDDEN._replace(crc=1), DATA), UnsupportedError, NEVER),
    "a CRC of the pickle that is wrong, deflated": (archive(HIDDEN._replace(crc=1, deflated=True), DATA), FormatError, "the CRC"),
    "a CRC in the member's header": (in_own_header(14, b"\0\0\0\0"), FormatError, CONTRADICTS),
    "a CRC in the directory": (in_directory(16, b"\0\0\0\0"), FormatError, CONTRADICTS),
    "a flag of the member's header: encrypted": (in_own_header(6, b"\1\x08"), FormatError, CONTRADICTS),
    "a flag of the member's header: sizes after": (in_own_header(6, b"\x08\x08"), FormatError, CONTRADICTS),
    "a flag of the member's header: no UTF-8": (in_own_header(6, b"\0\0"), FormatError, CONTRADICTS),
    "a flag of the directory: encrypted": (in_directory(8, b"\1\x08"), UnsupportedError, "is encrypted"),
    "a flag of the directory: a patch": (in_directory(8, b"\x20\x08"), UnsupportedError, "is a patch to other data"),
    "a method in the member's header": (in_own_header(8, b"\x08\0"), FormatError, CONTRADICTS),
    "a method in the directory": (in_directory(10, b"\x08\0"), FormatError, CONTRADICTS),
    "a size in the member's header": (in_own_header(22, b"\1\0\0\0"), FormatError, CONTRADICTS),
    "a stored size in the member's header": (in_own_header(18, b"\1\0\0\0"), FormatError, CONTRADICTS),
    "another name in the member's header": (archive(PICKLE._replace(local_name="x/data.txt"), DATA), FormatError, CONTRADICTS),
    "a longer name in the member's header": (archive(PICKLE._replace(local_name="x/data.pkl.t"), DATA), FormatError, CONTRADICTS),
    "another name in the extra field": (
        archive(PICKLE._replace(extra=struct.pack("<HHBL", 0x7075, 15, 1, zlib.crc32(b"x/data.pkl")) + b"x/evil.pkl"), DATA),
        FormatError, "has another name in its extra field"),
    "two pickles of one name": (archive(PICKLE, HIDDEN, DATA), FormatError, "has two members named 'x/data.pkl'"),
    "two pickles, in two folders": (archive(PICKLE, HIDDEN._replace(name="y/data.pkl"), DATA), FormatError, "has two objects"),
    "a pickle by another name": (archive(PICKLE, HIDDEN._replace(name="x/evil.pkl"), DATA), None, ""),
    "a pickle in capitals": (archive(PICKLE, HIDDEN._replace(name="X/DATA.PKL"), DATA), None, ""),
    "a pickle with a backslash": (archive(PICKLE, HIDDEN._replace(name="x\\data.pkl"), DATA), None, ""),
    "a script next to": (archive(PICKLE, DATA, Entry("x/__init__.py", b"import os"), Entry("setup.py", b"import os")), None, ""),
    "an archive after a script": (b"#!/usr/bin/env python\n" + archive(PICKLE, DATA), FormatError, "is of no known format"),
    "an archive after 7z's magic": (b"7z\xbc\xaf\x27\x1c" + bytes(26) + archive(PICKLE, DATA), FormatError, "no known format"),
    "an archive after a pickle": (PAYLOAD + archive(PICKLE, DATA), UnsupportedError, "never unpickled"),
    "an archive before a pickle": (archive(PICKLE, DATA) + PAYLOAD, FormatError, "no end-of-directory record"),
    "an archive before an archive": (archive(PICKLE, DATA) + archive(HIDDEN, DATA), FormatError, "directory is said to be at"),
    "an archive in a comment": (archive(PICKLE, DATA, comment=archive(HIDDEN, DATA)), FormatError, "directory is said to be at"),
    "an archive that is an npz too": (archive(PICKLE, DATA, Entry("a.npy", npy_raw(npy_header("'|O'"), PAYLOAD))), None, ""),
    "an archive cut to its members": (BAD[: BAD.index(b"PK\1\2")], FormatError, "no end-of-directory record"),
    "an archive of 7z's method": (archive(PICKLE._replace(method=98), DATA), UnsupportedError, "is compressed by method 98"),
    # What torch wrote before version 0.2, which torch still unpickled where weights alone were asked for.
    "a legacy tar archive": (tar(b"sys_info", b"ustar\x0000"), UnsupportedError, "before version 0.2 (a tar archive)"),
    "a legacy tar archive without a magic": (tar(b"sys_info", b""), UnsupportedError, "before version 0.2 (a tar archive)"),
    "another tar archive": (tar(b"pickle", b"ustar\x0000"), UnsupportedError, "the content is a tar archive"),
    "a good file": (archive(PICKLE, DATA), None, ""),
}  # fmt: skip

CASES: list[Case | Sweep] = [
    *(
        Case(ROW, name, fixed(FILES[name][0]), FILES[name][1] or FormatError, FILES[name][2], valid=FILES[name][1] is None)
        for name in (
            "a plain pickle",
            "a payload after STOP",
            "a payload whose result is dropped",
            "a CRC of the pickle that is wrong",
            "a flag of the member's header: encrypted",
            "another name in the member's header",
            "two pickles of one name",
            "a legacy tar archive",
            "a pickle by another name",
            "a good file",
        )
    ),
    table(ROW, "ways past", FILES),
]

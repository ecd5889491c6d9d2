"""Zip archives: bombs by ratio, by number and by overlap, sizes and directories that are, names that lead elsewhere.

A true bomb of 10 GB is made in no time: after a full flush deflate begins again, so a million zeros are the same bytes each time.
"""

from __future__ import annotations

import functools
import struct
import zlib

import numpy as np

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError

from ..formats.build import Entry, archive, npy, npy_header, npy_raw
from ..formats.test_keras_hostile import EMPTY
from ..formats.test_npz import BROKEN, overlapping
from ..formats.torch_build import STOP, dict_, storage, tensor
from .cases import Case, Sweep, damaged, fixed, network, table

ROW = "zip bomb"
MEGA, GIGA = 1 << 20, 1 << 30
A = npy(np.arange(3, dtype=np.float32))
OK = Entry("a.npy", A)
BOMB, SMALLER = "is rejected as a decompression bomb", "inflates to more than the"


@functools.cache
def _mega() -> bytes:
    """A million zeros in a thousand bytes, to be repeated."""
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(bytes(MEGA)) + packer.flush(zlib.Z_FULL_FLUSH)


def zeros(name: str, megabytes: int, head: bytes = b"", size: int | None = None) -> Entry:
    """A member that is `head` and so many million zeros, or says to be of another size."""
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH) + _mega() * megabytes + b"\3\0"
    whole = len(head) + megabytes * MEGA if size is None else size
    if whole < 0xFFFFFFFF:
        return Entry(name, b"", True, raw=packed, crc=0, size=whole)
    return Entry(name, b"", True, raw=packed, crc=0, size=0xFFFFFFFF, extra=struct.pack("<HHQ", 1, 8, whole))


def array(megabytes: int, name: str = "a.npy", size: int | None = None) -> Entry:
    """An npy of so many million zeros."""
    return zeros(name, megabytes, npy_raw(npy_header("'|u1'", shape=f"({megabytes * MEGA},)")), size)


def torch_file(held: Entry, count: int) -> bytes:
    """A torch file whose one storage is the member."""
    pickled = b"\x80\2" + dict_({"a": tensor(storage(count=count, kind="torch.ByteStorage"), (1,), (1,))}) + STOP
    return archive(Entry("x/data.pkl", pickled), held)


def keras_file(**members: Entry) -> bytes:
    """A .keras archive with other members for some of its own."""
    own = {
        "metadata.json": Entry("metadata.json", b'{"keras_version": "3.15.1"}'),
        "config.json": Entry("config.json", b"{}"),
        "model.weights.h5": Entry("model.weights.h5", EMPTY),
    }
    return archive(*(own | {e.name: e for e in members.values()}).values())


def claim(size: int) -> Entry:
    """A member of a few bytes that says to be of this size."""
    return OK._replace(deflated=True, size=0xFFFFFFFF, extra=struct.pack("<HHQ", 1, 8, size))


def quoted(files: int) -> bytes:
    """Members that overlap: each is a stored block that holds the next one's header, and then what the next one is."""
    head = npy_raw(npy_header("'|u1'", shape=f"({MEGA},)"))
    body = zlib.compressobj(9, wbits=-15)
    data = body.compress(head + bytes(MEGA)) + body.flush()
    size, directory = len(head) + MEGA, []
    whole = b""
    for i in reversed(range(files)):
        if whole:
            length = len(whole) - len(data)  # of the next one's header
            data = struct.pack("<BHH", 0, length, 0xFFFF ^ length) + whole
            size += length
        name = b"%03d.npy" % i
        fields = (0x0800, 8, 0, 0x21, 0, len(data), size)
        whole = struct.pack("<4s5H3L2H", b"PK\3\4", 20, *fields, len(name), 0) + name + data
        directory.append((len(whole), fields, name))
    central = b"".join(
        struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, *fields, len(name), 0, 0, 0, 0, 0, len(whole) - at) + name
        for at, fields, name in reversed(directory)
    )
    return whole + central + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, files, files, len(central), len(whole), 0)


def same_header(files: int) -> bytes:
    """Many entries of the directory for one member."""
    one = archive(array(1))
    at = one.index(b"PK\1\2")
    entry = one[at : one.rindex(b"PK\5\6")]
    central = b"".join(entry.replace(b"a.npy", b"%05d" % i) for i in range(files))
    return one[:at] + central + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, files, files, len(central), at, 0)


def two_directories() -> bytes:
    """Two archives in one file, whose ends both fit: the second's directory and end are the comment of the first's."""
    first = archive(OK, Entry("hidden.npy", A))
    inner = archive(OK, Entry("b.npy", A))
    at, body = first.rindex(b"PK\5\6"), len(archive(OK)) - 22 - 51
    own = inner[body : inner.index(b"PK\1\2")]  # the second archive's own member, which only its directory has
    place = len(first) + len(own)
    central = inner[inner.index(b"PK\1\2") : inner.rindex(b"PK\5\6")]
    central = central[:-9] + struct.pack("<L", len(first)) + central[-5:]
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(central), place, 0)
    return first[: at + 20] + struct.pack("<H", len(own + central + end)) + own + central + end


SINGLE = archive(OK)[: 35 + len(A)]  # the member with its header alone


def gap(between: bytes) -> bytes:
    """Two members with something between them."""
    return SINGLE + between + _behind(SINGLE, len(between))


def _behind(first: bytes, moved: int) -> bytes:
    """The second member, and the directory, of both, with places moved by so many bytes."""
    return _moved(archive(OK, Entry("b.npy", A, shift=moved))[len(first) :], moved)


def _moved(rest: bytes, moved: int) -> bytes:
    """The end of an archive with the place of its directory moved."""
    at = rest.rindex(b"PK\5\6") + 16
    (start,) = struct.unpack_from("<L", rest, at)
    return rest[:at] + struct.pack("<L", start + moved) + rest[at + 4 :]


def told(crc: int | None = None, wide: bool = False, signature: bytes = b"PK\7\x08") -> bytes:
    """What may stand after a member: its CRC and sizes."""
    return signature + struct.pack("<LQQ" if wide else "<LLL", zlib.crc32(A) if crc is None else crc, len(A), len(A))


def linked(mode: int) -> bytes:
    """An archive whose member has this kind of file in the directory."""
    content = bytearray(archive(OK))
    struct.pack_into("<L", content, content.index(b"PK\1\2") + 38, (mode | 0o777) << 16)
    return bytes(content)


def unicode_name(name: str, other: str) -> bytes:
    """A member with another name in its extra field."""
    raw = other.encode()
    field = struct.pack("<HHBL", 0x7075, 5 + len(raw), 1, zlib.crc32(name.encode())) + raw
    return archive(OK._replace(name=name, extra=field))


def counted(files: int) -> bytes:
    """An archive that says to have so many members, and has one."""
    return archive(OK, end64=True).replace(struct.pack("<2Q", 1, 1), struct.pack("<2Q", files, files)).replace(
        struct.pack("<4H", 0, 0, 1, 1), struct.pack("<4H", 0, 0, 0xFFFF, 0xFFFF)
    )  # fmt: skip


def named(name: str) -> tuple[bytes, None, str]:
    """A member whose name would lead elsewhere if it were ever a path: it is only a name."""
    return archive(OK._replace(name=name)), None, ""


FILES: dict[str, tuple[bytes, type[Error] | None, str]] = {
    "good": (archive(OK), None, ""),
    "good, a comment": (archive(OK, comment=b"PK"), None, ""),
    "good, 64 bits": (archive(OK, end64=True), None, ""),
    "good, sizes after": (gap(told()), None, ""),
    "good, wide sizes after": (gap(told(wide=True)), None, ""),
    "good, sizes after, no signature": (gap(told(signature=b"")), None, ""),
    "sizes after that are": (gap(told(crc=1)), FormatError, "member 'b.npy' begins at"),
    "a byte between members": (gap(b"\0"), FormatError, "member 'b.npy' begins at"),
    "a member between members": (gap(archive(Entry("h.npy", A))[: 35 + len(A)]), FormatError, "member 'b.npy' begins at"),
    "a byte before the directory": (SINGLE + b"x" + _behind(SINGLE, 0), FormatError, "is said to be at"),
    "a member before the directory": (SINGLE * 2 + _moved(archive(OK)[len(SINGLE) :], len(SINGLE)), FormatError, "its direct"),
    "two directories": (two_directories(), FormatError, "begins at"),
    "claims 4 GiB - 1, without 64 bits": (archive(OK._replace(size=0xFFFFFFFF)), FormatError, "64-bit sizes are missing"),
    "claims 4 GiB": (archive(claim(4 * GIGA)), LimitError, BOMB),
    "claims 16 EiB": (archive(claim((1 << 64) - 1)), LimitError, "needs 18446744073709551615 bytes of memory"),
    "claims 8 EiB": (archive(claim(1 << 63)), LimitError, "needs 9223372036854775808 bytes of memory"),
    "claims 200 MB": (archive(OK._replace(deflated=True, size=200 * MEGA)), FormatError, "cannot inflate to the 209715200"),
    "stored, claims more": (archive(OK._replace(size=len(A) + 1)), FormatError, "bytes stored as"),
    "stored beyond the file": (archive(OK._replace(size=GIGA, stored=GIGA)), FormatError, "run into the directory"),
    "overlapping": (overlapping(), FormatError, "begins at"),
    "overlapping, quoted": (quoted(20), FormatError, "begins at"),
    "one member for 1,000 names": (same_header(1000), FormatError, "contradicts the directory"),
    "100,001 members": (counted(100_001), LimitError, "has 100001 members, at most 100000 are read"),
    "2**64 - 1 members": (counted((1 << 64) - 1), LimitError, "has 18446744073709551615 members"),
    "99,999 members that are not there": (counted(99_999), FormatError, "has no directory entry at"),
    "a directory beyond the end": (archive(OK)[:-6] + struct.pack("<LH", GIGA, 0), FormatError, "said to be at"),
    "a directory of 4 GiB": (archive(OK)[:-10] + struct.pack("<LLH", 0xFFFFFFF0, 0, 0), FormatError, "said to be at"),
    "an end in the comment": (archive(OK, comment=archive()), FormatError, "the directory is said to be at"),
    "bytes after the comment": (archive(OK, comment=b"abc") + b"d", FormatError, "no end-of-directory record"),
    "bytes before": (b"MZ" + archive(OK), FormatError, "is of no known format"),
    "bytes before, like a member": (b"PK\3\4" + archive(OK, prefix=bytes(26))[4:], FormatError, "begins at 26, expected at 0"),
    "a name twice": (archive(OK, OK), FormatError, "has two members named 'a.npy'"),
    "a name twice but for the case": (archive(OK, OK._replace(name="A.npy")), None, ""),
    "a name twice but for how it is composed": (archive(OK._replace(name="é.npy"), OK._replace(name="e\u0301.npy")), None, ""),
    "a name with a zero": (archive(OK._replace(name="a\0.npy")), FormatError, "has a zero byte"),
    "a name that is no UTF-8": (archive(OK._replace(name="é.npy")).replace("é".encode(), b"\xff\xfe"), FormatError, "not UTF-8"),
    "a name that leads upwards": named("../../harmed.npy"),
    "a name that is absolute": named("/etc/harmed.npy"),
    "a name with a drive": named("C:\\harmed.npy"),
    "a name of a device": named("\\\\.\\NUL.npy"),
    "a name of 60,000 characters": named("a" * 60_000 + ".npy"),
    "another name in the extra field": (unicode_name("a.npy", "b.npy"), FormatError, "has another name in its extra field"),
    "the same name in the extra field": (unicode_name("a.npy", "a.npy"), None, ""),
    "a link": (linked(0o120000), FormatError, "is a symbolic link"),
    "no link": (linked(0o100000), None, ""),
    "encrypted": (archive(OK._replace(flags=1)), UnsupportedError, "is encrypted"),
    "a method of nobody's": (archive(OK._replace(method=1234)), UnsupportedError, "is compressed by method 1234"),
    "deflate64": (archive(OK._replace(method=9)), UnsupportedError, "is compressed by deflate64"),
    "a pickle of torch's that is a bomb": (
        archive(zeros("x/data.pkl", 1)), LimitError,
        "claim to inflate to 1048576: more than 20 times is rejected as a decompression bomb"),
    "an order of bytes that is a bomb": (
        archive(Entry("x/data.pkl", b"\x80\2N."), zeros("x/byteorder", 50)), FormatError, "the byte order is of 52428800 bytes"),
}  # fmt: skip
TEN = 10 * GIGA
CASES: list[Case | Sweep] = [
    Case(ROW, "npz: 10 GB in 10 MB", lambda f: archive(array(10_240)), LimitError, BOMB),
    Case(ROW, "npz: 10 GB in 10 MB, said to be 1 MB", lambda f: archive(array(10_240, size=MEGA)), match="bytes of data"),
    Case(ROW, "npz: 10 GB in a member that is left out", lambda f: archive(OK, zeros("notes", 10_240, size=MEGA)), match=SMALLER),
    Case(ROW, "npz: 300 times 1 MB", lambda f: archive(*(array(1, f"{i}.npy") for i in range(300))), LimitError, BOMB),
    Case(ROW, "torch: 10 GB in 10 MB", lambda f: torch_file(zeros("x/data/0", 10_240), TEN), LimitError, BOMB),
    Case(
        ROW,
        "torch: 10 GB in 10 MB, said to be 1 MB",
        lambda f: torch_file(zeros("x/data/0", 10_240, size=MEGA), MEGA),
        match=SMALLER,
    ),
    Case(ROW, "torch: a pickle of 8 MB", lambda f: archive(zeros("x/data.pkl", 8)), LimitError, "more than 20 times"),
    Case(ROW, "torch: a pickle of 1 GB", lambda f: archive(zeros("x/data.pkl", 1024)), LimitError, BOMB),
    Case(ROW, "keras: 10 GB in 10 MB", lambda f: keras_file(w=zeros("model.weights.h5", 10_240)), LimitError, BOMB),
    Case(
        ROW,
        "keras: a configuration of 10 GB",
        lambda f: keras_file(c=zeros("config.json", 10_240)),
        LimitError,
        "at most",
        network,
    ),
    Case(
        ROW, "keras: a configuration of 20 MB", lambda f: keras_file(c=zeros("config.json", 20)), LimitError, "at most", network
    ),
    Case(ROW, "keras: a configuration of 2 MB", lambda f: keras_file(c=zeros("config.json", 2)), LimitError, BOMB, network),
    Case(ROW, "claims 16 EiB", fixed(FILES["claims 16 EiB"][0]), LimitError, "needs 18446744073709551615 bytes"),
    Case(ROW, "claims 200 MB", fixed(FILES["claims 200 MB"][0]), match="cannot inflate to"),
    Case(ROW, "members that quote each other", lambda f: quoted(250), match="begins at"),
    Case(ROW, "one member for 60,000 names", lambda f: same_header(60_000), match="contradicts the directory"),
    Case(ROW, "100,001 members", fixed(counted(100_001)), LimitError, "has 100001 members"),
    Case(ROW, "two directories in one file", fixed(two_directories()), match="begins at"),
    Case(ROW, "names that lead upwards", fixed(named("../../harmed.npy")[0]), valid=True),
    Case(ROW, "a link", fixed(linked(0o120000)), match="is a symbolic link"),
    Case(ROW, "zeros that are honest", lambda f: archive(Entry("a.npy", npy(np.zeros(MEGA, np.uint8)), True)), valid=True),
    table(ROW, "lies", FILES),
    table(ROW, "is of the reader's tests", BROKEN),
    Sweep(ROW, "damaged", lambda: damaged(archive(OK._replace(deflated=True), Entry("b", b""), comment=b"c", end64=True))),
]

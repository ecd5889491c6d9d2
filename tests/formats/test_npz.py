"""The npz reader: archives that numpy writes, and one test for each way in which an archive may be broken or malicious."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import _zip, load_weights

from ..each import each
from .build import Entry, archive, npy, npy_header, npy_raw, npz
from .measure import allocations

A = npy(np.arange(3, dtype=np.float32))
OK = Entry("a.npy", A)
SQUEEZED = Entry("a.npy", A, deflated=True)


def deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(content) + packer.flush()


def zeros(size: int, name: str = "zeros.npy") -> Entry:
    """A deflated array (if the name says so) of that many zero bytes, packed without ever holding them."""
    header = npy_raw(npy_header("'|u1'", shape=f"({size},)")) if name.endswith(".npy") else b""
    packer = zlib.compressobj(9, wbits=-15)
    block, crc = bytes(1 << 20), zlib.crc32(header)
    packed = [packer.compress(header)]
    for _ in range(size >> 20):
        packed.append(packer.compress(block))
        crc = zlib.crc32(block, crc)
    packed.append(packer.flush())
    return Entry(name, b"", deflated=True, raw=b"".join(packed), crc=crc, size=len(header) + size)


def overlapping() -> bytes:
    """Two members, the second inside the data of the first, as in a bomb that uses the same bytes again and again."""
    inner = archive(Entry("b.npy", A))[: 35 + len(A)]
    outer = Entry("a.npy", npy(np.frombuffer(inner, np.uint8)))
    assert outer.content.endswith(inner)
    return archive(outer, Entry("b.npy", A, shift=-len(inner)))


# what is wrong: (the file, the error, a part of its text)
BROKEN: dict[str, tuple[bytes, type[Error], str]] = {
    "no end record": (archive(OK)[:-22], FormatError, "zip archive: has no end-of-directory record: truncated?"),
    "comment too short": (archive(OK, comment=b"abc")[:-1], FormatError, "has no end-of-directory record"),
    "bytes after the end": (archive(OK) + b"x", FormatError, "has no end-of-directory record"),
    "directory elsewhere": (archive(OK, gap=b"xx"), FormatError, "the directory is said to be at"),
    "one entry too many": (archive(OK, count=2), FormatError, "has no directory entry at"),
    "one entry too few": (archive(OK, Entry("b.npy", A), count=1), FormatError, "bytes more than its 1 entries"),
    "member beyond the file": (archive(OK._replace(shift=10_000)), FormatError, "member 'a.npy': has no header at 10000"),
    "member in the wrong place": (archive(OK._replace(shift=1)), FormatError, "member 'a.npy': has no header at 1"),
    "another name in the member": (archive(OK._replace(local_name="b.npy")), FormatError, "contradicts the directory"),
    "data into the directory": (archive(OK._replace(stored=9999, size=9999)), FormatError, "run into the directory"),
    "bytes before the first member": (
        b"PK\x03\x04" + archive(OK, prefix=bytes(26))[4:],
        FormatError,
        "begins at 26, expected at 0",
    ),
    "another member in the place": (archive(OK, Entry("b.npy", A, shift=-len(A) - 35)), FormatError, "contradicts the directory"),
    "members that overlap": (overlapping(), FormatError, "member 'b.npy' begins at 163, expected at 338"),
    "name twice": (archive(OK, OK), FormatError, "has two members named 'a.npy'"),
    "name twice but for the suffix": (archive(OK, Entry("a", A)), FormatError, "another member has the name 'a' too"),
    "zero in a name": (archive(Entry("a\0.npy", A)), FormatError, "has a zero byte"),
    "name not UTF-8": (archive(Entry("é.npy", A)).replace("é".encode(), b"\xff\xff"), FormatError, "is not UTF-8"),
    "encrypted": (archive(OK._replace(flags=1)), UnsupportedError, "member 'a.npy': is encrypted"),
    "strongly encrypted": (archive(OK._replace(flags=0x41)), UnsupportedError, "is encrypted"),
    "patch": (archive(OK._replace(flags=0x20)), UnsupportedError, "is a patch to other data"),
    "bzip2": (archive(OK._replace(method=12)), UnsupportedError, "is compressed by bzip2, only deflate is supported"),
    "lzma": (archive(OK._replace(method=14)), UnsupportedError, "is compressed by lzma, only deflate is supported"),
    "unknown method": (archive(OK._replace(method=77)), UnsupportedError, "is compressed by method 77, only deflate"),
    "entry beyond the directory": (
        archive(OK).replace(struct.pack("<5H2L", 5, 0, 0, 0, 0, 0, 0), struct.pack("<5H2L", 5, 0, 9, 0, 0, 0, 0)),
        FormatError,
        "runs beyond the directory",
    ),
    "several disks of 64 bits": (
        archive(OK, end64=True).replace(b"PK\x06\x07\0", b"PK\x06\x07\1"),
        UnsupportedError,
        "spans several files",
    ),
    "several disks": (archive(OK)[:-18] + b"\1\0" + archive(OK)[-16:], UnsupportedError, "spans several files"),
    "stored size that is": (archive(OK._replace(size=len(A) + 1)), FormatError, "bytes stored as"),
    "64-bit sizes missing": (archive(OK._replace(size=0xFFFFFFFF)), FormatError, "its 64-bit sizes are missing"),
    "64-bit sizes cut": (
        archive(OK._replace(size=0xFFFFFFFF, extra=struct.pack("<HHL", 1, 8, 5))),
        FormatError,
        "its 64-bit sizes are missing",
    ),
    "64-bit end record misplaced": (archive(OK, end64=True, gap=b"x"), FormatError, "the directory is said to be at"),
    "stored, damaged": (archive(OK._replace(crc=1)), FormatError, "member 'a.npy': the CRC of the content is"),
    "deflated, damaged": (archive(SQUEEZED._replace(crc=1)), FormatError, "member 'a.npy': the CRC of the content is"),
    "no deflate data": (archive(SQUEEZED._replace(raw=b"\xff" * 60)), FormatError, "the compressed data is damaged"),
    "deflate data cut": (archive(SQUEEZED._replace(raw=deflate(A)[:-4])), FormatError, "inflates to"),
    "inflates to less": (
        archive(Entry("a.npy", A, True, raw=deflate(A[:-1]))),
        FormatError,
        f"inflates to {len(A) - 1} bytes, it claims",
    ),
    "inflates to more": (archive(Entry("a.npy", A, True, raw=deflate(A + b"x"))), FormatError, "inflates to more than the"),
    "bytes after the deflate data": (
        archive(SQUEEZED._replace(raw=deflate(A) + b"x")),
        FormatError,
        "does not end where the member",
    ),
    "member no npy": (archive(OK, Entry("b.npy", b"hello")), FormatError, "member 'b.npy': begins with 68 65 6c 6c 6f"),
    "member empty": (archive(OK, Entry("b.npy", b"")), FormatError, "member 'b.npy': begins with"),
    "member with data left over": (archive(Entry("a.npy", A + b"x")), FormatError, "takes 12 bytes of data, 13 are there"),
    "member with data missing": (archive(Entry("a.npy", A[:-1])), FormatError, "takes 12 bytes of data, 11 are there"),
    "member of objects": (
        archive(OK, *(Entry(f"{n}.npy", npy_raw(npy_header("'|O'"), b"cos\nsystem\n")) for n in "bcdefgh")),
        UnsupportedError,
        "member 'b.npy': dtype '|O' holds Python objects",
    ),
    "text member damaged": (archive(OK, Entry("s.npy", npy(np.array(["a"])), crc=1)), FormatError, "member 's.npy': the CRC"),
    "other member damaged": (archive(OK, Entry("notes.txt", b"hello", crc=1)), FormatError, "member 'notes.txt': the CRC"),
    "only text": (archive(Entry("s.npy", npy(np.array(["a"])))), FormatError, "holds no tensors"),
    "no npy member": (
        archive(Entry("notes.txt", b"hello")),
        FormatError,
        "without any npy member or data.pkl: 1 member ('notes.txt')",
    ),
    "empty archive": (archive(), FormatError, "without any npy member or data.pkl: 0 members ()"),
}


@each("case", BROKEN)
def test_every_broken_rule_is_its_own_error(case: str) -> None:
    content, error, text = BROKEN[case]
    with pytest.raises(error) as caught:
        load_weights(content)
    assert text in str(caught.value)
    assert str(caught.value).startswith("load_weights: <bytes>: ")
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "deflated"])
@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
def test_what_numpy_writes(tmp_path: Path, compressed: bool, mmap: bool) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "z": rng.standard_normal((300, 700)),  # longer than a piece
        "layer/0.weight": rng.standard_normal((3, 4)).astype(np.float16),
        "ünï": np.asfortranarray(rng.integers(0, 9, (5, 6))),
        "big endian": np.arange(5, dtype=">i4"),
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 4), np.uint8),
        "flag": np.array([True, False]),
        "complex": np.array([1 + 2j], np.complex64),
        "../up": np.arange(3),
    }
    path = tmp_path / "weights.safetensors"  # the suffix says nothing
    path.write_bytes(npz(arrays, compressed))
    weights = load_weights(path, mmap=mmap)
    assert list(weights) == list(arrays)
    for name, array in weights.items():
        assert array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative and not array.flags.writeable
        assert array.dtype == arrays[name].dtype.newbyteorder("="), name
        np.testing.assert_array_equal(array, arrays[name])


def test_what_is_no_tensor_is_left_out() -> None:
    content = archive(
        Entry("folder/", b""),
        OK,
        Entry("names.npy", npy(np.array(["conv", "ünï"])), deflated=True),
        Entry("bytes.npy", npy(np.array([b"x"]))),
        Entry("nothing.npy", npy(np.array([""], "U0"))),
        Entry("day.npy", npy(np.array(["2020-01-01"], "M8[ns]"))),
        Entry("span.npy", npy(np.array([3], "m8[s]"))),
        Entry("notes.txt", b"hello" * 500_000, deflated=True),
        Entry("a", b"no array"),
        Entry("unnamed", npy(np.array([7])), deflated=True),
    )
    weights = load_weights(content)
    assert {name: array.tolist() for name, array in weights.items()} == {"a": [0, 1, 2], "unnamed": [7]}


def test_every_kind_of_archive_that_zipfile_writes() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:  # then sizes follow the data
            return False

    for out in (io.BytesIO(), Pipe()):
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(out, "w", method) as opened:
                opened.comment = b"a comment with PK\x05\x06 in it, which is twenty-two bytes and more"
                opened.writestr("a.npy", A)
                with opened.open("b.npy", "w", force_zip64=True) as member:
                    member.write(A)
            weights = load_weights(out.getvalue())
            assert {name: array.tolist() for name, array in weights.items()} == {"a": [0, 1, 2], "b": [0, 1, 2]}
            out.seek(0)
            out.truncate()


def test_64_bit_records() -> None:
    wide = struct.pack("<HHQQ", 1, 16, len(A), len(A))
    other = struct.pack("<HHL", 0x5455, 4, 0)
    content = archive(OK._replace(size=0xFFFFFFFF, stored=0xFFFFFFFF, extra=other + wide), end64=True)
    assert load_weights(content)["a"].tolist() == [0, 1, 2]
    contradicting = content.replace(struct.pack("<2Q", 1, 1), struct.pack("<2Q", 2, 2))
    with pytest.raises(FormatError, match="the end records contradict each other"):
        load_weights(contradicting)
    for broken in (
        content.replace(b"PK\x06\x06", b"PK\x06\x05"),
        content.replace(struct.pack("<4sQ", b"PK\x06\x06", 44), b"PK\x06\x06" + bytes(8)),
    ):
        with pytest.raises(FormatError, match="64-bit end record at"):
            load_weights(broken)


def test_too_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_zip, "MAX_MEMBERS", 2)
    assert len(load_weights(archive(OK, Entry("b.npy", A)))) == 2
    with pytest.raises(LimitError, match="has 3 members, at most 2 are read"):
        load_weights(archive(OK, Entry("b.npy", A), Entry("c.npy", A)))


def test_a_stream_must_be_read_to_its_end() -> None:
    opened = _zip.read_archive(memoryview(archive(OK)), "test")
    with pytest.raises(FormatError, match=f"member: {len(A)} bytes are left over"):
        opened.open(opened.members[0], "member").finish()


def test_honest_zeros_load_though_they_shrink_a_thousandfold() -> None:
    content = archive(zeros(4 << 20))
    assert len(content) * 900 < 4 << 20
    assert load_weights(content)["zeros"].shape == (4 << 20,)


def refused_within(content: bytes, error: type[Error], text: str, peak_bytes: int) -> None:
    """The content is refused, and no more than `peak_bytes` were allocated at any time."""
    load_weights(archive(OK))  # imports
    with allocations() as measured, pytest.raises(error, match=text):
        load_weights(content)
    assert 0 < measured.peak < peak_bytes


def test_bomb_by_ratio() -> None:
    bomb = zeros(4 << 20)._replace(size=257 << 20)  # the claim is what is judged; a true one takes seconds to make
    refused_within(archive(bomb), LimitError, "decompression bomb", 1 << 20)


def test_bomb_of_many_small_members() -> None:
    part = zeros(4 << 20)
    refused_within(archive(*(part._replace(name=f"{i}.npy") for i in range(65))), LimitError, "decompression bomb", 1 << 20)


def test_bomb_that_claims_to_be_small() -> None:
    bomb = zeros(64 << 20)
    for size in (128 + 16, 1 << 20):
        refused_within(archive(bomb._replace(size=size)), FormatError, "bytes of data|inflates to more", 4 << 20)


def test_bomb_in_a_member_that_is_left_out() -> None:
    hidden = zeros(64 << 20, "notes.txt")
    refused_within(archive(OK, hidden._replace(size=1 << 20)), FormatError, "inflates to more than", 4 << 20)


def test_bomb_of_a_huge_claim_with_nothing_behind_it() -> None:
    claim = OK._replace(deflated=True, size=0xFFFFFFFF, extra=struct.pack("<HHQ", 1, 8, 1 << 50))
    refused_within(archive(claim), LimitError, "needs 1125899906842624 bytes of memory", 1 << 20)


def test_max_bytes_holds_for_all_members_together() -> None:
    content = npz({"a": np.zeros(1000, np.uint8), "b": np.zeros(1000, np.uint8)}, compressed=True)
    assert len(load_weights(content, max_bytes=2300)) == 2
    with pytest.raises(LimitError, match="of max_bytes=1999 are left"):
        load_weights(content, max_bytes=1999)


def test_memory_of_a_conversion_is_given_back() -> None:
    arrays = {name: np.arange(1000, dtype=">f4") for name in "abc"}
    assert len(load_weights(npz(arrays), max_bytes=4 * 4000)) == 3  # three results, and one of them twice for a while
    with pytest.raises(LimitError, match=r"member 'c\.npy': needs 4000 bytes of memory, 3999 of"):
        load_weights(npz(arrays), max_bytes=4 * 4000 - 1)

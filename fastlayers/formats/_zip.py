"""Reading zip archives held in memory: stored and deflated members, every size and offset checked. No path is ever written.

Stricter than the standard library's reader: the archive must fill the file without gaps, its directory must agree with the
members' own headers, and names must differ, so that two readers cannot see two different files in it.
"""

from __future__ import annotations

import itertools
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import NoReturn

from .._tuples import NamedTuple
from ..errors import FormatError, LimitError, UnsupportedError

MAX_MEMBERS = 100_000

_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MAX_COMMENT = 0xFFFF
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF  # "see the 64-bit record"

STORED, _DEFLATED = 0, 8
_METHODS = {9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstandard", 95: "xz"}
_ENCRYPTED, _PATCH, _UTF8, _LATER = 0x0001 | 0x0040 | 0x2000, 0x0020, 0x0800, 0x0008
_AGREE = _ENCRYPTED | _PATCH | _UTF8 | _LATER  # flags that a member's own header must have as the directory has them
_WIDE, _UNICODE = 1, 0x7075  # extra fields: 64-bit sizes, and another name
# What may follow a member's data: its CRC and sizes once more, of 32 or 64 bits, with a signature or without.
_DESCRIPTORS = [struct.Struct(f"<{signature}L{size}") for signature in ("", "4s") for size in ("2L", "2Q")]
_GROWTH = 1032  # the most bytes that deflate makes of one

_INPUT = 1 << 16  # compressed bytes passed to zlib at once
_OUTPUT = 1 << 20  # the most bytes that come back at once


class Member(NamedTuple):
    """One entry of the directory: its name, its sizes and where its data is."""

    name: str
    method: int
    crc: int
    stored: int  # bytes in the file
    size: int  # bytes that it claims to be
    header: int  # offset of its own header
    start: int  # offset of its data


class Archive:
    """The directory of an archive and the bytes it describes."""

    def __init__(self, view: memoryview, members: list[Member]) -> None:
        self._view = view
        self.members = members

    def open(self, member: Member, where: str) -> Stream:
        """The member's content, to be read once from front to back."""
        if member.method == _DEFLATED and member.size > _GROWTH * (member.stored + 1):
            raise FormatError(f"{where}: {member.stored} bytes cannot inflate to the {member.size} that it claims")
        return Stream(self._view[member.start : member.start + member.stored], member, where)


class Stream:
    """The inflated content of a member, in bounded pieces. `finish` must be called at the end: it checks length and CRC."""

    def __init__(self, raw: memoryview, member: Member, where: str) -> None:
        self.left = member.size
        self._raw = raw
        self._member = member
        self._where = where
        self._crc = 0
        self._ahead: bytes | memoryview = b""  # inflated by `peek`, not yet read
        self._rest: bytes | memoryview = b""  # compressed, not yet consumed
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == _DEFLATED else None

    def read(self, count: int) -> bytes:
        """The next `count` bytes, fewer at the end."""
        parts: list[bytes | memoryview] = []
        while count and (piece := self._piece(count)):
            parts.append(piece)
            count -= len(piece)
        return b"".join(parts)

    def peek(self, count: int) -> bytes:
        """Returns the bytes that the next `read(count)` will give, which must be the stream's first."""
        ahead = self.read(count)
        self._ahead = ahead
        self.left += len(ahead)
        return ahead

    def fill(self, out: memoryview) -> None:
        """Reads len(out) bytes; there must be as many left."""
        done = 0
        while done < len(out):
            piece = self._piece(len(out) - done)
            out[done : done + len(piece)] = piece
            done += len(piece)

    def drain(self) -> None:
        """Reads to the end, keeping nothing, and checks."""
        while self.left:
            self._piece(_OUTPUT)
        self.finish()

    def finish(self) -> None:
        """Raises unless the content has the length and the CRC that the archive states."""
        if self.left:
            self._fail(f"{self.left} bytes are left over")
        if self._inflater is not None and self._inflate(1):
            self._fail(f"inflates to more than the {self._member.size} bytes it claims")
        if self._inflater is not None and (not self._inflater.eof or self._inflater.unused_data or self._rest or self._raw):
            self._fail("the compressed data does not end where the member does")
        if self._crc != self._member.crc:
            self._fail(f"the CRC of the content is {self._crc:08x}, the archive says {self._member.crc:08x}: damaged")

    def _piece(self, count: int) -> bytes | memoryview:
        """Between 1 and `count` of the remaining bytes; none at the end."""
        count = min(count, self.left, _OUTPUT)
        if not count:
            return b""
        if self._ahead:
            piece, self._ahead = self._ahead[:count], self._ahead[count:]
            self.left -= len(piece)
            return piece
        if self._inflater is None:
            piece, self._raw = self._raw[:count], self._raw[count:]
        else:
            piece = self._inflate(count)
        if not piece:
            self._fail(f"inflates to {self._member.size - self.left} bytes, it claims {self._member.size}")
        self._crc = zlib.crc32(piece, self._crc)
        self.left -= len(piece)
        return piece

    def _inflate(self, count: int) -> bytes:
        """Up to `count` bytes more, none at the end of the compressed data."""
        assert self._inflater is not None
        while not self._inflater.eof:
            if not self._rest:
                self._rest, self._raw = self._raw[:_INPUT], self._raw[_INPUT:]
            fed = len(self._rest)
            try:
                piece = self._inflater.decompress(self._rest, count)
            except zlib.error as error:
                self._fail(f"the compressed data is damaged: {error}")
            self._rest = self._inflater.unconsumed_tail
            if piece or not fed:
                return piece
        return b""

    def _fail(self, why: str) -> NoReturn:
        raise FormatError(f"{self._where}: {why}")


def read_archive(view: memoryview, where: str) -> Archive:
    """Reads the directory and checks it against the members' own headers. Raises FormatError, UnsupportedError or LimitError."""
    where = f"{where}: zip archive"
    count, start, end = _directory(view, where)
    if count > MAX_MEMBERS:
        raise LimitError(f"{where}: has {count} members, at most {MAX_MEMBERS} are read")
    members: list[Member] = []
    position = start
    for _ in range(count):
        member, position = _member(view, position, end, start, where)
        members.append(member)
    if position != end:
        raise FormatError(f"{where}: the directory has {end - position} bytes more than its {count} entries")
    _check_members(members, start, view, where)
    return Archive(view, members)


def _directory(view: memoryview, where: str) -> tuple[int, int, int]:
    """The number of entries, and where the directory begins and ends."""
    base = max(0, len(view) - _END.size - _MAX_COMMENT)
    tail = bytes(view[base:])
    at = tail.rfind(b"PK\x05\x06")
    # The record is the last thing in the file, but for a comment whose length it gives.
    while at >= 0 and (
        len(tail) < at + _END.size or at + _END.size + int.from_bytes(tail[at + 20 : at + 22], "little") != len(tail)
    ):
        at = tail.rfind(b"PK\x05\x06", 0, at)
    if at < 0:
        raise FormatError(f"{where}: has no end-of-directory record: truncated?")
    _, disk, start_disk, count_here, count, size, start, _ = _END.unpack_from(tail, at)
    end = base + at
    place = end - _LOCATOR.size
    if place >= 0 and _has(view, place, b"PK\x06\x07"):
        count_here, count, size, start, end = _directory64(view, place, (count_here, count, size, start), where)
    if disk or start_disk or count_here != count:
        raise UnsupportedError(f"{where}: spans several files")
    if start + size != end:
        raise FormatError(f"{where}: the directory is said to be at {start} to {start + size}, but it ends at {end}")
    return count, start, end


def _directory64(view: memoryview, place: int, short: tuple[int, ...], where: str) -> tuple[int, int, int, int, int]:
    """The 64-bit values of the end record, and its offset; they must agree with the short ones that are given."""
    _, disk, offset, disks = _LOCATOR.unpack_from(view, place)
    if disk or disks > 1:
        raise UnsupportedError(f"{where}: spans several files")
    if offset + _END64.size > place or not _has(view, offset, b"PK\x06\x06"):
        raise FormatError(f"{where}: has no 64-bit end record at {offset}")
    _, length, _, _, disk, start_disk, *values = _END64.unpack_from(view, offset)
    if offset + 12 + length != place or disk or start_disk:
        raise FormatError(f"{where}: the 64-bit end record at {offset} is malformed")
    full = (_FULL16, _FULL16, _FULL32, _FULL32)
    if any(a not in (b, none) for a, b, none in zip(short, values, full, strict=True)):
        raise FormatError(f"{where}: the end records contradict each other")
    count_here, count, size, start = values
    return count_here, count, size, start, offset


def _member(view: memoryview, position: int, end: int, limit: int, where: str) -> tuple[Member, int]:
    """The directory entry at `position`, and the position after it. Members must end before `limit`."""
    if position + _CENTRAL.size > end or not _has(view, position, b"PK\x01\x02"):
        raise FormatError(f"{where}: has no directory entry at {position}")
    fields = _CENTRAL.unpack_from(view, position)
    _, _, _, flags, method, _, _, crc, stored, size, name_length, extra_length, comment_length, disk, _, attributes, header = (
        fields
    )
    behind_name = position + _CENTRAL.size + name_length
    after = behind_name + extra_length + comment_length
    if after > end:
        raise FormatError(f"{where}: the directory entry at {position} runs beyond the directory")
    raw_name = bytes(view[behind_name - name_length : behind_name])
    name = _decode(raw_name, flags, where)
    where = f"{where}: member {name[:100]!r}"
    extra = bytes(view[behind_name : behind_name + extra_length])
    size, stored, header = _widen(extra, (size, stored, header), where)
    if any(kind == _UNICODE and field[5:] != name.encode() for kind, field in _fields(extra)):
        raise FormatError(f"{where}: has another name in its extra field")
    if stat.S_ISLNK(attributes >> 16):
        raise FormatError(f"{where}: is a symbolic link")
    if flags & _ENCRYPTED:
        raise UnsupportedError(f"{where}: is encrypted")
    if flags & _PATCH:
        raise UnsupportedError(f"{where}: is a patch to other data")
    if method not in (STORED, _DEFLATED):
        raise UnsupportedError(f"{where}: is compressed by {_METHODS.get(method, f'method {method}')}, only deflate is supported")
    if disk or (method == STORED and stored != size):
        raise FormatError(f"{where}: {stored} bytes stored as {size} on disk {disk}")
    start = _data_start(view, header, (flags & _AGREE, method, crc, stored, size), raw_name, where)
    if start + stored > limit:
        raise FormatError(f"{where}: its {stored} bytes at {start} run into the directory at {limit}")
    return Member(name, method, crc, stored, size, header, start), after


def _decode(raw: bytes, flags: int, where: str) -> str:
    try:
        name = raw.decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError:
        raise FormatError(f"{where}: the member name {raw[:100]!r} is not UTF-8") from None
    if "\0" in name:
        raise FormatError(f"{where}: the member name {raw[:100]!r} has a zero byte")
    return name


def _widen(extra: bytes, values: tuple[int, int, int], where: str) -> tuple[int, int, int]:
    """Size, stored size and offset; those that do not fit 32 bits are taken from the extra field, where they stand so."""
    if _FULL32 not in values:
        return values
    for kind, field in _fields(extra):
        if kind == _WIDE and len(field) >= 8 * values.count(_FULL32):
            wide = iter(struct.unpack_from(f"<{values.count(_FULL32)}Q", field))
            a, b, c = (next(wide) if value == _FULL32 else value for value in values)
            return a, b, c
    raise FormatError(f"{where}: its 64-bit sizes are missing")


def _fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    """The extra fields that are whole, by their ids."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        position += 4 + length
        if position <= len(extra):
            yield kind, extra[position - length : position]


def _data_start(view: memoryview, header: int, told: tuple[int, ...], raw_name: bytes, where: str) -> int:
    """Offset of the data, from the member's own header, which must agree with the directory's entry (`told`)."""
    if header + _LOCAL.size > len(view) or not _has(view, header, b"PK\x03\x04"):
        raise FormatError(f"{where}: has no header at {header}")
    name_length: int
    extra_length: int
    _, _, flags, method, _, _, crc, stored, size, name_length, extra_length = _LOCAL.unpack_from(view, header)
    behind_name = header + _LOCAL.size + name_length
    start = behind_name + extra_length
    size, stored, _ = _widen(bytes(view[behind_name:start]), (size, stored, 0), where)
    own = (flags & _AGREE, method, crc, stored, size)
    if flags & _LATER and not any(own[2:]):  # they follow the data, unless a writer knew them
        own = (*own[:2], *told[2:])
    if own != told or name_length != len(raw_name) or not _has(view, behind_name - name_length, raw_name):
        raise FormatError(f"{where}: its header at {header} contradicts the directory")
    return start


def _has(view: memoryview, at: int, content: bytes) -> bool:
    return bytes(view[at : at + len(content)]) == content


def _check_members(members: list[Member], end: int, view: memoryview, where: str) -> None:
    """No name twice, no data shared, and nothing before, between or after them that belongs to none, up to `end`."""
    if len({member.name for member in members}) < len(members):
        names = sorted(member.name for member in members)
        twice = next(a for a, b in itertools.pairwise(names) if a == b)
        raise FormatError(f"{where}: has two members named {twice[:100]!r}")
    position = 0
    before: Member | None = None
    for member in sorted(members, key=lambda member: member.header):
        if member.header != position and not _is_descriptor(view[position : member.header], before):
            raise FormatError(f"{where}: member {member.name[:100]!r} begins at {member.header}, expected at {position}")
        position, before = member.start + member.stored, member
    if position != end and not _is_descriptor(view[position:end], before):
        raise FormatError(f"{where}: its directory begins at {end}, expected at {position}, where the members end")


def _is_descriptor(view: memoryview, member: Member | None) -> bool:
    """Whether the bytes say of the member before them what the directory says."""
    found = next((d.unpack(view) for d in _DESCRIPTORS if d.size == len(view)), ())
    return member is not None and found[-3:] == (member.crc, member.stored, member.size)

"""Changes of bytes: bits, values that are at the edge of something, blocks taken out, put in, doubled, or from another file."""

from __future__ import annotations

import struct
from random import Random

__all__ = ["INTERESTING", "mutate", "number"]

INTERESTING = (
    0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 254, 255, 256, 257, 512, 1000, 1024, 4096, 32767,
    32768, 65535,
    65536, 65537, 1 << 20, (1 << 24) - 1, 1 << 24, (1 << 30), (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 2,
    (1 << 32) - 1, 1 << 32,
    (1 << 32) + 1, 1 << 40, (1 << 53) + 1, (1 << 61) + 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 8, (1 << 64) - 2,
    (1 << 64) - 1,
)  # fmt: skip
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_FEW = 64  # bytes of a block most of the time


def number(rng: Random, size: int = 8) -> int:
    """An interesting number of up to `size` bytes without sign."""
    kind = rng.random()
    if kind < 0.75:
        value = rng.choice(INTERESTING)
    elif kind < 0.9:
        value = rng.getrandbits(rng.randint(1, 8 * size))
    else:
        value = -rng.randint(1, 300)
    return value & ((1 << 8 * size) - 1)


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change; three times out of four the first 8 bytes, where magic values are, stay."""
    if not content:
        return other[: rng.randint(0, len(other))] or b"\0"
    begin = 8 if len(content) > 9 and rng.random() < 0.75 else 0
    return rng.choice(_CHANGES)(rng, content, other, begin)


def _put(content: bytes, at: int, new: bytes, over: int | None = None) -> bytes:
    return content[:at] + new + content[at + (len(new) if over is None else over) :]


def _bit(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    at = rng.randrange(begin, len(content))
    return _put(content, at, bytes([content[at] ^ 1 << rng.randrange(8)]))


def _byte(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    return _put(content, rng.randrange(begin, len(content)), bytes([rng.getrandbits(8)]))


def _number(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    size = rng.choice((1, 2, 4, 8))
    new = struct.pack(rng.choice("<>") + _CODES[size], number(rng, size))
    return _put(content, rng.randrange(begin, len(content)), new)[: len(content)]


def _added(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    """A number that is there, and a little more or less."""
    size = rng.choice((1, 2, 4, 8))
    code = rng.choice("<>") + _CODES[size]
    if len(content) - size < begin:
        return content
    at = rng.randint(begin, len(content) - size)
    (value,) = struct.unpack_from(code, content, at)
    return _put(content, at, struct.pack(code, (value + rng.randint(-35, 35)) & ((1 << 8 * size) - 1)))


def _length(rng: Random, most: int) -> int:
    return rng.randint(1, max(1, min(most, _FEW if rng.random() < 0.85 else most)))


def _insert(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    size = _length(rng, 600)
    new = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size), bytes([rng.getrandbits(8)]) * size))
    return _put(content, rng.randint(begin, len(content)), new, 0)


def _delete(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    return _put(content, rng.randrange(begin, len(content)), b"", _length(rng, len(content)))


def _double(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    at = rng.randrange(begin, len(content))
    block = content[at : at + _length(rng, len(content))]
    return _put(content, at, block * (1 if rng.random() < 0.8 else rng.randint(2, 30)), 0)


def _over(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    """A block over another of the same file."""
    source = rng.randrange(len(content))
    block = content[source : source + _length(rng, len(content))]
    return _put(content, rng.randrange(begin, len(content)), block)


def _fill(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    size = _length(rng, len(content))
    at = rng.randrange(begin, len(content))
    return _put(content, at, rng.choice((b"\0", b"\xff", b"9", b" ")) * size)[: len(content)]


def _splice(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    if not other:
        return content
    kind = rng.random()
    if kind < 0.4:
        at = rng.randint(begin, len(content))
        return content[:at] + other[rng.choice((at, rng.randint(0, len(other)))) :]
    source = rng.randrange(len(other))
    block = other[source : source + _length(rng, len(other))]
    return _put(content, rng.randint(begin, len(content)), block, 0 if kind < 0.7 else None)


def _truncate(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    return content[: rng.randrange(begin, len(content))] if rng.random() < 0.5 else content[: -_length(rng, len(content))]


def _append(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    return content + rng.choice((b"\0", rng.randbytes(_length(rng, 100)), content[: _length(rng, len(content))]))


def _digits(rng: Random, content: bytes, other: bytes, begin: int) -> bytes:
    places = [i for i in range(begin, min(len(content), 4096)) if 48 <= content[i] < 58]
    if not places:
        return _byte(rng, content, other, begin)
    return _put(content, rng.choice(places), rng.choice((b"-", b"9", b"0", b"999999999", b".", b"e")), 1)


_CHANGES = (
    _bit, _bit, _byte, _number, _number, _number, _added, _added, _insert, _delete, _double, _over, _fill, _splice, _truncate,
    _append, _digits,
)  # fmt: skip

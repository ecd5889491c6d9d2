"""MessagePack: types and values changed one by one, with the lengths around them put right most of the time."""

from __future__ import annotations

import functools
import struct
from random import Random

from . import blocks

__all__ = ["mutate"]

_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_SIZED = {
    0xC4: (1, 0),
    0xC5: (2, 0),
    0xC6: (4, 0),
    0xC7: (1, 1),
    0xC8: (2, 1),
    0xC9: (4, 1),
    0xD9: (1, 0),
    0xDA: (2, 0),
    0xDB: (4, 0),
}
_EXTS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_COUNTS = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_WORDS = (
    b"float32",
    b"int64",
    b"bfloat16",
    b"float8_e4m3fn",
    b"bool",
    b"complex64",
    b"V2",
    b"object",
    b"__msgpack_chunked_array__",
    b"shape",
    b"chunks",
    b"0",
    b"1",
    b"O8",
)
_MADE = (
    b"\xc0", b"\xc1", b"\xc2", b"\x00", b"\x7f", b"\xff", b"\x80", b"\x90", b"\xa0", b"\xa1x", b"\xca\x7f\x80\0\0",
    b"\xcb" + b"\xff" * 8, b"\xcf" + b"\xff" * 8, b"\xd3\x80" + bytes(7),
    b"\xdd\xff\xff\xff\xff", b"\xdf\0\1\0\0", b"\xc6\xff\xff\xff\xff", b"\xc4\0", b"\xc7\0\1", b"\xd4\1\0",
    b"\xd8\3" + bytes(16), b"\x91" * 70 + b"\x90", b"\x81\xa1a" * 70 + b"\x80",
    b"\x91" * 2000 + b"\x90", b"\xdc\0\3\1\2\3", b"\xd6\xff\0\0\0\0",
)  # fmt: skip


@functools.lru_cache(maxsize=512)
def _tokens(content: bytes) -> tuple[bytes, ...]:
    """Every type with its own bytes: what is in an array or map comes as tokens after its own."""
    found, at = [], 0
    while at < len(content):
        first = content[at]
        if first in _FIXED:
            size = 1 + _FIXED[first]
        elif first in _SIZED:
            width, more = _SIZED[first]
            size = 1 + width + more + int.from_bytes(content[at + 1 : at + 1 + width], "big")
        elif first in _EXTS:
            size = 2 + _EXTS[first]
        elif first in _COUNTS:
            size = 1 + _COUNTS[first]
        else:
            size = 1 + (first & 31 if 0xA0 <= first < 0xC0 else 0)
        found.append(content[at : at + size])
        at += size
    return tuple(found)


def _changed(rng: Random, token: bytes) -> bytes:
    """The type with another content or length."""
    first = token[0]
    if 0xA0 <= first < 0xC0:
        word = rng.choice(_WORDS) if rng.random() < 0.6 else blocks.mutate(rng, token[1:], b"a.b")[:31]
        return bytes([0xA0 | len(word)]) + word if len(word) < 32 else b"\xd9" + bytes([len(word)]) + word
    if first in _SIZED and rng.random() < 0.85:
        width, more = _SIZED[first]
        kind, held = token[1 + width : 1 + width + more], token[1 + width + more :]
        if more and rng.random() < 0.15:
            kind = bytes([rng.choice((0, 1, 2, 3, 4, 255))])
        elif more and rng.random() < 0.85:
            held = mutate(rng, held, b"")  # an array, which is MessagePack again
        else:
            held = blocks.mutate(rng, held, b"")
        return bytes([first]) + struct.pack({1: ">B", 2: ">H", 4: ">I"}[width], len(held) & (1 << 8 * width) - 1) + kind + held
    if first >> 4 in (8, 9):
        return bytes([first & 0xF0 | (first + rng.choice((-1, 1)) if rng.random() < 0.7 else rng.getrandbits(4)) & 15])
    if len(token) > 1:
        return token[:1] + blocks.mutate(rng, token[1:], b"")
    return bytes([rng.choice((0, 1, 2, 3, 4, 6, 127, 255, 0xC0, 0xC3, 0x90, 0x80))])


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of a MessagePack."""
    if not content or rng.random() < 0.08:
        return blocks.mutate(rng, content, other)
    tokens = list(_tokens(content))
    i = rng.randrange(len(tokens))
    kind = rng.random()
    if kind < 0.5:
        tokens[i] = _changed(rng, tokens[i])
    elif kind < 0.65:
        tokens[i] = rng.choice(_MADE)
    elif kind < 0.72:
        tokens.insert(i, rng.choice(_MADE))
    elif kind < 0.78:
        del tokens[i]
    elif kind < 0.86:
        j = rng.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    elif kind < 0.94:
        tokens[i] = rng.choice(tokens)
    else:
        tokens.insert(i, rng.choice(_tokens(other) or (b"\xc0",)))
    return b"".join(tokens)

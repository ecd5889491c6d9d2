"""HDF5: fields of messages, heaps and trees changed where they stand; addresses that lead to other structures, or in circles."""

from __future__ import annotations

import functools
import re
import struct
from random import Random

from . import blocks

__all__ = ["mutate"]

_SIGNATURES = re.compile(rb"TREE|HEAP|SNOD|OHDR|OCHK|FRHP|FHDB|FHIB|BTHD|BTLF|BTIN|GCOL|FADB|FAHD|EAHD|\x89HDF\r\n\x1a\n")
# A header of version 1: its number of messages, references and size; most of the file's structures hang on those.
_HEADERS = re.compile(rb"\x01\x00[^\0]\0[\0-\x04]\0\0\0..\0\0\0\0\0\0", re.DOTALL)


@functools.lru_cache(maxsize=256)
def _structures(content: bytes) -> tuple[tuple[int, bool], ...]:
    """Where structures begin, and whether they are headers of version 1."""
    found = [(m.start(), False) for m in _SIGNATURES.finditer(content)]
    return tuple(found + [(m.start(), True) for m in _HEADERS.finditer(content)])


@functools.lru_cache(maxsize=256)
def _messages(content: bytes, at: int) -> tuple[tuple[int, int], ...]:
    """Where the contents of the messages of a header of version 1 begin, and their sizes."""
    (size,) = struct.unpack_from("<I", content, at + 8)
    place, end, found = at + 16, min(at + 16 + size, len(content)), []
    while place + 8 <= end:
        _, length = struct.unpack_from("<HH", content, place)
        found.append((place, length + 8))
        place += 8 + length
    return tuple(found)


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of an HDF5 file."""
    structures = _structures(content)
    if not structures or rng.random() < 0.15:
        return blocks.mutate(rng, content, other)
    at, old = rng.choice(structures)
    span = 96
    messages = _messages(content, at) if old else ()
    if messages and rng.random() < 0.9:
        at, span = rng.choice(messages)
        if rng.random() < 0.12:
            return _swapped(rng, content, at, span, messages)
    offset = rng.randrange(min(span, 8 if rng.random() < 0.3 else span) or 1)
    place = min(at + offset, len(content) - 1)
    choice = rng.random()
    if choice < 0.25:
        new = struct.pack("<Q", rng.choice(structures)[0])
        place = at + offset // 8 * 8 if rng.random() < 0.7 else place
    elif choice < 0.75:
        size = rng.choice((1, 1, 2, 4, 8))
        new = blocks.number(rng, size).to_bytes(size, "little")
    else:
        new = bytes([(content[place] + rng.choice((-8, -2, -1, 1, 2, 8))) & 255])
    return content[:place] + new + content[place + len(new) :]


def _swapped(rng: Random, content: bytes, at: int, span: int, messages: tuple[tuple[int, int], ...]) -> bytes:
    """A message over another one, or one that is of another kind."""
    if rng.random() < 0.5:
        return content[:at] + struct.pack("<H", rng.randrange(24)) + content[at + 2 :]
    source, length = rng.choice(messages)
    block = content[source : source + min(length, span)]
    return content[:at] + block + content[at + len(block) :]

"""flatbuffers without a schema: fields of tables, their offsets, vectors' lengths and vtables changed where they stand."""

from __future__ import annotations

import functools
import struct
from random import Random

from . import blocks

__all__ = ["mutate"]

_MOST = 400  # tables that are looked at
Place = tuple[str, int]  # ("vtable", "field", "offset" or "length"; where)


@functools.lru_cache(maxsize=256)
def _places(content: bytes) -> tuple[tuple[Place, ...], tuple[int, ...]]:
    """Where something stands that means something, and where tables begin."""
    found: list[Place] = []
    size = len(content)
    if size < 8:
        return (), ()
    tables: dict[int, None] = {}
    stack = [struct.unpack_from("<I", content)[0]]
    found.append(("offset", 0))
    seen: set[int] = set()
    while stack and len(tables) < _MOST and len(found) < 10 * _MOST:
        at = stack.pop()
        if at in seen or not 4 <= at <= size - 4:
            continue
        seen.add(at)
        vtable = at - struct.unpack_from("<i", content, at)[0]
        if not 0 <= vtable <= size - 4:
            continue
        length, own = struct.unpack_from("<HH", content, vtable)
        if length % 2 or not 4 <= length <= 200 or vtable + length > size or not 4 <= own <= 400:
            _vector(content, at, found, stack)
            continue
        tables[at] = None
        found += (("vtable", vtable + 2 * i) for i in range(length // 2))
        found.append(("offset", at))
        for (offset,) in struct.iter_unpack("<H", content[vtable + 4 : vtable + length]):
            place = at + offset
            if not offset or place + 4 > size:
                continue
            target = place + struct.unpack_from("<I", content, place)[0]
            found.append(("field", place))
            if place < target <= size - 4 and target % 4 == 0:
                found.append(("offset", place))
                stack.append(target)
    return tuple(found), tuple(tables)


def _vector(content: bytes, at: int, found: list[Place], stack: list[int]) -> None:
    """What may be a vector, of numbers or of tables."""
    (count,) = struct.unpack_from("<I", content, at)
    if not 0 < count <= 2000 or at + 4 + count > len(content):
        return
    found.append(("length", at))
    for i in range(min(count, 60)):
        place = at + 4 + 4 * i
        if place + 4 > len(content):
            break
        target = place + struct.unpack_from("<I", content, place)[0]
        found.append(("field", place))
        if place < target <= len(content) - 4 and target % 4 == 0:
            found.append(("offset", place))
            stack.append(target)


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of a flatbuffer."""
    places, tables = _places(content)
    if not places or rng.random() < 0.12:
        return blocks.mutate(rng, content, other)
    kind, at = rng.choice(places)
    if kind == "vtable":
        new = struct.pack(
            "<H",
            rng.choice(
                (0, 0, 4, 6, 8, 12, blocks.number(rng, 2), struct.unpack_from("<H", content, rng.choice(places)[1] & ~1)[0])
            ),
        )
    elif kind == "offset":
        target = rng.choice(tables) if tables and rng.random() < 0.7 else rng.choice(places)[1]
        new = struct.pack(
            "<I", rng.choice((target - at, target - at, 0, 4, blocks.number(rng, 4), len(content) - at - 4)) & 0xFFFFFFFF
        )
    elif kind == "length":
        (value,) = struct.unpack_from("<I", content, at)
        new = struct.pack("<I", rng.choice((value + 1, value - 1, 0, 2 * value, blocks.number(rng, 4))) & 0xFFFFFFFF)
    else:
        new = _scalar(rng, content, at)
    return content[:at] + new + content[at + len(new) :]


def _scalar(rng: Random, content: bytes, at: int) -> bytes:
    choice = rng.random()
    if choice < 0.3:
        return bytes([rng.choice((0, 1, 2, 3, 9, rng.randrange(160), 255))])
    if choice < 0.6:
        (value,) = struct.unpack_from("<i", content, at)
        return struct.pack("<i", max(min(value + rng.choice((-2, -1, 1, 2)), (1 << 31) - 1), -1 << 31))
    if choice < 0.8:
        return struct.pack("<I", blocks.number(rng, 4))
    if choice < 0.9:
        return struct.pack("<f", rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e38, 0.5)))
    return struct.pack("<i", rng.choice((-1, 0, rng.randrange(40))))

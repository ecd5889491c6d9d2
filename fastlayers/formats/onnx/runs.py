"""Long lists of an attribute, whose items are separate fields: many at once, where `fields` would take each by itself.

Tree ensembles have hundreds of thousands. Each function takes the offset of the first field and returns the items and the offset
after the last: the first field that is of another number, of another kind or in another encoding is left to the caller.
"""

from __future__ import annotations

import numpy as np

from .wire import block_of_varints

__all__ = ["FLOAT_ITEM", "INT_ITEM", "STRING_ITEM", "floats_at", "integers_at", "strings_at"]

FLOAT_ITEM, INT_ITEM, STRING_ITEM = 0x3D, 0x40, 0x4A  # the tags of AttributeProto's lists

_BLOCK = 1 << 16  # bytes of integers that are decoded at once


def integers_at(view: memoryview, at: int, end: int, where: object) -> tuple[list[int], int]:
    """Fields of a tag and a varint, as int64."""
    found: list[int] = []
    while at < end:
        block = np.frombuffer(view[at : min(at + _BLOCK, end)], np.uint8)
        ends = np.flatnonzero(block < 128)
        ends = ends[: ends.size & ~1]  # tag and value alternate
        tags = np.empty(ends.size // 2, np.int64)
        tags[:1] = 0
        tags[1:] = ends[1:-1:2] + 1
        other = np.flatnonzero((block[tags] != INT_ITEM) | (ends[::2] != tags))
        count = int(other[0]) if other.size else tags.size
        if count:
            ends = ends[: 2 * count]
            size = int(ends[-1]) + 1
            values = block_of_varints(block[:size], ends, where)[1::2]
            found += values.view(np.int64).tolist()
            at += size
        if other.size or not count:
            break
    return found, at


def floats_at(view: memoryview, at: int, end: int) -> tuple[list[float], int]:
    """Fields of a tag and four bytes."""
    content = np.frombuffer(view[at:end], np.uint8)
    items = content[: content.size // 5 * 5].reshape(-1, 5)
    other = np.flatnonzero(items[:, 0] != FLOAT_ITEM)
    count = int(other[0]) if other.size else len(items)
    return items[:count, 1:].copy().view("<f4").reshape(-1).tolist(), at + 5 * count


def strings_at(view: memoryview, at: int, end: int, most: int) -> tuple[list[str | bytes], int]:
    """Fields of a tag, a length below 128 and so many bytes, as text where they are UTF-8; equal ones are one object.

    Ends after `most` of them.
    """
    found: list[str | bytes] = []
    known: dict[bytes, str | bytes] = {}
    while len(found) < most:
        block = view[at : min(at + _BLOCK, end)].tobytes()
        size, start = len(block), 0
        while start + 1 < size and block[start] == STRING_ITEM and len(found) < most:
            stop = start + 2 + block[start + 1]
            if stop > size or block[start + 1] > 127:
                break
            content = block[start:stop]
            text = known.get(content)
            if text is None:
                text = known[content] = _decoded(content[2:])
            found.append(text)
            start = stop
        at += start
        if not start:
            break
    return found, at


def _decoded(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content

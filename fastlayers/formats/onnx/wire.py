"""The wire format of protobuf: fields of a message, and runs of values. Every length is checked; nothing is copied.

Knows no message. Positions are offsets into the one view of the whole file, so that errors can say where.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import NoReturn

import numpy as np

from ...errors import FormatError
from .._arrays import Array

# The kind of a field, the lower three bits of its tag.
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

MAX_VARINT = 10  # bytes: 64 bits, seven in each
_BLOCK = 1 << 16  # bytes of varints decoded at once: numpy needs about 40 bytes of memory for each


def fields(view: memoryview, at: int, end: int, where: object) -> Generator[tuple[int, int, int], int | None, None]:
    """The fields of the message between two offsets, as (tag, a, b).

    Of a number that is a varint, a is the value, from 0 to 2**64 - 1; of all others, a and b are the offsets of the content. The
    tag is 8 * the field's number + its kind. `send(offset)` goes on at another offset, where the caller has read some fields
    itself. Raises FormatError; `where` is what its text begins with.
    """
    try:
        while at < end:
            tag = view[at]
            at += 1
            if tag > 127:
                more = view[at]
                if more < 128:  # two bytes are common, and a call would take longer than the rest of the loop
                    tag += (more - 1) << 7
                    at += 1
                else:
                    tag, at = _long_varint(view, at, tag, where)
            kind = tag & 7
            if kind == 2:
                size = view[at]
                at += 1
                if size > 127:
                    more = view[at]
                    if more < 128:
                        size += (more - 1) << 7
                        at += 1
                    else:
                        size, at = _long_varint(view, at, size, where)
                stop = at + size
                if stop > end:
                    cut = ": truncated?" if end == len(view) else ""
                    _fail(where, at, f"a field of {size} bytes is longer than the {max(end - at, 0)} bytes that are left{cut}")
                moved = yield tag, at, stop
                at = stop
            elif kind == 0:
                value = view[at]
                at += 1
                if value > 127:
                    value, at = _long_varint(view, at, value, where)
                if at > end:
                    _fail(where, end, "the message ends within a number")
                moved = yield tag, value, at
            elif kind == 5 or kind == 1:
                stop = at + (4 if kind == 5 else 8)
                if stop > end:
                    _fail(where, at, "the message ends within a number")
                moved = yield tag, at, stop
                at = stop
            else:
                name = "a group, which ONNX never uses" if kind in (3, 4) else "of no known kind"
                _fail(where, at, f"field {tag >> 3} is {name} ({kind})")
            if moved is not None:
                at = moved
                yield 0, at, at  # what `send` returns
    except IndexError:
        _fail(where, len(view), "the file ends within a field")


def skip(tag: int, known: frozenset[int], where: object) -> None:
    """To be called for a field that is not read: raises FormatError unless its number is a valid one that the message lacks.

    `known` are the values that the message has and that are read: one of those was of the wrong kind.
    """
    number = tag >> 3
    if not 0 < number < 1 << 29:
        raise FormatError(f"{where}: a field has the number {number}, expected 1 to {(1 << 29) - 1}")
    if number in known:
        raise FormatError(f"{where}: field {number} is of kind {tag & 7}, which is not that of its type")


def signed(value: int) -> int:
    """An int64 or int32 from the varint that holds it."""
    return value - (1 << 64) if value >> 63 else value


def varints(view: memoryview, at: int, end: int, where: object) -> Iterator[int]:
    """The values of a short packed run, one by one; long runs are for `unpack`."""
    try:
        while at < end:
            value = view[at]
            at += 1
            if value > 127:
                value, at = _long_varint(view, at, value, where)
            if at > end:
                _fail(where, end, "the packed run ends within a value")
            yield value
    except IndexError:
        _fail(where, len(view), "the file ends within a number")


def unpack(run: memoryview, count: int, store: Callable[[Array, slice], None], where: object) -> None:
    """Decodes a packed run of exactly `count` varints; `store` gets them as uint64 in blocks, and which of all they are."""
    content = np.frombuffer(run, np.uint8)
    at = done = 0
    while at < content.size:
        block = content[at : at + _BLOCK]
        ends = np.flatnonzero(block < 128)
        if not ends.size:
            raise FormatError(f"{where}: a number in a run of them is cut off, or longer than {MAX_VARINT} bytes")
        block = block[: ends[-1] + 1]
        values = block_of_varints(block, ends, where)
        if done + values.size > count:
            raise FormatError(f"{where}: has more than the {count} values that its shape has elements")
        store(values, slice(done, done + values.size))
        done += values.size
        at += block.size
    if done != count:
        raise FormatError(f"{where}: has {done} values, its shape has {count} elements")


def block_of_varints(block: Array, ends: Array, where: object) -> Array:
    """The values of a block that begins and ends with whole ones; `ends` are the positions of their last bytes."""
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > MAX_VARINT or (longest == MAX_VARINT and block[ends[lengths == MAX_VARINT]].max() > 1):
        raise FormatError(f"{where}: a number in a run of them has more than 64 bits")
    values = (block[starts] & 127).astype(np.uint64)
    for k in range(1, longest):
        (longer,) = np.nonzero(lengths > k)
        values[longer] |= (block[starts[longer] + k] & 127).astype(np.uint64) << np.uint64(7 * k)
    return values


def _long_varint(view: memoryview, at: int, value: int, where: object) -> tuple[int, int]:
    """The varint whose first byte, just before `at`, was `value`, and the offset after it."""
    value &= 127
    for shift in range(7, 7 * MAX_VARINT, 7):
        byte = view[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128 and value < 1 << 64:
            return value, at
        if byte < 128:
            break
    raise FormatError(f"{where}: byte {at}: a number has more than 64 bits")


def _fail(where: object, at: int, text: str) -> NoReturn:
    raise FormatError(f"{where}: byte {at}: {text}")

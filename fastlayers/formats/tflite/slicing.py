"""Rules of slices: SLICE, STRIDED_SLICE with all its masks, SPLIT, UNPACK."""

from __future__ import annotations

import numpy as np

from ..._tuples import NamedTuple
from .call import Call

__all__ = ["slice_", "split", "strided_slice", "unpack"]

_FIRST, _LAST = (int(v) for v in (np.iinfo(np.int64).min, np.iinfo(np.int64).max))


def slice_(c: Call) -> str:
    """`size` positions from `begin` on, -1 for all that are left."""
    rank = c.rank()
    if c.constant(1) is not None and c.constant(2) is not None:
        begin, size = c.ints(1, "begin"), c.ints(2, "size")
        if len(begin) != rank or len(size) != rank or min(begin, default=0) < 0 or min(size, default=0) < -1:
            c.fail(f"begin is {begin[:16]}, size {size[:16]}: expected {rank} values each, from 0 and -1 up")
        ends = [_LAST if s == -1 else b + s for b, s in zip(begin, size, strict=True)]
        return c.e.node("Slice", c.x(0), c.e.ints(begin), c.e.ints(ends), c.e.ints(range(rank)))
    begin_, size_ = (c.cast(c.x(i), np.dtype(np.int64)) for i in (1, 2))
    end = c.e.node("Add", begin_, size_)
    whole = c.e.node("Equal", size_, c.e.ints(-1))
    return c.e.node("Slice", c.x(0), begin_, c.e.node("Where", whole, c.e.ints(_LAST), end), c.e.ints(range(rank)))


class _Axis(NamedTuple):
    """Slice of one axis of x: the number of the specification, the axis, and whether it is removed afterwards."""

    i: int
    axis: int
    shrinks: bool


def _layout(c: Call, count: int) -> tuple[list[_Axis], list[int]]:
    """Slices of the axes, and the positions in the result of new axes of size 1."""
    o, rank = c.options, c.rank()
    ellipsis, new, shrink = o["ellipsis_mask"] & ((1 << count) - 1), o["new_axis_mask"], o["shrink_axis_mask"]
    if ellipsis & (ellipsis - 1):
        c.fail("names more than one ellipsis")
    news = sum(1 for i in range(count) if new >> i & 1 and not ellipsis >> i & 1)
    given = count - news - bool(ellipsis)
    if given > rank:
        c.fail(f"slices {given} axes of {rank}")
    found, added, axis, place = [], [], 0, 0
    for i in range(count):
        if ellipsis >> i & 1:
            axis += rank - given
            place += rank - given
        elif new >> i & 1:
            added.append(place)
            place += 1
        else:
            shrinks = bool(shrink >> i & 1)
            found.append(_Axis(i, axis, shrinks))
            axis += 1
            place += not shrinks
    return found, added


def strided_slice(c: Call) -> str:
    """begin:end:stride along the first axes; masks leave bounds open, drop axes, add axes, or skip some (the ellipsis)."""
    strides = c.ints(3, "strides")
    begin, end = c.constant(1), c.constant(2)
    axes, added = _layout(c, len(strides))
    if begin is not None and end is not None:
        begins, ends = c.ints(1, "begin"), c.ints(2, "end")
        if not len(begins) == len(ends) == len(strides) or 0 in strides:
            c.fail(f"begin is {begins[:16]}, end {ends[:16]}, strides {strides[:16]}: expected equal lengths, and no stride of 0")
        starts, stops = _bounds(c, axes, begins, ends, strides)
        bounds = c.e.ints(starts), c.e.ints(stops)
    else:
        bounds = _computed(c, axes, strides)
    steps = [1 if a.shrinks else strides[a.i] for a in axes]
    x = c.e.node("Slice", c.x(0), *bounds, c.e.ints([a.axis for a in axes]), c.e.ints(steps)) if axes else c.x(0)
    gone = [a.axis for a in axes if a.shrinks]
    if gone:
        x = c.e.node("Squeeze", x, c.e.ints(gone))
    if added:
        x = c.e.node("Unsqueeze", x, c.e.ints(added))
    return x if x != c.x(0) else c.e.node("Identity", x)


def _bounds(c: Call, axes: list[_Axis], begins: list[int], ends: list[int], strides: list[int]) -> tuple[list[int], list[int]]:
    o, starts, stops = c.options, [], []
    for i, axis, shrinks in axes:
        backward = strides[i] < 0 and not shrinks
        start = begins[i]
        if o["begin_mask"] >> i & 1:
            start = _LAST if backward else 0
        stop = ends[i] + (start if o["offset"] else 0)
        if shrinks:
            shape = c.e.shape(c.x(0))
            size = shape[axis] if shape is not None else None
            if isinstance(size, int) and not -size <= start < size:
                c.fail(f"element {start} of an axis of {size}")
            stop = start + 1 if start != -1 else _LAST
        elif o["end_mask"] >> i & 1:
            stop = _FIRST if backward else _LAST
        starts.append(start)
        stops.append(stop)
    return starts, stops


def _computed(c: Call, axes: list[_Axis], strides: list[int]) -> tuple[str, str]:
    """Bounds of which some are computed: what masks say is put over them."""
    e, o = c.e, c.options
    if o["offset"]:
        c.refuse("with ends that count from computed beginnings")
    picks = e.ints([a.i for a in axes])
    start, stop = (e.node("Gather", c.cast(c.x(i), np.dtype(np.int64)), picks, axis=0) for i in (1, 2))
    backward = [strides[a.i] < 0 and not a.shrinks for a in axes]

    def over(name: str, where: list[bool], values: list[int]) -> str:
        return e.node("Where", e.constant(np.array(where, bool)), e.ints(values), name) if any(where) else name

    start = over(start, [bool(o["begin_mask"] >> a.i & 1) for a in axes], [_LAST if b else 0 for b in backward])
    one = e.node("Add", start, e.ints(1))
    next_ = e.node("Where", e.node("Equal", one, e.ints(0)), e.ints(_LAST), one)
    open_ = [bool(o["end_mask"] >> a.i & 1) for a in axes]
    stop = over(stop, open_, [_FIRST if b else _LAST for b in backward])
    if any(a.shrinks for a in axes):
        stop = e.node("Where", e.constant(np.array([a.shrinks for a in axes], bool)), next_, stop)
    return start, stop


def split(c: Call) -> tuple[str, ...]:
    """SPLIT: axis, x, into equal parts; SPLIT_V: x, sizes, axis, where one size may be -1."""
    first = c.op == "SPLIT"
    x, axis = c.x(1 if first else 0), c.axis(c.number(0 if first else 2, "the axis"), c.rank(1 if first else 0))
    count, sizes = len(c.outputs), None
    shape = c.e.shape(x)
    whole = shape[axis] if shape is not None else None
    if c.options["num_splits"] != count or not count:
        c.fail(f"makes {c.options['num_splits']} parts, has {count} results")
    if first and isinstance(whole, int) and whole % count:
        c.fail(f"{whole} elements do not make {count} equal parts")
    if not first:
        values = c.ints(1, "sizes of parts")
        if -1 in values:
            if not isinstance(whole, int):
                c.refuse("with an open size, of an axis of unknown size")
            values[values.index(-1)] = whole - sum(v for v in values if v != -1)
        sizes = c.e.ints(values)
    attributes = {"axis": axis} if sizes is not None else {"axis": axis, "num_outputs": count}
    return c.e.many("Split", (x, sizes), [""] * count, attributes)


def unpack(c: Call) -> tuple[str, ...]:
    """Every slice along an axis, which goes."""
    axis, count = c.axis(c.options["axis"], c.rank()), len(c.outputs)
    shape = c.e.shape(c.x(0))
    if c.options["num"] != count or not count or (shape is not None and isinstance(shape[axis], int) and shape[axis] != count):
        c.fail(f"makes {c.options['num']} parts of {shape} along axis {axis}, has {count} results")
    if count == 1:
        return (c.e.node("Squeeze", c.x(0), c.e.ints([axis])),)
    parts = c.e.many("Split", (c.x(0),), [""] * count, {"axis": axis, "num_outputs": count})
    return tuple(c.e.node("Squeeze", part, c.e.ints([axis])) for part in parts)

"""Resampling of up to three axes by tables of weighted taps: rows along the last axis, then sums of rows.

Where a row of the input serves many rows of the result, it is resampled along the last axis once and kept in a ring; else rows
are summed first. Few channels next to each other are taken as positions of the last axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..fits import fits, resized_sizes, tables_of
from ._band import copy_row
from ._mix import mix, number, put_number
from ._njit import call, emitted, inner, kernel
from ._pick import PICKS, gathered, pick
from ._records import Int
from ._threads import address, scratch, spread
from ._tile import integer, put_integer, zero
from ._vector import I32, WIDTH, Emit, Integer, V

__all__ = ["resize", "resize_pack"]

TASK = 1 << 15  # values written by one task, about
NARROW = 16  # channels below which they are positions of the last axis


class Axis(NamedTuple):
    """The taps of an axis: positions and weights [taps][pitch]; base: the two vectors that hold all taps of some outputs."""

    size: int
    n: int
    taps: int
    pitch: int
    at: np.ndarray | None  # None: the axis stays
    weight: np.ndarray | None  # None: one tap of weight 1
    base: np.ndarray | None

    def table(self) -> Table:
        return Table(
            self.size, self.n, self.taps, self.pitch, address(self.at), address(self.weight), address(self.base)
        )  # fmt: skip


class Packed(NamedTuple):
    """The taps of d, h and w; c values of a position of w; reach: positions under the taps of one output of h, at most."""

    d: Axis
    h: Axis
    w: Axis
    c: int
    reach: int
    sizes: tuple[int, ...]  # (d, h, w, i) of x, and (d, h, w) of the result


def _axis(given: Any, size: int, repeat: int, picked: bool) -> Axis:
    if given is None:
        return Axis(size * repeat, size * repeat, 1, 0, None, None, None)
    index, weight = given
    taps, n = index.shape
    places = (index[:, :, None] * repeat + np.arange(repeat)).reshape(taps, n * repeat)
    pitch = -(-n * repeat // WIDTH) * WIDTH
    at = np.zeros((taps, pitch), np.int32)
    at[:, : n * repeat] = places
    factor = base = None
    if weight is not None:
        factor = np.zeros((taps, pitch), np.float32)
        factor[:, : n * repeat] = weight.repeat(repeat, axis=1)
    if picked and PICKS and pitch and size:
        vectors = at.reshape(taps, -1, WIDTH)
        vectors[:, -1, n * repeat - pitch + WIDTH :] = vectors[:, -1, :1]  # those after the last one must not widen its window
        low = vectors.min(axis=(0, 2)).clip(0, max(size * repeat - 2 * WIDTH, 0))
        if int((vectors.max(axis=(0, 2)) - low).max()) < 2 * WIDTH:
            base = low.astype(np.int64)
            at -= base.repeat(WIDTH).astype(np.int32)
    return Axis(size * repeat, n * repeat, taps, pitch, at, factor, base)


def resize_pack(axes: Sequence[Any], size: Sequence[int]) -> Packed:
    """axes: for d, h, w (index, weight), each [taps][outputs], int64 and float32 (None: one tap of weight 1), or None for an axis
    that stays; size: (d, h, w, i) of x."""
    tables_of("resize_pack", axes, size)
    c = size[3] if size[3] >= NARROW else 1
    d, h = (_axis(axes[i], size[i], 1, False) for i in range(2))
    w = _axis(axes[2], size[2], 1 if c > 1 else size[3], c == 1)
    reach = 1
    if axes[1] is not None and axes[1][0].size:
        reach = int((axes[1][0].max(axis=0) - axes[1][0].min(axis=0)).max()) + 1
    return Packed(d, h, w, c, reach, resized_sizes(axes, size))


class Table(NamedTuple):
    """The taps of an axis, as `Axis` has them; addresses are 0 for None."""

    size: Int
    n: Int
    taps: Int
    pitch: Int
    at: Int
    weight: Int
    base: Int


@emitted
def _along(e: Emit, x: V, out: V, of: Table) -> None:
    """out = n values along the last axis of a row of `size`."""
    lanes = e.vector(I32)
    few = of.size < 2 * WIDTH

    def case(count: int, copy: bool, picked: bool) -> None:
        def body(o: V, mask: V | None) -> None:
            def value_of(t: Any) -> V:
                lane = e.load(e.at(of.at, of.pitch * t + o), lanes)
                return pick(e, a.get(), b.get(), lane) if picked else gathered(e, x, lane)

            if picked:
                a, b = e.var(e.f(0.0)), e.var(e.f(0.0))
                with e.builder.if_else(few.v) as (short, long):
                    with short:  # the whole row is one window
                        a.set(e.load(x, mask=e.mask(of.size)))
                        b.set(e.load(e.at(x, WIDTH), mask=e.mask(of.size - WIDTH)))
                    with long:
                        at = e.at(x, e.load(e.at(of.base, V(e, e.builder.sdiv(o.v, e.i64(WIDTH).v)), 8), o.kind))
                        a.set(e.load(at))
                        b.set(e.load(e.at(at, WIDTH)))
            if copy:
                e.store(e.at(out, o), value_of(0), mask)
                return
            total = e.var(e.f(0.0))

            def tap(t: Any) -> None:
                factor = e.load(e.at(of.weight, of.pitch * t + o))
                total.set(e.select(factor.differs(0.0), e.fma(factor, value_of(t), total.get()), total.get()))

            if count:
                for step in range(count):
                    tap(step)
            else:
                with e.loop(0, of.taps) as t:
                    tap(t)
            e.store(e.at(out, o), total.get(), mask)

        e.vectors(of.n, body)

    known = e.select(of.weight.equals(0), e.i64(1), e.select(of.taps.equals(2) | of.taps.equals(4), of.taps, e.i64(0)))
    cases: dict[int, Callable[[], None]] = {
        8 * picked + count: partial(case, count, count == 1, bool(picked))
        for picked in range(1 + PICKS)
        for count in (0, 1, 2, 4)
    }
    e.switch(known + e.select(of.base.differs(0), e.i64(8), e.i64(0)), cases)


@emitted
def _place(e: Emit, place: V, index: V) -> Integer:
    return e.convert(e.load(e.at(place, index), I32), index.kind, "sext")


@inner
def last_axis(mix: int, a: Table, c: int, x: int, out: int, rows: int, weights: int) -> None:
    """One row along the last axis; rows and weights: room for the taps of an output."""
    if c == 1:
        _along(x, out, a)
        return
    for o in range(a.n):
        if a.weight == 0:
            copy_row(x + 4 * _place(a.at, o) * c, out + 4 * o * c, c)
        else:
            count = 0
            for t in range(a.taps):
                factor = number(a.weight, t * a.pitch + o)
                if factor != 0:
                    put_integer(rows, count, x + 4 * _place(a.at, t * a.pitch + o) * c)
                    put_number(weights, count, factor)
                    count += 1
            call(mix, rows, weights, count, out + 4 * o * c, c)


class Plan(NamedTuple):
    """Tables of d, h and w. copies: all taps weigh 1; rows_first: rows are summed before they are resampled along the last axis;
    each: rows of a task, of which an array has `bands`."""

    mix: int
    last_axis: int
    c: int
    d: Table
    h: Table
    w: Table
    copies: int
    rows_first: int
    reach: int
    each: int
    bands: int


class Room(NamedTuple):
    """Memory of a thread: rows and weights of the taps of d and h, and of w; tags of the ring's rows, a line, the ring."""

    rows: int
    weights: int
    own_rows: int
    own_weights: int
    tags: int
    line: int
    ring: int


@kernel
def _resize(p: Plan, own: Room, x: int, out: int, first: int, last: int) -> None:
    """Tasks: `each` rows of the result of one array."""
    row, out_row, total = p.w.size * p.c, p.w.n * p.c, p.d.n * p.h.n
    for task in range(first, last):
        o, begin = task // p.bands, task % p.bands * p.each
        for i in range(p.d.taps * p.reach):
            put_integer(own.tags, i, -1)
        before = -1
        for r in range(begin, min(total, begin + p.each)):
            od, oh = r // p.h.n, r % p.h.n
            to = out + 4 * (o * total + r) * out_row
            count = 0
            for i in range(p.d.taps):
                d_weight = number(p.d.weight, i * p.d.pitch + od) if p.d.weight != 0 else np.float32(1)
                if d_weight != 0:
                    z = _place(p.d.at, i * p.d.pitch + od) if p.d.at != 0 else od
                    for j in range(p.h.taps):
                        h_weight = number(p.h.weight, j * p.h.pitch + oh) if p.h.weight != 0 else np.float32(1)
                        if h_weight != 0:
                            y = _place(p.h.at, j * p.h.pitch + oh) if p.h.at != 0 else oh
                            key = z * p.h.size + y
                            place = x + 4 * (o * p.d.size * p.h.size + key) * row
                            if p.w.at != 0 and p.rows_first == 0 and p.copies == 0:
                                slot = i * p.reach + y % p.reach
                                if integer(own.tags, slot) != key:
                                    to_ring = own.ring + 4 * slot * out_row
                                    call(p.last_axis, p.mix, p.w, p.c, place, to_ring, own.own_rows, own.own_weights)
                                    put_integer(own.tags, slot, key)
                                place = own.ring + 4 * slot * out_row
                            put_integer(own.rows, count, place)
                            put_number(own.weights, count, d_weight * h_weight)
                            count += 1
            place = integer(own.rows, 0)
            if p.copies != 0 and place == before:
                copy_row(to - 4 * out_row, to, out_row)
            elif count == 0:
                zero(to, out_row)
            else:
                alone = count == 1 and number(own.weights, 0) == 1
                if not alone:
                    target = own.line if p.w.at != 0 and p.rows_first != 0 else to
                    call(p.mix, own.rows, own.weights, count, target, row if p.w.at != 0 and p.rows_first != 0 else out_row)
                    place = target
                if p.w.at != 0 and (p.rows_first != 0 or p.copies != 0):
                    call(p.last_axis, p.mix, p.w, p.c, place, to, own.own_rows, own.own_weights)
                elif alone:
                    copy_row(place, to, out_row)
            before = integer(own.rows, 0)


def resize(x__odhwi: np.ndarray, packed: Packed, out__odhwi: np.ndarray) -> None:
    """out[o, d, h, w, i] = the sum over the taps of d, h and w of their weights times x there; taps of weight 0 are left out."""
    fits("resize", packed.sizes, (x__odhwi, out__odhwi))
    if not out__odhwi.size:
        return
    d, h, w, c, reach, _ = packed
    row, out_row, total = w.size * c, w.n * c, d.n * h.n
    copies = all(axis.weight is None for axis in (d, h, w))
    # Rows of x that are resampled along the last axis, if that comes first, against rows of the result.
    rows_first = d.taps * min(h.size, h.n * h.taps) > h.n
    each = min(max(TASK // out_row, 1), total)
    bands, taps = -(-total // each), d.taps * h.taps
    kept = 0 if w.at is None or rows_first or copies else d.taps * reach

    plan = Plan(
        mix.address, last_axis.address, c, d.table(), h.table(), w.table(), int(copies), int(rows_first), reach, each, bands
    )  # fmt: skip

    def run(first: int, last: int) -> None:
        memory = np.empty(taps + w.taps + d.taps * reach, np.int64)
        floats = scratch(taps + w.taps + max(row, out_row) + kept * out_row)
        at, number = address(memory), address(floats)
        line = number + 4 * (taps + w.taps)
        own = Room(
            at, number, at + 8 * taps, number + 4 * taps, at + 8 * (taps + w.taps), line, line + 4 * max(row, out_row)
        )  # fmt: skip
        _resize(plan, own, address(x__odhwi), address(out__odhwi), first, last)

    spread(len(x__odhwi) * bands, out__odhwi.size * (10.0 + 3 * (taps + w.taps)), run)

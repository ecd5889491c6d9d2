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
from ._threads import address, scratch, spread
from ._tile import integer, put_integer, zero
from ._vector import I32, WIDTH, Emit, Integer, V

__all__ = ["resize", "resize_pack"]

TASK = 1 << 15  # numbers written by one task, about
NARROW = 16  # channels below which they are positions of the last axis


class Axis(NamedTuple):
    """The taps of an axis: places and weights [taps][pitch]; base: the two vectors that hold all taps of some outputs."""

    size: int
    n: int
    taps: int
    pitch: int
    at: np.ndarray | None  # None: the axis stays
    weight: np.ndarray | None  # None: one tap of weight 1
    base: np.ndarray | None

    def addresses(self) -> tuple[int, ...]:
        return self.taps, self.pitch, address(self.at), address(self.weight)


class Packed(NamedTuple):
    """The taps of d, h and w; c numbers of a position of w; reach: positions under the taps of one output of h, at most."""

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


@emitted
def _along(e: Emit, x: V, out: V, size: V, n: V, taps: V, pitch: V, index: V, weight: V, base: V) -> None:
    """out = n numbers along the last axis of a row of `size`."""
    lanes = e.vector(I32)
    few = size < 2 * WIDTH

    def case(count: int, copy: bool, picked: bool) -> None:
        def body(o: V, mask: V | None) -> None:
            def value_of(t: Any) -> V:
                lane = e.load(e.at(index, pitch * t + o), lanes)
                return pick(e, a.get(), b.get(), lane) if picked else gathered(e, x, lane)

            if picked:
                a, b = e.var(e.f(0.0)), e.var(e.f(0.0))
                with e.builder.if_else(few.v) as (short, long):
                    with short:  # the whole row is one window
                        a.set(e.load(x, mask=e.mask(size)))
                        b.set(e.load(e.at(x, WIDTH), mask=e.mask(size - WIDTH)))
                    with long:
                        at = e.at(x, e.load(e.at(base, V(e, e.builder.sdiv(o.v, e.i64(WIDTH).v)), 8), o.kind))
                        a.set(e.load(at))
                        b.set(e.load(e.at(at, WIDTH)))
            if copy:
                e.store(e.at(out, o), value_of(0), mask)
                return
            total = e.var(e.f(0.0))

            def tap(t: Any) -> None:
                factor = e.load(e.at(weight, pitch * t + o))
                total.set(e.select(factor.differs(0.0), e.fma(factor, value_of(t), total.get()), total.get()))

            if count:
                for step in range(count):
                    tap(step)
            else:
                with e.loop(0, taps) as t:
                    tap(t)
            e.store(e.at(out, o), total.get(), mask)

        e.vectors(n, body)

    known = e.select(weight.equals(0), e.i64(1), e.select(taps.equals(2) | taps.equals(4), taps, e.i64(0)))
    cases: dict[int, Callable[[], None]] = {
        8 * picked + count: partial(case, count, count == 1, bool(picked))
        for picked in range(1 + PICKS)
        for count in (0, 1, 2, 4)
    }
    e.switch(known + e.select(base.differs(0), e.i64(8), e.i64(0)), cases)


@emitted
def _place(e: Emit, place: V, index: V) -> Integer:
    return e.convert(e.load(e.at(place, index), I32), index.kind, "sext")


@inner
def last_axis(
    mix: int, x: int, out: int, c: int, size: int, n: int, taps: int, pitch: int, index: int, weight: int, base: int, rows: int,
    weights: int,
) -> None:  # fmt: skip
    """One row along the last axis; rows and weights: room for the taps of an output."""
    if c == 1:
        _along(x, out, size, n, taps, pitch, index, weight, base)
        return
    for o in range(n):
        if weight == 0:
            copy_row(x + 4 * _place(index, o) * c, out + 4 * o * c, c)
        else:
            count = 0
            for t in range(taps):
                factor = number(weight, t * pitch + o)
                if factor != 0:
                    put_integer(rows, count, x + 4 * _place(index, t * pitch + o) * c)
                    put_number(weights, count, factor)
                    count += 1
            call(mix, rows, weights, count, out + 4 * o * c, c)


@kernel
def _resize(
    mix: int, last_axis: int, x: int, out: int, c: int, dsize: int, dn: int, hsize: int, hn: int, wsize: int, wn: int, dt: int,
    dp: int, di: int, dw: int, ht: int, hp: int, hi: int, hw: int, wt: int, wp: int, wi: int, ww: int, base: int, copies: int,
    rows_first: int, reach: int, each: int, bands: int, rows: int, weights: int, own_rows: int, own_weights: int, tags: int,
    line: int, ring: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: `each` rows of the result of one array."""
    row, out_row, total = wsize * c, wn * c, dn * hn
    for task in range(first, last):
        o, begin = task // bands, task % bands * each
        for i in range(dt * reach):
            put_integer(tags, i, -1)
        before = -1
        for r in range(begin, min(total, begin + each)):
            od, oh = r // hn, r % hn
            to = out + 4 * (o * total + r) * out_row
            count = 0
            for i in range(dt):
                d_weight = number(dw, i * dp + od) if dw != 0 else np.float32(1)
                if d_weight != 0:
                    z = _place(di, i * dp + od) if di != 0 else od
                    for j in range(ht):
                        h_weight = number(hw, j * hp + oh) if hw != 0 else np.float32(1)
                        if h_weight != 0:
                            y = _place(hi, j * hp + oh) if hi != 0 else oh
                            key = z * hsize + y
                            place = x + 4 * (o * dsize * hsize + key) * row
                            if wi != 0 and rows_first == 0 and copies == 0:
                                slot = i * reach + y % reach
                                if integer(tags, slot) != key:
                                    call(
                                        last_axis, mix, place, ring + 4 * slot * out_row, c, wsize, wn, wt, wp, wi, ww, base,
                                        own_rows, own_weights,
                                    )  # fmt: skip
                                    put_integer(tags, slot, key)
                                place = ring + 4 * slot * out_row
                            put_integer(rows, count, place)
                            put_number(weights, count, d_weight * h_weight)
                            count += 1
            place = integer(rows, 0)
            if copies != 0 and place == before:
                copy_row(to - 4 * out_row, to, out_row)
            elif count == 0:
                zero(to, out_row)
            else:
                alone = count == 1 and number(weights, 0) == 1
                if not alone:
                    target = line if wi != 0 and rows_first != 0 else to
                    call(mix, rows, weights, count, target, row if wi != 0 and rows_first != 0 else out_row)
                    place = target
                if wi != 0 and (rows_first != 0 or copies != 0):
                    call(last_axis, mix, place, to, c, wsize, wn, wt, wp, wi, ww, base, own_rows, own_weights)
                elif alone:
                    copy_row(place, to, out_row)
            before = integer(rows, 0)


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

    def run(first: int, last: int) -> None:
        memory = np.empty(taps + w.taps + d.taps * reach, np.int64)
        floats = scratch(taps + w.taps + max(row, out_row) + kept * out_row)
        at, number = address(memory), address(floats)
        line = number + 4 * (taps + w.taps)
        _resize(
            mix.address, last_axis.address, address(x__odhwi), address(out__odhwi), c, d.size, d.n, h.size, h.n, w.size, w.n,
            *d.addresses(), *h.addresses(), *w.addresses(), address(w.base), int(copies), int(rows_first), reach, each, bands,
            at, number, at + 8 * taps, number + 4 * taps, at + 8 * (taps + w.taps), line, line + 4 * max(row, out_row),
            first, last,
        )  # fmt: skip

    spread(len(x__odhwi) * bands, out__odhwi.size * (10.0 + 3 * (taps + w.taps)), run)

"""Pooling over windows of one to three axes.

Channels-first rows are pooled downwards first, into a row with a border,
and then along; channels-last windows with channels as lanes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ._njit import emitted, kernel
from ._records import Axes, Int, Steps
from ._threads import address, scratch, spread
from ._tile import integer
from ._vector import WIDTH, Emit, Float, V

__all__ = ["avg_pool", "lp_pool", "max_pool", "places", "sum_pool", "tables"]

WRITTEN, SIDE = 5, 3  # taps along an axis, and sides of a window, that are written out; more are a loop
ROWS = 16  # of a plane that are pooled downwards before they are pooled along
POWERS = 1 << 17  # powers that are in memory at a time, about


def _take(e: Emit, average: bool, a: V, x: V) -> V:
    return a + x if average else e.most_nan(x, a)


def _start(average: bool) -> float:
    return 0.0 if average else -math.inf


class Planes(NamedTuple):
    """`lines` rows with this stride."""

    at: Int
    apart: Int
    lines: Int


@emitted
def _down(e: Emit, average: V, x: V, n: V, z: Steps, down: Steps, windows: V, w: V, to: Planes) -> None:
    """For every one of the lines: to[i] = the fold of z x down rows of n values, the first where `windows` says."""

    def case(mean: bool, rows: int) -> Callable[[], None]:
        def emit() -> None:
            with e.loop(0, to.lines) as r:
                from_ = e.at(x, e.load(e.at(windows, r * 2, 8), r.kind) * w)
                target = e.at(to.at, r * to.apart)

                def body(i: V, mask: V | None) -> None:
                    line = e.at(from_, i)
                    if rows:
                        value = e.load(line, mask=mask)
                        for number in range(1, rows):
                            value = _take(e, mean, value, e.load(e.at(line, down.step * number), mask=mask))
                        e.store(e.at(target, i), value, mask)
                        return
                    total = e.var(e.f(_start(mean)))
                    with e.loop(0, z.count) as plane, e.loop(0, down.count) as y:
                        total.set(_take(e, mean, total.get(), e.load(e.at(line, plane * z.step + y * down.step), mask=mask)))
                    e.store(e.at(target, i), total.get(), mask)

                e.vectors(n, body)

        return emit

    known = z.count.equals(1) & (down.count > 0) & (down.count <= WRITTEN)
    cases = {mean * 8 + rows: case(bool(mean), rows) for mean in (0, 1) for rows in range(WRITTEN + 1)}
    e.switch(average * 8 + e.select(known, down.count, e.i64(0)), cases)


@emitted
def _border(e: Emit, average: V, to: V, n: V) -> None:
    def case(mean: bool) -> Callable[[], None]:
        return lambda: e.vectors(n, lambda i, mask: e.store(e.at(to, i), e.f(_start(mean)), mask))

    e.switch(average, {0: case(False), 1: case(True)})


@emitted
def _along(e: Emit, average: V, rows: Planes, taps: Steps, stride: V, shares: V, each: V, all_: Float, y: V, n: V) -> None:
    """For every one of the lines: y[i] = the fold of `taps` values from row[i * stride] on, times all_ * each[line] * shares[i]
    for an average."""
    kind = e.select(stride > 2, e.i64(3), stride)

    def case(mean: bool, step: int, known: int) -> Callable[[], None]:
        def emit() -> None:
            with e.loop(0, rows.lines) as line:
                row, to = e.at(rows.at, line * rows.apart), e.at(y, line * n)
                factor = e.splat(all_ * e.load(e.at(each, line), all_.kind)) if mean else None

                def load(at: V, t: V) -> V:
                    return e.strided(e.at(row, at * stride + t * taps.step), step if step < 3 else stride)

                def pair(at: V, t: int) -> tuple[V, V]:
                    place = e.at(row, at * 2 + t)
                    return e.load(place), e.load(e.at(place, WIDTH))

                def body(i: V, mask: V | None) -> None:
                    if known:
                        if step == 2:  # neighbours: of two vectors the even and the odd elements
                            pairs = [pair(i, number) for number in range(0, known, 2)]
                            taken = [e.lanes(a, range(odd, 2 * WIDTH, 2), b) for a, b in pairs for odd in range(2)][:known]
                        else:
                            taken = [load(i, e.i64(number)) for number in range(known)]
                        value = taken[0]
                        for other in taken[1:]:
                            value = _take(e, mean, value, other)
                    else:
                        total = e.var(e.f(_start(mean)))
                        with e.loop(0, taps.count) as t:
                            total.set(_take(e, mean, total.get(), load(i, t)))
                        value = total.get()
                    if factor is not None:
                        value = value * (e.load(e.at(shares, i), mask=mask) * factor)
                    e.store(e.at(to, i), value, mask)

                e.vectors(n, body)

        return emit

    few = (taps.count > 1) & (taps.count <= WRITTEN) & (kind.equals(1) | (kind.equals(2) & taps.step.equals(1)))
    number = (average * 4 + kind) * 8 + e.select(few, taps.count, e.i64(0))
    cases = {(mean * 4 + step) * 8: case(bool(mean), step, 0) for mean in (0, 1) for step in (1, 2, 3)}
    cases |= {
        (mean * 4 + step) * 8 + known: case(bool(mean), step, known)
        for mean in (0, 1)
        for step in (1, 2)
        for known in range(2, WRITTEN + 1)
    }
    e.switch(number, cases)


@emitted
def _pixel(e: Emit, average: V, x: V, c: V, z: Steps, down: Steps, along: Steps, share: Float, y: V) -> None:
    def case(mean: bool, side: int) -> Callable[[], None]:
        def body(i: V, mask: V | None) -> None:
            total = e.var(e.f(_start(mean)))
            if side:
                for row, column in itertools.product(range(side), repeat=2):
                    at = e.at(x, down.step * row + along.step * column + i)
                    total.set(_take(e, mean, total.get(), e.load(at, mask=mask)))
            else:
                with e.loop(0, z.count) as plane, e.loop(0, down.count) as r, e.loop(0, along.count) as p:
                    at = e.at(x, plane * z.step + r * down.step + p * along.step + i)
                    total.set(_take(e, mean, total.get(), e.load(at, mask=mask)))
            e.store(e.at(y, i), total.get() * e.splat(share) if mean else total.get(), mask)

        return lambda: e.vectors(c, body)

    known = z.count.equals(1) & down.count.equals(along.count) & (along.count > 1) & (along.count <= SIDE)
    cases = {mean * 8 + side: case(bool(mean), side) for mean in (0, 1) for side in (0, *range(2, SIDE + 1))}
    e.switch(average * 8 + e.select(known, along.count, e.i64(0)), cases)


@emitted
def _float(e: Emit, place: V, index: V) -> Float:
    return e.load(e.at(place, index), e.f(0).kind.element)


class Plan(NamedTuple):
    """Pools of images. windows: first tap and count of the taps in the image, shares: what sums are multiplied by, along each
    axis; `apart`: positions from a tap to the next; of the last axis, kernel, stride and padding. c: channels, if they are last.
    """

    average: int
    size: Axes
    to: Axes
    windows: Axes
    shares: Axes
    apart: Axes
    kw: int
    sw: int
    bw: int
    c: int


@kernel
def _first(p: Plan, x: int, y: int, row: int, apart: int, length: int, first: int, last: int) -> None:
    """Tasks: planes of channels-first images, of planes. `row`: scratch for ROWS rows and their borders."""
    for i in range(ROWS):
        _border(p.average, row + 4 * i * apart, apart)  # all of it: values after the last one are read and dropped
    used = max(0, min(p.size.w, length - p.bw))
    for plane in range(first, last):
        source = x + 4 * plane * p.size.d * p.size.h * p.size.w
        for oz in range(p.to.d):
            z, z_count = integer(p.windows.d, 2 * oz), integer(p.windows.d, 2 * oz + 1)
            # Some rows downwards and only then along: values that were just written cannot be read from other positions at once.
            for o0 in range(0, p.to.h, ROWS):
                end, oy = min(p.to.h, o0 + ROWS), o0
                while oy < end:  # rows of windows with as many rows of the image each
                    y_count, stop = integer(p.windows.h, 2 * oy + 1), oy + 1
                    while stop < end and integer(p.windows.h, 2 * stop + 1) == y_count:
                        stop += 1
                    to = Planes(row + 4 * ((oy - o0) * apart + p.bw), apart, stop - oy)
                    deep, down = Steps(z_count, p.apart.d * p.size.h * p.size.w), Steps(y_count, p.apart.h * p.size.w)
                    _down(p.average, source + 4 * z * p.size.h * p.size.w, used, deep, down, p.windows.h + 16 * oy, p.size.w, to)
                    oy = stop
                done, each = y + 4 * ((plane * p.to.d + oz) * p.to.h + o0) * p.to.w, p.shares.h + 4 * o0
                rows = Planes(row, apart, end - o0)
                _along(p.average, rows, Steps(p.kw, p.apart.w), p.sw, p.shares.w, each, _float(p.shares.d, oz), done, p.to.w)


@kernel
def _last(p: Plan, x: int, y: int, first: int, last: int) -> None:
    """Tasks: rows of channels-last images."""
    for task in range(first, last):
        rest, oy = task // p.to.h, task % p.to.h
        image, oz = rest // p.to.d, rest % p.to.d
        z, z_count = integer(p.windows.d, 2 * oz), integer(p.windows.d, 2 * oz + 1)
        top, y_count = integer(p.windows.h, 2 * oy), integer(p.windows.h, 2 * oy + 1)
        line = ((image * p.size.d + z) * p.size.h + top) * p.size.w
        rows = _float(p.shares.d, oz) * _float(p.shares.h, oy)
        deep, down = Steps(z_count, p.apart.d * p.size.h * p.size.w * p.c), Steps(y_count, p.apart.h * p.size.w * p.c)
        for ox in range(p.to.w):
            left, x_count = integer(p.windows.w, 2 * ox), integer(p.windows.w, 2 * ox + 1)
            along, share = Steps(x_count, p.apart.w * p.c), rows * _float(p.shares.w, ox)
            _pixel(p.average, x + 4 * (line + left) * p.c, p.c, deep, down, along, share, y + 4 * (task * p.to.w + ox) * p.c)


def places(n: int, out: int, kernel: int, stride: int, dilation: int, low: int, high: int, before: int) -> np.ndarray:
    """Number of taps of each window along an axis that are at low .. high - 1."""
    at = np.arange(out)[:, None] * stride - before + np.arange(kernel) * dilation
    return np.asarray(((at >= low) & (at < high)).sum(axis=1), np.float32)


def _windows(n: int, out: int, kernel: int, stride: int, dilation: int, before: int) -> np.ndarray:
    """Position of the first tap in the image and number of such taps, for each window along an axis."""
    start = np.arange(out) * stride - before
    skipped = -(np.minimum(start, 0) // dilation)
    stop = np.minimum(kernel, -((start - n) // dilation))
    return np.stack([start + skipped * dilation, np.maximum(stop - skipped, 0)], axis=1).astype(np.int64)


@lru_cache(maxsize=64)
def tables(
    size: tuple[int, ...],
    to: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    pads: tuple[int, ...],
    include_pad: bool | None,
    share: float,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """One divided by `places` (or by 1 if `include_pad` is None), those of the first axis times `share`, and `_windows` of every
    axis: numpy takes longer for them than a small pool for its work."""
    axes = list(zip(size, to, kernel, stride, dilation, pads[::2], pads[1::2], strict=True))
    counts = [
        places(n, o, k, s, t, -before if include_pad else 0, n + after if include_pad else n, before)
        for n, o, k, s, t, before, after in axes
    ]
    with np.errstate(divide="ignore"):
        shares = [np.ones_like(count) if include_pad is None else 1 / count for count in counts]
    shares[0] = np.asarray(shares[0] * share, np.float32)
    return shares, [_windows(n, o, k, s, t, before) for n, o, k, s, t, before, _ in axes]


def _run(
    average: int,
    x: np.ndarray,
    out: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    include_pad: bool | None,
    channels_last: bool,
    share: float = 1.0,
) -> None:
    """Sums are multiplied by `share`, and divided by how many positions count unless `include_pad` is None."""
    if not out.size:
        return
    size, to = (x.shape[1:4], out.shape[1:4]) if channels_last else (x.shape[2:], out.shape[2:])
    ints = (tuple(map(int, sizes)) for sizes in (size, to, kernel, stride, dilation, pads))
    shares, windows = tables(*ints, include_pad, share)
    plan = Plan(
        average, Axes(*size), Axes(*to), Axes(*map(address, windows)), Axes(*map(address, shares)), Axes(*dilation), kernel[2],
        stride[2], pads[4], x.shape[4] if channels_last else 1,
    )  # fmt: skip
    work = 2.0 * out.size * math.prod(kernel)
    if channels_last:
        rows = x.shape[0] * to[0] * to[1]
        spread(rows, work, lambda first, last: _last(plan, address(x), address(out), first, last))
        return
    length = max((to[2] - 1) * stride[2] + (kernel[2] - 1) * dilation[2] + 1, 0)

    def run(first: int, last: int) -> None:
        apart = -(-(length + pads[4] + WIDTH * (stride[2] + 3)) // WIDTH) * WIDTH
        row = scratch(ROWS * apart)
        _first(plan, address(x), address(out), address(row), apart, length, first, last)

    spread(x.shape[0] * x.shape[1], work, run)


def max_pool(
    x: np.ndarray,
    out: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    channels_last: bool,
) -> None:
    """out = the largest number of each window; NaN if one of them is NaN, -infinity if none is in the image."""
    _run(0, x, out, kernel, stride, dilation, pads, False, channels_last)


def avg_pool(
    x: np.ndarray,
    out: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    include_pad: bool,
    channels_last: bool,
) -> None:
    """out = the sum of each window divided by how many of its positions are in the image (include_pad: in image and pads)."""
    _run(1, x, out, kernel, stride, dilation, pads, include_pad, channels_last)


def sum_pool(
    x: np.ndarray,
    out: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    factor: float,
    channels_last: bool,
) -> None:
    """out = factor times the sum of each window."""
    _run(1, x, out, kernel, stride, dilation, pads, None, channels_last, factor)


def lp_pool(
    x: np.ndarray,
    out: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    p: float,
    norm: bool,
    channels_last: bool,
) -> None:
    """out = (sum of |x|^p)^(1/p) of each window; without `norm` (s k / m)^(1/p), s the sum of x^p, k a window's positions and m
    those of them in image and pads."""
    from ._powers import powers  # other pools do without it

    if not channels_last:  # planes are images of one channel
        x, out = (a.reshape(-1, 1, *a.shape[2:]) for a in (x, out))
    each = max(1, POWERS // max(math.prod(x.shape[1:]), 1))
    given = (None, channels_last, 1.0) if norm else (True, channels_last, float(math.prod(kernel)))
    room = np.empty((min(each, len(x)), *x.shape[1:]), np.float32)
    for first in range(0, len(x) if out.size else 0, each):
        taken, to = x[first : first + each], out[first : first + each]
        if p != 1 or norm:
            taken = powers(taken, room[: len(taken)], p, norm)
        _run(1, taken, to, kernel, stride, dilation, pads, *given)
        if p != 1:
            powers(to, to, 1 / p, False)

"""Pooling over windows of one to three axes.

Channels-first rows are pooled downwards first, into a row with a border,
and then along; channels-last windows with channels as lanes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ..table import REDUCE
from ._njit import emitted, kernel
from ._threads import address, scratch, spread
from ._tile import integer
from ._vector import WIDTH, Emit, Float, V
from .reduce import reduce

__all__ = ["avg_pool", "lp_pool", "max_pool", "places", "sum_pool", "tables"]

WRITTEN, SIDE = 5, 3  # taps along an axis, and sides of a window, that are written out; more are a loop
ROWS = 16  # of a plane that are pooled downwards before they are pooled along
POWERS = 1 << 17  # powers that are in memory at a time, about


def _take(e: Emit, average: bool, a: V, x: V) -> V:
    return a + x if average else e.most_nan(x, a)


def _start(average: bool) -> float:
    return 0.0 if average else -math.inf


@emitted
def _down(
    e: Emit, average: V, x: V, n: V, z_count: V, z_step: V, windows: V, y_count: V, y_step: V, w: V, to: V, apart: V, lines: V
) -> None:  # fmt: skip
    """For every one of the lines: to[i] = the fold of z_count x y_count rows of n numbers, the first where `windows` says."""

    def case(mean: bool, rows: int) -> Callable[[], None]:
        def emit() -> None:
            with e.loop(0, lines) as r:
                from_ = e.at(x, e.load(e.at(windows, r * 2, 8), r.kind) * w)
                target = e.at(to, r * apart)

                def body(i: V, mask: V | None) -> None:
                    line = e.at(from_, i)
                    if rows:
                        value = e.load(line, mask=mask)
                        for number in range(1, rows):
                            value = _take(e, mean, value, e.load(e.at(line, y_step * number), mask=mask))
                        e.store(e.at(target, i), value, mask)
                        return
                    total = e.var(e.f(_start(mean)))
                    with e.loop(0, z_count) as z, e.loop(0, y_count) as y:
                        total.set(_take(e, mean, total.get(), e.load(e.at(line, z * z_step + y * y_step), mask=mask)))
                    e.store(e.at(target, i), total.get(), mask)

                e.vectors(n, body)

        return emit

    known = z_count.equals(1) & (y_count > 0) & (y_count <= WRITTEN)
    cases = {mean * 8 + rows: case(bool(mean), rows) for mean in (0, 1) for rows in range(WRITTEN + 1)}
    e.switch(average * 8 + e.select(known, y_count, e.i64(0)), cases)


@emitted
def _border(e: Emit, average: V, to: V, n: V) -> None:
    def case(mean: bool) -> Callable[[], None]:
        return lambda: e.vectors(n, lambda i, mask: e.store(e.at(to, i), e.f(_start(mean)), mask))

    e.switch(average, {0: case(False), 1: case(True)})


@emitted
def _along(
    e: Emit, average: V, rows: V, apart: V, lines: V, taps: V, tap: V, stride: V, shares: V, each: V, all_: Float, y: V, n: V
) -> None:  # fmt: skip
    """For every one of the lines: y[i] = the fold of `taps` values from row[i * stride] on, times all_ * each[line] * shares[i]
    for an average."""
    kind = e.select(stride > 2, e.i64(3), stride)

    def case(mean: bool, step: int, known: int) -> Callable[[], None]:
        def emit() -> None:
            with e.loop(0, lines) as line:
                row, to = e.at(rows, line * apart), e.at(y, line * n)
                factor = e.splat(all_ * e.load(e.at(each, line), all_.kind)) if mean else None

                def load(at: V, t: V) -> V:
                    return e.strided(e.at(row, at * stride + t * tap), step if step < 3 else stride)

                def pair(at: V, t: int) -> tuple[V, V]:
                    place = e.at(row, at * 2 + t)
                    return e.load(place), e.load(e.at(place, WIDTH))

                def body(i: V, mask: V | None) -> None:
                    if known:
                        if step == 2:  # neighbours: of two vectors the even and the odd numbers
                            pairs = [pair(i, number) for number in range(0, known, 2)]
                            taken = [e.lanes(a, range(odd, 2 * WIDTH, 2), b) for a, b in pairs for odd in range(2)][:known]
                        else:
                            taken = [load(i, e.i64(number)) for number in range(known)]
                        value = taken[0]
                        for other in taken[1:]:
                            value = _take(e, mean, value, other)
                    else:
                        total = e.var(e.f(_start(mean)))
                        with e.loop(0, taps) as t:
                            total.set(_take(e, mean, total.get(), load(i, t)))
                        value = total.get()
                    if factor is not None:
                        value = value * (e.load(e.at(shares, i), mask=mask) * factor)
                    e.store(e.at(to, i), value, mask)

                e.vectors(n, body)

        return emit

    few = (taps > 1) & (taps <= WRITTEN) & (kind.equals(1) | (kind.equals(2) & tap.equals(1)))
    number = (average * 4 + kind) * 8 + e.select(few, taps, e.i64(0))
    cases = {(mean * 4 + step) * 8: case(bool(mean), step, 0) for mean in (0, 1) for step in (1, 2, 3)}
    cases |= {
        (mean * 4 + step) * 8 + known: case(bool(mean), step, known)
        for mean in (0, 1)
        for step in (1, 2)
        for known in range(2, WRITTEN + 1)
    }
    e.switch(number, cases)


@emitted
def _pixel(
    e: Emit, average: V, x: V, c: V, z_count: V, z_step: V, y_count: V, y_step: V, x_count: V, x_step: V, share: Float, y: V
) -> None:  # fmt: skip
    def case(mean: bool, side: int) -> Callable[[], None]:
        def body(i: V, mask: V | None) -> None:
            total = e.var(e.f(_start(mean)))
            if side:
                for row, column in itertools.product(range(side), repeat=2):
                    at = e.at(x, y_step * row + x_step * column + i)
                    total.set(_take(e, mean, total.get(), e.load(at, mask=mask)))
            else:
                with e.loop(0, z_count) as z, e.loop(0, y_count) as r, e.loop(0, x_count) as p:
                    at = e.at(x, z * z_step + r * y_step + p * x_step + i)
                    total.set(_take(e, mean, total.get(), e.load(at, mask=mask)))
            e.store(e.at(y, i), total.get() * e.splat(share) if mean else total.get(), mask)

        return lambda: e.vectors(c, body)

    known = z_count.equals(1) & y_count.equals(x_count) & (x_count > 1) & (x_count <= SIDE)
    cases = {mean * 8 + side: case(bool(mean), side) for mean in (0, 1) for side in (0, *range(2, SIDE + 1))}
    e.switch(average * 8 + e.select(known, x_count, e.i64(0)), cases)


@emitted
def _float(e: Emit, place: V, index: V) -> Float:
    return e.load(e.at(place, index), e.f(0).kind.element)


@kernel
def _first(
    average: int, x: int, y: int, h: int, w: int, planes: int, od: int, oh: int, ow: int, windows_d: int, windows_h: int, dd: int,
    dh: int, shares_d: int, shares_h: int, shares_w: int, kw: int, sw: int, dw: int, bw: int, row: int, apart: int, length: int,
    first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: planes of channels-first images, of `planes` h x w floats. `row`: scratch for ROWS rows and their borders."""
    for i in range(ROWS):
        _border(average, row + 4 * i * apart, apart)  # all of it: numbers after the last one are read and dropped
    used = max(0, min(w, length - bw))
    for plane in range(first, last):
        source = x + 4 * plane * planes * h * w
        for oz in range(od):
            z, z_count = integer(windows_d, 2 * oz), integer(windows_d, 2 * oz + 1)
            # Some rows downwards and only then along: values that were just written cannot be read from other places at once.
            for o0 in range(0, oh, ROWS):
                end, oy = min(oh, o0 + ROWS), o0
                while oy < end:  # rows of windows with as many rows of the image each
                    y_count, stop = integer(windows_h, 2 * oy + 1), oy + 1
                    while stop < end and integer(windows_h, 2 * stop + 1) == y_count:
                        stop += 1
                    _down(
                        average, source + 4 * z * h * w, used, z_count, dd * h * w, windows_h + 16 * oy, y_count, dh * w, w,
                        row + 4 * ((oy - o0) * apart + bw), apart, stop - oy,
                    )  # fmt: skip
                    oy = stop
                to = y + 4 * ((plane * od + oz) * oh + o0) * ow
                _along(average, row, apart, end - o0, kw, dw, sw, shares_w, shares_h + 4 * o0, _float(shares_d, oz), to, ow)


@kernel
def _last(
    average: int, x: int, y: int, h: int, w: int, planes: int, od: int, oh: int, ow: int, windows_d: int, windows_h: int, dd: int,
    dh: int, shares_d: int, shares_h: int, shares_w: int, windows_w: int, dw: int, c: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: rows of channels-last images."""
    for task in range(first, last):
        rest, oy = task // oh, task % oh
        image, oz = rest // od, rest % od
        z, z_count = integer(windows_d, 2 * oz), integer(windows_d, 2 * oz + 1)
        top, y_count = integer(windows_h, 2 * oy), integer(windows_h, 2 * oy + 1)
        line = ((image * planes + z) * h + top) * w
        rows = _float(shares_d, oz) * _float(shares_h, oy)
        for ox in range(ow):
            left, x_count = integer(windows_w, 2 * ox), integer(windows_w, 2 * ox + 1)
            _pixel(
                average, x + 4 * (line + left) * c, c, z_count, dd * h * w * c, y_count, dh * w * c, x_count, dw * c,
                rows * _float(shares_w, ox), y + 4 * (task * ow + ox) * c,
            )  # fmt: skip


def places(n: int, out: int, kernel: int, stride: int, dilation: int, low: int, high: int, before: int) -> np.ndarray:
    """How many taps of each window along an axis are at low .. high - 1."""
    at = np.arange(out)[:, None] * stride - before + np.arange(kernel) * dilation
    return np.asarray(((at >= low) & (at < high)).sum(axis=1), np.float32)


def _windows(n: int, out: int, kernel: int, stride: int, dilation: int, before: int) -> np.ndarray:
    """Of each window along an axis where its first tap in the image is, and how many there are."""
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
    """Sums are multiplied by `share`, and divided by how many places count unless `include_pad` is None."""
    if not out.size:
        return
    size, to = (x.shape[1:4], out.shape[1:4]) if channels_last else (x.shape[2:], out.shape[2:])
    all_of_it = tuple(to) == (1, 1, 1) and tuple(kernel) == tuple(size) and not any(pads)
    if all_of_it and share == 1 and include_pad is not None:
        n, c = (len(x), x.shape[4]) if channels_last else (x.shape[0] * x.shape[1], 1)
        reduce(x.reshape(n, math.prod(size), c), out.reshape(n, c), REDUCE["mean" if average else "max"])
        return
    ints = (tuple(map(int, sizes)) for sizes in (size, to, kernel, stride, dilation, pads))
    shares, windows = tables(*ints, include_pad, share)
    given = (
        average, address(x), address(out), *size[1:], size[0], *to, address(windows[0]), address(windows[1]), *dilation[:2],
        *map(address, shares),
    )  # fmt: skip
    work = 2.0 * out.size * math.prod(kernel)
    if channels_last:
        rest = address(windows[2]), dilation[2], x.shape[4]
        spread(x.shape[0] * to[0] * to[1], work, lambda first, last: _last(*given, *rest, first, last))
        return
    length = max((to[2] - 1) * stride[2] + (kernel[2] - 1) * dilation[2] + 1, 0)

    def run(first: int, last: int) -> None:
        apart = -(-(length + pads[4] + WIDTH * (stride[2] + 3)) // WIDTH) * WIDTH
        row = scratch(ROWS * apart)
        _first(*given, kernel[2], stride[2], dilation[2], pads[4], address(row), apart, length, first, last)

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
    """out = the sum of each window divided by how many of its places are in the image (include_pad: in image and pads)."""
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
    """out = (sum of |x|^p)^(1/p) of each window; without `norm` (s k / m)^(1/p), s the sum of x^p, k the places of a window and m
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

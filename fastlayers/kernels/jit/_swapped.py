"""Convolution of channels-first data with swapped roles: weights' rows are broadcast, and pixels are the panels of the product,
so that neither input nor output is transposed. It pays for 1x1 kernels, and where few channels meet many outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._njit import call, emitted, kernel
from ._records import NOTHING, Act, Panels, Rows, Space, Sums
from ._tile import PANEL, RELU, put_integer, table, zero
from ._vector import I64, WIDTH, Emit, Float, V

__all__ = ["STRIP", "Swapped", "swapped"]

STRIP = 4 * PANEL  # pixels of a row whose panels are made at once
HEIGHT = 48  # outputs whose sums stay in the nearest cache until bias, residual and activation are applied


@emitted
def _split(e: Emit, x: V, step: V, y: V, n: V) -> None:
    """y = every step-th float, n of them; step: 1 or 2."""
    last = n * step - (step - 1)

    def load(i: V) -> V:
        return e.load(e.at(x, i), mask=e.mask(last - i))

    with e.loop(0, n, WIDTH) as i:
        mask = e.mask(n - i)
        with e.builder.if_else(step.equals(1).v) as (one, two):
            with one:
                e.store(e.at(y, i), load(i), mask)
            with two:
                e.store(e.at(y, i), e.lanes(load(i * 2), range(0, 2 * WIDTH, 2), load(i * 2 + WIDTH)), mask)


@emitted
def _panels(e: Emit, x: V, taps: V, terms: V, count: V, y: V) -> None:
    """The panels of `count` pixels, at most STRIP, from x on, whose terms are `taps` floats after."""

    def copy(whole: bool) -> None:
        places = range(0, STRIP, WIDTH)
        masks = [None if whole else e.mask(count - place) for place in places]
        with e.loop(0, terms) as t:
            at = e.at(x, e.load(e.at(taps, t, 8), I64))
            for place, mask in zip(places, masks, strict=True):
                to = (terms * (place // PANEL) + t) * PANEL + place % PANEL
                e.store(e.at(y, to), e.load(e.at(at, place), mask=mask))

    with e.builder.if_else(count.equals(STRIP).v) as (then, otherwise):
        with then:
            copy(True)
        with otherwise:
            copy(False)


@emitted
def _finish(e: Emit, y: V, line: V, rows: V, n: V, bias: V, residual: V, bound: Float) -> None:
    """Bias, residual (each may be none) and lower bound of rows of n sums."""
    least = e.splat(bound)
    with e.loop(0, rows) as row:
        added = e.var(e.f(0.0))
        with e.when(bias.differs(0)):
            added.set(e.broadcast(e.at(bias, row)))
        loaded = added.get()

        def body(i: V, mask: V | None, row: V = row, b: V = loaded) -> None:
            at = e.at(y, line * row + i)
            total = e.var(e.load(at, mask=mask))
            with e.when(bias.differs(0)):
                total.set(total.get() + b)
            with e.when(residual.differs(0)):
                total.set(total.get() + e.load(e.at(residual, line * row + i), mask=mask))
            e.store(at, e.most(least, total.get()), mask)

        e.vectors(n, body)


class Swapped(NamedTuple):
    """A convolution cut into tasks of rows x cols pixels and `width` outputs. weights: [output][kd, kh, kw, channel]; dense: a
    1x1 kernel without padding or stride, whose pixels are one row."""

    block: int
    apply: int
    weights: int
    bias: int
    groups: int
    ig: int
    og: int
    k: int
    dense: int
    space: Space
    rows: int
    cols: int
    width: int
    act: Act


@kernel
def swapped(p: Swapped, x: int, out: int, residual: int, scratch: int, first: int, last: int) -> None:
    """scratch holds addresses of weights, offsets of taps, panels of a strip, and padded
    rows [channel][kd][row][phase of the stride][column].
    """
    s = p.space
    volume, out_volume = s.d * s.h * s.w, s.od * s.oh * s.ow
    high_in, wide_in = (p.rows - 1) * s.sh + (s.kh - 1) * s.dh + 1, (p.cols - 1) * s.sw + (s.kw - 1) * s.dw + 1
    phase = (wide_in + s.sw - 1) // s.sw
    line = phase * s.sw
    plane = high_in * line
    pixel = volume if p.dense != 0 else s.kd * plane
    taps = scratch + 8 * p.width
    panels = taps + 8 * p.k
    panels += -panels % 64
    band = panels + 4 * STRIP * p.k
    t = 0
    for z in range(s.kd):
        for y in range(s.kh):
            for u in range(s.kw):
                for c in range(p.ig):
                    at = z * plane + y * s.dh * line + u * s.dw % s.sw * phase + u * s.dw // s.sw
                    put_integer(taps, t, c * pixel + at)
                    t += 1
    bound = 0.0 if p.act.code == RELU else -np.inf
    run = table()
    row_tasks, col_tasks, width_tasks = (
        (s.oh + p.rows - 1) // p.rows,
        (s.ow + p.cols - 1) // p.cols,
        (p.og + p.width - 1) // p.width,
    )
    for task in range(first, last):
        rest, j0 = task // width_tasks, task % width_tasks * p.width
        n = min(p.width, p.og - j0)
        rest, x0 = rest // col_tasks, rest % col_tasks * p.cols
        rest, y0 = rest // row_tasks, rest % row_tasks * p.rows
        rest, z0 = rest // s.od, rest % s.od
        image, group = rest // p.groups, rest % p.groups
        high, wide, channel = min(p.rows, s.oh - y0), min(p.cols, s.ow - x0), group * p.og + j0
        base = x + 4 * (image * p.groups + group) * p.ig * volume
        if p.dense != 0:
            base += 4 * x0
        else:
            zero(band, p.ig * pixel)
            for c in range(p.ig):
                for z in range(s.kd):
                    zi, i = z0 * s.sd + z * s.dd - s.bd, c * pixel + z * plane
                    if zi < 0 or zi >= s.d:
                        continue
                    begin = y0 * s.sh - s.bh  # the row of the image that the band begins with
                    for y in range(max(0, -begin), min((high - 1) * s.sh + (s.kh - 1) * s.dh + 1, s.h - begin)):
                        from_ = base + 4 * ((c * s.d + zi) * s.h + begin + y) * s.w
                        for u in range(s.sw):
                            start = x0 * s.sw - s.bw + u  # the column of the image that the phase begins with
                            i0 = min(max(0, (s.sw - 1 - start) // s.sw), phase)
                            i1 = max(i0, min(phase, (s.w - start + s.sw - 1) // s.sw))
                            _split(from_ + 4 * (start + i0 * s.sw), s.sw, band + 4 * (i + y * line + u * phase + i0), i1 - i0)
            base = band
        for i in range(n):
            put_integer(scratch, i, p.weights + 4 * (channel + i) * p.k)
        for r in range(high):
            for u in range(0, wide, STRIP):
                count = min(STRIP, wide - u)
                for k0 in range(0, p.k, 256):
                    terms = min(256, p.k - k0)
                    _panels(base + 4 * (r * s.sh * line + u), taps + 8 * k0, terms, count, panels + 4 * STRIP * k0)
                at = 4 * ((image * p.groups * p.og + channel) * out_volume + (z0 * s.oh + y0 + r) * s.ow + x0 + u)
                for i in range(0, n, HEIGHT):
                    some, place = min(HEIGHT, n - i), at + 4 * i * out_volume
                    for k0 in range(0, p.k, 256):
                        terms = min(256, p.k - k0)
                        put_integer(run, 0, k0)
                        put_integer(run, 1, terms)
                        of_strip = Panels(panels + 4 * STRIP * k0, 16, 16 * terms)
                        sums = Sums(out + place, out_volume, 1 if k0 > 0 else 0)
                        call(p.block, Rows(scratch + 8 * i, run, 1), some, of_strip, sums, count, NOTHING, p.apply)
                    extra = residual + place if residual != 0 else 0
                    if p.bias != 0 or residual != 0 or p.act.code == RELU:
                        b_at = p.bias + 4 * (channel + i) if p.bias != 0 else 0
                        _finish(out + place, out_volume, some, count, b_at, extra, bound)
                    if p.act.code > RELU:
                        for o in range(some):
                            line_at = out + place + 4 * o * out_volume
                            call(p.apply, p.act, line_at, line_at, count)

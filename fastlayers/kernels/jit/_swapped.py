"""Convolution of channels-first data with swapped roles: weights' rows are broadcast, and pixels are the panels of the product,
so that neither input nor output is transposed. It pays for 1x1 kernels, and where few channels meet many outputs.
"""

from __future__ import annotations

import numpy as np

from ._njit import call, emitted, kernel
from ._tile import PANEL, RELU, put_integer, table, zero
from ._vector import I64, WIDTH, Emit, Float, V

__all__ = ["STRIP", "swapped"]

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


@kernel
def swapped(
    block: int, apply: int, x: int, out: int, residual: int, weights: int, bias: int, groups: int, ig: int, og: int, k: int,
    dense: int, d: int, h: int, w: int, od: int, oh: int, ow: int, kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, dd: int,
    dh: int, dw: int, bd: int, bh: int, bw: int, rows: int, cols: int, width: int, code: int, a: float, bb: float, scratch: int,
    first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: rows x cols pixels, `width` outputs. dense: a 1x1 kernel without padding or stride, whose pixels are one row.

    weights: [output][kd, kh, kw, channel]. scratch holds addresses of weights, offsets of taps, panels of a strip, and padded
    rows [channel][kd][row][phase of the stride][column].
    """
    volume, out_volume = d * h * w, od * oh * ow
    high_in, wide_in = (rows - 1) * sh + (kh - 1) * dh + 1, (cols - 1) * sw + (kw - 1) * dw + 1
    phase = (wide_in + sw - 1) // sw
    line = phase * sw
    plane = high_in * line
    pixel = volume if dense != 0 else kd * plane
    taps = scratch + 8 * width
    panels = taps + 8 * k
    panels += -panels % 64
    band = panels + 4 * STRIP * k
    t = 0
    for z in range(kd):
        for y in range(kh):
            for u in range(kw):
                for c in range(ig):
                    at = z * plane + y * dh * line + u * dw % sw * phase + u * dw // sw
                    put_integer(taps, t, c * pixel + at)
                    t += 1
    bound = 0.0 if code == RELU else -np.inf
    run = table()
    row_tasks, col_tasks, width_tasks = (oh + rows - 1) // rows, (ow + cols - 1) // cols, (og + width - 1) // width
    for task in range(first, last):
        rest, j0 = task // width_tasks, task % width_tasks * width
        n = min(width, og - j0)
        rest, x0 = rest // col_tasks, rest % col_tasks * cols
        rest, y0 = rest // row_tasks, rest % row_tasks * rows
        rest, z0 = rest // od, rest % od
        image, group = rest // groups, rest % groups
        high, wide, channel = min(rows, oh - y0), min(cols, ow - x0), group * og + j0
        base = x + 4 * (image * groups + group) * ig * volume
        if dense != 0:
            base += 4 * x0
        else:
            zero(band, ig * pixel)
            for c in range(ig):
                for z in range(kd):
                    zi, i = z0 * sd + z * dd - bd, c * pixel + z * plane
                    if zi < 0 or zi >= d:
                        continue
                    begin = y0 * sh - bh  # the row of the image that the band begins with
                    for y in range(max(0, -begin), min((high - 1) * sh + (kh - 1) * dh + 1, h - begin)):
                        from_ = base + 4 * ((c * d + zi) * h + begin + y) * w
                        for u in range(sw):
                            start = x0 * sw - bw + u  # the column of the image that the phase begins with
                            i0 = min(max(0, (sw - 1 - start) // sw), phase)
                            i1 = max(i0, min(phase, (w - start + sw - 1) // sw))
                            _split(from_ + 4 * (start + i0 * sw), sw, band + 4 * (i + y * line + u * phase + i0), i1 - i0)
            base = band
        for i in range(n):
            put_integer(scratch, i, weights + 4 * (channel + i) * k)
        for r in range(high):
            for p in range(0, wide, STRIP):
                count = min(STRIP, wide - p)
                for k0 in range(0, k, 256):
                    terms = min(256, k - k0)
                    _panels(base + 4 * (r * sh * line + p), taps + 8 * k0, terms, count, panels + 4 * STRIP * k0)
                at = 4 * ((image * groups * og + channel) * out_volume + (z0 * oh + y0 + r) * ow + x0 + p)
                for i in range(0, n, HEIGHT):
                    some, place = min(HEIGHT, n - i), at + 4 * i * out_volume
                    for k0 in range(0, k, 256):
                        terms = min(256, k - k0)
                        put_integer(run, 0, k0)
                        put_integer(run, 1, terms)
                        call(
                            block, scratch + 8 * i, some, run, 1, panels + 4 * STRIP * k0, 16, 16 * terms, out + place,
                            out_volume, count, 1 if k0 > 0 else 0, 0, 0, 0, 0, 0.0, 0.0, apply,
                        )  # fmt: skip
                    extra = residual + place if residual != 0 else 0
                    if bias != 0 or residual != 0 or code == RELU:
                        b_at = bias + 4 * (channel + i) if bias != 0 else 0
                        _finish(out + place, out_volume, some, count, b_at, extra, bound)
                    if code > RELU:
                        for o in range(some):
                            line_at = out + place + 4 * o * out_volume
                            call(apply, code, a, bb, line_at, line_at, count)

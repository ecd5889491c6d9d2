"""Pooling over windows: a thread an output, or four channels of one. Bound by memory: what windows share comes from a cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._cuda import F32, I64, Kernel, cdiv, cuda, devices, f32, kernel, load1, load4, per_function, sized, store1, store4, threads
from ._device import Array, on_device
from ._math import power, root
from ._window import BEFORE, CHANNELS, DILATION, KERNEL, PADDED, SIZE, SPACE, STEP, STRIDE, geometry, position, span, start, three

__all__ = ["avg_pool", "lp_pool", "max_pool", "sum_pool"]

BLOCK = threads(256)
_ZERO, _ONE, _LEAST = f32(0), f32(1), f32(-math.inf)


_TAKES = devices({
    "larger": lambda a, v, p: v if v > a or v != v else a,
    "sum": lambda a, v, p: a + v,
    "squares": lambda a, v, p: a + v * v,
    "magnitudes": lambda a, v, p: a + abs(v),
    "powers": lambda a, v, p: a + power(v, p),
    "magnitude_powers": lambda a, v, p: a + power(abs(v), p),
})  # fmt: skip
_PLAIN = ("larger", "sum", "squares")  # that small windows have
_ENDS = devices({
    "as_it_is": lambda a, places, p: a,
    "mean": lambda a, places, p: a / f32(places),
    "scaled": lambda a, places, p: p * a,
    "root": lambda a, places, p: root(a),
    "root_of_any": lambda a, places, p: power(a, _ONE / p),
})  # fmt: skip


@per_function(
    samples=[
        (_TAKES[take], _ENDS[end], *given)
        for take, end, *given in (
            ("larger", "as_it_is", True, False, True),
            ("larger", "as_it_is", True, True, True),
            ("sum", "mean", False, True, False),
            ("sum", "mean", False, False, False),
            ("magnitude_powers", "root_of_any", False, True, True),
        )
    ]
)
def _pool(take: Any, end: Any, least: bool, last: bool, four: bool) -> Kernel:
    """The fold of a window by `take`, from -infinity (`least`) or 0, `end` at its end; four channels at once, or one."""
    FIRST = _LEAST if least else _ZERO
    FOUR = four and last

    @kernel
    def pool_kernel(x: F32, out: F32, g: I64, n: int, padded: int, spread: int, p: float) -> None:
        """`padded`: positions in the padding count. `spread`: the fold times a window's positions over those that count."""
        space, size, stride, dilation = three(g, SPACE), three(g, SIZE), three(g, STRIDE), three(g, DILATION)
        before, window, steps, image_step = three(g, BEFORE), three(g, KERNEL), three(g, STEP), g[STEP + 3]
        channels, line_step, step = g[CHANNELS], dilation[1] * steps[1], dilation[2] * steps[2]
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            image, d, h, w, c = position(space, channels, i, last, FOUR)
            d, h, w = start(stride, before, d, h, w)
            z0, z1 = span(d, window[0], dilation[0], 0, size[0])
            y0, y1 = span(h, window[1], dilation[1], 0, size[1])
            x0, x1 = span(w, window[2], dilation[2], 0, size[2])
            places = (z1 - z0) * (y1 - y0) * (x1 - x0)
            if padded:
                _, a = span(d, window[0], dilation[0], d, g[PADDED])
                _, b = span(h, window[1], dilation[1], h, g[PADDED + 1])
                _, e = span(w, window[2], dilation[2], w, g[PADDED + 2])
                places = a * b * e
            corner = image * image_step + d * steps[0] + (h + y0 * dilation[1]) * steps[1] + w * steps[2] + c + x0 * step
            factor = _ONE
            if spread:
                factor = f32(window[0] * window[1] * window[2]) / f32(places)
            if FOUR:
                a0 = a1 = a2 = a3 = FIRST
                for z in range(z0, z1):
                    line = corner + z * dilation[0] * steps[0]
                    for _ in range(y0, y1):
                        at = line
                        for _ in range(x0, x1):
                            v0, v1, v2, v3 = load4(x, at)
                            a0, a1, a2, a3 = take(a0, v0, p), take(a1, v1, p), take(a2, v2, p), take(a3, v3, p)
                            at += step
                        line += line_step
                if spread:
                    a0, a1, a2, a3 = a0 * factor, a1 * factor, a2 * factor, a3 * factor
                a0, a1, a2, a3 = end(a0, places, p), end(a1, places, p), end(a2, places, p), end(a3, places, p)
                store4(out, 4 * i, a0, a1, a2, a3)
            else:
                a = FIRST
                for z in range(z0, z1):
                    line = corner + z * dilation[0] * steps[0]
                    for _ in range(y0, y1):
                        at = line
                        for _ in range(x0, x1):
                            a = take(a, load1(x, at), p)
                            at += step
                        line += line_step
                if spread:
                    a = a * factor
                store1(out, i, end(a, places, p))

    return pool_kernel


class Plan(NamedTuple):
    """Planes of h x w values; `strip`: outputs of a thread; `end_h`, `end_w`: of x with its padding."""

    n: int
    strip: int
    h: int
    w: int
    out_h: int
    out_w: int
    down: int
    along: int
    top: int
    left: int
    end_h: int
    end_w: int
    padded: int


@per_function(samples=[(_TAKES["larger"], _ENDS["as_it_is"], True, 3, 3), (_TAKES["sum"], _ENDS["mean"], False, 2, 2)])
def _plane(take: Any, end: Any, least: bool, high: int, wide: int) -> Kernel:
    """Small windows without gaps over planes, channels-first: their taps are written out, a thread has a strip of a column."""
    FIRST = _LEAST if least else _ZERO  # what is outside changes no fold
    HIGH, WIDE = high, wide

    @kernel
    def plane_kernel(x: F32, out: F32, plan: Plan, p: float) -> None:
        strips = (plan.out_h + plan.strip - 1) // plan.strip
        for i in range(cuda.grid(1), plan.n, cuda.gridsize(1)):
            rest = i // plan.out_w
            column = i - rest * plan.out_w
            plane = rest // strips
            row = (rest - plane * strips) * plan.strip
            stop = min(row + plan.strip, plan.out_h)
            x0 = column * plan.along - plan.left
            across = min(x0 + WIDE, plan.end_w) - x0 if plan.padded else min(x0 + WIDE, plan.w) - max(x0, 0)
            to = (plane * plan.out_h + row) * plan.out_w + column
            while row < stop:
                y0 = row * plan.down - plan.top
                at = (plane * plan.h + y0) * plan.w + x0
                a = FIRST
                for r in range(HIGH):
                    inside = y0 + r >= 0 and y0 + r < plan.h
                    for c in range(WIDE):
                        v = FIRST
                        if inside and x0 + c >= 0 and x0 + c < plan.w:
                            v = load1(x, at + c)
                        a = take(a, v, p)
                    at += plan.w
                rows = min(y0 + HIGH, plan.end_h) - y0 if plan.padded else min(y0 + HIGH, plan.h) - max(y0, 0)
                store1(out, to, end(a, max(rows, 0) * max(across, 0), p))
                row += 1
                to += plan.out_w

    return plane_kernel


_SMALL = ((1, 2, 2), (1, 3, 3))
_MANY = 1 << 20  # outputs from which on there are threads enough for one to have a strip
_STRIP = 4


def _planes(take: Any, end: Any, x: Array, out: Array, window: tuple[Sequence[int], ...], padded: bool, p: float) -> None:
    kernel, stride, _, pads = window
    (_, _, d, h, w), (out_h, out_w) = x.shape, out.shape[3:]
    strip = _STRIP if out.size >= _MANY else 1
    n = x.shape[0] * x.shape[1] * d * cdiv(out_h, strip) * out_w
    down, along = stride[1:]
    where = Plan(
        n, strip, h, w, out_h, out_w, down, along, pads[2], pads[4], h + pads[3], w + pads[5], int(padded)
    )  # fmt: skip
    _plane(_TAKES[take], _ENDS[end], take == "larger", *kernel[1:]).launch(sized(n, BLOCK), BLOCK, x.flat, out.flat, where, p)


def _run(
    take: Any, end: Any, x: Array, out: Array, window: tuple[Sequence[int], ...], padded: bool, spread: bool, p: float, last: bool
) -> None:
    if not out.size:
        return
    kernel, stride, dilation, pads = (tuple(part) for part in window)
    plain = stride[0] == 1 and pads[:2] == (0, 0) and dilation[1:] == (1, 1) and not spread and take in _PLAIN
    if not last and plain and kernel in _SMALL:
        _planes(take, end, x, out, window, padded, p)
        return
    four = last and out.shape[4] % 4 == 0 and x.aligned and out.aligned
    items = out.size // 4 if four else out.size
    _pool(_TAKES[take], _ENDS[end], take == "larger", last, four).launch(
        sized(items, BLOCK), BLOCK, x.flat, out.flat, geometry(x, out, window, last), items, int(padded), int(spread), p
    )


@on_device
def max_pool(
    x: Array, out: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], pads: Sequence[int],
    channels_last: bool,
) -> None:  # fmt: skip
    """out = the largest number of each window; NaN if one of them is NaN, -infinity if none is in the image."""
    _run("larger", "as_it_is", x, out, (kernel, stride, dilation, pads), False, False, 0.0, channels_last)


@on_device
def avg_pool(
    x: Array, out: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], pads: Sequence[int],
    include_pad: bool, channels_last: bool,
) -> None:  # fmt: skip
    """out = the sum of each window divided by how many of its positions are in the image (include_pad: in image and pads)."""
    _run("sum", "mean", x, out, (kernel, stride, dilation, pads), include_pad, False, 0.0, channels_last)


@on_device
def sum_pool(
    x: Array, out: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], pads: Sequence[int],
    factor: float, channels_last: bool,
) -> None:  # fmt: skip
    """out = factor times the sum of each window."""
    _run("sum", "scaled", x, out, (kernel, stride, dilation, pads), False, False, factor, channels_last)


@on_device
def lp_pool(
    x: Array, out: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], pads: Sequence[int], p: float,
    norm: bool, channels_last: bool,
) -> None:  # fmt: skip
    """out = (sum of |x|^p)^(1/p) of each window; without `norm` (s k / m)^(1/p), s the sum of x^p, k a window's positions and m
    those of them in image and pads."""
    window = (kernel, stride, dilation, pads)
    if p == 2:
        take, end = "squares", "root"
    elif p == 1:
        take, end = "magnitudes" if norm else "sum", "as_it_is"
    else:
        take, end = "magnitude_powers" if norm else "powers", "root_of_any"
    _run(take, end, x, out, window, not norm, not norm, p, channels_last)

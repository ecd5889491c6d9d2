"""Depthwise convolutions: a thread an output, or four channels of one, whose taps are one chain of multiply-adds.

Bound by memory: what neighbours read is in a cache; weights are [tap][channel], so that a warp reads neighbours, or one number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..fits import fits, fits_taps, window_of
from ..table import PAD_MODES, UNARY, Activation
from ._cuda import F32, I64, Kernel, cdiv, cuda, f32, kernel, load1, load4, per_function, sized, store1, store4, threads
from ._device import Array, absent, on_device, upload
from ._math import function
from ._tile import BIAS, BLOCK, RESIDUAL
from ._window import BEFORE, DILATION, EACH, KERNEL, SIZE, SPACE, STEP, STRIDE, geometry, position, start, three
from .conv import aligned, padded

__all__ = ["Packed", "depthwise", "depthwise_pack"]

THREADS = threads(256)
_ZERO = f32(0)
_SMALL = ((1, 3, 3), (1, 5, 5))  # kernels whose taps are written out
_RELU = function(UNARY["relu"].code)


class Packed(NamedTuple):
    """Weights [kd, kh, kw][channel] and bias (o,) or None, with what the kernel is told."""

    weight: Array
    bias: Array | None
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    sizes: tuple[int, int]  # channels of x and of the result


def depthwise_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], channels: int
) -> Packed:
    """Packs weight (channels * multiplier, 1, kd, kh, kw); output channel c * multiplier + m reads input channel c."""
    fits_taps("depthwise_pack", (weight, bias), stride, dilation, channels)
    taps_first = np.ascontiguousarray(weight.reshape(len(weight), math.prod(weight.shape[2:])).T)
    given = None if bias is None else upload(bias)
    return Packed(upload(taps_first), given, tuple(weight.shape[2:]), tuple(stride), tuple(dilation), (channels, len(weight)))


@per_function(
    samples=[(_RELU, 3, 3, True, True), (_RELU, 3, 3, False, False), (_RELU, 0, 0, False, False), (_RELU, 0, 0, True, True)]
)
def _depthwise(f: Any, high: int, wide: int, last: bool, four: bool) -> Kernel:
    """Kernels of (1, high, wide) taps, or any (0): an activation, a layout, four channels at once or one."""
    FOUR, FIXED = four and last, high > 0
    HIGH, WIDE = high, wide

    @kernel
    def depthwise_kernel(
        x: F32, w: F32, bias: F32, residual: F32, out: F32, g: I64, flags: int, n: int, channels: int, a: float, b: float
    ) -> None:
        space, size, stride, dilation = three(g, SPACE), three(g, SIZE), three(g, STRIDE), three(g, DILATION)
        before, window, steps, image_step, each = three(g, BEFORE), three(g, KERNEL), three(g, STEP), g[STEP + 3], g[EACH]
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            image, d, h, column, c = position(space, channels, i, last, FOUR)
            d, h, column = start(stride, before, d, h, column)
            if last:
                begin = image * image_step + c // each
            else:
                begin, c = image // each * image_step, image % channels
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = _ZERO
            tap = 0
            for kd in range(1 if FIXED else window[0]):
                z = d + kd * dilation[0]
                for kh in range(HIGH if FIXED else window[1]):
                    y = h + kh * dilation[1]
                    inside = z >= 0 and z < size[0] and y >= 0 and y < size[1]
                    line = begin + z * steps[0] + y * steps[1]
                    for kw in range(WIDE if FIXED else window[2]):
                        p = column + kw * dilation[2]
                        there = inside and p >= 0 and p < size[2]
                        at, weight = line + p * steps[2], tap * channels + c
                        if FOUR:
                            v0 = v1 = v2 = v3 = _ZERO  # times an infinite weight they are NaN
                            if there:
                                v0, v1, v2, v3 = load4(x, at)
                            w0, w1, w2, w3 = load4(w, weight)
                            s0, s1, s2, s3 = s0 + v0 * w0, s1 + v1 * w1, s2 + v2 * w2, s3 + v3 * w3
                        else:
                            v = _ZERO
                            if there:
                                v = load1(x, at)
                            s0 += v * load1(w, weight)
                        tap += 1
                        if not FIXED and tap % BLOCK == 0:  # a chain ends
                            t0, t1, t2, t3 = t0 + s0, t1 + s1, t2 + s2, t3 + s3
                            s0 = s1 = s2 = s3 = _ZERO
            if not FIXED and tap >= BLOCK:
                s0, s1, s2, s3 = t0 + s0, t1 + s1, t2 + s2, t3 + s3
            if FOUR:
                if flags & BIAS:
                    v0, v1, v2, v3 = load4(bias, c)
                    s0, s1, s2, s3 = s0 + v0, s1 + v1, s2 + v2, s3 + v3
                if flags & RESIDUAL:
                    v0, v1, v2, v3 = load4(residual, 4 * i)
                    s0, s1, s2, s3 = s0 + v0, s1 + v1, s2 + v2, s3 + v3
                store4(out, 4 * i, f(s0, a, b), f(s1, a, b), f(s2, a, b), f(s3, a, b))
            else:
                if flags & BIAS:
                    s0 += load1(bias, c)
                if flags & RESIDUAL:
                    s0 += load1(residual, i)
                store1(out, i, f(s0, a, b))

    return depthwise_kernel


class Plan(NamedTuple):
    """Planes of h values a line of wide_x; `strip`: outputs of a thread; `each`: results of a channel of x; `apart`: taps."""

    flags: int
    n: int
    strip: int
    channels: int
    each: int
    h: int
    wide_x: int
    out_h: int
    out_w: int
    down: int
    along: int
    apart_h: int
    apart_w: int
    top: int
    left: int
    a: float
    b: float


@per_function(samples=[(_RELU, 3, 3), (_RELU, 5, 5)])
def _plane(f: Any, high: int, wide: int) -> Kernel:
    """Kernels of (1, high, wide) over planes, channels-first: weights in registers, a thread has a strip of a column."""
    HIGH, WIDE, TAPS = high, wide, high * wide

    @kernel
    def plane_kernel(x: F32, w: F32, bias: F32, residual: F32, out: F32, plan: Plan) -> None:
        weights = cuda.local.array(TAPS, f32)
        strips = (plan.out_h + plan.strip - 1) // plan.strip
        for i in range(cuda.grid(1), plan.n, cuda.gridsize(1)):
            rest = i // plan.out_w
            column = i - rest * plan.out_w
            plane = rest // strips
            row = (rest - plane * strips) * plan.strip
            stop = min(row + plan.strip, plan.out_h)
            c = plane % plan.channels
            for t in range(TAPS):
                weights[t] = load1(w, t * plan.channels + c)
            more = _ZERO
            if plan.flags & BIAS:
                more = load1(bias, c)
            x0 = column * plan.along - plan.left
            to = (plane * plan.out_h + row) * plan.out_w + column
            while row < stop:
                y = row * plan.down - plan.top
                at = (plane // plan.each * plan.h + y) * plan.wide_x + x0
                s = _ZERO
                for r in range(HIGH):
                    inside = y >= 0 and y < plan.h
                    for t in range(WIDE):
                        v = _ZERO  # times an infinite weight it is NaN
                        p = x0 + t * plan.apart_w
                        if inside and p >= 0 and p < plan.wide_x:
                            v = load1(x, at + t * plan.apart_w)
                        s += v * weights[r * WIDE + t]
                    y += plan.apart_h
                    at += plan.apart_h * plan.wide_x
                if plan.flags & BIAS:
                    s += more
                if plan.flags & RESIDUAL:
                    s += load1(residual, to)
                store1(out, to, f(s, plan.a, plan.b))
                row += 1
                to += plan.out_w

    return plane_kernel


_MANY = 1 << 20  # outputs from which on there are threads enough for one to have a strip
_STRIP = 4


@on_device
def depthwise(
    x: Array, packed: Packed, out: Array, pads: Sequence[int], mode: int, channels_last: bool, residual: Array | None,
    activation: Activation,
) -> None:  # fmt: skip
    """As `conv`, with one layout for x, out and residual."""
    fits("depthwise", packed.sizes, (x, out, residual), int(channels_last), window_of(packed, pads))
    if not out.size:
        return
    if mode != PAD_MODES["zeros"] and any(pads) and x.size:
        x, pads = padded(x, pads, mode, channels_last), (0,) * 6
    kernel, channels = packed.kernel, packed.weight.shape[1]
    given = (
        x.flat, packed.weight.flat, absent() if packed.bias is None else packed.bias.flat,
        absent() if residual is None else residual.flat, out.flat,
    )  # fmt: skip
    flags = (BIAS if packed.bias is not None else 0) | (RESIDUAL if residual is not None else 0)
    f, fixed = function(activation.code), kernel[1:] if kernel in _SMALL else (0, 0)
    if not channels_last and fixed[0] and packed.stride[0] == 1 and not any(pads[:2]):
        (_, c, _, h, w), (out_h, out_w) = x.shape, out.shape[3:]
        if x.shape[2] == 1:  # or planes of a result would be apart
            strip = _STRIP if out.size >= _MANY else 1
            n = out.shape[0] * channels * cdiv(out_h, strip) * out_w
            (down, along), (apart_h, apart_w) = packed.stride[1:], packed.dilation[1:]
            plan = Plan(
                flags, n, strip, channels, channels // c, h, w, out_h, out_w, down, along, apart_h, apart_w, pads[2], pads[4],
                activation.a, activation.b,
            )  # fmt: skip
            _plane(f, *fixed).launch(sized(n, THREADS), THREADS, *given, plan)
            return
    same = not channels_last or x.shape[4] == channels
    four = channels_last and same and channels % 4 == 0 and aligned(x, out, residual)
    items = out.size // 4 if four else out.size
    window = geometry(x, out, (kernel, packed.stride, packed.dilation, pads), channels_last)
    _depthwise(f, *fixed, channels_last, four).launch(
        sized(items, THREADS), THREADS, *given, window, flags, items, channels, activation.a, activation.b
    )

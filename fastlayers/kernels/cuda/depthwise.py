"""Depthwise convolutions: a thread an output, or four channels of one, whose taps are one chain of multiply-adds.

Bound by memory: what neighbours read lies in a cache; weights are [tap][channel], so that a warp reads neighbours, or one number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..table import PAD_MODES, UNARY, Activation
from ._cuda import F32, I64, Kernel, cuda, f32, kernel, load1, load4, per_function, sized, store1, store4, threads
from ._device import Array, absent, on_device, upload
from ._math import function
from ._tile import BIAS, BLOCK, RESIDUAL
from ._window import BEFORE, DILATION, EACH, KERNEL, SIZE, SPACE, STEP, STRIDE, geometry, position, start, three
from .conv import aligned, padded

__all__ = ["Packed", "depthwise", "depthwise_pack"]

THREADS = threads(256)
_ZERO = f32(0)
_RELU = function(UNARY["relu"].code)


class Packed(NamedTuple):
    """Weights [kd, kh, kw][channel] and bias (o,) or None, with what the kernel is told."""

    weight: Array
    bias: Array | None
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]


def depthwise_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], channels: int
) -> Packed:
    """Packs weight (channels * multiplier, 1, kd, kh, kw); output channel c * multiplier + m reads input channel c."""
    taps_first = np.ascontiguousarray(weight.reshape(len(weight), math.prod(weight.shape[2:])).T)
    given = None if bias is None else upload(bias)
    return Packed(upload(taps_first), given, tuple(weight.shape[2:]), tuple(stride), tuple(dilation))


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


@on_device
def depthwise(
    x: Array, packed: Packed, out: Array, pads: Sequence[int], mode: int, channels_last: bool, residual: Array | None,
    activation: Activation,
) -> None:  # fmt: skip
    """As `conv`, with one layout for x, out and residual."""
    if not out.size:
        return
    if mode != PAD_MODES["zeros"] and any(pads) and x.size:
        x, pads = padded(x, pads, mode, channels_last), (0,) * 6
    kernel, channels = packed.kernel, packed.weight.shape[1]
    same = not channels_last or x.shape[4] == channels
    four = channels_last and same and channels % 4 == 0 and aligned(x, out, residual)
    fixed = kernel[1:] if kernel in ((1, 3, 3), (1, 5, 5)) else (0, 0)
    items = out.size // 4 if four else out.size
    flags = (BIAS if packed.bias is not None else 0) | (RESIDUAL if residual is not None else 0)
    _depthwise(function(activation.code), *fixed, channels_last, four).launch(
        sized(items, THREADS), THREADS, x.flat, packed.weight.flat, absent() if packed.bias is None else packed.bias.flat,
        absent() if residual is None else residual.flat, out.flat,
        geometry(x, out, (kernel, packed.stride, packed.dilation, pads), channels_last), flags, items, channels, activation.a,
        activation.b,
    )  # fmt: skip

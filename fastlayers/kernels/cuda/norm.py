"""Normalization. Bound by memory: rows of up to 1024 values stay in registers, longer ones are read again from a cache.

The variance is the mean of squared differences from the mean, which does not cancel as the mean of squares less the square would.
"""

from __future__ import annotations

from typing import Any

from ..table import Activation
from ._cuda import F32, Kernel, block_sum, cdiv, cuda, f32, group_sum, kernel, load4, per_function, sized, store4, threads
from ._device import Array, absent, on_device
from ._math import function, power, root

__all__ = ["affine", "group_norm", "layer_norm", "lrn"]

BLOCK = threads(256)
WIDE = threads(1024)  # threads of a group of channels, of which there may be few
SHORT = 32 * 32  # values of a row that a warp holds
ZERO, ONE = f32(0), f32(1)


@per_function(samples=[(1,), (4,), (32,)])
def _rows(count: int) -> Kernel:
    @kernel
    def rows_kernel(
        x: F32, weight: F32, has_weight: int, bias: F32, has_bias: int, out: F32, rows: int, n: int, epsilon: float, rms: int
    ) -> None:
        """A warp a row, `count` values per lane in registers: read once, written once."""
        kept = cuda.local.array(count, "float32")
        lane, warps = cuda.threadIdx.x & 31, cuda.blockDim.x >> 5
        for first in range(cuda.blockIdx.x * warps, rows, cuda.gridDim.x * warps):
            row = first + (cuda.threadIdx.x >> 5)
            start = row * n
            total = ZERO
            for k in range(count):
                i = lane + 32 * k
                v = x[start + i] if row < rows and i < n else ZERO
                kept[k] = v
                total += v
            mean = ZERO if rms != 0 else group_sum(total, 32) / f32(n)
            total = ZERO
            for k in range(count):
                v = kept[k] - mean if lane + 32 * k < n else ZERO
                kept[k] = v
                total += v * v
            scale = ONE / root(group_sum(total, 32) / f32(n) + epsilon)
            for k in range(count):
                i = lane + 32 * k
                if row < rows and i < n:
                    v = kept[k] * scale
                    if has_weight != 0:
                        v *= weight[i]
                    if has_bias != 0:
                        v += bias[i]
                    out[start + i] = v

    return rows_kernel


@kernel
def long_rows_kernel(
    x: F32, weight: F32, has_weight: int, bias: F32, has_bias: int, out: F32, n: int, channels: int, inner: int, epsilon: float,
    rms: int,
) -> None:  # fmt: skip
    """A block a row of n: read three times, the last two from a cache. Number j of all has weight j / inner % channels."""
    scratch = cuda.shared.array(32, "float32")
    start = cuda.blockIdx.x * n
    mean = ZERO
    if rms == 0:
        total = ZERO
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            total += x[start + i]
        mean = block_sum(total, scratch) / f32(n)
    total = ZERO
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        v = x[start + i] - mean
        total += v * v
    scale = ONE / root(block_sum(total, scratch) / f32(n) + epsilon)
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        v = (x[start + i] - mean) * scale
        if has_weight + has_bias > 0:
            c = (start + i) // inner % channels
            if has_weight != 0:
                v *= weight[c]
            if has_bias != 0:
                v += bias[c]
        out[start + i] = v


long_rows_kernel.most_threads = 1024


def _flat(x: Array | None) -> tuple[Any, int]:
    return (absent(), 0) if x is None else (x.flat, 1)


@on_device
def layer_norm(
    x__on: Array, weight__n: Array | None, bias__n: Array | None, out__on: Array, epsilon: float, rms: bool
) -> None:  # fmt: skip
    """out = (x - mean) / sqrt(variance + epsilon) * weight + bias of each row; rms: x / sqrt(mean of x^2 + epsilon) instead."""
    rows, n = x__on.shape
    if not out__on.size:
        return
    given = x__on.flat, *_flat(weight__n), *_flat(bias__n), out__on.flat
    if n <= SHORT:
        count, warps = 1 << (cdiv(n, 32) - 1).bit_length(), BLOCK // 32
        _rows(count).launch(sized(cdiv(rows, warps) * BLOCK, BLOCK), BLOCK, *given, rows, n, epsilon, int(rms))
    else:
        long_rows_kernel.launch(rows, BLOCK, *given, n, n, 1, epsilon, int(rms))


@on_device
def group_norm(
    x__oci: Array, weight__c: Array | None, bias__c: Array | None, out__oci: Array, groups: int, epsilon: float
) -> None:  # fmt: skip
    """out = (x - mean) / sqrt(variance + epsilon) * weight[c] + bias[c], with mean and variance of each group of channels."""
    if not out__oci.size:
        return
    outer, channels, inner = x__oci.shape
    n = channels // groups * inner
    long_rows_kernel.launch(
        outer * groups, BLOCK if n < 8192 else WIDE, x__oci.flat, *_flat(weight__c), *_flat(bias__c), out__oci.flat, n, channels,
        inner, epsilon, 0,
    )  # fmt: skip


@per_function
def _affine(f: Any) -> Kernel:
    @kernel
    def affine_kernel(x: F32, scale: F32, shift: F32, out: F32, n: int, channels: int, inner: int, a: float, b: float) -> None:
        """One number a thread."""
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c = i // inner % channels
            out[i] = f(x[i] * scale[c] + shift[c], a, b)

    return affine_kernel


@per_function
def _affine4(f: Any) -> Kernel:
    @kernel
    def affine4_kernel(x: F32, scale: F32, shift: F32, out: F32, n: int, channels: int, inner: int, a: float, b: float) -> None:
        """n quads: of one channel where inner > 1, which 4 divides, else of four, of which there are a multiple of 4."""
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            p, q, r, s = load4(x, 4 * i)
            c = 4 * i // inner % channels
            if inner > 1:
                m, t = scale[c], shift[c]
                store4(out, 4 * i, f(p * m + t, a, b), f(q * m + t, a, b), f(r * m + t, a, b), f(s * m + t, a, b))
            else:
                m0, m1, m2, m3 = load4(scale, c)
                t0, t1, t2, t3 = load4(shift, c)
                store4(out, 4 * i, f(p * m0 + t0, a, b), f(q * m1 + t1, a, b), f(r * m2 + t2, a, b), f(s * m3 + t3, a, b))

    return affine4_kernel


@on_device
def affine(x__oci: Array, scale__c: Array, shift__c: Array, out__oci: Array, activation: Activation) -> None:
    """out = f(x * scale[c] + shift[c]); out may be x."""
    n = x__oci.size
    if not n:
        return
    _, channels, inner = x__oci.shape
    given = x__oci.flat, scale__c.flat, shift__c.flat, out__oci.flat
    quads = (inner if inner > 1 else channels) % 4 == 0 and all(a.aligned for a in (x__oci, scale__c, shift__c, out__oci))
    f, n = function(activation.code), n // 4 if quads else n
    (_affine4 if quads else _affine)(f).launch(sized(n, BLOCK), BLOCK, *given, n, channels, inner, activation.a, activation.b)


@kernel
def lrn_kernel(x: F32, out: F32, n: int, channels: int, inner: int, size: int, alpha: float, beta: float, bias: float) -> None:
    """One number a thread; the values around it come from the caches."""
    before = (size - 1) // 2
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        c = i // inner % channels
        total = ZERO
        for k in range(max(c - before, 0), min(c - before + size, channels)):
            v = x[i + (k - c) * inner]
            total += v * v
        out[i] = x[i] / power(bias + alpha / f32(size) * total, beta)


@on_device
def lrn(x__oci: Array, out__oci: Array, size: int, alpha: float, beta: float, bias: float) -> None:
    """out = x / (bias + alpha / size * sum of x^2 over `size` channels around this one)^beta; even sizes look further ahead."""
    n = x__oci.size
    if n:
        _, channels, inner = x__oci.shape
        lrn_kernel.launch(sized(n, BLOCK), BLOCK, x__oci.flat, out__oci.flat, n, channels, inner, size, alpha, beta, bias)

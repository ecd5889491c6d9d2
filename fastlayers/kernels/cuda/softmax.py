"""Softmax and log-softmax. Bound by memory: rows of up to 1024 values stay in registers, longer ones are read from a cache."""

from __future__ import annotations

import numpy as np

from ._cuda import F32, Kernel, block_max, block_sum, cdiv, cuda, f32, group_max, group_sum, kernel, per_function, sized, threads
from ._device import Array, on_device
from ._math import exp, log

__all__ = ["log_softmax", "softmax"]

BLOCK = threads(256)
SHORT = 32 * 32  # values of a row that a warp holds
FEW = 16384  # columns that are too few to give each one thread
ZERO, ONE, LEAST = f32(0), f32(1), f32(-np.inf)


@per_function(samples=[(count, logarithm) for count in (1, 4, 32) for logarithm in (False, True)])
def _rows(count: int, logarithm: bool) -> Kernel:
    @kernel
    def rows_kernel(x: F32, out: F32, rows: int, n: int) -> None:
        """A warp a row, `count` values per lane in registers: read once, written once."""
        kept = cuda.local.array(count, "float32")
        lane, warps = cuda.threadIdx.x & 31, cuda.blockDim.x >> 5
        for first in range(cuda.blockIdx.x * warps, rows, cuda.gridDim.x * warps):
            row = first + (cuda.threadIdx.x >> 5)  # past the end: the warp goes along
            start = row * n
            largest = LEAST
            for k in range(count):
                i = lane + 32 * k
                v = x[start + i] if row < rows and i < n else LEAST
                kept[k] = v
                largest = v if v > largest else largest
            largest = group_max(largest, 32)
            total = ZERO
            for k in range(count):
                i = lane + 32 * k
                if i < n:
                    e = kept[k] - largest
                    total += exp(e)
                    if logarithm:
                        kept[k] = e
                    else:
                        kept[k] = exp(e)
            total = group_sum(total, 32)
            if logarithm:
                total = log(total)
            for k in range(count):
                i = lane + 32 * k
                if row < rows and i < n:
                    out[start + i] = kept[k] - total if logarithm else kept[k] / total

    return rows_kernel


@per_function(samples=[(False,), (True,)])
def _columns_by_block(logarithm: bool) -> Kernel:
    @kernel
    def columns_by_block_kernel(x: F32, out: F32, n: int, inner: int) -> None:
        """A block a column (or a long row): read three times, the last two from a cache."""
        scratch = cuda.shared.array(32, "float32")
        column = cuda.blockIdx.x
        outer = column // inner
        start = outer * (n - 1) * inner + column
        largest = LEAST
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            v = x[start + i * inner]
            largest = v if v > largest else largest
        largest = block_max(largest, scratch)
        total = ZERO
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            total += exp(x[start + i * inner] - largest)
        total = block_sum(total, scratch)
        if logarithm:
            total = log(total)
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            e = x[start + i * inner] - largest
            out[start + i * inner] = e - total if logarithm else exp(e) / total

    return columns_by_block_kernel


@per_function(samples=[(False,), (True,)])
def _columns(logarithm: bool) -> Kernel:
    @kernel
    def columns_kernel(x: F32, out: F32, columns: int, n: int, inner: int) -> None:
        """A thread a column, neighbours next to each other: read twice, the largest and the sum found together."""
        for column in range(cuda.grid(1), columns, cuda.gridsize(1)):
            outer = column // inner
            start = outer * (n - 1) * inner + column
            largest, total = LEAST, ZERO
            for i in range(n):
                v = x[start + i * inner]
                if v > largest:
                    total = total * exp(largest - v) + exp(v - v)  # NaN from infinity
                    largest = v
                elif v != LEAST:
                    total += exp(v - largest)
            if logarithm:
                total = log(total)
            for i in range(n):
                e = x[start + i * inner] - largest
                out[start + i * inner] = e - total if logarithm else exp(e) / total

    return columns_kernel


def _run(x: Array, out: Array, logarithm: bool) -> None:
    outer, n, inner = x.shape
    if not out.size:
        return
    columns = outer * inner
    if inner == 1 and n <= SHORT:
        count = 1 << (cdiv(n, 32) - 1).bit_length()
        rows = BLOCK // 32
        _rows(count, logarithm).launch(sized(cdiv(columns, rows) * BLOCK, BLOCK), BLOCK, x.flat, out.flat, columns, n)
    elif inner == 1 or (columns < FEW and n >= 64):
        _columns_by_block(logarithm).launch(columns, BLOCK, x.flat, out.flat, n, inner)
    else:
        _columns(logarithm).launch(sized(columns, BLOCK), BLOCK, x.flat, out.flat, columns, n, inner)


@on_device
def softmax(x__oni: Array, out__oni: Array) -> None:
    """out = exp(x) / sum over n of exp(x)."""
    _run(x__oni, out__oni, False)


@on_device
def log_softmax(x__oni: Array, out__oni: Array) -> None:
    """out = x - log(sum over n of exp(x))."""
    _run(x__oni, out__oni, True)

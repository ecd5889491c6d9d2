"""Attention whose scores are wanted as an array. Bound by memory, and additive scores by tanh."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._axes import contiguous
from ._cuda import F32, I64, Kernel, block_max, block_sum, cuda, f32, group_sum, kernel, per_function, sized, threads
from ._device import Array, absent, on_device
from ._math import exp, tanh

__all__ = ["additive_scores", "attention_weights"]

BLOCK = threads(256)
ZERO, LEAST, NAN = f32(0), f32(-np.inf), f32(np.nan)


class Mask(NamedTuple):
    """From an entry of the batch, a head, a query and a key to the next; 0 where all share one."""

    b: int
    h: int
    q: int
    k: int


class Plan(NamedTuple):
    """Rows of keys."""

    heads: int
    rows: int
    keys: int
    mask: Mask
    scale: float
    causal: int
    offset: int
    empty: int


@per_function(samples=[(False,), (True,)])
def _weights(has_mask: bool) -> Kernel:
    @kernel
    def weights_kernel(x: F32, mask: F32, lengths: I64, has_lengths: int, scores: F32, out: F32, p: Plan) -> None:
        """A block a row: scores are written, then read again from a cache for the sum and the weights."""
        scratch = cuda.shared.array(32, "float32")
        row = cuda.blockIdx.x
        head = row // p.rows
        query = row - head * p.rows
        b = head // p.heads
        h = head - b * p.heads
        seen = p.keys
        if has_lengths != 0:
            seen = lengths[b]
        if p.causal != 0:
            seen = min(seen, query + p.offset + 1)
        largest = LEAST
        for key in range(cuda.threadIdx.x, p.keys, cuda.blockDim.x):
            s = LEAST
            if key < seen:
                s = x[row * p.keys + key] * p.scale
                if has_mask:
                    s += mask[b * p.mask.b + h * p.mask.h + query * p.mask.q + key * p.mask.k]
            scores[row * p.keys + key] = s
            largest = s if s > largest or s != s else largest
        largest = block_max(largest, scratch)
        shift = ZERO if largest == LEAST else largest
        total = ZERO
        for key in range(cuda.threadIdx.x, p.keys, cuda.blockDim.x):
            total += exp(scores[row * p.keys + key] - shift)
        total = block_sum(total, scratch)
        for key in range(cuda.threadIdx.x, p.keys, cuda.blockDim.x):
            weight = exp(scores[row * p.keys + key] - shift) / total
            if largest == LEAST:
                weight = NAN if p.empty != 0 else ZERO
            out[row * p.keys + key] = weight

    return weights_kernel


@on_device
def attention_weights(
    x__bhqk: Array, mask__bhqk: Array | None, lengths__b: Array | None, scores__bhqk: Array, out__bhqk: Array, scale: float,
    causal: bool, offset: int, empty: int,
) -> None:  # fmt: skip
    """``scores = scale x + mask``, -infinity where causality or lengths forbid a key; ``out = softmax(scores)``."""
    if not out__bhqk.size:
        return
    _, heads, rows, keys = x__bhqk.shape
    steps: Any = (0, 0, 0, 0)
    if mask__bhqk is not None:
        steps = [0 if n == 1 else s for n, s in zip(mask__bhqk.shape, contiguous(mask__bhqk.shape), strict=True)]
    _weights(mask__bhqk is not None).launch(
        out__bhqk.size // keys, BLOCK, x__bhqk.flat, absent() if mask__bhqk is None else mask__bhqk.flat,
        absent("i8") if lengths__b is None else lengths__b.flat, int(lengths__b is not None), scores__bhqk.flat, out__bhqk.flat,
        Plan(heads, rows, keys, Mask(*steps), scale, int(causal), offset, empty),
    )  # fmt: skip


@kernel
def additive_kernel(q: F32, k: F32, scale: F32, has_scale: int, out: F32, total: int, rows: int, keys: int, units: int) -> None:
    """A warp a score."""
    lane, warps = cuda.threadIdx.x & 31, cuda.blockDim.x >> 5
    for first in range(cuda.blockIdx.x * warps, total, cuda.gridDim.x * warps):
        at = first + (cuda.threadIdx.x >> 5)  # past the end: the warp goes along
        row = at // keys
        b = row // rows
        value = ZERO
        if at < total:
            for u in range(lane, units, 32):
                t = tanh(q[row * units + u] + k[(b * keys + at - row * keys) * units + u])
                value += t * scale[u] if has_scale != 0 else t
        value = group_sum(value, 32)
        if at < total and lane == 0:
            out[at] = value


@on_device
def additive_scores(q__bqu: Array, k__bku: Array, scale__u: Array | None, out__bqk: Array) -> None:
    """``out = sum over u of scale tanh(q + k)``; a scale of None is ones."""
    total = out__bqk.size
    if total:
        (_, rows, units), keys = q__bqu.shape, k__bku.shape[1]
        scale = (absent(), 0) if scale__u is None else (scale__u.flat, 1)
        grid = sized(total * 32, BLOCK)
        additive_kernel.launch(grid, BLOCK, q__bqu.flat, k__bku.flat, *scale, out__bqk.flat, total, rows, keys, units)

"""Helpers of kernels over windows: their geometry, the outputs of a thread, and the taps of a window that are in the image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ._cuda import device, stream_pointer
from ._device import Array, upload

__all__ = [
    "BEFORE", "CHANNELS", "DILATION", "EACH", "KERNEL", "PADDED", "SIZE", "SPACE", "STEP", "STRIDE", "geometry", "position",
    "sizes_of", "span", "start", "three",
]  # fmt: skip

Ints = tuple[int, ...]
# Where a geometry has what, (d, h, w) each: space of the result, size of x, stride, dilation, zeros before, kernel, the end of x
# with its padding, x's steps (and, last, between images); then channels of the result, and results of an input channel.
SPACE, SIZE, STRIDE, DILATION, BEFORE, KERNEL, PADDED, STEP, CHANNELS, EACH = 0, 3, 6, 9, 12, 15, 18, 21, 25, 26


def sizes_of(a: Array, last: bool) -> Ints:
    """n, c, d, h, w."""
    n, *rest = a.shape
    return (n, rest[3], *rest[:3]) if last else (n, *rest)


@lru_cache(512)
def _geometry(x: Ints, out: Ints, kernel: Ints, stride: Ints, dilation: Ints, pads: Ints, last: bool, stream: int) -> Array:
    (_, c, *size), (_, o, *space) = x, out
    ends = [n + after for n, after in zip(size, pads[1::2], strict=True)]
    h, w = size[1:]
    steps = (h * w * c, w * c, c, math.prod(size) * c) if last else (h * w, w, 1, math.prod(size))
    numbers = (*space, *size, *stride, *dilation, *pads[::2], *kernel, *ends, *steps, o, o // c if c else 1)
    return upload(np.array(numbers, np.int64))


def geometry(x: Array, out: Array, window: tuple[Sequence[int], ...], last: bool) -> Any:
    """The values of a window (kernel, stride, dilation, pads), flat."""
    kernel, stride, dilation, pads = map(tuple, window)
    return _geometry(sizes_of(x, last), sizes_of(out, last), kernel, stride, dilation, pads, last, stream_pointer()).flat


@device
def three(g: Any, k: Any) -> Any:
    """Values of a geometry for d, h, w: read once, and not again after every store."""
    return g[k], g[k + 1], g[k + 2]


@device
def position(space: Any, channels: Any, i: Any, last: Any, four: Any) -> Any:
    """Output i, or the four channels from 4 i on: image (of a channel, unless `last`), d, h, w, channel."""
    c = 0
    if last:
        whole = channels >> 2 if four else channels
        i, c = i // whole, i % whole
        if four:
            c *= 4
    i, w = i // space[2], i % space[2]
    i, h = i // space[1], i % space[1]
    return i // space[0], i % space[0], h, w, c


@device
def start(stride: Any, before: Any, d: Any, h: Any, w: Any) -> Any:
    """First position in x of the window of an output."""
    return d * stride[0] - before[0], h * stride[1] - before[1], w * stride[2] - before[2]


@device
def span(begin: Any, kernel: Any, dilation: Any, low: Any, high: Any) -> Any:
    """The first tap at `low` or after it, and the first of those at `high` or after it."""
    first, end = 0, kernel
    if begin < low:
        first = min((low - begin + dilation - 1) // dilation, kernel)
    if begin + (kernel - 1) * dilation >= high:
        end = (high - begin + dilation - 1) // dilation if high > begin else 0
    return first, max(first, end)

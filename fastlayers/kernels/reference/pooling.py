"""Pooling in numpy, over any number of axes: windows as views. Sums in float64, rounded once at the end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

__all__ = ["avg_pool", "lp_pool", "max_pool", "places", "sum_pool", "sums"]

_EACH = (slice(None), slice(None))  # image and channel


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
    x, y = _channels_first(x, channels_last), _channels_first(out, channels_last)
    y[...] = least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    with np.errstate(invalid="ignore"):
        for taken in _taps(x, y.shape[2:], kernel, stride, dilation, pads, least):
            np.maximum(y, taken, out=y)


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
    """out = the sum of each window divided by how many of its positions are in the image (include_pad: in image and pads)."""
    x, y = _channels_first(x, channels_last), _channels_first(out, channels_last)
    counts = places(x.shape[2:], y.shape[2:], kernel, stride, dilation, pads, include_pad)
    with np.errstate(all="ignore"):
        y[...] = sums(x.astype(np.float64), y.shape, kernel, stride, dilation, pads) / counts


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
    x, y = _channels_first(x, channels_last), _channels_first(out, channels_last)
    with np.errstate(all="ignore"):
        y[...] = factor * sums(x.astype(np.float64), y.shape, kernel, stride, dilation, pads)


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
    """out = (sum of |x|^p)^(1/p) of each window; without `norm` (s k / m)^(1/p), s the sum of x^p, k a window's positions and m
    those of them in image and pads."""
    x, y = _channels_first(x, channels_last), _channels_first(out, channels_last)
    powers = x.astype(np.float64)
    with np.errstate(all="ignore"):
        total = sums((np.abs(powers) if norm else powers) ** p, y.shape, kernel, stride, dilation, pads)
        if not norm:
            total *= math.prod(kernel) / places(x.shape[2:], y.shape[2:], kernel, stride, dilation, pads, True)
        y[...] = total ** (1 / p)


def sums(
    x: np.ndarray,
    shape: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
) -> np.ndarray:
    """The sum of each window of x (n, c, ...), for a result of this shape."""
    total = np.zeros(shape)
    for taken in _taps(x, shape[2:], kernel, stride, dilation, pads, 0.0):
        total += taken
    return total


def places(
    size: Sequence[int],
    space: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    include_pad: bool,
) -> np.ndarray:
    """Number of positions of each window in an image of this size, or in image and pads."""
    if include_pad:
        size = [n + before + after for n, before, after in zip(size, pads[::2], pads[1::2], strict=True)]
    counted = np.ones((1, 1, *size))
    return sums(counted, (1, 1, *space), kernel, stride, dilation, (0,) * len(pads) if include_pad else pads)


def _channels_first(array: np.ndarray, channels_last: bool) -> np.ndarray:
    return np.moveaxis(array, -1, 1) if channels_last else array


def _taps(
    x: np.ndarray,
    space: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    outside: float,
) -> list[np.ndarray]:
    """For every place of a window the values that all windows have there: x (n, c, ...) with `outside` around it."""
    if not all(space):
        return []
    around = [(0, 0), (0, 0)]
    for n, o, k, s, d, before in zip(x.shape[2:], space, kernel, stride, dilation, pads[::2], strict=True):
        around.append((before, max(0, (o - 1) * s + (k - 1) * d + 1 - before - n)))
    padded = np.pad(x, around, constant_values=outside)
    taken = []
    for tap in itertools.product(*map(range, kernel)):
        where = [slice(t * n, t * n + (o - 1) * s + 1, s) for t, n, o, s in zip(tap, dilation, space, stride, strict=True)]
        taken.append(padded[_EACH + tuple(where)])
    return taken

"""Max pooling that says where each maximum was, in numpy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["max_pool_places"]


def max_pool_places(
    x: np.ndarray,
    out: np.ndarray,
    indices: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    source: int,
) -> None:
    """The largest element of every window of x (n, c, ...), and its position in the flat x: the first of equals, or of NaN.

    A window without a place in the image gives the least number, and the position before its plane's first.
    """
    sizes = x.shape[2:]
    planes = x.reshape(x.shape[0] * x.shape[1], math.prod(sizes))
    best: Any = np.full((len(planes), *out.shape[2:]), -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x.dtype)
    place = np.full(best.shape, -1, np.int64)
    for taps in itertools.product(*map(range, kernel)):
        at: Any = 0
        inside: Any = True
        for i, (n, size) in enumerate(zip(out.shape[2:], sizes, strict=True)):
            along = np.arange(n) * stride[i] - pads[2 * i] + taps[i] * dilation[i]
            along = along.reshape((-1, *(1,) * (len(sizes) - 1 - i)))
            inside = inside & (along >= 0) & (along < size)
            at = at * size + along
        if not planes.shape[1]:
            break
        value = planes[:, np.where(inside, at, 0)]
        take = inside & ((place < 0) | ((best == best) & ((value > best) | (value != value))))
        best, place = np.where(take, value, best), np.where(take, at, place)
    base = np.arange(len(planes)).reshape(-1, *(1,) * len(sizes)) * planes.shape[1]
    out[...] = best.reshape(out.shape)
    indices[...] = (place + base).reshape(out.shape)

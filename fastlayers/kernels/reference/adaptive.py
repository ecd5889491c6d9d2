"""Adaptive pooling in numpy: bin by bin, sums in float64."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..table import REDUCE

__all__ = ["adaptive_pool"]


def adaptive_pool(x: np.ndarray, out: np.ndarray, op: int, channels_last: bool) -> None:
    """out = the mean or the largest number of each bin (op of table.REDUCE): floor(i * in / out) to ceil((i + 1) * in / out)."""
    if channels_last:
        x, out = np.moveaxis(x, -1, 1), np.moveaxis(out, -1, 1)
    bins = [
        [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        for size, count in zip(x.shape[2:], out.shape[2:], strict=True)
    ]
    if not x.size:
        out[...] = 0
        return
    with np.errstate(invalid="ignore"):
        for at in itertools.product(*(range(len(axis)) for axis in bins)):
            where: Any = (Ellipsis, *(axis[i] for axis, i in zip(bins, at, strict=True)))
            place: Any = (Ellipsis, *at)
            taken = x[where]
            if op == REDUCE["mean"]:
                out[place] = taken.mean((2, 3, 4), dtype=np.float64)
            else:
                out[place] = taken.max((2, 3, 4))

"""Resampling in numpy: the weighted taps of one axis after another, sums in float64, rounded to float32 once at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..fits import fits, resized_sizes, tables_of

__all__ = ["along", "resize", "resize_pack"]


class Packed(NamedTuple):
    """Copies of the tables of d, h and w, and (d, h, w, i) of x with (d, h, w) of the result."""

    axes: tuple[Any, ...]
    sizes: tuple[int, ...]


def resize_pack(axes: Sequence[Any], size: Sequence[int]) -> Packed:
    """axes: for d, h, w (index, weight), each [taps][outputs], int64 and float32 (None: one tap of weight 1), or None for an axis
    that stays; size: (d, h, w, i) of x."""
    tables_of("resize_pack", axes, size)
    copies = tuple(None if a is None else (a[0].copy(), None if a[1] is None else a[1].copy()) for a in axes)
    return Packed(copies, resized_sizes(axes, size))


def resize(x__odhwi: np.ndarray, packed: Packed, out__oxyzi: np.ndarray) -> None:
    """out[o, d, h, w, i] = the sum over the taps of d, h and w of their weights times x there; taps of weight 0 are left out."""
    fits("resize", packed.sizes, (x__odhwi, out__oxyzi))
    exact = all(axis is None or axis[1] is None for axis in packed.axes)
    y = x__odhwi if exact else x__odhwi.astype(np.float64)
    for at, axis in enumerate(packed.axes, 1):
        if axis is not None:
            y = along(y, axis, at)
    with np.errstate(over="ignore"):
        out__oxyzi[...] = y


def along(y: np.ndarray, table: tuple[np.ndarray, np.ndarray | None], at: int) -> np.ndarray:
    """One axis of y resampled; the dtype stays."""
    index, weight = table
    if weight is None:
        taken: np.ndarray = y.take(index[0], at)
        return taken
    with np.errstate(all="ignore"):
        total = _tap(y, index[0], weight[0], at)
        for i, w in zip(index[1:], weight[1:], strict=True):
            total += _tap(y, i, w, at)
    return total


def _tap(y: np.ndarray, index: np.ndarray, weight: np.ndarray, at: int) -> np.ndarray:
    factor = weight.astype(np.float64).reshape(-1, *(1,) * (y.ndim - 1 - at))
    taken: np.ndarray = np.where(factor == 0, 0.0, y.take(index, at) * factor)
    return taken

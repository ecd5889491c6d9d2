"""Reductions over the middle of three axes, in numpy: computed in float64, rounded to float32 once at the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from ..table import REDUCE

__all__ = ["col2im", "reduce", "running_sum"]


def _log_sum_exp(x: np.ndarray) -> np.ndarray:
    """With the largest number taken out before and put back after; infinite or NaN, it is the result."""
    largest = x.max(axis=1, initial=-np.inf)
    total = np.exp(x - largest[:, None]).sum(axis=1)
    return np.asarray(np.where(np.isfinite(largest), largest + np.log(total), largest))


_OPERATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sum": lambda x: x.sum(axis=1),
    "mean": lambda x: x.sum(axis=1) / np.float64(x.shape[1]),
    "max": lambda x: x.max(axis=1, initial=-np.inf),
    "min": lambda x: x.min(axis=1, initial=np.inf),
    "prod": lambda x: x.prod(axis=1),
    "sum_square": lambda x: (x * x).sum(axis=1),
    "l1": lambda x: np.abs(x).sum(axis=1),
    "l2": lambda x: np.sqrt((x * x).sum(axis=1)),
    "log_sum": lambda x: np.log(x.sum(axis=1)),
    "log_sum_exp": _log_sum_exp,
}
_BY_NUMBER = {number: _OPERATIONS[name] for name, number in REDUCE.items()}


def reduce(x__oni: np.ndarray, out__oi: np.ndarray, op: int) -> None:
    """out[o, i] = op over n of x[o, n, i], op a number of table.REDUCE."""
    with np.errstate(all="ignore"):
        out__oi[...] = _BY_NUMBER[op](x__oni.astype(np.float64))


def running_sum(x__oni: np.ndarray, out__oni: np.ndarray, source: int, exclusive: bool, reverse: bool) -> None:
    """out[o, n, i] = x[o, 0, i] + ... + x[o, n, i]: one addition after the other, in float32, int32 or int64 (`source`).

    Args:
        source: the number of the dtype in table.KINDS.
        exclusive: whether x[o, n, i] itself is left out.
        reverse: whether sums begin at the end.
    """
    with np.errstate(all="ignore"):
        x = x__oni[:, ::-1] if reverse else x__oni
        sums = np.cumsum(x, axis=1, dtype=x.dtype)
        if exclusive:
            sums = np.concatenate((np.zeros_like(x[:, :1]), sums[:, :-1]), 1)
        out__oni[...] = sums[:, ::-1] if reverse else sums


def col2im(
    x__bkp: np.ndarray,
    out__bs: np.ndarray,
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
) -> None:
    """out[b, pixel] = the sum of what the blocks over it hold: x[b, :, p] is the block at place p, of the image with its padding.

    Three numbers each for depth, height and width; `pads` are pairs, before and after.
    """
    wide = [s + pads[2 * i] + pads[2 * i + 1] for i, s in enumerate(size)]
    places = [(w - d * (k - 1) - 1) // s + 1 for w, k, s, d in zip(wide, kernel, stride, dilation, strict=True)]
    parts = x__bkp.reshape(len(x__bkp), -1, *places)
    whole = np.zeros((len(x__bkp), *(max(w, s) for w, s in zip(wide, size, strict=True))), x__bkp.dtype)
    for i, tap in enumerate(itertools.product(*map(range, kernel))):
        starts = [t * d for t, d in zip(tap, dilation, strict=True)]
        z, y, x = [slice(a, a + (c - 1) * s + 1, s) for a, c, s in zip(starts, places, stride, strict=True)]
        whole[:, z, y, x] += parts[:, i]
    z, y, x = [slice(pads[2 * i], pads[2 * i] + s) for i, s in enumerate(size)]
    out__bs[...] = whole[:, z, y, x].reshape(out__bs.shape)

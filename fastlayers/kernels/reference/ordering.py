"""The largest elements, positions of extremes, reductions of integers and float64 along the middle of three axes, in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import REDUCE

__all__ = ["arg_extreme", "argmax", "fold", "topk", "unique"]


def topk(x__oni: np.ndarray, out__oki: np.ndarray, indices__oki: np.ndarray, source: int, reverse: bool) -> None:
    """The k largest x[o, n, i] over n (the least if `reverse`) and their n, the best first; of equals the first comes first, and
    NaN is more than every number. `source`: the dtype, a number of table.KINDS.
    """
    size, k = x__oni.shape[1], out__oki.shape[1]
    if reverse:
        order = np.argsort(x__oni, axis=1, kind="stable")
    else:
        # A stable sort of the reversed axis, read from its end, keeps equal elements in their order.
        order = size - 1 - np.flip(np.argsort(np.flip(x__oni, 1), axis=1, kind="stable"), 1)
    indices__oki[...] = order[:, :k]
    out__oki[...] = np.take_along_axis(x__oni, order[:, :k], axis=1)


def arg_extreme(x__oni: np.ndarray, out__oi: np.ndarray, source: int, reverse: bool, last: bool) -> None:
    """out[o, i] = the n, of at least one, of the largest x[o, n, i] (the least if `reverse`): the first of equals, or of NaN, or
    the last. `source`: the dtype, a number of table.KINDS, but not float16 or bool.
    """
    function: Any = np.argmin if reverse else np.argmax
    found = x__oni.shape[1] - 1 - function(np.flip(x__oni, 1), axis=1) if last else function(x__oni, axis=1)
    out__oi[...] = found


def argmax(x__oni: np.ndarray, out__oi: np.ndarray, reverse: bool) -> None:
    """out[o, i] = the n, of at least one, of the largest x[o, n, i] (the least if `reverse`): the first of equals, or of NaN."""
    out__oi[...] = x__oni.argmin(axis=1) if reverse else x__oni.argmax(axis=1)


def _mean(x: np.ndarray, n: int) -> Any:
    total = x.sum(axis=1, dtype=x.dtype)
    if x.dtype.kind == "f":
        return total / n
    return np.where(total < 0, -(-total // n), total // n) if n else np.zeros_like(total)


_FOLDS: dict[str, Callable[[np.ndarray], Any]] = {
    "sum": lambda x: x.sum(axis=1, dtype=x.dtype),
    "mean": lambda x: _mean(x, x.shape[1]),
    "prod": lambda x: x.prod(axis=1, dtype=x.dtype),
    "sum_square": lambda x: (x * x).sum(axis=1, dtype=x.dtype),
    "l1": lambda x: np.abs(x).sum(axis=1, dtype=x.dtype),
    "l2": lambda x: np.sqrt((x * x).sum(axis=1)),
    "log_sum": lambda x: np.log(x.sum(axis=1)),
}
_NAMES = {number: name for name, number in REDUCE.items()}


def fold(x__oni: np.ndarray, out__oi: np.ndarray, op: int, source: int) -> None:
    """As `reduce`, but for log_sum_exp, of integers, booleans (the extremes) and float64, as `source` (table.KINDS) says.

    Integers are summed in 64 bits, and a mean of them is cut off toward 0.
    """
    dtype, name = x__oni.dtype, _NAMES[op]
    with np.errstate(all="ignore"):
        if name in ("max", "min"):
            low: Any
            low, high = (-np.inf, np.inf) if dtype.kind == "f" else (False, True) if dtype.kind == "b" else _ends(dtype)
            function: Any = np.max if name == "max" else np.min
            out__oi[...] = function(x__oni, axis=1, initial=low if name == "max" else high)
            return
        wide: Any = dtype if dtype.kind == "f" else np.uint64 if dtype.kind == "u" else np.int64
        out__oi[...] = np.asarray(_FOLDS[name](x__oni.astype(wide))).astype(dtype)


def _ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def unique(
    x: np.ndarray,
    out: np.ndarray | None,
    indices: np.ndarray | None,
    inverse: np.ndarray | None,
    counts: np.ndarray | None,
    count: np.ndarray,
    source: int,
    mode: bool,
) -> None:
    """The first count[0] of out become the different elements of x, in order or, unless `mode`, as they come; NaN is after all
    numbers, and one with itself.

    Args:
        x: of the dtype that `source` says, a number of table.KINDS.
        out: None where it is not wanted, as the next three; room for as many elements as x has.
        indices: the position in x where each comes first.
        inverse: for each element of x, which of them it is.
        counts: how often each is there.
        count: how many there are.
        source: a number of table.KINDS.
        mode: whether they are in order.
    """
    flat = x.reshape(-1)
    _, first, which, often = np.unique(flat, return_index=True, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    if not mode:
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, which, often = first[order], place[which], often[order]
    count[0] = len(first)
    for array, values in ((out, flat[first]), (indices, first), (inverse, which), (counts, often)):
        if array is not None:
            array.reshape(-1)[: len(values)] = values

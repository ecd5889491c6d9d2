"""The largest elements, positions of extremes, reductions of integers and float64 along the middle of three axes, in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import REDUCE

__all__ = ["arg_extreme", "fold", "topk"]


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

"""Mean and maximum over time in numpy: sequence by sequence, sums in float64."""

from __future__ import annotations

import numpy as np

from ...errors import ShapeError
from ..table import REDUCE

__all__ = ["time_pool"]


def time_pool(
    x: np.ndarray, lengths__n: np.ndarray | None, mask__nt: np.ndarray | None, out__nc: np.ndarray, op: int, batch_first: bool
) -> None:
    """out[n] = the mean or the largest (op of table.REDUCE) of x[n, t], or x[t, n], over t < lengths[n] with mask[n, t]; 0 of
    none."""
    x__ntc = x if batch_first else x.swapaxes(0, 1)
    steps = x__ntc.shape[1]
    if lengths__n is not None and lengths__n.size and not 0 <= lengths__n.min() <= lengths__n.max() <= steps:
        raise ShapeError("time_pool: lengths: index out of range")
    for i, sequence in enumerate(x__ntc):
        valid = np.arange(steps) < (steps if lengths__n is None else lengths__n[i])
        if mask__nt is not None:
            valid &= mask__nt[i]
        with np.errstate(invalid="ignore"):
            if not valid.any():
                out__nc[i] = 0
            elif op == REDUCE["mean"]:
                out__nc[i] = sequence[valid].mean(0, dtype=np.float64)
            else:
                out__nc[i] = sequence[valid].max(0)

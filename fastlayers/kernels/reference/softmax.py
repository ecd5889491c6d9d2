"""Softmax and log-softmax in numpy: computed in float64, rounded to float32 once at the end."""

from __future__ import annotations

import numpy as np

__all__ = ["log_softmax", "softmax"]


def _shifted(x__oni: np.ndarray) -> np.ndarray:
    """x less the largest of its column: exp of it cannot overflow. NaN where the largest is infinite or NaN, as in torch."""
    x = x__oni.astype(np.float64)
    return np.asarray(x - x.max(axis=1, keepdims=True))


def softmax(x__oni: np.ndarray, out__oni: np.ndarray) -> None:
    """out = exp(x) / sum over n of exp(x)."""
    if not out__oni.size:
        return
    with np.errstate(all="ignore"):
        e = np.exp(_shifted(x__oni))
        out__oni[...] = e / e.sum(axis=1, keepdims=True)


def log_softmax(x__oni: np.ndarray, out__oni: np.ndarray) -> None:
    """out = x - log(sum over n of exp(x))."""
    if not out__oni.size:
        return
    with np.errstate(all="ignore"):
        x = _shifted(x__oni)
        out__oni[...] = x - np.log(np.exp(x).sum(axis=1, keepdims=True))

"""Batched products of two run-time operands, in plain numpy."""

from __future__ import annotations

import numpy as np

from ..table import Activation
from .activation import unary

__all__ = ["matmul"]


def matmul(a__bmk: np.ndarray, b__bkn: np.ndarray, out__bmn: np.ndarray, transpose_b: bool, activation: Activation) -> None:
    """``out = act(a b)`` for every entry of the batch, summed in float64 and rounded once before the activation.

    Args:
        a__bmk: the batch of `out`, or 1 to be used for every entry.
        b__bkn: likewise; (b, n, k) if `transpose_b`.
    """
    b = b__bkn.swapaxes(1, 2) if transpose_b else b__bkn
    with np.errstate(all="ignore"):
        out__bmn[...] = a__bmk.astype(np.float64) @ b.astype(np.float64)
    unary(out__bmn, out__bmn, activation)

"""Batched products of two run-time operands of bytes. Sums are exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .qconv import rounded

__all__ = ["qmatmul"]


def qmatmul(a__bmk: np.ndarray, b__bkn: np.ndarray, out__bmn: np.ndarray, options: Sequence[Any]) -> None:
    """out = (a - a_zero) (b - b_zero) for every entry of the batch, as int32; times `factor`, as float32; or that rounded, + the
    zero point of out, cut off, as uint8 or int8.

    Args:
        a__bmk: uint8 or int8; the batch of `out`, or 1 to be used for every entry.
        b__bkn: likewise.
        options: kinds of a, of b and of out, their zero points (0 if out has none), `factor`.
    """
    _, _, target, a_zero, b_zero, value, by = options
    total = (a__bmk.astype(np.float64) - a_zero) @ (b__bkn.astype(np.float64) - b_zero)
    out__bmn[...] = rounded(total.astype(np.int64).astype(np.int32), np.float32(by), None, target, value)

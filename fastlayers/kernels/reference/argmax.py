"""The position of the largest or least number along the middle of three axes, in numpy."""

from __future__ import annotations

import numpy as np

__all__ = ["argmax"]


def argmax(x__oni: np.ndarray, out__oi: np.ndarray, reverse: bool) -> None:
    """out[o, i] = the n, of at least one, of the largest x[o, n, i] (the least if `reverse`): the first of equals, or of NaN."""
    out__oi[...] = x__oni.argmin(axis=1) if reverse else x__oni.argmax(axis=1)

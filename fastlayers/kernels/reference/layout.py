"""Changes of layout."""

from __future__ import annotations

import numpy as np

__all__ = ["transpose"]


def transpose(x: np.ndarray, out: np.ndarray) -> None:
    """Swaps the last two axes: x (b, r, c) to out (b, c, r)."""
    out[...] = x.transpose(0, 2, 1)

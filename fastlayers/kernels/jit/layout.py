"""Changes of layout."""

from __future__ import annotations

import numpy as np

from ._njit import call, kernel
from ._threads import address, spread
from ._tile import swap

__all__ = ["transpose"]

STRIP = 64  # rows of one task


@kernel
def _transpose(swap: int, x: int, out: int, rows: int, cols: int, first: int, last: int) -> None:
    strips = (rows + STRIP - 1) // STRIP
    for task in range(first, last):
        at, r = task // strips * rows * cols, task % strips * STRIP
        call(swap, x + 4 * (at + r * cols), cols, out + 4 * (at + r), rows, min(STRIP, rows - r), cols)


def transpose(x: np.ndarray, out: np.ndarray) -> None:
    """Swaps the last two axes: x (b, r, c) to out (b, c, r)."""
    b, rows, cols = x.shape
    given = swap.address, address(x), address(out), rows, cols
    if x.size:
        spread(b * -(-rows // STRIP), x.size * 4.0, lambda first, last: _transpose(*given, first, last))

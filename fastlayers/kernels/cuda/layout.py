"""Changes of layout."""

from __future__ import annotations

from ._device import Array, on_device
from .movement import strided

__all__ = ["transpose"]


@on_device
def transpose(x__brc: Array, out__bcr: Array) -> None:
    """Swaps the last two axes: x (b, r, c) to out (b, c, r)."""
    if x__brc.size:
        b, r, c = x__brc.shape
        strided(x__brc, out__bcr, (b, c, r), 0, (r * c, 1, c), 0, (r * c, r, 1), 4)

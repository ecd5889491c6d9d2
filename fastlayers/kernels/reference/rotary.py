"""Rotary positions in plain numpy: computed in float64, rounded at the end."""

from __future__ import annotations

import numpy as np

__all__ = ["rotary"]


def rotary(x__botid: np.ndarray, cos__btr: np.ndarray, sin__btr: np.ndarray, out__botid: np.ndarray, interleaved: bool) -> None:
    """``out = (a cos - b sin, a sin + b cos)`` for every pair (a, b) of x.

    Args:
        x__botid: b entries, o and i heads (one of the two is usually 1), t positions.
        cos__btr: for every position and pair; b may be 1 for all entries.
        interleaved: pairs are (0, 1), (2, 3), ... instead of (0, r), (1, r + 1), ...; what is after 2 r is copied.
    """
    r = cos__btr.shape[2]
    cos, sin = (table[:, None, :, None].astype(np.float64) for table in (cos__btr, sin__btr))
    first, second = (slice(0, 2 * r, 2), slice(1, 2 * r, 2)) if interleaved else (slice(0, r), slice(r, 2 * r))
    a, b = x__botid[..., first].astype(np.float64), x__botid[..., second].astype(np.float64)
    with np.errstate(all="ignore"):
        out__botid[..., first], out__botid[..., second] = a * cos - b * sin, a * sin + b * cos
    out__botid[..., 2 * r :] = x__botid[..., 2 * r :]

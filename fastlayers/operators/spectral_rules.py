"""Rules that functions and operators of spectra share: the divisor of results, and whether windows overlap."""

from __future__ import annotations

import math

import numpy as np

from ..errors import ShapeError
from ..kernels.reference.fft import overlap_add

__all__ = ["check_overlap", "scale_of"]

_LEAST = 1e-11  # torch's


def scale_of(norm: str, inverse: bool, points: int) -> float:
    """Factor of sums over `points` values: "backward" divides inverse transforms, "forward" the others."""
    if norm == "ortho":
        return 1 / math.sqrt(points)
    return 1 / points if inverse == (norm == "backward") else 1.0


def check_overlap(where: str, window: np.ndarray | None, frames: int, size: int, step: int, offset: int, length: int) -> None:
    """Raises where no window reaches: nothing is known of such a number."""
    end = offset + length
    count = min(frames, -(-end // step))  # those that begin before the end
    # Between the ends every step is like the one before: frames enough for one of them are looked at.
    enough = 2 * -(-size // step) + 1
    left_out = max(count - enough, 0)
    end -= left_out * step
    if not length or end <= offset:
        return
    out = np.empty((1, end - offset))
    square = np.ones(size) if window is None else window.astype(np.float64) ** 2
    overlap_add(np.broadcast_to(square, (1, count - left_out, size)), None, out, step, offset, False)
    if not out.min() >= _LEAST:
        at = int(np.argmin(out[0]))
        at += left_out * step if offset + at > enough // 2 * step else 0
        raise ShapeError(
            f"{where}: no window of the {frames} frames reaches number {at} of {length}: expected windows that overlap, "
            "and a length that they cover"
        )

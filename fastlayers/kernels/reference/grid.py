"""Images read at given positions, between their pixels, in numpy: one neighbour of all positions after another."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

__all__ = ["grid_sample", "settled"]

# Whole positions on an axis, and the share that what is there has (None: all of it).
Neighbour = tuple[np.ndarray, np.ndarray | None]

FAR = float(1 << 40)  # where positions end, so that they remain integers
CUBIC = -0.75
ZEROS, REFLECTION = 0, 2  # codes of table.BORDERS
PIXELS = 2


@np.errstate(invalid="ignore", over="ignore")
def grid_sample(
    x__ncp: np.ndarray, grid__nor: np.ndarray, out__nco: np.ndarray, size: tuple[int, ...], mode: int, border: int, aligned: int
) -> None:
    """out = what is at the positions of an image of `size`, which is x's last axis.

    A place has a number for each axis, the last axis first: -1 and 1 are the image's edges (`aligned` is 0), or the middles of
    its outermost pixels (1); or values are those of pixels (2). `mode`: how many neighbours count along an axis, 1 (the
    nearest), 2 (linear) or 4 (cubic). `border`: what is outside, a number of table.BORDERS. Positions are found in x's float
    type: of NaN comes NaN, but for the nearest.
    """
    axes = settled(grid__nor, size, mode, border, aligned)
    total: np.ndarray | None = None
    for corner in itertools.product(*axes):
        index: np.ndarray = np.zeros(grid__nor.shape[:2], np.int64)
        share: Any = None
        there: Any = None
        for (at, inside, part), count in zip(corner, size, strict=True):
            index = index * count + at
            share = part if share is None else share * part
            there = inside if there is None else there & inside
        taken = np.take_along_axis(x__ncp, index[:, None], 2)
        if border == ZEROS:
            taken = np.where(there[:, None], taken, taken.dtype.type(0))
        if share is not None:
            taken = taken * share.astype(taken.dtype, copy=False)[:, None]
        total = taken if total is None else total + taken
    if math.prod(out__nco.shape):
        out__nco[...] = total


@np.errstate(invalid="ignore", over="ignore")
def settled(
    grid__nor: np.ndarray, size: tuple[int, ...], mode: int, border: int, aligned: int
) -> list[list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]]:
    """For each axis its neighbours of all positions: index, whether it is in the image, and share (None: all)."""
    places = [_pixels(grid__nor[..., len(size) - 1 - axis], count, aligned) for axis, count in enumerate(size)]
    return [
        [(*_inside(at, count, border, aligned), share) for at, share in _neighbours(mode, place)]
        for place, count in zip(places, size, strict=True)
    ]


def _pixels(places: np.ndarray, count: int, aligned: int) -> np.ndarray:
    if aligned == PIXELS:
        return np.asarray(np.clip(places, -FAR, FAR))
    at = (places + 1) / 2 * (count - 1) if aligned else ((places + 1) * count - 1) / 2
    return np.asarray(np.clip(at, -FAR, FAR))


def _neighbours(mode: int, at: np.ndarray) -> list[Neighbour]:
    if mode == 1:
        return [(np.rint(at), None)]
    low = np.floor(at)
    t = at - low
    if mode == 2:
        return [(low, 1 - t), (low + 1, t)]

    def near(s: np.ndarray) -> Any:
        return ((CUBIC + 2) * s - (CUBIC + 3)) * s * s + 1

    def far(s: np.ndarray) -> Any:
        return ((CUBIC * s - 5 * CUBIC) * s + 8 * CUBIC) * s - 4 * CUBIC

    return [(low - 1, far(t + 1)), (low, near(t)), (low + 1, near(1 - t)), (low + 2, far(2 - t))]


def _inside(at: np.ndarray, count: int, border: int, aligned: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole positions as indices, and whether they are in the image."""
    at = np.nan_to_num(at, nan=-1.0)
    if border == REFLECTION:
        if aligned:
            span = max(2 * (count - 1), 1)
            at = np.mod(at, span)
            at = np.minimum(at, span - at)
        else:  # around the edges, which are half a pixel outside
            at = np.mod(at, 2 * count)
            at = np.minimum(at, 2 * count - 1 - at)
    return np.clip(at, 0, count - 1).astype(np.int64), (at >= 0) & (at < count)

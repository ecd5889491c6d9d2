"""Images read at given positions, between their pixels: positions are found as the reference does, once for all channels."""

from __future__ import annotations

import itertools

import numpy as np

from ..reference.grid import settled
from ..table import BORDERS
from ._njit import emitted, kernel
from ._pick import gathered
from ._threads import address, spread
from ._vector import I32, Emit, V

__all__ = ["grid_sample"]

PLACES = 256  # of one task: what is known of them stays in the first-level cache


@emitted
def _sample(e: Emit, x: V, index: V, share: V, corners: V, apart: V, y: V, n: V) -> None:
    """y = the sum over the corners, with stride `apart`, of x at their indices (-1: 0) times their shares."""

    def body(i: V, mask: V | None) -> None:
        def corner(k: V) -> V:
            at = e.load(e.at(index, k * apart + i), e.vector(I32), mask)
            there = at >= 0
            return gathered(e, x, at, there if mask is None else there & mask)

        with e.builder.if_else(share.equals(0).v) as (nearest, others):
            with nearest:
                e.store(e.at(y, i), corner(e.i64(0)), mask)
            with others:
                total = e.var(corner(e.i64(0)) * e.load(e.at(share, i), mask=mask))
                with e.loop(1, corners) as k:
                    total.set(e.fma(corner(k), e.load(e.at(share, k * apart + i), mask=mask), total.get()))
                e.store(e.at(y, i), total.get(), mask)

    e.vectors(n, body)


@kernel
def _grid(
    x: int, index: int, share: int, out: int, channels: int, pixels: int, places: int, corners: int, apart: int, first: int,
    last: int,
) -> None:  # fmt: skip
    """Tasks: PLACES positions of an image, all channels."""
    tasks = (places + PLACES - 1) // PLACES
    for task in range(first, last):
        image, start = task // tasks, task % tasks * PLACES
        at, n = 4 * (image * places + start), min(PLACES, places - start)
        for c in range(image * channels, (image + 1) * channels):
            own = share + at if share != 0 else 0
            _sample(x + 4 * c * pixels, index + at, own, corners, apart, out + 4 * (c * places + start), n)


def grid_sample(
    x__ncp: np.ndarray, grid__nor: np.ndarray, out__nco: np.ndarray, size: tuple[int, ...], mode: int, border: int, aligned: int
) -> None:
    """out = what is at the positions of an image of `size`, which is x's last axis; arguments as the reference's."""
    n, channels, places = out__nco.shape
    if not out__nco.size:
        return
    axes = settled(grid__nor, size, mode, border, aligned)
    corners = list(itertools.product(*axes))
    index, shares = np.empty((len(corners), n, places), np.int32), np.empty((len(corners), n, places), np.float32)
    for k, corner in enumerate(corners):
        at, share, there = corner[0][0], corner[0][2], corner[0][1]
        for (other, inside, part), count in zip(corner[1:], size[1:], strict=True):
            at, there = at * count + other, there & inside
            share = None if share is None or part is None else share * part
        index[k] = np.where(there, at, -1) if border == BORDERS["zeros"] else at
        if share is not None:
            shares[k] = share
    given = (
        address(x__ncp), address(index), 0 if mode == 1 else address(shares), address(out__nco), channels, x__ncp.shape[2],
        places, len(corners), n * places,
    )  # fmt: skip
    work = 4.0 * out__nco.size * len(corners)
    spread(n * -(-places // PLACES), work, lambda first, last: _grid(*given, first, last))

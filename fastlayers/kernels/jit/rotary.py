"""Rotary positions: pairs of numbers turned, row by row."""

from __future__ import annotations

import numpy as np

from ._band import copy_row
from ._njit import emitted, kernel
from ._threads import address, spread
from ._vector import F32, WIDTH, Emit, V

__all__ = ["rotary"]

ROWS = 64  # of one task


@emitted
def _halves(e: Emit, x: V, cos: V, sin: V, y: V, r: V) -> None:
    """Pairs (i, i + r)."""

    def body(i: V, mask: V | None) -> None:
        a, b, c, s = (e.load(e.at(place, at), mask=mask) for place, at in ((x, i), (x, i + r), (cos, i), (sin, i)))
        e.store(e.at(y, i), a * c - b * s, mask)
        e.store(e.at(y, i + r), a * s + b * c, mask)

    e.vectors(r, body)


@emitted
def _neighbours(e: Emit, x: V, cos: V, sin: V, y: V, r: V) -> None:
    """Pairs (2 i, 2 i + 1)."""
    whole = r & -WIDTH
    with e.loop(0, whole, WIDTH) as i:
        at = e.at(x, i * 2)
        low, high, c, s = e.load(at), e.load(e.at(at, WIDTH)), e.load(e.at(cos, i)), e.load(e.at(sin, i))
        a, b = (e.lanes(low, range(odd, 2 * WIDTH, 2), high) for odd in range(2))
        p, q = a * c - b * s, a * s + b * c
        for half in range(2):
            order = [lane // 2 + half * WIDTH // 2 + lane % 2 * WIDTH for lane in range(WIDTH)]
            e.store(e.at(y, i * 2 + half * WIDTH), e.lanes(p, order, q))
    with e.loop(whole, r) as i:
        a, b, c, s = (e.load(e.at(place, at), F32) for place, at in ((x, i * 2), (x, i * 2 + 1), (cos, i), (sin, i)))
        e.store(e.at(y, i * 2), a * c - b * s)
        e.store(e.at(y, i * 2 + 1), a * s + b * c)


@kernel
def _rotary(
    x: int, cos: int, sin: int, y: int, outer: int, steps: int, heads: int, d: int, r: int, entry: int, interleaved: int,
    rows: int, first: int, last: int,
) -> None:  # fmt: skip
    """Rows are (b, outer, steps, heads); entry: floats from an entry's angles to the next's."""
    for row in range(first * ROWS, min(rows, last * ROWS)):
        position = row // heads
        at = 4 * (position // steps // outer * entry + position % steps * r)
        from_, to = x + 4 * row * d, y + 4 * row * d
        if interleaved != 0:
            _neighbours(from_, cos + at, sin + at, to, r)
        else:
            _halves(from_, cos + at, sin + at, to, r)
        if d > 2 * r:
            copy_row(from_ + 8 * r, to + 8 * r, d - 2 * r)


def rotary(x__botid: np.ndarray, cos__btr: np.ndarray, sin__btr: np.ndarray, out__botid: np.ndarray, interleaved: bool) -> None:
    """``out = (a cos - b sin, a sin + b cos)`` for every pair (a, b) of x; arguments as the reference's."""
    b, o, t, i, d = x__botid.shape
    r, rows = cos__btr.shape[2], b * o * t * i
    given = (
        address(x__botid), address(cos__btr), address(sin__btr), address(out__botid), o, t, i, d, r,
        t * r if len(cos__btr) > 1 else 0, int(interleaved), rows,
    )  # fmt: skip
    if x__botid.size:
        spread(-(-rows // ROWS), x__botid.size * 4.0, lambda first, last: _rotary(*given, first, last))

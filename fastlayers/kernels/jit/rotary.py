"""Rotary positions: pairs of values rotated, row by row."""

from __future__ import annotations

from typing import NamedTuple

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


class Plan(NamedTuple):
    """Rows (b, outer, steps, heads) of d values, 2 r of which are rotated; entry: floats from an entry's angles to the next's."""

    outer: int
    steps: int
    heads: int
    d: int
    r: int
    entry: int
    interleaved: int
    rows: int


@kernel
def _rotary(p: Plan, x: int, cos: int, sin: int, y: int, first: int, last: int) -> None:
    for row in range(first * ROWS, min(p.rows, last * ROWS)):
        position = row // p.heads
        at = 4 * (position // p.steps // p.outer * p.entry + position % p.steps * p.r)
        from_, to = x + 4 * row * p.d, y + 4 * row * p.d
        if p.interleaved != 0:
            _neighbours(from_, cos + at, sin + at, to, p.r)
        else:
            _halves(from_, cos + at, sin + at, to, p.r)
        if p.d > 2 * p.r:
            copy_row(from_ + 8 * p.r, to + 8 * p.r, p.d - 2 * p.r)


def rotary(x__botid: np.ndarray, cos__btr: np.ndarray, sin__btr: np.ndarray, out__botid: np.ndarray, interleaved: bool) -> None:
    """``out = (a cos - b sin, a sin + b cos)`` for every pair (a, b) of x; arguments as the reference's."""
    b, o, t, i, d = x__botid.shape
    r, rows = cos__btr.shape[2], b * o * t * i
    plan = Plan(o, t, i, d, r, t * r if len(cos__btr) > 1 else 0, int(interleaved), rows)
    given = (plan, *map(address, (x__botid, cos__btr, sin__btr, out__botid)))
    if x__botid.size:
        spread(-(-rows // ROWS), x__botid.size * 4.0, lambda first, last: _rotary(*given, first, last))

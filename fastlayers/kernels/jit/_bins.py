"""Bins: the mean or the largest number of boxes of an image that are anywhere.

The rows of a bin are folded into a line along whole vectors, then the line's columns: as many values one by one (channels
first), or vectors of channels (last).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ._njit import emitted, inner
from ._tile import integer, zero
from ._vector import F32, WIDTH, Emit, V

__all__ = ["Edges", "Part", "bins"]

LONG = 4 * WIDTH  # values of a bin's line from which they are folded in vectors


def _take(e: Emit, mean: bool, a: V, x: V) -> V:
    return a + x if mean else e.most_nan(x, a)


@emitted
def _line(e: Emit, mean: V, x: V, planes: V, plane: V, rows: V, row: V, to: V, n: V) -> None:
    """to = the fold of planes x rows lines of n values, of which there is one at least."""

    def case(average: bool) -> None:
        def body(i: V, mask: V | None) -> None:
            total = e.var(e.load(e.at(x, i), mask=mask))
            with e.loop(1, rows) as y:
                total.set(_take(e, average, total.get(), e.load(e.at(x, y * row + i), mask=mask)))
            with e.loop(1, planes) as z, e.loop(0, rows) as y:
                total.set(_take(e, average, total.get(), e.load(e.at(x, z * plane + y * row + i), mask=mask)))
            e.store(e.at(to, i), total.get(), mask)

        e.vectors(n, body)

    e.switch(mean, {0: lambda: case(False), 1: lambda: case(True)})


@emitted
def _columns(e: Emit, mean: V, line: V, rows: V, table: V, count: V, c: V, y: V) -> None:
    """Every bin of a line of columns with c channels; rows: how many were folded into it. Empty bins are 0."""

    def case(average: bool, channels: bool) -> None:
        start = 0.0 if average else -math.inf
        with e.loop(0, count) as o:
            first, last = (e.load(e.at(table, o * 2 + side, 8), o.kind) for side in range(2))
            size, to = last - first, e.at(y, o * c)
            share = e.convert(rows * size, F32, "sitofp")
            full, empty = size > 0, e.f(0.0)

            def column(i: V, mask: V | None) -> None:
                total = e.var(e.f(start))
                with e.loop(first, last) as at:
                    total.set(_take(e, average, total.get(), e.load(e.at(line, at * c + i), mask=mask)))
                value = total.get() / e.splat(share) if average else total.get()
                e.store(e.at(to, i), e.select(e.splat(full), value, empty), mask)

            def number() -> None:
                total = e.var(e.constant(F32, start))
                with e.builder.if_else((size < LONG).v) as (short, long):
                    with short, e.loop(first, last) as at:
                        total.set(_take(e, average, total.get(), e.load(e.at(line, at), F32)))
                    with long:

                        def fold(so_far: V, i: V, mask: V | None) -> V:
                            return _take(e, average, so_far, e.load(e.at(line, first + i), mask=mask))

                        total.set(e.lane(e.folded(size, start, fold, lambda a, b: _take(e, average, a, b)), 0))
                value = total.get() / share if average else total.get()
                e.store(to, e.select(full, value, e.constant(F32, 0.0)))

            if channels:
                e.vectors(c, column)
            else:
                number()

    cases: dict[int, Callable[[], None]] = {
        2 * m + many: partial(case, bool(m), bool(many)) for m in range(2) for many in range(2)
    }
    e.switch(mean * 2 + e.select(c > 1, e.i64(1), e.i64(0)), cases)


class Part(NamedTuple):
    """`cols` columns of an image with c channels, its planes and rows with these strides."""

    at: int
    plane: int
    row: int
    cols: int
    c: int


class Edges(NamedTuple):
    """Pairs (first, end) of the bins of every axis, of which the last two have ny and nx."""

    z: int
    y: int
    x: int
    ny: int
    nx: int


@inner
def bins(mean: int, x: Part, edges: Edges, line: int, out: int, first: int, last: int) -> None:
    """Rows first .. last - 1 of bins; line: room for a row of the image."""
    for r in range(first, last):
        z0, z1, y0, y1 = (
            integer(edges.z, r // edges.ny * 2),
            integer(edges.z, r // edges.ny * 2 + 1),
            integer(edges.y, r % edges.ny * 2),
            integer(edges.y, r % edges.ny * 2 + 1),
        )
        to, folded, at = (
            out + 4 * (r - first) * edges.nx * x.c,
            max(z1 - z0, 0) * max(y1 - y0, 0),
            x.at + 4 * (z0 * x.plane + y0 * x.row),
        )
        if folded > 1:
            _line(mean, at, z1 - z0, x.plane, y1 - y0, x.row, line, x.cols * x.c)
            at = line
        if folded > 0:
            _columns(mean, at, folded, edges.x, edges.nx, x.c, to)
        else:
            zero(to, edges.nx * x.c)

"""Softmax and log-softmax: y = exp(x - m) / s or (x - m) - log(s), with m the largest x and s the sum of exp(x - m).

A sum's order depends on n alone: a column has the bits that a row has. A row that holds NaN or +infinity, or nothing but
-infinity, becomes NaN in every element: x - m is NaN somewhere, and so is s.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ._math import exp_flush, log
from ._njit import emitted, kernel
from ._threads import address, spread
from ._vector import WIDTH, Emit, V

__all__ = ["log_softmax", "softmax"]

NUMBERS = 1 << 14  # of one task
STRIP = 128  # columns of one task
VECTORS = 4  # columns that are walked together, in vectors


def _put(e: Emit, logarithm: V, count: V, place: Callable[[V], tuple[V, V]], m: V, s: V) -> None:
    """Writes what the exponentials in y, or the values in x, become: place(i) gives the addresses of x and y."""
    with e.builder.if_else(logarithm.differs(0).v) as (then, otherwise):
        with then:
            shift = log(e, s)

            def difference(i: V, mask: V | None) -> None:
                x, y = place(i)
                e.store(y, (e.load(x, mask=mask) - m) - shift, mask)

            e.vectors(count, difference)
        with otherwise:
            factor = 1.0 / s

            def share(i: V, mask: V | None) -> None:
                _, y = place(i)
                e.store(y, e.load(y, mask=mask) * factor, mask)

            e.vectors(count, share)


@emitted
def _row(e: Emit, x: V, y: V, n: V, logarithm: V) -> None:
    m = e.folded(n, -math.inf, lambda so_far, i, mask: e.most(so_far, e.load(e.at(x, i), mask=mask)), e.most)

    def term(so_far: V, i: V, mask: V | None) -> V:
        power = exp_flush(e, e.load(e.at(x, i), mask=mask) - m)
        e.store(e.at(y, i), power, mask)
        return so_far + power

    s = e.folded(n, 0.0, term, lambda a, b: a + b)
    _put(e, logarithm, n, lambda i: (e.at(x, i), e.at(y, i)), m, s)


@emitted
def _columns(e: Emit, x: V, y: V, n: V, inner: V, width: V, logarithm: V) -> None:
    def strip(column: V, mask: V | None, vectors: int = 1) -> None:
        """So many vectors of columns next to each other: rows are far apart, so more of a line's neighbours are used at once."""
        lanes = range(vectors)

        def places(base: V, row: V) -> list[V]:
            line = e.at(base, row * inner + column)
            return [e.at(line, v * WIDTH) for v in lanes]

        def load(base: V, row: V) -> list[V]:
            return [e.load(at, mask=mask) for at in places(base, row)]

        def store(row: V, values: list[V]) -> None:
            for at, value in zip(places(y, row), values, strict=True):
                e.store(at, value, mask)

        largest = [e.var(e.f(-math.inf)) for _ in lanes]
        with e.loop(0, n) as i:
            for a, value in zip(largest, load(x, i), strict=True):
                a.set(e.most(a.get(), value))
        m = [a.get() for a in largest]

        def term(so_far: list[V], i: V) -> list[V]:
            powers = [exp_flush(e, value - m[v]) for v, value in enumerate(load(x, i))]
            store(i, powers)
            return [a + power for a, power in zip(so_far, powers, strict=True)]

        total = e.folded_down(n, 0.0, term, lambda a, b: a + b, vectors)
        with e.builder.if_else(logarithm.differs(0).v) as (then, otherwise):
            with then:
                shift = [log(e, s) for s in total]
                with e.loop(0, n) as i:
                    store(i, [(value - m[v]) - shift[v] for v, value in enumerate(load(x, i))])
            with otherwise:
                factor = [1.0 / s for s in total]
                with e.loop(0, n) as i:
                    store(i, [value * factor[v] for v, value in enumerate(load(y, i))])

    wide = width & -(VECTORS * WIDTH)
    with e.loop(0, wide, VECTORS * WIDTH) as column:
        strip(column, None, VECTORS)
    e.vectors(width - wide, lambda column, mask: strip(wide + column, mask))


@kernel
def _rows_task(x: int, y: int, rows: int, n: int, logarithm: int, step: int, first: int, last: int) -> None:
    for row in range(first * step, min(rows, last * step)):
        _row(x + 4 * row * n, y + 4 * row * n, n, logarithm)


@kernel
def _columns_task(x: int, y: int, n: int, inner: int, logarithm: int, first: int, last: int) -> None:
    strips = (inner + STRIP - 1) // STRIP
    for task in range(first, last):
        column = task % strips * STRIP
        at = 4 * (task // strips * n * inner + column)
        _columns(x + at, y + at, n, inner, min(STRIP, inner - column), logarithm)


def _run(x: np.ndarray, out: np.ndarray, logarithm: int) -> None:
    o, n, inner = x.shape
    if not x.size:
        return
    if inner == 1:
        step = max(1, NUMBERS // n)
        given = address(x), address(out), o, n, logarithm, step
        spread(-(-o // step), x.size * 20.0, lambda first, last: _rows_task(*given, first, last))
    else:
        columns = address(x), address(out), n, inner, logarithm
        spread(o * -(-inner // STRIP), x.size * 20.0, lambda first, last: _columns_task(*columns, first, last))


def softmax(x__oni: np.ndarray, out__oni: np.ndarray) -> None:
    """out = exp(x) / sum over n of exp(x)."""
    _run(x__oni, out__oni, 0)


def log_softmax(x__oni: np.ndarray, out__oni: np.ndarray) -> None:
    """out = x - log(sum over n of exp(x))."""
    _run(x__oni, out__oni, 1)

"""Softmax and log-softmax: y = exp(x - m) / s or (x - m) - log(s), with m the largest x and s the sum of exp(x - m).

A row that holds NaN or +infinity, or nothing but -infinity, becomes NaN in every element: x - m is NaN somewhere, and so is s.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ._math import exp_flush, log
from ._njit import emitted, kernel
from ._threads import address, spread
from ._vector import Emit, V

__all__ = ["log_softmax", "softmax"]

NUMBERS = 1 << 14  # of one task
CHAIN = 16  # rows whose exponentials are added before they join the sum
STRIP = 128  # columns of one task


def _put(e: Emit, logarithm: V, count: V, place: Callable[[V], tuple[V, V]], m: V, s: V) -> None:
    """Writes what the exponentials in y, or the numbers in x, become: place(i) gives the addresses of x and y."""
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
    def strip(column: V, mask: V | None) -> None:
        from_, to = e.at(x, column), e.at(y, column)

        def load(i: V) -> V:
            return e.load(e.at(from_, i * inner), mask=mask)

        largest, total = e.var(e.f(-math.inf)), e.var(e.f(0.0))
        with e.loop(0, n) as i:
            largest.set(e.most(largest.get(), load(i)))
        m = largest.get()
        with e.loop(0, n, CHAIN) as first:
            chain = e.var(e.f(0.0))
            with e.loop(first, e.smaller(n, first + CHAIN)) as i:
                power = exp_flush(e, load(i) - m)
                e.store(e.at(to, i * inner), power, mask)
                chain.set(chain.get() + power)
            total.set(total.get() + chain.get())
        s = total.get()
        with e.builder.if_else(logarithm.differs(0).v) as (then, otherwise):
            with then:
                shift = log(e, s)
                with e.loop(0, n) as i:
                    e.store(e.at(to, i * inner), (load(i) - m) - shift, mask)
            with otherwise:
                factor = 1.0 / s
                with e.loop(0, n) as i:
                    e.store(e.at(to, i * inner), e.load(e.at(to, i * inner), mask=mask) * factor, mask)

    e.vectors(width, strip)


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

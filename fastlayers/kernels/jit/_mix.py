"""Sums of rows, each times its weight, and single values of memory."""

from __future__ import annotations

from functools import partial

from ._njit import emitted, inner
from ._tile import zero
from ._vector import F32, Emit, Float, V

__all__ = ["mix", "number", "put_number"]


@emitted
def number(e: Emit, place: V, index: V) -> Float:
    """A number of memory."""
    return e.load(e.at(place, index), F32)


@emitted
def put_number(e: Emit, place: V, index: V, value: Float) -> None:
    """Changes a number of memory."""
    e.store(e.at(place, index), value)


@emitted
def _mix(e: Emit, rows: V, weights: V, count: V, out: V, n: V) -> None:
    """out = the sum of `count` rows of n values, each times its weight."""

    def case(taps: int) -> None:
        places = [e.load(e.at(rows, t, 8), rows.kind) for t in range(taps)]
        factors = [e.broadcast(e.at(weights, t)) for t in range(taps)]

        def body(i: V, mask: V | None) -> None:
            value = e.load(e.at(places[0], i), mask=mask) * factors[0]
            for place, factor in zip(places[1:], factors[1:], strict=True):
                value = e.fma(factor, e.load(e.at(place, i), mask=mask), value)
            if taps == 1:  # any number of them
                total = e.var(value)
                with e.loop(1, count) as t:
                    place = e.load(e.at(rows, t, 8), rows.kind)
                    total.set(e.fma(e.broadcast(e.at(weights, t)), e.load(e.at(place, i), mask=mask), total.get()))
                value = total.get()
            e.store(e.at(out, i), value, mask)

        e.vectors(n, body)

    e.switch(e.select(count.equals(2) | count.equals(4), count, e.i64(1)), {taps: partial(case, taps) for taps in (1, 2, 4)})


@inner
def mix(rows: int, weights: int, count: int, out: int, n: int) -> None:
    """out = the sum of `count` rows of n values, each times its weight."""
    if count > 0:
        _mix(rows, weights, count, out, n)
    else:
        zero(out, n)

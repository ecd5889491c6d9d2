"""Gates of recurrent layers, emitted as LLVM vectors: the usual cells as a whole, and all others step by step.

Units are in the order [h / 16][gates][16], so that the gates of sixteen of them are next to each other.
"""

from __future__ import annotations

from collections.abc import Callable

from ._math import sigmoid_divisor, tanh_fraction
from ._njit import emitted
from ._tile import PANEL
from ._vector import Emit, V

__all__ = ["add", "add_product", "between", "gather", "gru_gates", "lstm_gates", "multiply", "rest_of_one"]


def _units(e: Emit, hidden: V, gates: int, body: Callable[[V, V], None]) -> None:
    """For every vector of units, where it is in a state and in the first gate of the sums; units there are not included."""
    with e.loop(0, hidden, PANEL) as u:
        for v in range(0, PANEL, e.f(0).kind.count):
            body(u + v, u * gates + v)


# sigmoid(x) = 1 / d, tanh(x) = n / d: as fractions, gates that meet in a product share one division. In two turns, since one
# chain from a sum to a state is too long for a processor to have several under way.


@emitted
def lstm_gates(e: Emit, sums: V, xg: V, h: V, c: V, hidden: V) -> None:
    def gate(at: V, number: int) -> V:
        return e.load(e.at(sums, at + number * PANEL)) + e.load(e.at(xg, at + number * PANEL))

    def cells(unit: V, at: V) -> None:
        taken, kept = sigmoid_divisor(e, gate(at, 0)), sigmoid_divisor(e, gate(at, 1))
        n, d = tanh_fraction(e, gate(at, 2))
        e.store(e.at(c, unit), e.load(e.at(c, unit)) / kept + n / (taken * d))

    def states(unit: V, at: V) -> None:
        n, d = tanh_fraction(e, e.load(e.at(c, unit)))
        e.store(e.at(h, unit), n / (sigmoid_divisor(e, gate(at, 3)) * d))

    _units(e, hidden, 4, cells)
    _units(e, hidden, 4, states)


@emitted
def gru_gates(e: Emit, sums: V, xg: V, h: V, inner: V, hidden: V) -> None:
    def gate(at: V, number: int) -> V:
        return e.load(e.at(sums, at + number * PANEL)) + e.load(e.at(xg, at + number * PANEL))

    def news(unit: V, at: V) -> None:
        new = e.at(sums, at + 2 * PANEL)
        value = (e.load(new) + e.load(e.at(inner, unit))) / sigmoid_divisor(e, gate(at, 0))
        e.store(new, value + e.load(e.at(xg, at + 2 * PANEL)))

    def states(unit: V, at: V) -> None:
        keep = sigmoid_divisor(e, gate(at, 1))
        n, d = tanh_fraction(e, e.load(e.at(sums, at + 2 * PANEL)))
        e.store(e.at(h, unit), e.fma(keep - 1.0, n, e.load(e.at(h, unit)) * d) / (keep * d))

    _units(e, hidden, 3, news)
    _units(e, hidden, 3, states)


@emitted
def gather(e: Emit, sums: V, gates: V, offset: V, xg: V, xg_gates: V, xg_offset: V, y: V, hidden: V) -> None:
    """One gate of all units, next to each other: y = sums + xg, the one without the other where its address is 0."""
    width = e.f(0).kind.count

    def places(u: V, base: V, count: V, first: V) -> list[V]:
        at = e.at(base, u * count + first)
        return [e.at(at, v) for v in range(0, PANEL, width)]

    def case(both: bool, own: V, count: V, first: V) -> None:
        with e.loop(0, hidden, PANEL) as u:
            values = [e.load(place) for place in places(u, own, count, first)]
            if both:
                values = [a + e.load(b) for a, b in zip(values, places(u, xg, xg_gates, xg_offset), strict=True)]
            for v, value in enumerate(values):
                e.store(e.at(y, u + v * width), value)

    kind = e.select(sums.equals(0), e.i64(2), e.select(xg.equals(0), e.i64(1), e.i64(0)))
    e.switch(
        kind,
        {
            0: lambda: case(True, sums, gates, offset),
            1: lambda: case(False, sums, gates, offset),
            2: lambda: case(False, xg, xg_gates, xg_offset),
        },
    )


@emitted
def add_product(e: Emit, y: V, a: V, b: V, n: V) -> None:
    """y += a b"""
    e.vectors(n, lambda i, mask: e.store(
        e.at(y, i), e.fma(e.load(e.at(a, i), mask=mask), e.load(e.at(b, i), mask=mask), e.load(e.at(y, i), mask=mask)), mask
    ))  # fmt: skip


@emitted
def multiply(e: Emit, y: V, a: V, b: V, n: V) -> None:
    """y = a b"""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.load(e.at(a, i), mask=mask) * e.load(e.at(b, i), mask=mask), mask))


@emitted
def add(e: Emit, y: V, a: V, n: V) -> None:
    """y += a"""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.load(e.at(y, i), mask=mask) + e.load(e.at(a, i), mask=mask), mask))


@emitted
def rest_of_one(e: Emit, y: V, a: V, n: V) -> None:
    """y = 1 - a"""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), 1.0 - e.load(e.at(a, i), mask=mask), mask))


@emitted
def between(e: Emit, h: V, z: V, new: V, n: V) -> None:
    """h = n + z (h - n)"""

    def body(i: V, mask: V | None) -> None:
        value = e.load(e.at(new, i), mask=mask)
        e.store(e.at(h, i), e.fma(e.load(e.at(z, i), mask=mask), e.load(e.at(h, i), mask=mask) - value, value), mask)

    e.vectors(n, body)

"""Reductions over the middle of three axes. The order of a sum depends on n alone: a column has the bits that a row has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..reference import reduce as _reference
from ..table import REDUCE
from ._math import exp_flush, log
from ._njit import emitted, kernel
from ._threads import address, spread
from ._vector import F32, WIDTH, Emit, V

__all__ = ["reduce"]

NUMBERS = 1 << 14  # of one task
STRIP = 128  # columns of one task
VECTORS = 4  # columns that are walked together, in vectors

_KINDS = {"mean": "sum", "l2": "sum_square", "log_sum": "sum"}  # what is summed where that has another name


def _add(a: V, b: V) -> V:
    return a + b


def _rule(e: Emit, op: str, m: V | None) -> tuple[float, Callable[[V, V], V], Callable[[V, V], V]]:
    """Initial value of a reduction, its step for one value, and its union of two results; m: the largest value of all."""
    kind = _KINDS.get(op, op)
    rules: dict[str, tuple[float, Callable[[V, V], V], Callable[[V, V], V]]] = {
        "sum": (0.0, _add, _add),
        "max": (-math.inf, lambda a, x: e.most_nan(x, a), e.most_nan),
        "min": (math.inf, lambda a, x: e.least_nan(x, a), e.least_nan),
        "prod": (1.0, lambda a, x: a * x, lambda a, b: a * b),
        "sum_square": (0.0, lambda a, x: e.fma(x, x, a), _add),
        "l1": (0.0, lambda a, x: a + e.absolute(x), _add),
        "log_sum_exp": (0.0, lambda a, x: a + exp_flush(e, x - m), _add),
    }
    return rules[kind]


def _end(e: Emit, op: str, s: V, n: V, m: V | None) -> V:
    if op == "mean":
        return s / e.splat(e.convert(n, F32, "sitofp"))
    if op == "l2":
        return e.root(s)
    if op == "log_sum":
        return log(e, s)
    if op == "log_sum_exp":
        assert m is not None
        return e.select(e.absolute(m) < math.inf, m + log(e, s), m)
    return s


@emitted
def _rows(e: Emit, op: V, x: V, y: V, n: V, first: V, last: V) -> None:
    def case(name: str) -> Callable[[], None]:
        def emit() -> None:
            with e.loop(first, last) as r:
                row = e.at(x, r * n)

                def fold(operation: str, m: V | None) -> V:
                    start, take, merge = _rule(e, operation, m)
                    return e.folded(n, start, lambda a, i, mask: take(a, e.load(e.at(row, i), mask=mask)), merge)

                m = fold("max", None) if name == "log_sum_exp" else None
                e.store(e.at(y, r), e.lane(_end(e, name, fold(name, m), n, m), 0))

        return emit

    e.switch(op, {number: case(name) for name, number in REDUCE.items()})


@emitted
def _columns(e: Emit, op: V, x: V, y: V, n: V, inner: V, width: V) -> None:
    def case(name: str) -> Callable[[], None]:
        def strip(column: V, mask: V | None, vectors: int = 1) -> None:
            def load(base: V) -> list[V]:
                return [e.load(e.at(base, v * WIDTH), mask=mask) for v in range(vectors)]

            def fold(operation: str, m: Sequence[V | None]) -> list[V]:
                rules = [_rule(e, operation, m[v]) for v in range(vectors)]

                def row(so_far: list[V], i: V) -> list[V]:
                    values = load(e.at(x, column + i * inner))
                    return [rule[1](a, value) for rule, a, value in zip(rules, so_far, values, strict=True)]

                return e.folded_down(n, rules[0][0], row, rules[0][2], vectors)

            m: Sequence[V | None] = [None] * vectors
            if name == "log_sum_exp":
                m = fold("max", m)
            for v, s in enumerate(fold(name, m)):
                e.store(e.at(y, column + v * WIDTH), _end(e, name, s, n, m[v]), mask)

        def emit() -> None:
            together = 1 if name == "log_sum_exp" else VECTORS
            wide = width & -(together * WIDTH) if together > 1 else e.i64(0)
            with e.loop(0, wide, together * WIDTH) as column:
                strip(column, None, together)
            e.vectors(width - wide, lambda column, mask: strip(wide + column, mask))

        return emit

    e.switch(op, {number: case(name) for name, number in REDUCE.items()})


@kernel
def _rows_task(op: int, x: int, y: int, rows: int, n: int, step: int, first: int, last: int) -> None:
    _rows(op, x, y, n, first * step, min(rows, last * step))


@kernel
def _columns_task(op: int, x: int, y: int, n: int, inner: int, first: int, last: int) -> None:
    strips = (inner + STRIP - 1) // STRIP
    for task in range(first, last):
        o, column = task // strips, task % strips * STRIP
        _columns(op, x + 4 * (o * n * inner + column), y + 4 * (o * inner + column), n, inner, min(STRIP, inner - column))


def reduce(x__oni: np.ndarray, out__oi: np.ndarray, op: int) -> None:
    """out[o, i] = op over n of x[o, n, i], op a number of table.REDUCE."""
    o, n, inner = x__oni.shape
    if not x__oni.size:
        _reference.reduce(x__oni, out__oi, op)
    elif inner == 1:
        step = max(1, NUMBERS // n)
        given = op, address(x__oni), address(out__oi), o, n, step
        spread(-(-o // step), x__oni.size * 4.0, lambda first, last: _rows_task(*given, first, last))
    else:
        columns = op, address(x__oni), address(out__oi), n, inner
        spread(o * -(-inner // STRIP), x__oni.size * 4.0, lambda first, last: _columns_task(*columns, first, last))

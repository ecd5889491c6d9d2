"""Attention whose scores are wanted as an array, and those of additive attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ._math import exp_flush, tanh
from ._njit import emitted, kernel
from ._records import Mask
from ._threads import address, spread
from ._tile import integer
from ._vector import Emit, Float, V

__all__ = ["additive_scores", "attention_weights"]

NUMBERS = 1 << 13  # of one task
TOGETHER = 4  # keys of additive attention


@emitted
def _row(e: Emit, x: V, mask: V, mask_step: V, scores: V, y: V, keys: V, seen: V, scale: Float, empty: V) -> None:
    """One row of `keys` scores and weights, `seen` of which are not forbidden."""
    factor = e.splat(scale)
    largest = e.var(e.f(-math.inf))

    def case(added: Callable[[V, V | None], V] | None) -> Callable[[], None]:
        def take(so_far: V, i: V, part: V | None) -> V:
            value = e.load(e.at(x, i), mask=part)
            value = value * factor if added is None else e.fma(value, factor, added(i, part))
            e.store(e.at(scores, i), value, part)
            return e.most_nan(so_far, value)

        return lambda: largest.set(e.folded(seen, -math.inf, take, e.most_nan))

    kind = e.select(mask.equals(0), e.i64(0), e.select(mask_step.differs(0), e.i64(1), e.i64(2)))
    each = case(lambda i, part: e.load(e.at(mask, i), mask=part))
    e.switch(kind, {0: case(None), 1: each, 2: case(lambda i, part: e.broadcast(mask))})
    m = largest.get()

    def term(so_far: V, i: V, part: V | None) -> V:
        power = exp_flush(e, e.load(e.at(scores, i), mask=part) - m)
        e.store(e.at(y, i), power, part)
        return so_far + power

    factor = 1.0 / e.folded(seen, 0.0, term, lambda a, b: a + b)
    none = m.equals(-math.inf)  # nothing but -infinity
    instead = e.select(e.splat(empty).differs(0), e.f(math.nan), e.f(0.0))

    def share(i: V, part: V | None) -> None:
        e.store(e.at(y, i), e.select(none, instead, e.load(e.at(y, i), mask=part) * factor), part)

    e.vectors(seen, share)

    def forbidden(i: V, part: V | None) -> None:
        e.store(e.at(scores, seen + i), e.f(-math.inf), part)
        # 0 unless the row is NaN, whose zeros are NaN too
        e.store(e.at(y, seen + i), e.select(none, instead, factor * 0.0), part)

    e.vectors(keys - seen, forbidden)


class Plan(NamedTuple):
    """`all_rows` rows of keys; a task has `step` of them."""

    heads: int
    rows: int
    keys: int
    mask: Mask
    scale: float
    causal: int
    offset: int
    empty: int
    all_rows: int
    step: int


@kernel
def _weights(p: Plan, x: int, mask: int, lengths: int, scores: int, out: int, first: int, last: int) -> None:
    for row in range(first * p.step, min(p.all_rows, last * p.step)):
        i, entry = row % p.rows, row // p.rows
        b, h = entry // p.heads, entry % p.heads
        seen = p.keys
        if lengths != 0:
            seen = min(seen, max(integer(lengths, b), 0))
        if p.causal != 0:
            seen = min(seen, max(i + p.offset + 1, 0))
        at = 4 * row * p.keys
        added = mask + 4 * (b * p.mask.b + h * p.mask.h + i * p.mask.q) if mask != 0 else 0
        _row(x + at, added, p.mask.k, scores + at, out + at, p.keys, seen, p.scale, p.empty)


def attention_weights(
    x__bhqk: np.ndarray,
    mask__bhqk: np.ndarray | None,
    lengths__b: np.ndarray | None,
    scores__bhqk: np.ndarray,
    out__bhqk: np.ndarray,
    scale: float,
    causal: bool,
    offset: int,
    empty: int,
) -> None:
    """``scores = scale x + mask``, -infinity where a key is forbidden; ``out = softmax(scores)``; as the reference."""
    b, h, q, k = x__bhqk.shape
    if not out__bhqk.size:
        return
    steps = [0] * 4
    if mask__bhqk is not None:
        steps = [s // 4 if n > 1 else 0 for s, n in zip(mask__bhqk.strides, mask__bhqk.shape, strict=True)]
    step = max(1, NUMBERS // k)
    plan = Plan(h, q, k, Mask(*steps), scale, int(causal), offset, empty, b * h * q, step)
    given = (plan, *map(address, (x__bhqk, mask__bhqk, lengths__b, scores__bhqk, out__bhqk)))
    spread(-(-b * h * q // step), x__bhqk.size * 20.0, lambda first, last: _weights(*given, first, last))


@emitted
def _additive(e: Emit, q: V, k: V, scale: V, u: V, out: V, keys: V) -> None:
    """Some keys at once, since one tanh alone would wait for itself."""

    def some(j: V, count: int) -> None:
        base = e.at(k, j * u)
        sums = [e.var(e.f(0.0)) for _ in range(count)]

        def body(i: V, mask: V | None) -> None:
            a, factor = e.load(e.at(q, i), mask=mask), e.var(e.f(1.0))
            with e.when(scale.differs(0)):
                factor.set(e.load(e.at(scale, i), mask=mask))
            for number, total in enumerate(sums):
                value = tanh(e, a + e.load(e.at(base, u * number + i), mask=mask))
                after = e.fma(factor.get(), value, total.get())
                total.set(after if mask is None else e.select(mask, after, total.get()))

        e.vectors(u, body)
        for number, total in enumerate(sums):
            e.store(e.at(out, j + number), e.lane(e.fold(total.get(), lambda a, b: a + b), 0))

    whole = keys & -TOGETHER
    with e.loop(0, whole, TOGETHER) as j:
        some(j, TOGETHER)
    with e.loop(whole, keys) as j:
        some(j, 1)


@kernel
def _additive_rows(q: int, k: int, scale: int, out: int, rows: int, keys: int, u: int, first: int, last: int) -> None:
    for row in range(first, last):
        _additive(q + 4 * row * u, k + 4 * (row // rows * keys * u), scale, u, out + 4 * row * keys, keys)


def additive_scores(q__bqu: np.ndarray, k__bku: np.ndarray, scale__u: np.ndarray | None, out__bqk: np.ndarray) -> None:
    """``out = sum over u of scale tanh(q + k)``; a scale of None is ones."""
    b, q, k = out__bqk.shape
    u = q__bqu.shape[2]
    given = *map(address, (q__bqu, k__bku, scale__u, out__bqk)), q, k, u
    if out__bqk.size:
        spread(b * q, out__bqk.size * 20.0 * max(u, 1), lambda first, last: _additive_rows(*given, first, last))

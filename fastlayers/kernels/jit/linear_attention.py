"""Linear attention. Tasks are strips of columns of one head's state, which stays in the first-level cache for all steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._band import copy_row
from ._njit import emitted, kernel
from ._records import Int
from ._threads import address, spread
from ._tile import zero
from ._vector import WIDTH, Emit, Float, V

__all__ = ["linear_attention"]

VECTORS = 4  # of a strip
STRIP = VECTORS * WIDTH
_ONE = np.ones(1, np.float32)  # the gate of those that have none


class Series(NamedTuple):
    """What steps have, with stride `step`; where rows or heads have their own, those have stride `each`."""

    at: Int
    step: Int
    each: Int


class State(NamedTuple):
    """`cols` columns of a state of d rows with stride `line`."""

    at: Int
    line: Int
    d: Int
    cols: Int


@emitted
def _strip(
    e: Emit, s: State, steps: V, heads: V, k: Series, v: Series, q: Series, gate: Series, beta: Series, out: Series, scale: Float
) -> None:
    """All steps for some columns of the state."""
    factor = e.splat(scale)

    def columns(first: V, mask: V | None, vectors: int = 1) -> None:
        lanes = range(vectors)
        base = e.at(s.at, first)

        def load(place: V) -> list[V]:
            return [e.load(e.at(place, lane * WIDTH), mask=mask) for lane in lanes]

        def store(place: V, values: list[V]) -> None:
            for lane, value in enumerate(values):
                e.store(e.at(place, lane * WIDTH), value, mask)

        def read(place: V) -> list[V]:
            """Sᵀ x."""
            sums = [e.var(e.f(0.0)) for _ in lanes]
            with e.loop(0, s.d) as i:
                x = e.broadcast(e.at(place, i))
                for total, value in zip(sums, load(e.at(base, i * s.line)), strict=True):
                    total.set(e.fma(x, value, total.get()))
            return [total.get() for total in sums]

        with e.loop(0, steps) as t:
            keys, factors = e.at(k.at, t * k.step), e.at(gate.at, t * gate.step)
            u = [e.var(value) for value in load(e.at(v.at, t * v.step + first))]
            with e.when(beta.at.differs(0)):
                seen = [e.var(e.f(0.0)) for _ in lanes]
                with e.loop(0, s.d) as i:
                    x = e.broadcast(e.at(keys, i)) * e.broadcast(e.at(factors, i * gate.each))
                    for total, value in zip(seen, load(e.at(base, i * s.line)), strict=True):
                        total.set(e.fma(x, value, total.get()))
                share = e.broadcast(e.at(beta.at, t * beta.step))
                for one, total in zip(u, seen, strict=True):
                    one.set(share * (one.get() - total.get()))
            added = [one.get() for one in u]
            query = e.at(q.at, t * q.step)
            sums = [e.var(e.f(0.0)) for _ in lanes]
            with e.loop(0, s.d) as i:  # the state's change, and the first query of those that share it
                place = e.at(base, i * s.line)
                g, x, y = e.broadcast(e.at(factors, i * gate.each)), e.broadcast(e.at(keys, i)), e.broadcast(e.at(query, i))
                rows = [e.fma(x, one, value * g) for one, value in zip(added, load(place), strict=True)]
                store(place, rows)
                for total, value in zip(sums, rows, strict=True):
                    total.set(e.fma(y, value, total.get()))
            to = e.at(out.at, t * out.step + first)
            with e.when(heads > 0):
                store(to, [total.get() * factor for total in sums])
            with e.loop(1, heads) as h:
                store(e.at(to, h * out.each), [value * factor for value in read(e.at(query, h * q.each))])

    wide = s.cols & -STRIP
    with e.loop(0, wide, STRIP) as first:
        columns(first, None, VECTORS)
    e.vectors(s.cols - wide, lambda first, mask: columns(wide + first, mask))


class Plan(NamedTuple):
    """`heads` queries share each of the `groups` states, d x e values."""

    scale: float
    groups: int
    d: int
    e: int
    steps: int
    heads: int
    gate_step: int
    gates: int
    beta_step: int


@kernel
def _linear_attention(
    p: Plan, q: int, k: int, v: int, past: int, gate: int, beta: int, out: int, state: int, first: int, last: int
) -> None:
    strips = (p.e + STRIP - 1) // STRIP
    for task in range(first, last):
        place, column = task // strips, task % strips * STRIP
        b, g = place // p.groups, place % p.groups
        cols = min(STRIP, p.e - column)
        own = state + 4 * (place * p.d * p.e + column)
        for row in range(p.d):
            if past == 0:
                zero(own + 4 * row * p.e, cols)
            else:
                copy_row(past + 4 * (place * p.d * p.e + row * p.e + column), own + 4 * row * p.e, cols)
        begin = b * p.steps
        gate_at = gate + 4 * (begin * p.gate_step + g * p.gates)
        beta_at = beta + 4 * (begin * p.beta_step + (g if p.beta_step > 1 else 0)) if beta != 0 else 0
        place, all_heads = begin * p.groups + g, p.groups * p.heads
        _strip(
            State(own, p.e, p.d, cols), p.steps, p.heads, Series(k + 4 * place * p.d, p.groups * p.d, 0),
            Series(v + 4 * (place * p.e + column), p.groups * p.e, 0),
            Series(q + 4 * place * p.heads * p.d, all_heads * p.d, p.d),
            Series(gate_at, p.gate_step, 1 if p.gates > 1 else 0), Series(beta_at, p.beta_step, 0),
            Series(out + 4 * (place * p.heads * p.e + column), all_heads * p.e, p.e), p.scale,
        )  # fmt: skip


def linear_attention(
    q__btx: np.ndarray,
    k__bty: np.ndarray,
    v__btz: np.ndarray,
    past__bgde: np.ndarray | None,
    gate__btw: np.ndarray | None,
    beta__btv: np.ndarray | None,
    out__bto: np.ndarray,
    state__bgde: np.ndarray,
    scale: float,
) -> None:
    """Attention with a state instead of keys: `S = gate S`, `S = S + k uᵀ`, `out = scale Sᵀ q`; arguments as the reference's."""
    (b, groups, d, e), steps = state__bgde.shape, q__btx.shape[1]
    heads = q__btx.shape[2] // max(groups * d, 1)
    step = 0 if gate__btw is None else gate__btw.shape[2]
    plan = Plan(
        scale, groups, d, e, steps, heads, step, step // max(groups, 1), 0 if beta__btv is None else beta__btv.shape[2]
    )  # fmt: skip
    arrays = q__btx, k__bty, v__btz, past__bgde, _ONE if gate__btw is None else gate__btw, beta__btv, out__bto, state__bgde
    given = (plan, *map(address, arrays))
    if d == 0:
        out__bto[...] = 0
        return
    work = 1.0 * b * groups * steps * d * e * (3 + heads)
    spread(b * groups * -(-e // STRIP), work, lambda first, last: _linear_attention(*given, first, last))

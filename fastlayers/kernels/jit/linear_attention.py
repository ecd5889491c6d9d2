"""Linear attention. Tasks are strips of columns of one head's state, which stays in the first-level cache for all steps."""

from __future__ import annotations

import numpy as np

from ._band import copy_row
from ._njit import emitted, kernel
from ._threads import address, spread
from ._tile import zero
from ._vector import WIDTH, Emit, Float, V

__all__ = ["linear_attention"]

VECTORS = 4  # of a strip
STRIP = VECTORS * WIDTH
_ONE = np.ones(1, np.float32)  # the gate of those that have none


@emitted
def _strip(
    e: Emit, s: V, line: V, d: V, cols: V, steps: V, k: V, k_step: V, v: V, v_step: V, q: V, q_step: V, heads: V, gate: V,
    gate_step: V, gate_row: V, beta: V, beta_step: V, out: V, out_step: V, out_head: V, scale: Float,
) -> None:  # fmt: skip
    """All steps for `cols` columns of the state s, whose d rows are `line` floats apart."""
    factor = e.splat(scale)

    def columns(first: V, mask: V | None, vectors: int = 1) -> None:
        lanes = range(vectors)
        base = e.at(s, first)

        def load(place: V) -> list[V]:
            return [e.load(e.at(place, lane * WIDTH), mask=mask) for lane in lanes]

        def store(place: V, values: list[V]) -> None:
            for lane, value in enumerate(values):
                e.store(e.at(place, lane * WIDTH), value, mask)

        def read(place: V) -> list[V]:
            """Sᵀ x."""
            sums = [e.var(e.f(0.0)) for _ in lanes]
            with e.loop(0, d) as i:
                x = e.broadcast(e.at(place, i))
                for total, value in zip(sums, load(e.at(base, i * line)), strict=True):
                    total.set(e.fma(x, value, total.get()))
            return [total.get() for total in sums]

        with e.loop(0, steps) as t:
            keys, factors = e.at(k, t * k_step), e.at(gate, t * gate_step)
            u = [e.var(value) for value in load(e.at(v, t * v_step + first))]
            with e.when(beta.differs(0)):
                seen = [e.var(e.f(0.0)) for _ in lanes]
                with e.loop(0, d) as i:
                    x = e.broadcast(e.at(keys, i)) * e.broadcast(e.at(factors, i * gate_row))
                    for total, value in zip(seen, load(e.at(base, i * line)), strict=True):
                        total.set(e.fma(x, value, total.get()))
                share = e.broadcast(e.at(beta, t * beta_step))
                for one, total in zip(u, seen, strict=True):
                    one.set(share * (one.get() - total.get()))
            added = [one.get() for one in u]
            query = e.at(q, t * q_step)
            sums = [e.var(e.f(0.0)) for _ in lanes]
            with e.loop(0, d) as i:  # the state's change, and the first query of those that share it
                place = e.at(base, i * line)
                g, x, y = e.broadcast(e.at(factors, i * gate_row)), e.broadcast(e.at(keys, i)), e.broadcast(e.at(query, i))
                rows = [e.fma(x, one, value * g) for one, value in zip(added, load(place), strict=True)]
                store(place, rows)
                for total, value in zip(sums, rows, strict=True):
                    total.set(e.fma(y, value, total.get()))
            to = e.at(out, t * out_step + first)
            with e.when(heads > 0):
                store(to, [total.get() * factor for total in sums])
            with e.loop(1, heads) as h:
                store(e.at(to, h * out_head), [value * factor for value in read(e.at(query, h * d))])

    wide = cols & -STRIP
    with e.loop(0, wide, STRIP) as first:
        columns(first, None, VECTORS)
    e.vectors(cols - wide, lambda first, mask: columns(wide + first, mask))


@kernel
def _linear_attention(
    q: int, k: int, v: int, past: int, gate: int, beta: int, out: int, state: int, scale: float, groups: int, d: int, e: int,
    steps: int, heads: int, gate_step: int, gates: int, beta_step: int, first: int, last: int,
) -> None:  # fmt: skip
    strips = (e + STRIP - 1) // STRIP
    for task in range(first, last):
        place, column = task // strips, task % strips * STRIP
        b, g = place // groups, place % groups
        cols = min(STRIP, e - column)
        own = state + 4 * (place * d * e + column)
        for row in range(d):
            if past == 0:
                zero(own + 4 * row * e, cols)
            else:
                copy_row(past + 4 * (place * d * e + row * e + column), own + 4 * row * e, cols)
        begin = b * steps
        _strip(
            own, e, d, cols, steps, k + 4 * (begin * groups * d + g * d), groups * d,
            v + 4 * (begin * groups * e + g * e + column), groups * e, q + 4 * (begin * groups + g) * heads * d,
            groups * heads * d, heads, gate + 4 * (begin * gate_step + g * gates), gate_step, 1 if gates > 1 else 0,
            beta + 4 * (begin * beta_step + (g if beta_step > 1 else 0)) if beta != 0 else 0, beta_step,
            out + 4 * ((begin * groups + g) * heads * e + column), groups * heads * e, e, scale,
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
    given = (
        *map(address, (q__btx, k__bty, v__btz, past__bgde, _ONE if gate__btw is None else gate__btw, beta__btv, out__bto)),
        address(state__bgde), scale, groups, d, e, steps, heads, step, step // max(groups, 1),
        0 if beta__btv is None else beta__btv.shape[2],
    )  # fmt: skip
    if d == 0:
        out__bto[...] = 0
        return
    work = 1.0 * b * groups * steps * d * e * (3 + heads)
    spread(b * groups * -(-e // STRIP), work, lambda first, last: _linear_attention(*given, first, last))

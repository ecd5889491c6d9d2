"""Attention with on-line softmax: tiles of 256 keys, a running maximum and sum a query; the scores of a tile alone are ever in
memory.

Keys and values are packed into panels first, or tile by tile where each is used once. A query's result depends on that query
alone, since a tile of keys is a block of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..reference import attention as reference
from ._math import exp_flush
from ._njit import call, emitted, kernel
from ._records import NOTHING, Columns, Lines, Mask, Panels, Rows, Sums
from ._threads import address, scratch, spread
from ._tile import BLOCK, PANEL, block, integer, pack_product, panels_of, product, put_integer, swap, table
from ._unary import apply
from ._vector import F32, WIDTH, Emit, Float, Integer, V
from .matmul import pack_batch

__all__ = ["attention"]

ROWS = 64  # queries of one task


@emitted
def _softmax_tile(
    e: Emit, scores: V, n: V, visible: V, mask: V, mask_step: V, scale: Float, state: V, sums: V, width: V, started: V
) -> None:  # fmt: skip
    """One query: scores become weights, next to those of the tiles before; `state` holds the largest score and the sum so far."""
    factor = e.splat(scale)
    before = e.broadcast(state)
    top, total = e.var(before), e.var(e.f(0.0))

    def case(added: Callable[[V, V | None], V] | None) -> Callable[[], None]:
        def score(i: V, lanes: V | None) -> V:
            value = e.load(e.at(scores, i), mask=lanes) * factor
            if added is not None:
                value = value + added(i, lanes)
                e.store(e.at(scores, i), value, lanes)
            return value

        def emit() -> None:
            # Keys that must not be seen weigh exactly 0: they are no part of any loop but the last.
            tile = e.folded(visible, -math.inf, lambda a, i, lanes: e.most_nan(score(i, lanes), a), e.most_nan)
            top.set(e.most_nan(tile, before))
            lowered = e.select(top.get().equals(-math.inf), 0.0, top.get())

            def weigh(so_far: V, i: V, lanes: V | None) -> V:
                value = e.load(e.at(scores, i), mask=lanes)
                weight = exp_flush(e, e.sum(value * factor if added is None else value, -lowered))
                e.store(e.at(scores, i), weight, lanes)
                return so_far + weight

            total.set(e.folded(visible, 0.0, weigh, lambda a, b: a + b))

        return emit

    kind = e.select(mask.equals(0), e.i64(0), e.select(mask_step.differs(0), e.i64(1), e.i64(2)))
    each = case(lambda i, lanes: e.load(e.at(mask, i), mask=lanes))
    e.switch(kind, {0: case(None), 1: each, 2: case(lambda i, lanes: e.broadcast(mask))})
    largest = top.get()
    shift = e.select(largest.equals(-math.inf), 0.0, largest)
    e.vectors(n - visible, lambda i, lanes: e.store(e.at(scores, visible + i), e.f(0.0), lanes))
    shrink = exp_flush(e, before - shift)
    e.store(state, e.lane(largest, 0))
    place = e.at(state, 1)
    e.store(place, e.lane(e.fma(e.broadcast(place), shrink, total.get()), 0))
    with e.when(started.differs(0)):
        e.vectors(width, lambda i, lanes: e.store(e.at(sums, i), e.load(e.at(sums, i), mask=lanes) * shrink, lanes))


@emitted
def _start(e: Emit, state: V, most: V) -> None:
    e.store(most, e.constant(F32, -math.inf))
    e.store(state, e.constant(F32, -math.inf))
    e.store(e.at(state, 1), e.constant(F32, 0.0))


@emitted
def _finish(e: Emit, state: V, sums: V, width: V, empty: V) -> None:
    """Sums are divided by the sum of weights; a query that saw nothing gives zeros, or NaN if `empty`."""
    nothing = e.broadcast(state).equals(-math.inf)
    instead = e.select(empty.differs(0), e.constant(F32, math.nan), e.constant(F32, 0.0))
    factor, other = 1.0 / e.broadcast(e.at(state, 1)), e.splat(instead)

    def body(i: V, lanes: V | None) -> None:
        at = e.at(sums, i)
        e.store(at, e.select(nothing, other, e.load(at, mask=lanes) * factor), lanes)

    e.vectors(width, body)


@emitted
def _hidden(e: Emit, x: V, n: V) -> Float:
    """NaN if one of n values is not finite, else 0."""

    def take(so_far: V, i: V, lanes: V | None) -> V:
        return e.fma(e.load(e.at(x, i), mask=lanes), 0.0, so_far)

    return e.lane(e.folded(n, 0.0, take, lambda a, b: a + b, chain=1 << 20), 0)


@emitted
def _seen(e: Emit, mask: V, n: V, most: V, slack: Float) -> Integer:
    """Number of columns of a row of a mask up to the last that may weigh more than 0, or up to a vector's more.

    `most`: the row's largest number in the tiles before, which becomes that with this one. What is `slack` below weighs 0.
    """
    largest = e.folded(n, -math.inf, lambda a, i, lanes: e.most(e.load(e.at(mask, i), mask=lanes), a), e.most)
    largest = e.most(largest, e.broadcast(most))
    e.store(most, e.lane(largest, 0))
    bound = largest - e.splat(slack) - e.absolute(largest) * 1e-5
    last = e.var(e.i64(0))

    def body(i: V, lanes: V | None) -> None:
        seen = ~(e.load(e.at(mask, i), mask=lanes) < bound)  # NaN too
        with e.when(e.any(seen if lanes is None else seen & lanes)):
            last.set(e.smaller(i + WIDTH, n))

    e.vectors(n, body)
    return last.get()


@kernel
def _all_finite(x: int, n: int, out: int) -> None:
    """Writes whether all of n values are finite."""
    put_integer(out, 0, 1 if _hidden(x, n) == 0 else 0)


class Strides(NamedTuple):
    """Floats between entries of the batch, heads, and rows."""

    b: int
    h: int
    row: int


class Plan(NamedTuple):
    """Attention of `rows` queries to `keys` keys of d values, and values of `width`.

    The query of row r sees keys up to offset + r advance, if causal. Keys and values are `packed` or as they came; hide: what
    weighs 0 by a mask is left out, as `skip` does with what causality hides.
    """

    product: int
    block: int
    apply: int
    pack: int
    swap: int
    packed: int
    k_transposed: int
    mask: Mask
    q: Strides
    k: Strides
    v: Strides
    out: Strides
    heads: int
    groups: int
    rows: int
    keys: int
    d: int
    width: int
    scale: float
    causal: int
    advance: int
    offset: int
    skip: int
    hide: int
    slack: float
    empty: int


@kernel
def _attend(
    p: Plan, q: int, keys: int, values: int, mask: int, lengths: int, out: int, scratch: int, first: int, last: int
) -> None:
    """Tasks: ROWS queries of a head. scratch: [ROWS][2] states, [ROWS][BLOCK] scores, [ROWS] largest values of the mask, and a
    packed tile of keys and of values.
    """
    row_tasks = (p.rows + ROWS - 1) // ROWS
    panels = (p.width + PANEL - 1) // PANEL * PANEL
    scores = scratch + 4 * 2 * ROWS
    most = scores + 4 * ROWS * BLOCK
    own_keys = most + 4 * ROWS
    own_values = own_keys + 4 * BLOCK * p.d
    own = table()
    pointers = own + 16
    for task in range(first, last):
        head, r0 = task // row_tasks, task % row_tasks * ROWS
        entry = head // p.heads * p.groups + head % p.heads // (p.heads // p.groups)
        m = min(ROWS, p.rows - r0)
        b, h = head // p.heads, head % p.heads
        queries, to = q + 4 * (b * p.q.b + h * p.q.h + r0 * p.q.row), out + 4 * (b * p.out.b + h * p.out.h + r0 * p.out.row)
        for i in range(m):
            _start(scratch + 8 * i, most + 4 * i)
            put_integer(pointers, i, scores + 4 * i * BLOCK)
        limit = p.keys if lengths == 0 else integer(lengths, head // p.heads)  # what is after is not read: it may be NaN
        k0, started = 0, 0
        while k0 < limit:
            if p.causal != 0 and p.skip != 0 and k0 > (r0 + m - 1) * p.advance + p.offset:
                break  # no query sees this tile or those after it
            klen = min(BLOCK, p.keys - k0)
            n = min(klen, limit - k0)
            if p.causal != 0 and p.skip != 0:
                n = min(n, (r0 + m - 1) * p.advance + 1 + p.offset - k0)  # weights of 0 add nothing
            if p.hide != 0:
                line = mask + 4 * (head // p.heads * p.mask.b + head % p.heads * p.mask.h + r0 * p.mask.q + k0)
                open_ = 0
                for i in range(m if p.mask.q != 0 else 1):
                    open_ = max(open_, _seen(line + 4 * i * p.mask.q, n, most + 4 * i, p.slack))
                n = open_
                if n == 0:
                    k0 += klen
                    continue
            if p.packed != 0:
                key, columns, column = keys + 4 * entry * ((p.keys + PANEL - 1) // PANEL * PANEL) * p.d, p.keys, k0
                value, value_row, value_panel = values + 4 * panels * (entry * p.keys + k0), PANEL, PANEL * klen
            else:
                place = keys + 4 * (b * p.k.b + h * p.k.h + (k0 if p.k_transposed != 0 else k0 * p.k.row))
                call(p.pack, p.swap, place, p.k.row, 1 - p.k_transposed, p.d, n, own_keys)
                key, columns, column = own_keys, n, 0
                value, value_row, value_panel = values + 4 * (b * p.v.b + h * p.v.h + k0 * p.v.row), p.v.row, PANEL
                if p.width < panels:
                    call(p.pack, p.swap, value, p.v.row, 0, n, p.width, own_values)
                    value, value_row, value_panel = own_values, PANEL, PANEL * n
            lines, of = Lines(queries, p.q.row, m, p.d), Columns(key, columns, column, n)
            call(p.product, p.block, p.apply, lines, of, scores, BLOCK, NOTHING)
            for i in range(m):
                visible = n
                if p.causal != 0:
                    visible = min(n, max(0, (r0 + i) * p.advance + p.offset + 1 - k0))
                line = 0
                if mask != 0:
                    line = mask + 4 * (
                        head // p.heads * p.mask.b + head % p.heads * p.mask.h + (r0 + i) * p.mask.q + k0 * p.mask.k
                    )
                _softmax_tile(
                    scores + 4 * i * BLOCK, n, visible, line, p.mask.k, p.scale, scratch + 8 * i, to + 4 * i * p.out.row, p.width,
                    started,
                )  # fmt: skip
            put_integer(own, 0, 0)
            put_integer(own, 1, n)
            panel, sums = Panels(value, value_row, value_panel), Sums(to, p.out.row, started)
            call(p.block, Rows(pointers, own, 1), m, panel, sums, p.width, NOTHING, p.apply)
            k0, started = k0 + klen, 1
        for i in range(m):
            _finish(scratch + 8 * i, to + 4 * i * p.out.row, p.width, p.empty)


def attention(
    q__bhqd: np.ndarray,
    k__bgkd: np.ndarray,
    v__bgke: np.ndarray,
    mask__bhqk: np.ndarray | None,
    lengths__b: np.ndarray | None,
    out__bhqe: np.ndarray,
    scale: float,
    causal: bool,
    offset: int,
    empty: int,
    k_transposed: bool,
    heads_last: bool,
) -> None:
    """``out = softmax(scale q kᵀ + mask) v``; `reference/attention.py` explains the arguments."""
    if not out__bhqe.size:
        return
    views = q__bhqd, k__bgkd, v__bgke, out__bhqe
    if heads_last:
        views = tuple(array.swapaxes(1, 2) for array in views)
    b, heads, rows, d = views[0].shape
    groups, count, width = views[2].shape[1:]
    steps: tuple[int, ...] = (0, 0, 0, 0)
    if mask__bhqk is not None:
        steps = tuple(0 if n == 1 else s // 4 for n, s in zip(mask__bhqk.shape, mask__bhqk.strides, strict=True))
    causal_, causal = causal, causal and offset < count - 1  # or else the first query sees all keys
    advance = 1
    places = [[step // 4 for step in array.strides[:3]] for array in views]
    if rows == 1:  # heads that share their keys are rows of one
        heads, rows, advance = groups, heads // groups, 0
        for place in (places[0], places[3]):
            place[1:] = place[1] * rows, place[1]
        steps = steps[0], steps[1] * rows, steps[1], steps[3]
    packed = heads > groups or rows > ROWS  # a tile of keys is used more than once
    keys, values = views[1:3]
    if packed:
        given_keys, given_values = np.ascontiguousarray(keys), np.ascontiguousarray(values)
        keys, values = scratch(b * groups * panels_of(count) * d), scratch(b * groups * panels_of(width) * count)
        for array, transposed, k, n, panels in (
            (given_keys, int(not k_transposed), d, count, keys),
            (given_values, 0, count, width, values),
        ):
            packing = pack_product.address, swap.address, address(array), transposed, k, n, address(panels)
            spread(b * groups, 4.0 * array.size, partial(pack_batch, *packing))
    lengths = None if lengths__b is None else np.clip(lengths__b, 0, count).astype(np.int64)
    # A weight of 0 makes NaN of infinite values, so tiles that no query sees count where there are any; so do infinite scores.
    tiles = steps[3] == 1 and count > BLOCK
    largest = _bound(q__bhqd) * _bound(k__bgkd) * d * max(1.0, abs(scale)) if tiles and not causal else math.inf
    hide = largest < 1e37
    slack = 2.1 * largest + 120 if hide else 0.0
    skip = (causal or hide) and _finite(v__bgke)
    plan = Plan(
        product.address, block.address, apply.address, pack_product.address, swap.address, int(packed), int(k_transposed),
        Mask(*steps), Strides(*places[0]), Strides(*places[1]), Strides(*places[2]), Strides(*places[3]), heads, groups, rows,
        count, d, width, scale, int(causal), advance, offset, int(skip), int(hide and skip), slack, int(empty == 1),
    )  # fmt: skip
    arrays = q__bhqd, keys, values, mask__bhqk, lengths, out__bhqe
    given = (plan, *map(address, arrays))

    def run(first: int, last: int) -> None:
        own = scratch(ROWS * (3 + BLOCK) + (0 if packed else BLOCK * (d + panels_of(width))))
        _attend(*given, address(own), first, last)

    spread(b * heads * -(-rows // ROWS), 1.0 * b * heads * rows * count * (d + width + 8), run)
    if empty == 2 and (np.isnan(out__bhqe).any() or not _finite(v__bgke)):  # rare: a weight or a value is NaN
        whole = q__bhqd, k__bgkd, v__bgke, mask__bhqk, lengths__b, out__bhqe
        reference.attention(*whole, scale, causal_, offset, empty, k_transposed, heads_last)


def _bound(x: np.ndarray) -> float:
    """The largest |x|, or NaN if there is any."""
    return max(float(x.max()), -float(x.min())) if x.size else 0.0


def _finite(x: np.ndarray) -> bool:
    answer = np.zeros(1, np.int64)
    _all_finite(address(x), x.size, address(answer))
    return bool(answer[0])

"""Attention with on-line softmax: tiles of queries and keys in shared memory, a running maximum and sum, scores nowhere else.

Bound by multiplications where there are many queries, each thread having 4 queries times some keys (then some columns of v) in
registers; of few queries by the memory that k and v are in, and by how few blocks there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..reference import attention as reference
from ._cuda import F32, I64, SIMULATED, Kernel, cdiv, cuda, f32, group_max, group_sum, kernel, load4, per_function, store4
from ._device import Array, absent, on_device
from ._math import exp

__all__ = ["attention"]

ZERO, LEAST, NAN = f32(0), f32(-np.inf), f32(np.nan)
# Threads next to each other that share four queries, and for heads of up to so many values the queries and keys of a tile.
ACROSS = 4 if SIMULATED else 16
TILES = ((16, 8, 8), (32, 8, 8), (128, 4, 4)) if SIMULATED else ((64, 64, 32), (128, 32, 32), (256, 16, 16))


class Plan(NamedTuple):
    """n queries of d values, m keys, values of e; `.._row`, `.._head`: from one to the next."""

    heads: int
    groups: int
    n: int
    m: int
    d: int
    e: int
    q_row: int
    q_head: int
    k_row: int
    k_column: int
    k_head: int
    v_row: int
    v_head: int
    o_row: int
    o_head: int
    mask_b: int
    mask_h: int
    mask_q: int
    mask_k: int
    scale: float
    causal: int
    offset: int
    empty: int


@per_function(
    samples=[(*tile, *flags) for tile in TILES for flags in ((True, False, False), (True, True, False), (False, True, True))]
)
def _attention(depth: int, rows: int, keys: int, by_quads: bool, has_mask: bool, transposed: bool) -> Kernel:
    stride = depth + 4  # of a row in shared memory: neighbours' quads are in other banks
    weights_stride = keys + 4
    threads = ACROSS * rows // 4
    sums_of, scores_of = depth // ACROSS // 4, keys // ACROSS  # quads of out, and scores, of a thread and query
    q_size, k_size, p_size = rows * stride, keys * stride, rows * weights_stride
    quads, sums_size, scores_size = depth // 4, 16 * sums_of, 4 * scores_of
    across4 = 4 * ACROSS

    @kernel
    def attention_kernel(q: F32, k: F32, v: F32, mask: F32, lengths: I64, has_lengths: int, out: F32, p: Plan) -> None:
        q_tile = cuda.shared.array(q_size, "float32", alignment=16)
        k_tile = cuda.shared.array(k_size, "float32", alignment=16)  # then v's
        p_tile = cuda.shared.array(p_size, "float32", alignment=16)
        scores = cuda.local.array(scores_size, "float32")
        sums = cuda.local.array(sums_size, "float32")
        largest = cuda.local.array(4, "float32")
        total = cuda.local.array(4, "float32")
        tx, me = cuda.threadIdx.x, cuda.threadIdx.x + ACROSS * cuda.threadIdx.y
        row0 = 4 * cuda.threadIdx.y
        tiles = (p.n + rows - 1) // rows
        entry = cuda.blockIdx.x // tiles
        first = (cuda.blockIdx.x - entry * tiles) * rows
        b = entry // p.heads
        h = entry - b * p.heads
        g = h // (p.heads // p.groups)
        # A batch is whole after the other: its heads or its rows come first.
        q_start = b * p.heads * p.n * p.d + h * p.q_head
        k_start = b * p.groups * p.m * p.d + g * p.k_head
        v_start = b * p.groups * p.m * p.e + g * p.v_head
        o_start = b * p.heads * p.n * p.e + h * p.o_head
        mask_start = b * p.mask_b + h * p.mask_h
        seen = p.m
        if has_lengths != 0:
            seen = min(p.m, max(int(lengths[b]), 0))
        end = seen
        if p.causal != 0:
            end = max(min(seen, first + rows + p.offset), 0)
        for t in range(me, rows * quads, threads):
            r = t // quads
            c = 4 * (t - r * quads)
            at = q_start + (first + r) * p.q_row + c
            to = r * stride + c
            if by_quads:
                q0, q1, q2, q3 = ZERO, ZERO, ZERO, ZERO
                if first + r < p.n and c < p.d:
                    q0, q1, q2, q3 = load4(q, at)
                store4(q_tile, to, q0, q1, q2, q3)
            else:
                for z in range(4):
                    q_tile[to + z] = q[at + z] if first + r < p.n and c + z < p.d else ZERO
        for i in range(4):
            largest[i] = LEAST
            total[i] = ZERO
        for i in range(sums_size):
            sums[i] = ZERO
        for start in range(0, end, keys):
            cuda.syncthreads()  # v's tile has been read
            if transposed:  # keys are neighbours
                for t in range(me, keys * depth, threads):
                    c = t // keys
                    r = t - c * keys
                    inside = start + r < seen and c < p.d
                    k_tile[r * stride + c] = k[k_start + (start + r) * p.k_row + c * p.k_column] if inside else ZERO
            else:
                for t in range(me, keys * quads, threads):
                    r = t // quads
                    c = 4 * (t - r * quads)
                    at = k_start + (start + r) * p.k_row + c
                    to = r * stride + c
                    if by_quads:
                        k0, k1, k2, k3 = ZERO, ZERO, ZERO, ZERO
                        if start + r < seen and c < p.d:
                            k0, k1, k2, k3 = load4(k, at)
                        store4(k_tile, to, k0, k1, k2, k3)
                    else:
                        for z in range(4):
                            k_tile[to + z] = k[at + z] if start + r < seen and c + z < p.d else ZERO
            cuda.syncthreads()
            for i in range(scores_size):
                scores[i] = ZERO
            for c in range(0, depth, 4):
                for j in range(scores_of):
                    k0, k1, k2, k3 = load4(k_tile, (tx + ACROSS * j) * stride + c)
                    for i in range(4):
                        q0, q1, q2, q3 = load4(q_tile, (row0 + i) * stride + c)
                        s = scores[4 * j + i]
                        s += q0 * k0
                        s += q1 * k1
                        s += q2 * k2
                        s += q3 * k3
                        scores[4 * j + i] = s
            for i in range(4):
                query = first + row0 + i
                tile = LEAST
                for j in range(scores_of):
                    key = start + tx + ACROSS * j
                    s = LEAST
                    if query < p.n and key < seen and (p.causal == 0 or key <= query + p.offset):
                        s = scores[4 * j + i] * p.scale
                        if has_mask:
                            s += mask[mask_start + query * p.mask_q + key * p.mask_k]
                    scores[4 * j + i] = s
                    tile = s if s > tile or s != s else tile
                before = largest[i]
                tile = group_max(tile, ACROSS)
                now = tile if tile > before or tile != tile else before
                shift = ZERO if now == LEAST else now
                shrink = exp(before - shift)
                part = ZERO
                for j in range(scores_of):
                    weight = exp(scores[4 * j + i] - shift)
                    p_tile[(row0 + i) * weights_stride + tx + ACROSS * j] = weight
                    part += weight
                largest[i] = now
                total[i] = total[i] * shrink + group_sum(part, ACROSS)
                for z in range(4 * sums_of):
                    sums[4 * sums_of * i + z] *= shrink
            cuda.syncthreads()  # k's tile has been read
            for t in range(me, keys * quads, threads):
                r = t // quads
                c = 4 * (t - r * quads)
                at = v_start + (start + r) * p.v_row + c
                to = r * stride + c
                if by_quads:
                    v0, v1, v2, v3 = ZERO, ZERO, ZERO, ZERO
                    if start + r < seen and c < p.e:
                        v0, v1, v2, v3 = load4(v, at)
                    store4(k_tile, to, v0, v1, v2, v3)
                else:
                    for z in range(4):
                        k_tile[to + z] = v[at + z] if start + r < seen and c + z < p.e else ZERO
            cuda.syncthreads()
            for c in range(0, keys, 4):
                for w in range(sums_of):
                    column = 4 * tx + across4 * w
                    a0, a1, a2, a3 = load4(k_tile, c * stride + column)
                    b0, b1, b2, b3 = load4(k_tile, (c + 1) * stride + column)
                    c0, c1, c2, c3 = load4(k_tile, (c + 2) * stride + column)
                    d0, d1, d2, d3 = load4(k_tile, (c + 3) * stride + column)
                    for i in range(4):
                        p0, p1, p2, p3 = load4(p_tile, (row0 + i) * weights_stride + c)
                        z = 4 * (sums_of * i + w)
                        sums[z] = sums[z] + p0 * a0 + p1 * b0 + p2 * c0 + p3 * d0
                        sums[z + 1] = sums[z + 1] + p0 * a1 + p1 * b1 + p2 * c1 + p3 * d1
                        sums[z + 2] = sums[z + 2] + p0 * a2 + p1 * b2 + p2 * c2 + p3 * d2
                        sums[z + 3] = sums[z + 3] + p0 * a3 + p1 * b3 + p2 * c3 + p3 * d3
        for i in range(4):
            query = first + row0 + i
            if query < p.n:
                nothing = largest[i] == LEAST
                for w in range(sums_of):
                    for z in range(4):
                        column = 4 * tx + across4 * w + z
                        if column < p.e:
                            value = sums[4 * (sums_of * i + w) + z] / total[i]
                            if nothing:
                                value = NAN if p.empty != 0 else ZERO
                            out[o_start + query * p.o_row + column] = value
        if p.empty == 2:
            # Rows without any weight are summed again with weights of 0. This loop is separate because the one above would not
            # be unrolled around it, and would keep its arrays in memory. NaN that comes from the values stays.
            for i in range(4):
                query = first + row0 + i
                for at in range(4 * sums_of if query < p.n else 0):
                    column = 4 * tx + across4 * (at // 4) + at % 4
                    if column < p.e and out[o_start + query * p.o_row + column] != out[o_start + query * p.o_row + column]:
                        value = ZERO
                        for j in range(seen):
                            value = value + ZERO * v[v_start + j * p.v_row + column]
                        out[o_start + query * p.o_row + column] = value

    return attention_kernel


@on_device
def attention(
    q__bhqd: Array, k__bgkd: Array, v__bgke: Array, mask__bhqk: Array | None, lengths__b: Array | None, out__bhqe: Array,
    scale: float, causal: bool, offset: int, empty: int, k_transposed: bool, heads_last: bool,
) -> None:  # fmt: skip
    """``out = softmax(scale q kᵀ + mask) v``, as the reference explains. Heads of up to 256 values; wider ones are its."""
    if not out__bhqe.size:
        return
    if heads_last:
        (b, n, h, d), (_, m, g, e) = q__bhqd.shape, v__bgke.shape
        strides = (h * d, d, g * d, 1, d, g * e, e, h * e, e)
    else:
        (b, h, n, d), (_, g, m, e) = q__bhqd.shape, v__bgke.shape
        k_strides = (1, m) if k_transposed else (d, 1)
        strides = (d, n * d, *k_strides, m * d, e, m * e, e, n * e)
    wide = max(d, e)
    tile = next((tile for tile in TILES if tile[0] >= wide), None)
    if tile is None:
        given: Any = [None if a is None else a.numpy() for a in (q__bhqd, k__bgkd, v__bgke, mask__bhqk, lengths__b)]
        made: Any = np.empty(out__bhqe.shape, np.float32)
        attend: Any = reference.attention
        attend(*given, made, scale, causal, offset, empty, k_transposed, heads_last)
        out__bhqe.fill_from(made)
        return
    steps = (0, 0, 0, 0)
    if mask__bhqk is not None:
        sizes, step, found = mask__bhqk.shape, 1, []
        for size in reversed(sizes):
            found.append(0 if size == 1 else step)
            step *= size
        steps = (found[3], found[2], found[1], found[0])
    aligned = all(a.aligned for a in (q__bhqd, k__bgkd, v__bgke)) and d % 4 == 0 and e % 4 == 0
    _attention(*tile, aligned, mask__bhqk is not None, k_transposed).launch(
        cdiv(n, tile[1]) * b * h, (ACROSS, tile[1] // 4),
        q__bhqd.flat, k__bgkd.flat, v__bgke.flat, absent() if mask__bhqk is None else mask__bhqk.flat,
        absent("i8") if lengths__b is None else lengths__b.flat, int(lengths__b is not None), out__bhqe.flat,
        Plan(h, g, n, m, d, e, *strides, *steps, scale, int(causal), offset, empty),
    )  # fmt: skip

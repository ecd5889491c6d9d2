"""The kernel that walks sequences: the recurrent product and the gates of all steps in one launch.

A block has some sequences of one direction. Four threads share a unit: each has a quarter of the terms of all its gates, sums
them over its quarter of h, and the four add up by shuffles; so the gates of a unit meet in one place and a step waits for the
others once. Weights stay in registers as far as they fit and are read again in every step past that, from the first-level cache
where it holds them: a hidden size of 80 is in registers, of 128 to three eighths. Bound by latency (and past 128 by the way from
the caches to one multiprocessor), which is why few sequences are spread over many blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..table import UNARY
from ._cuda import F32, I32, SIMULATED, U8, Kernel, cuda, device, f32, group_sum, kernel, load4, per_function
from ._math import function

__all__ = ["GRU", "LSTM", "RNN", "UNITS", "Has", "Plan", "in_registers", "lengths_kernel", "walk"]

LSTM, GRU, RNN = 4, 3, 1  # gates of these units
UNITS = 8 if SIMULATED else 128  # of a block at once
ZERO, ONE = f32(0), f32(1)
_SIGMOID, _TANH = function(UNARY["sigmoid"].code), function(UNARY["tanh"].code)


@device
def _clipped(value: Any, limit: Any) -> Any:
    """No limit is 0."""
    return value if limit == ZERO else (-limit if value < -limit else (limit if value > limit else value))


@device
def _steps_of(counts: Any, has_counts: Any, b: Any, steps: Any) -> Any:
    """Steps of a sequence: lengths beyond the sequence, which are not checked yet, would lead out of all arrays."""
    return min(max(int(counts[b]), 0), steps) if has_counts != 0 else steps


@kernel
def lengths_kernel(mask: U8, times: I32, counts: I32, batch: int, steps: int) -> None:
    """One thread for each sequence: the times and the number of its valid steps."""
    for b in range(cuda.grid(1), batch, cuda.gridsize(1)):
        count = 0
        for t in range(steps):
            if mask[b * steps + t] != 0:
                times[b * steps + count] = t
                count += 1
        counts[b] = count


class Has(NamedTuple):
    """Flags of the arrays that are given."""

    peephole: int
    h0: int
    c0: int
    counts: int
    times: int
    out: int
    hn: int
    cn: int


class Plan(NamedTuple):
    """`passes`: turns of a block over its units; x_t .. out_d: from a step, sequence and direction to the next; parameters of the
    functions f, g, k."""

    steps: int
    batch: int
    hidden: int
    passes: int
    direction0: int
    reverse: int
    x_t: int
    x_b: int
    out_t: int
    out_b: int
    out_d: int
    fa: float
    fb: float
    ga: float
    gb: float
    ka: float
    kb: float
    clip: float
    couple: int
    has: Has


@per_function(
    samples=[
        (LSTM, 4, 4, 1, True, 256, _SIGMOID, _TANH, _TANH),
        (LSTM, 6, 5, 1, True, 384, _SIGMOID, _TANH, _TANH),
        (LSTM, 8, 3, 1, True, 512, _SIGMOID, _TANH, _TANH),
        (LSTM, 8, 1, 4, True, 512, _SIGMOID, _TANH, _TANH),
        (LSTM, 16, 0, 4, False, 512, _SIGMOID, _TANH, _TANH),
        (LSTM, 64, 0, 1, False, 512, _SIGMOID, _TANH, _TANH),
        (GRU, 8, 4, 1, True, 512, _SIGMOID, _TANH, _TANH),
        (GRU, 8, 1, 4, True, 512, _SIGMOID, _TANH, _TANH),
        (RNN, 8, 8, 4, True, 512, _TANH, _TANH, _TANH),
    ]
)
def walk(gates: int, quads: int, kept: int, sequences: int, single: bool, threads: int, f: Any, g: Any, k: Any) -> Kernel:
    """The kernel for hidden sizes of 16 `quads`, of which `kept` are in registers, and `sequences` a block of so many threads.
    `single`: every unit has its own threads.
    """
    padded = 16 * quads
    size = sequences * padded
    both, sums_size, weights_size = 2 * size, gates * sequences, max(1, 16 // 4 * gates * kept)

    @kernel
    def walk_kernel(
        x: F32,
        weights: F32,
        bias: F32,
        peephole: F32,
        h0: F32,
        c0: F32,
        counts: I32,
        times: I32,
        out: F32,
        hn: F32,
        cn: F32,
        plan: Plan,
    ) -> None:
        """x: W x + b, (t, b, d, gates, units) with strides in elements; counts and times: which steps a sequence has."""
        h_tile = cuda.shared.array(both, "float32", alignment=16)  # before a step and after it, in turns
        c_tile = cuda.shared.array(both, "float32", alignment=16)
        here = cuda.local.array(weights_size, "float32")
        sums = cuda.local.array(sums_size, "float32")
        given = cuda.local.array(sequences, "float32")
        me, wide = cuda.threadIdx.x, cuda.blockDim.x
        part = me & 3
        direction = plan.direction0 + cuda.blockIdx.y
        first = cuda.blockIdx.x * sequences
        backward = direction == 1 or plan.reverse != 0
        longest = 0
        for j in range(sequences):
            if first + j < plan.batch:
                longest = max(longest, _steps_of(counts, plan.has.counts, first + j, plan.steps))
        for i in range(me, both, wide):
            j = i // padded
            u = i - j * padded
            at = (direction * plan.batch + first + j) * plan.hidden + u
            inside = j < sequences and first + j < plan.batch and u < plan.hidden
            h_tile[i] = h0[at] if inside and plan.has.h0 != 0 else ZERO
            c_tile[i] = c0[at] if inside and plan.has.c0 != 0 else ZERO
        stored = direction * plan.passes * quads * gates * wide  # of this direction's weights, in quads
        for q in range(kept):
            for gate in range(gates):
                w0, w1, w2, w3 = load4(weights, 4 * (stored + (q * gates + gate) * wide + me))
                i = 4 * (q * gates + gate)
                here[i], here[i + 1], here[i + 2], here[i + 3] = w0, w1, w2, w3
        cuda.syncthreads()
        now = 0
        for s in range(longest):
            after = size - now
            for turn in range(1 if single else plan.passes):
                u = (wide >> 2) * turn + (me >> 2)
                # The first of the four begins with W x + b, which is on its way from memory before it is needed.
                for j in range(sequences):
                    given[j] = ZERO
                    for gate in range(gates):
                        sums[gates * j + gate] = ZERO
                    b = first + j
                    if part == 0 and b < plan.batch and u < plan.hidden:
                        count = _steps_of(counts, plan.has.counts, b, plan.steps)
                        if s < count:
                            place = count - 1 - s if backward else s
                            if plan.has.times != 0:
                                place = int(times[b * plan.steps + place])
                            at = place * plan.x_t + b * plan.x_b + direction * gates * plan.hidden + u
                            for gate in range(gates):
                                sums[gates * j + gate] = x[at + gate * plan.hidden]
                            if gates == GRU:
                                given[j] = x[at + 2 * plan.hidden]
                                sums[gates * j + 2] = bias[direction * plan.hidden + u]
                for q in range(kept):
                    for j in range(sequences):
                        a0, a1, a2, a3 = load4(h_tile, now + j * padded + 16 * q + 4 * part)
                        for gate in range(gates):
                            i = 4 * (q * gates + gate)
                            t = sums[gates * j + gate]
                            t += here[i] * a0
                            t += here[i + 1] * a1
                            t += here[i + 2] * a2
                            t += here[i + 3] * a3
                            sums[gates * j + gate] = t
                from_ = stored + (turn * quads + kept) * gates * wide + me
                for q in range(kept, quads):
                    for gate in range(gates):
                        w0, w1, w2, w3 = load4(weights, 4 * (from_ + gate * wide))
                        for j in range(sequences):
                            a0, a1, a2, a3 = load4(h_tile, now + j * padded + 16 * q + 4 * part)
                            t = sums[gates * j + gate]
                            t += w0 * a0
                            t += w1 * a1
                            t += w2 * a2
                            t += w3 * a3
                            sums[gates * j + gate] = t
                    from_ += gates * wide
                for j in range(sequences):
                    for gate in range(gates):
                        sums[gates * j + gate] = group_sum(sums[gates * j + gate], 4)
                    if gates == GRU:
                        given[j] = group_sum(given[j], 4)
                    b = first + j
                    if b < plan.batch and u < plan.hidden:
                        count = _steps_of(counts, plan.has.counts, b, plan.steps)
                        h, c = h_tile[now + j * padded + u], c_tile[now + j * padded + u]
                        if s < count:
                            place = count - 1 - s if backward else s
                            if plan.has.times != 0:
                                place = int(times[b * plan.steps + place])
                            if gates == LSTM:
                                p, r, v, o = sums[gates * j], sums[gates * j + 1], sums[gates * j + 2], sums[gates * j + 3]
                                if plan.has.peephole != 0:
                                    p += peephole[direction * 3 * plan.hidden + u] * c
                                    r += peephole[(direction * 3 + 1) * plan.hidden + u] * c
                                p = f(_clipped(p, plan.clip), plan.fa, plan.fb)
                                r = ONE - p if plan.couple != 0 else f(_clipped(r, plan.clip), plan.fa, plan.fb)
                                c = r * c + p * g(_clipped(v, plan.clip), plan.ga, plan.gb)
                                if plan.has.peephole != 0:
                                    o += peephole[(direction * 3 + 2) * plan.hidden + u] * c
                                h = f(_clipped(o, plan.clip), plan.fa, plan.fb) * k(c, plan.ka, plan.kb)
                            elif gates == GRU:
                                r, z = (
                                    f(_clipped(sums[gates * j], plan.clip), plan.fa, plan.fb),
                                    f(_clipped(sums[gates * j + 1], plan.clip), plan.fa, plan.fb),
                                )
                                n = g(_clipped(given[j] + r * sums[gates * j + 2], plan.clip), plan.ga, plan.gb)
                                h = n + z * (h - n)
                            else:
                                h = f(_clipped(sums[gates * j], plan.clip), plan.fa, plan.fb)
                            if plan.has.out != 0 and part == 0:
                                out[place * plan.out_t + b * plan.out_b + direction * plan.out_d + u] = h
                        if part == 0:
                            h_tile[after + j * padded + u] = h
                            c_tile[after + j * padded + u] = c
            cuda.syncthreads()
            now = after
        for i in range(me, size, wide):
            j = i // padded
            u = i - j * padded
            if first + j < plan.batch and u < plan.hidden:
                at = (direction * plan.batch + first + j) * plan.hidden + u
                if plan.has.hn != 0:
                    hn[at] = h_tile[now + i]
                if plan.has.cn != 0:
                    cn[at] = c_tile[now + i]

    walk_kernel.most_threads = threads
    return walk_kernel


# Registers of a thread next to those that hold weights, for one sequence and for four.
_OTHERS = {LSTM: (75, 112), GRU: (70, 108), RNN: (60, 75)}


def in_registers(gates: int, quads: int, sequences: int, threads: int) -> int:
    """Number of quads of a hidden size that fit in registers, where every unit has its own threads."""
    most = min(255, (1 << 16) // threads // 8 * 8)
    return max(0, min(quads, (most - _OTHERS[gates][sequences > 1]) // (4 * gates)))

"""Recurrent layers: one product W x + b for all steps, then the walk through time, a task a direction and group of sequences.

Columns of W and R are packed in the order [h / 16][gates][16], so that the gates of sixteen units are next to each other. A sum
is R h + (W x + b). The usual functions are emitted as one loop over units; all others go through `_unary.apply`, gate by gate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..fits import fits, fits_cells
from ..halves import rounded
from ..table import UNARY, Activation, GruOptions, LstmOptions, RnnOptions
from ._band import copy_row
from ._math import sigmoid_divisor, tanh_fraction
from ._njit import call, emitted, inner, kernel
from ._threads import address, scratch, spread
from ._tile import PANEL, block, integer, pack_all, panels_of, product, put_integer, table, zero
from ._unary import apply, spell
from ._vector import Emit, V

__all__ = ["gru", "gru_pack", "lstm", "lstm_pack", "rnn", "rnn_pack"]

LSTM, GRU, GRU_BEFORE, RNN = range(4)  # GRU_BEFORE: r multiplies h before the product
ROWS = 16  # sequences of one task
STEPS = 256  # rows of x that one task of the input product has
CLIP = UNARY["clip"].code
_NAMES = "lstm", "gru", "gru", "rnn"
_USUAL = Activation(UNARY["sigmoid"].code), Activation(UNARY["tanh"].code)


class Packed(NamedTuple):
    """Weights of all directions, (d, panels); `second` is R_n where it is a product of its own, or what projects h."""

    kind: int
    gates: int
    hidden: int
    state: int  # numbers of h: fewer with projections
    inputs: int
    w: np.ndarray
    r: np.ndarray
    second: np.ndarray | None
    bias: np.ndarray  # (d, gates in whole panels), of W x
    inner: np.ndarray  # (d, h in whole panels): what is added to R_n h, of GRUs
    peephole: np.ndarray | None  # (d, 3, h in whole panels)
    clip: float
    couple: bool
    activations: tuple[tuple[tuple[int, float, float], ...], ...]
    usual: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """Directions, inputs, numbers of h, of c, and of a step's outputs."""
        d = len(self.w)
        return d, self.inputs, self.state, self.hidden, d * self.state


def _interleaved(weight: np.ndarray, gates: int) -> np.ndarray:
    """(d, gates h, ...) to (d, blocks gates 16, ...), with zeros for units that there are not."""
    d, rows, *rest = weight.shape
    hidden = rows // gates
    wide = np.zeros((d, gates, panels_of(hidden), *rest), np.float32)
    wide[:, :, :hidden] = weight.reshape(d, gates, hidden, *rest)
    parts = wide.reshape(d, gates, panels_of(hidden) // PANEL, PANEL, *rest).swapaxes(1, 2)
    return np.asarray(parts.reshape(d, gates * panels_of(hidden), *rest))


def _pack(
    kind: int,
    gates: int,
    w_ih: np.ndarray,
    w_hh: np.ndarray,
    b_ih: np.ndarray | None,
    b_hh: np.ndarray | None,
    peephole: np.ndarray | None,
    projection: np.ndarray | None,
    options: Any,
    activations: tuple[tuple[Activation, ...], ...],
    usual: tuple[Activation, ...],
) -> Packed:
    w_ih, w_hh, projection = rounded(w_ih, options.half), rounded(w_hh, options.half), rounded(projection, options.half)
    given = w_ih, w_hh, b_ih, b_hh, peephole, projection
    fits_cells(f"{_NAMES[kind]}_pack", gates, given if kind == LSTM else given[:4])
    d, rows, state = w_hh.shape
    hidden = rows // gates
    zeros = np.zeros((d, rows), np.float32)
    input_bias, hidden_bias = (zeros if b is None else b for b in (b_ih, b_hh))
    inner = np.zeros((d, panels_of(hidden)), np.float32)
    if kind == GRU:
        hidden_bias = hidden_bias.copy()
        inner[:, :hidden] = hidden_bias[:, 2 * hidden :]
        hidden_bias[:, 2 * hidden :] = 0
    first, second = w_hh, None if projection is None else pack_all(projection)
    if kind == GRU_BEFORE:
        first, rest = w_hh[:, : 2 * hidden], w_hh[:, 2 * hidden :]
        second = pack_all(_interleaved(rest, 1))
    wide = None
    if peephole is not None:
        wide = np.zeros((d, 3, panels_of(hidden)), np.float32)
        wide[:, :, :hidden] = peephole.reshape(d, 3, hidden)
    couple = bool(getattr(options, "couple_input_forget", False))
    plain = activations[:d] == (usual,) * d and not options.clip and wide is None and not couple and kind in (LSTM, GRU)
    return Packed(
        kind, gates, hidden, state, w_ih.shape[2], pack_all(_interleaved(w_ih, gates)),
        pack_all(_interleaved(first, 2 if kind == GRU_BEFORE else gates)), second, _interleaved(input_bias + hidden_bias,
        gates), inner,
        wide, float(options.clip), couple, tuple(tuple(map(spell, functions)) for functions in activations[:d]), plain,
    )  # fmt: skip


def lstm_pack(
    w_ih__dgi: np.ndarray,
    w_hh__dgh: np.ndarray,
    b_ih__dg: np.ndarray | None,
    b_hh__dg: np.ndarray | None,
    peephole__dp: np.ndarray | None,
    w_hr__dqh: np.ndarray | None,
    options: LstmOptions,
) -> Packed:
    """Packs an LSTM; arguments as in `reference/recurrent.py`."""
    usual = (_USUAL[0], _USUAL[1], _USUAL[1])
    weights = w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, peephole__dp, w_hr__dqh
    return _pack(LSTM, 4, *weights, options, options.activations, usual)


def gru_pack(
    w_ih__dgi: np.ndarray, w_hh__dgh: np.ndarray, b_ih__dg: np.ndarray | None, b_hh__dg: np.ndarray | None, options: GruOptions
) -> Packed:
    """Packs a GRU: as `lstm_pack`, with 3h gates in the order r z n."""
    kind = GRU if options.reset_after else GRU_BEFORE
    return _pack(kind, 3, w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, None, None, options, options.activations, _USUAL)


def rnn_pack(
    w_ih__dgi: np.ndarray, w_hh__dgh: np.ndarray, b_ih__dg: np.ndarray | None, b_hh__dg: np.ndarray | None, options: RnnOptions
) -> Packed:
    """Packs a simple RNN: as `lstm_pack`, with h gates."""
    activations = tuple((function,) for function in options.activations)
    return _pack(RNN, 1, w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, None, None, options, activations, ())


def _units(e: Emit, hidden: V, gates: int, body: Callable[[V, V], None]) -> None:
    """For every vector of units, where it is in a state and in the first gate of the sums; units there are not included."""
    with e.loop(0, hidden, PANEL) as u:
        for v in range(0, PANEL, e.f(0).kind.count):
            body(u + v, u * gates + v)


# sigmoid(x) = 1 / d, tanh(x) = n / d: as fractions, gates that meet in a product share one division. In two turns, since one
# chain from a sum to a state is too long for a processor to have several under way.


@emitted
def _lstm_gates(e: Emit, sums: V, xg: V, h: V, c: V, hidden: V) -> None:
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
def _gru_gates(e: Emit, sums: V, xg: V, h: V, inner: V, hidden: V) -> None:
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
def _gather(e: Emit, sums: V, gates: V, offset: V, xg: V, xg_gates: V, xg_offset: V, y: V, hidden: V) -> None:
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
def _add_product(e: Emit, y: V, a: V, b: V, n: V) -> None:
    """y += a b"""
    e.vectors(n, lambda i, mask: e.store(
        e.at(y, i), e.fma(e.load(e.at(a, i), mask=mask), e.load(e.at(b, i), mask=mask), e.load(e.at(y, i), mask=mask)), mask
    ))  # fmt: skip


@emitted
def _multiply(e: Emit, y: V, a: V, b: V, n: V) -> None:
    """y = a b"""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.load(e.at(a, i), mask=mask) * e.load(e.at(b, i), mask=mask), mask))


@emitted
def _add(e: Emit, y: V, a: V, n: V) -> None:
    """y += a"""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.load(e.at(y, i), mask=mask) + e.load(e.at(a, i), mask=mask), mask))


@emitted
def _rest_of_one(e: Emit, y: V, a: V, n: V) -> None:
    """y = 1 - a"""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), 1.0 - e.load(e.at(a, i), mask=mask), mask))


@emitted
def _between(e: Emit, h: V, z: V, new: V, n: V) -> None:
    """h = n + z (h - n)"""

    def body(i: V, mask: V | None) -> None:
        value = e.load(e.at(new, i), mask=mask)
        e.store(e.at(h, i), e.fma(e.load(e.at(z, i), mask=mask), e.load(e.at(h, i), mask=mask) - value, value), mask)

    e.vectors(n, body)


@inner
def limited(apply: int, clip: float, code: int, a: float, b: float, y: int, n: int) -> None:
    """y = f(y), its argument between -clip and clip if that is not 0."""
    if clip != 0.0:
        call(apply, CLIP, -clip, clip, y, y, n)
    call(apply, code, a, b, y, y, n)


@kernel
def _inputs(
    product: int, block: int, apply: int, x: int, rows: int, inputs: int, w: int, columns: int, bias: int, xg: int, w_size: int,
    first: int,
    last: int,
) -> None:  # fmt: skip
    """Tasks: (direction, STEPS rows) of W x + b."""
    tasks = (rows + STEPS - 1) // STEPS
    for task in range(first, last):
        d, r0 = task // tasks, task % tasks * STEPS
        call(
            product, block, apply, x + 4 * r0 * inputs, inputs, min(STEPS, rows - r0), inputs, w + 4 * d * w_size, columns, 0,
            columns,
            xg + 4 * (d * rows + r0) * columns, columns, bias + 4 * d * columns, 0, 0, 0, 0.0, 0.0,
        )  # fmt: skip


@kernel
def _walk(
    product: int, block: int, apply: int, limited: int, kind: int, usual: int, xg: int, steps: int, batch: int, batch_first: int,
    directions: int, reverse: int, hidden: int, state: int, gates: int, r: int, r_size: int, second: int, second_size: int,
    inner: int, peephole: int, clip: float, couple: int, f0: int, a0: float, b0: float, f1: int, a1: float, b1: float, f2: int,
    a2: float, b2: float, h0: int, c0: int, lengths: int, times: int, out: int, out_step: int, out_batch: int, out_direction: int,
    hn: int, cn: int, scratch: int, direction: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: groups of ROWS sequences of one direction. scratch: [ROWS] states h and c, sums, then eight rows of a gate."""
    wide = (hidden + PANEL - 1) // PANEL * PANEL
    wide_state = (state + PANEL - 1) // PANEL * PANEL
    projected = kind == LSTM and second != 0
    columns = gates * wide
    both = 2 * wide if kind == GRU_BEFORE else columns  # columns of the first product
    states, cells = scratch, scratch + 4 * ROWS * wide
    sums = cells + 4 * ROWS * wide
    own_gates = sums + 4 * ROWS * columns
    gi, gf, gg, go = own_gates, own_gates + 4 * wide, own_gates + 8 * wide, own_gates + 12 * wide
    resets = own_gates + 16 * wide  # [ROWS] r h, next to z of each sequence after it; or h before it is projected
    keeps = resets + 4 * ROWS * wide
    own = table()
    active = own + 16
    backwards = reverse != 0 or direction == 1
    r += 4 * direction * r_size
    inner += 4 * direction * wide
    if peephole != 0:
        peephole += 4 * direction * 3 * wide
    for task in range(first, last):
        b_first = task * ROWS
        count = min(ROWS, batch - b_first)
        longest = 0
        for i in range(count):
            zero(states + 4 * i * wide, wide)
            zero(cells + 4 * i * wide, wide)
            at = 4 * (direction * batch + b_first + i)
            if h0 != 0:
                copy_row(h0 + at * state, states + 4 * i * wide, state)
            if c0 != 0:
                copy_row(c0 + at * hidden, cells + 4 * i * wide, hidden)
            length = steps if lengths == 0 else integer(lengths, b_first + i)
            longest = max(longest, length)
        for s in range(longest):
            m = 0
            for i in range(count):
                if lengths == 0 or integer(lengths, b_first + i) > s:
                    put_integer(active, m, states + 4 * i * wide)
                    m += 1
            k0 = 0
            while k0 < state:
                klen = min(256, state - k0)
                put_integer(own, 0, k0)
                put_integer(own, 1, klen)
                call(
                    block, active, m, own, 1, r + 4 * both * k0, PANEL, PANEL * klen, sums, both, both, 1 if k0 > 0 else 0, 0,
                    0, 0, 0, 0.0,
                    0.0, apply,
                )  # fmt: skip
                k0 += klen
            j = 0
            for i in range(count):
                length = steps if lengths == 0 else integer(lengths, b_first + i)
                if length <= s:
                    continue
                time = length - 1 - s if backwards else s
                if times != 0:
                    time = integer(times, (b_first + i) * steps + time)
                entry = (b_first + i) * steps + time if batch_first != 0 else time * batch + b_first + i
                gate_x = xg + 4 * (direction * steps * batch + entry) * columns
                row, h, c = sums + 4 * j * both, states + 4 * i * wide, cells + 4 * i * wide
                if projected:
                    h = resets + 4 * i * wide
                    put_integer(active, j, h)
                if usual != 0 and kind == LSTM:
                    _lstm_gates(row, gate_x, h, c, hidden)
                elif usual != 0 and kind == GRU:
                    _gru_gates(row, gate_x, h, inner, hidden)
                elif kind == LSTM:
                    for g in range(4):
                        _gather(row, 4, g * PANEL, gate_x, 4, g * PANEL, own_gates + 4 * g * wide, hidden)
                    if peephole != 0:
                        _add_product(gi, peephole, c, wide)
                        _add_product(gf, peephole + 4 * wide, c, wide)
                    call(limited, apply, clip, f0, a0, b0, gi, wide)
                    if couple != 0:
                        _rest_of_one(gf, gi, wide)
                    else:
                        call(limited, apply, clip, f0, a0, b0, gf, wide)
                    call(limited, apply, clip, f1, a1, b1, gg, wide)
                    _multiply(c, gf, c, wide)
                    _add_product(c, gi, gg, wide)
                    if peephole != 0:
                        _add_product(go, peephole + 8 * wide, c, wide)
                    call(limited, apply, clip, f0, a0, b0, go, wide)
                    call(apply, f2, a2, b2, c, h, wide)
                    _multiply(h, go, h, wide)
                elif kind == GRU:
                    for g in range(2):
                        _gather(row, 3, g * PANEL, gate_x, 3, g * PANEL, own_gates + 4 * g * wide, hidden)
                        call(limited, apply, clip, f0, a0, b0, own_gates + 4 * g * wide, wide)
                    _gather(row, 3, 2 * PANEL, 0, 0, 0, go, hidden)
                    _add(go, inner, wide)
                    _gather(0, 0, 0, gate_x, 3, 2 * PANEL, gg, hidden)
                    _add_product(gg, gi, go, wide)
                    call(limited, apply, clip, f1, a1, b1, gg, wide)
                    _between(h, gf, gg, wide)
                elif kind == GRU_BEFORE:
                    _gather(row, 2, 0, gate_x, 3, 0, gi, hidden)
                    _gather(row, 2, PANEL, gate_x, 3, PANEL, keeps + 4 * i * wide, hidden)
                    call(limited, apply, clip, f0, a0, b0, gi, wide)
                    call(limited, apply, clip, f0, a0, b0, keeps + 4 * i * wide, wide)
                    _multiply(resets + 4 * i * wide, gi, h, wide)
                    put_integer(active, j, resets + 4 * i * wide)
                else:
                    _gather(row, 1, 0, gate_x, 1, 0, h, hidden)
                    call(limited, apply, clip, f0, a0, b0, h, wide)
                j += 1
            if second != 0:
                k0 = 0
                while k0 < hidden:
                    klen = min(256, hidden - k0)
                    put_integer(own, 0, k0)
                    put_integer(own, 1, klen)
                    call(
                        block, active, m, own, 1, second + 4 * (direction * second_size + wide_state * k0), PANEL,
                        PANEL * klen, sums, wide_state, wide_state,
                        1 if k0 > 0 else 0, 0, 0, 0, 0, 0.0, 0.0, apply,
                    )  # fmt: skip
                    k0 += klen
            j = 0
            for i in range(count):
                length = steps if lengths == 0 else integer(lengths, b_first + i)
                if length <= s:
                    continue
                time = length - 1 - s if backwards else s
                if times != 0:
                    time = integer(times, (b_first + i) * steps + time)
                h = states + 4 * i * wide
                if kind == GRU_BEFORE:
                    entry = (b_first + i) * steps + time if batch_first != 0 else time * batch + b_first + i
                    gate_x = xg + 4 * (direction * steps * batch + entry) * columns
                    _gather(sums + 4 * j * wide, 1, 0, gate_x, 3, 2 * PANEL, gg, hidden)
                    call(limited, apply, clip, f1, a1, b1, gg, wide)
                    _between(h, keeps + 4 * i * wide, gg, wide)
                if projected:
                    copy_row(sums + 4 * j * wide_state, h, state)
                if out != 0:
                    copy_row(h, out + 4 * (time * out_step + (b_first + i) * out_batch + direction * out_direction), state)
                j += 1
        for i in range(count):
            if lengths != 0 and out != 0:  # steps that the sequence has not got
                for s in range(integer(lengths, b_first + i), steps):
                    time = s if times == 0 else integer(times, (b_first + i) * steps + s)
                    zero(out + 4 * (time * out_step + (b_first + i) * out_batch + direction * out_direction), state)
            at = 4 * (direction * batch + b_first + i)
            if hn != 0:
                copy_row(states + 4 * i * wide, hn + at * state, state)
            if cn != 0:
                copy_row(cells + 4 * i * wide, cn + at * hidden, hidden)


def _run(
    x: np.ndarray,
    packed: Packed,
    h0: np.ndarray | None,
    c0: np.ndarray | None,
    lengths__b: np.ndarray | None,
    out: np.ndarray | None,
    hn: np.ndarray | None,
    cn: np.ndarray | None,
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    name, states = _NAMES[packed.kind], (h0, c0) if packed.kind == LSTM else (h0,)
    given = x, *states, lengths__b, out, hn, *((cn,) if packed.kind == LSTM else ())
    fits(name, packed.sizes, given, batch_first | directions_apart << 1)
    batch, steps = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
    d, hidden, state, gates, inputs = len(packed.w), packed.hidden, packed.state, packed.gates, packed.inputs
    wide = panels_of(hidden)
    columns = gates * wide
    lengths = None
    times = None  # of the steps that each sequence has, where a mask picks them
    if lengths__b is not None:
        if lengths__b.ndim == 2:
            valid = lengths__b.astype(bool)
            lengths = valid.sum(axis=1, dtype=np.int64)
            times = np.ascontiguousarray(np.argsort(~valid, axis=1, kind="stable"), np.int64)
        else:
            lengths = np.minimum(np.maximum(lengths__b, 0), steps).astype(np.int64, copy=False)
    if not hidden or not batch:
        return
    xg = scratch(d * steps * batch * columns)
    rows = steps * batch
    if rows:
        inputs_given = (
            product.address, block.address, apply.address, address(x), rows, inputs, address(packed.w), columns,
            address(packed.bias),
            address(xg), packed.w.shape[1],
        )  # fmt: skip
        spread(d * -(-rows // STEPS), 1.0 * d * rows * inputs * columns, lambda first, last: _inputs(*inputs_given, first, last))
    # Floats from one step, sequence and direction of `out` to the next.
    pitch = d * state
    if batch_first:
        strides = pitch, steps * pitch, state
    else:
        strides = (batch * pitch, state, batch * state) if directions_apart else (batch * pitch, pitch, state)
    groups = -(-batch // ROWS)

    def run(first: int, last: int) -> None:
        own = scratch(ROWS * (4 * wide + columns) + 4 * wide)
        for direction in range(d):
            begin, end = max(first, direction * groups), min(last, (direction + 1) * groups)
            if begin < end:
                functions = (*packed.activations[direction], *(((0, 0.0, 0.0),) * 2))[:3]
                _walk(
                    product.address, block.address, apply.address, limited.address, packed.kind, int(packed.usual), address(xg),
                    steps,
                    batch, int(batch_first), d, int(reverse), hidden, state, gates, address(packed.r), packed.r.shape[1],
                    address(packed.second), 0 if packed.second is None else packed.second.shape[1], address(packed.inner),
                    address(packed.peephole), packed.clip, int(packed.couple), *functions[0], *functions[1], *functions[2],
                    address(h0),
                    address(c0), address(lengths), address(times), address(out), *strides, address(hn), address(cn),
                    address(own), direction,
                    begin - direction * groups, end - direction * groups,
                )  # fmt: skip

    spread(d * groups, 1.0 * d * batch * steps * columns * max(hidden, 1), run)


def lstm(
    x: np.ndarray,
    packed: Packed,
    h0__dbh: np.ndarray | None,
    c0__dbh: np.ndarray | None,
    lengths__b: np.ndarray | None,
    out: np.ndarray | None,
    hn__dbh: np.ndarray | None,
    cn__dbh: np.ndarray | None,
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    """Runs a sequence through all directions of an LSTM; arguments as in `reference/recurrent.py`."""
    _run(x, packed, h0__dbh, c0__dbh, lengths__b, out, hn__dbh, cn__dbh, batch_first, directions_apart, reverse)


def gru(
    x: np.ndarray,
    packed: Packed,
    h0__dbh: np.ndarray | None,
    lengths__b: np.ndarray | None,
    out: np.ndarray | None,
    hn__dbh: np.ndarray | None,
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    """Runs a sequence through all directions of a GRU; arguments as for `lstm`."""
    _run(x, packed, h0__dbh, None, lengths__b, out, hn__dbh, None, batch_first, directions_apart, reverse)


def rnn(
    x: np.ndarray,
    packed: Packed,
    h0__dbh: np.ndarray | None,
    lengths__b: np.ndarray | None,
    out: np.ndarray | None,
    hn__dbh: np.ndarray | None,
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    """Runs a sequence through all directions of a simple RNN; arguments as for `lstm`."""
    _run(x, packed, h0__dbh, None, lengths__b, out, hn__dbh, None, batch_first, directions_apart, reverse)

"""Recurrent layers: one product W x + b for all steps, then the walk through time, a task a direction and group of sequences.

Columns of W and R are packed in the order [h / 16][gates][16], so that the gates of sixteen units are next to each other. A sum
is R h + (W x + b). The usual functions are emitted as one loop over units; all others go through `_unary.apply`, gate by gate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..fits import fits, fits_cells
from ..halves import rounded
from ..table import UNARY, Activation, GruOptions, LstmOptions, RnnOptions
from ._band import copy_row
from ._gates import add, add_product, between, gather, gru_gates, lstm_gates, multiply, rest_of_one
from ._njit import call, inner, kernel
from ._records import IDENTITY, NOTHING, Act, Columns, End, Lines, Panels, Rows, Sums
from ._threads import address, scratch, spread
from ._tile import PANEL, block, integer, pack_all, panels_of, product, put_integer, table, zero
from ._unary import apply, spell

__all__ = ["gru", "gru_pack", "lstm", "lstm_pack", "rnn", "rnn_pack"]

LSTM, GRU, GRU_BEFORE, RNN = range(4)  # GRU_BEFORE: r multiplies h before the product
ROWS = 16  # sequences of one task
STEPS = 256  # rows of x that one task of the input product has
CLIP = UNARY["clip"].code
_NAMES = "lstm", "gru", "gru", "rnn"
_USUAL = Activation(UNARY["sigmoid"].code), Activation(UNARY["tanh"].code)


class Packed(NamedTuple):
    """Weights of all directions, (d, panels); `second` is R_n where it is its own product, or what projects h."""

    kind: int
    gates: int
    hidden: int
    state: int  # size of h: less with projections
    inputs: int
    w: np.ndarray
    r: np.ndarray
    second: np.ndarray | None
    bias: np.ndarray  # (d, gates in whole panels), of W x
    inner: np.ndarray  # (d, h in whole panels): what is added to R_n h, of GRUs
    peephole: np.ndarray | None  # (d, 3, h in whole panels)
    clip: float
    couple: bool
    activations: tuple[tuple[Act, ...], ...]
    usual: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """Directions, inputs, sizes of h, of c, and of a step's outputs."""
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


@inner
def limited(apply: int, clip: float, act: Act, y: int, n: int) -> None:
    """y = f(y), its argument between -clip and clip if that is not 0."""
    if clip != 0.0:
        call(apply, Act(CLIP, -clip, clip), y, y, n)
    call(apply, act, y, y, n)


class Inputs(NamedTuple):
    """The product W x + b of `rows` steps of all sequences."""

    product: int
    block: int
    apply: int
    rows: int
    inputs: int
    columns: int
    weights: int
    size: int  # of a direction's weights
    bias: int


@kernel
def _inputs(p: Inputs, x: int, xg: int, first: int, last: int) -> None:
    """Tasks: (direction, STEPS rows) of W x + b."""
    tasks = (p.rows + STEPS - 1) // STEPS
    for task in range(first, last):
        d, r0 = task // tasks, task % tasks * STEPS
        lines = Lines(x + 4 * r0 * p.inputs, p.inputs, min(STEPS, p.rows - r0), p.inputs)
        columns = Columns(p.weights + 4 * d * p.size, p.columns, 0, p.columns)
        to, end = xg + 4 * (d * p.rows + r0) * p.columns, End(p.bias + 4 * d * p.columns, 0, 0, IDENTITY)
        call(p.product, p.block, p.apply, lines, columns, to, p.columns, end)


class Plan(NamedTuple):
    """A walk through `steps` of `batch` sequences. out_step, out_batch, out_direction: floats from one to the next of `out`;
    lengths and times (0 for none): how many steps each sequence has, and which."""

    block: int
    apply: int
    limited: int
    kind: int
    usual: int
    steps: int
    batch: int
    batch_first: int
    reverse: int
    hidden: int
    state: int
    gates: int
    r: int
    r_size: int
    second: int
    second_size: int
    inner: int
    peephole: int
    clip: float
    couple: int
    lengths: int
    times: int
    out_step: int
    out_batch: int
    out_direction: int


class Functions(NamedTuple):
    """The activations of a direction: of the gates, of the candidate values, and of an LSTM's state."""

    f: Act
    g: Act
    k: Act


class States(NamedTuple):
    """Addresses of the first and the last states; 0 for none."""

    h0: int
    c0: int
    hn: int
    cn: int


@kernel
def _walk(p: Plan, act: Functions, xg: int, ends: States, out: int, scratch: int, direction: int, first: int, last: int) -> None:
    """Tasks: groups of ROWS sequences of one direction. scratch: [ROWS] states h and c, sums, then eight rows of a gate."""
    wide = (p.hidden + PANEL - 1) // PANEL * PANEL
    wide_state = (p.state + PANEL - 1) // PANEL * PANEL
    projected = p.kind == LSTM and p.second != 0
    columns = p.gates * wide
    both = 2 * wide if p.kind == GRU_BEFORE else columns  # columns of the first product
    states, cells = scratch, scratch + 4 * ROWS * wide
    sums = cells + 4 * ROWS * wide
    own_gates = sums + 4 * ROWS * columns
    gi, gf, gg, go = own_gates, own_gates + 4 * wide, own_gates + 8 * wide, own_gates + 12 * wide
    resets = own_gates + 16 * wide  # [ROWS] r h, next to z of each sequence after it; or h before it is projected
    keeps = resets + 4 * ROWS * wide
    own = table()
    active = own + 16
    backwards = p.reverse != 0 or direction == 1
    recurrent = p.r + 4 * direction * p.r_size
    added = p.inner + 4 * direction * wide
    peepholes = p.peephole + 4 * direction * 3 * wide if p.peephole != 0 else 0
    for task in range(first, last):
        b_first = task * ROWS
        count = min(ROWS, p.batch - b_first)
        longest = 0
        for i in range(count):
            zero(states + 4 * i * wide, wide)
            zero(cells + 4 * i * wide, wide)
            at = 4 * (direction * p.batch + b_first + i)
            if ends.h0 != 0:
                copy_row(ends.h0 + at * p.state, states + 4 * i * wide, p.state)
            if ends.c0 != 0:
                copy_row(ends.c0 + at * p.hidden, cells + 4 * i * wide, p.hidden)
            length = p.steps if p.lengths == 0 else integer(p.lengths, b_first + i)
            longest = max(longest, length)
        for s in range(longest):
            m = 0
            for i in range(count):
                if p.lengths == 0 or integer(p.lengths, b_first + i) > s:
                    put_integer(active, m, states + 4 * i * wide)
                    m += 1
            k0 = 0
            while k0 < p.state:
                klen = min(256, p.state - k0)
                put_integer(own, 0, k0)
                put_integer(own, 1, klen)
                panels = Panels(recurrent + 4 * both * k0, PANEL, PANEL * klen)
                to = Sums(sums, both, 1 if k0 > 0 else 0)
                call(p.block, Rows(active, own, 1), m, panels, to, both, NOTHING, p.apply)
                k0 += klen
            j = 0
            for i in range(count):
                length = p.steps if p.lengths == 0 else integer(p.lengths, b_first + i)
                if length <= s:
                    continue
                time = length - 1 - s if backwards else s
                if p.times != 0:
                    time = integer(p.times, (b_first + i) * p.steps + time)
                entry = (b_first + i) * p.steps + time if p.batch_first != 0 else time * p.batch + b_first + i
                gate_x = xg + 4 * (direction * p.steps * p.batch + entry) * columns
                row, h, c = sums + 4 * j * both, states + 4 * i * wide, cells + 4 * i * wide
                if projected:
                    h = resets + 4 * i * wide
                    put_integer(active, j, h)
                if p.usual != 0 and p.kind == LSTM:
                    lstm_gates(row, gate_x, h, c, p.hidden)
                elif p.usual != 0 and p.kind == GRU:
                    gru_gates(row, gate_x, h, added, p.hidden)
                elif p.kind == LSTM:
                    for g in range(4):
                        gather(row, 4, g * PANEL, gate_x, 4, g * PANEL, own_gates + 4 * g * wide, p.hidden)
                    if peepholes != 0:
                        add_product(gi, peepholes, c, wide)
                        add_product(gf, peepholes + 4 * wide, c, wide)
                    call(p.limited, p.apply, p.clip, act.f, gi, wide)
                    if p.couple != 0:
                        rest_of_one(gf, gi, wide)
                    else:
                        call(p.limited, p.apply, p.clip, act.f, gf, wide)
                    call(p.limited, p.apply, p.clip, act.g, gg, wide)
                    multiply(c, gf, c, wide)
                    add_product(c, gi, gg, wide)
                    if peepholes != 0:
                        add_product(go, peepholes + 8 * wide, c, wide)
                    call(p.limited, p.apply, p.clip, act.f, go, wide)
                    call(p.apply, act.k, c, h, wide)
                    multiply(h, go, h, wide)
                elif p.kind == GRU:
                    for g in range(2):
                        gather(row, 3, g * PANEL, gate_x, 3, g * PANEL, own_gates + 4 * g * wide, p.hidden)
                        call(p.limited, p.apply, p.clip, act.f, own_gates + 4 * g * wide, wide)
                    gather(row, 3, 2 * PANEL, 0, 0, 0, go, p.hidden)
                    add(go, added, wide)
                    gather(0, 0, 0, gate_x, 3, 2 * PANEL, gg, p.hidden)
                    add_product(gg, gi, go, wide)
                    call(p.limited, p.apply, p.clip, act.g, gg, wide)
                    between(h, gf, gg, wide)
                elif p.kind == GRU_BEFORE:
                    gather(row, 2, 0, gate_x, 3, 0, gi, p.hidden)
                    gather(row, 2, PANEL, gate_x, 3, PANEL, keeps + 4 * i * wide, p.hidden)
                    call(p.limited, p.apply, p.clip, act.f, gi, wide)
                    call(p.limited, p.apply, p.clip, act.f, keeps + 4 * i * wide, wide)
                    multiply(resets + 4 * i * wide, gi, h, wide)
                    put_integer(active, j, resets + 4 * i * wide)
                else:
                    gather(row, 1, 0, gate_x, 1, 0, h, p.hidden)
                    call(p.limited, p.apply, p.clip, act.f, h, wide)
                j += 1
            if p.second != 0:
                k0 = 0
                while k0 < p.hidden:
                    klen = min(256, p.hidden - k0)
                    put_integer(own, 0, k0)
                    put_integer(own, 1, klen)
                    panels_at = p.second + 4 * (direction * p.second_size + wide_state * k0)
                    panels = Panels(panels_at, PANEL, PANEL * klen)
                    to = Sums(sums, wide_state, 1 if k0 > 0 else 0)
                    call(p.block, Rows(active, own, 1), m, panels, to, wide_state, NOTHING, p.apply)
                    k0 += klen
            j = 0
            for i in range(count):
                length = p.steps if p.lengths == 0 else integer(p.lengths, b_first + i)
                if length <= s:
                    continue
                time = length - 1 - s if backwards else s
                if p.times != 0:
                    time = integer(p.times, (b_first + i) * p.steps + time)
                h = states + 4 * i * wide
                if p.kind == GRU_BEFORE:
                    entry = (b_first + i) * p.steps + time if p.batch_first != 0 else time * p.batch + b_first + i
                    gate_x = xg + 4 * (direction * p.steps * p.batch + entry) * columns
                    gather(sums + 4 * j * wide, 1, 0, gate_x, 3, 2 * PANEL, gg, p.hidden)
                    call(p.limited, p.apply, p.clip, act.g, gg, wide)
                    between(h, keeps + 4 * i * wide, gg, wide)
                if projected:
                    copy_row(sums + 4 * j * wide_state, h, p.state)
                if out != 0:
                    copy_row(
                        h, out + 4 * (time * p.out_step + (b_first + i) * p.out_batch + direction * p.out_direction), p.state
                    )
                j += 1
        for i in range(count):
            if p.lengths != 0 and out != 0:  # steps that the sequence has not got
                for s in range(integer(p.lengths, b_first + i), p.steps):
                    time = s if p.times == 0 else integer(p.times, (b_first + i) * p.steps + s)
                    zero(out + 4 * (time * p.out_step + (b_first + i) * p.out_batch + direction * p.out_direction), p.state)
            at = 4 * (direction * p.batch + b_first + i)
            if ends.hn != 0:
                copy_row(states + 4 * i * wide, ends.hn + at * p.state, p.state)
            if ends.cn != 0:
                copy_row(cells + 4 * i * wide, ends.cn + at * p.hidden, p.hidden)


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
        products = Inputs(
            product.address, block.address, apply.address, rows, inputs, columns, address(packed.w), packed.w.shape[1],
            address(packed.bias),
        )  # fmt: skip
        inputs_given = products, address(x), address(xg)
        spread(d * -(-rows // STEPS), 1.0 * d * rows * inputs * columns, lambda first, last: _inputs(*inputs_given, first, last))
    # Floats from one step, sequence and direction of `out` to the next.
    pitch = d * state
    if batch_first:
        strides = pitch, steps * pitch, state
    else:
        strides = (batch * pitch, state, batch * state) if directions_apart else (batch * pitch, pitch, state)
    groups = -(-batch // ROWS)
    plan = Plan(
        block.address, apply.address, limited.address, packed.kind, int(packed.usual), steps, batch, int(batch_first),
        int(reverse), hidden, state, gates, address(packed.r), packed.r.shape[1], address(packed.second),
        0 if packed.second is None else packed.second.shape[1], address(packed.inner), address(packed.peephole), packed.clip,
        int(packed.couple), address(lengths), address(times), *strides,
    )  # fmt: skip
    ends = States(*map(address, (h0, c0, hn, cn)))

    def run(first: int, last: int) -> None:
        own = scratch(ROWS * (4 * wide + columns) + 4 * wide)
        for direction in range(d):
            begin, end = max(first, direction * groups), min(last, (direction + 1) * groups)
            if begin < end:
                functions = Functions(*(*packed.activations[direction], IDENTITY, IDENTITY)[:3])
                mine = begin - direction * groups, end - direction * groups
                _walk(plan, functions, address(xg), ends, address(out), address(own), direction, *mine)

    spread(d * groups, 1.0 * d * batch * steps * columns * max(hidden, 1), run)


def lstm(
    x: np.ndarray,
    packed: Packed,
    h0__dbh: np.ndarray | None,
    c0__dbu: np.ndarray | None,
    lengths__b: np.ndarray | None,
    out: np.ndarray | None,
    hn__dbh: np.ndarray | None,
    cn__dbu: np.ndarray | None,
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    """Runs a sequence through all directions of an LSTM; arguments as in `reference/recurrent.py`."""
    _run(x, packed, h0__dbh, c0__dbu, lengths__b, out, hn__dbh, cn__dbu, batch_first, directions_apart, reverse)


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

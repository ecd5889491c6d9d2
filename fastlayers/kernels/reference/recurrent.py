"""Recurrent layers over a sequence in plain numpy: all directions in a call, float64 within a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from ..fits import fits, fits_cells, one_or_two
from ..halves import rounded
from ..table import Activation, GruOptions, LstmOptions, RnnOptions
from .activation import evaluate
from .quantize import dynamic_quantize

__all__ = ["dynamic_lstm", "dynamic_lstm_pack", "gru", "gru_pack", "lstm", "lstm_pack", "rnn", "rnn_pack"]

# The state of some sequences before a step, and W x + b_ih of that step, to the state after it; all in float64.
State = tuple[np.ndarray, ...]
Cell = Callable[[State, np.ndarray], State]


class Packed(NamedTuple):
    """Copies of the weights of all directions in float64, and the options. Missing biases are zeros."""

    w_ih__dgi: np.ndarray
    w_hh__dgh: np.ndarray
    b_ih__dg: np.ndarray
    b_hh__dg: np.ndarray
    peephole__dp: np.ndarray | None
    w_hr__dqh: np.ndarray | None
    options: Any

    @property
    def sizes(self) -> tuple[int, int]:
        """Sizes of h and of c."""
        h = self.w_hh__dgh.shape[2]
        return h, h if self.w_hr__dqh is None else self.w_hr__dqh.shape[2]

    @property
    def fixed(self) -> tuple[int, ...]:
        """Directions, inputs, sizes of h, of c, and of a step's outputs."""
        d, _, i = self.w_ih__dgi.shape
        return d, i, *self.sizes, d * self.sizes[0]


def _pack(
    kind: str,
    w_ih__dgi: np.ndarray,
    w_hh__dgh: np.ndarray,
    b_ih__dg: np.ndarray | None,
    b_hh__dg: np.ndarray | None,
    peephole__dp: np.ndarray | None,
    w_hr__dqh: np.ndarray | None,
    options: LstmOptions | GruOptions | RnnOptions,
) -> Packed:
    w_ih__dgi, w_hh__dgh = rounded(w_ih__dgi, options.half), rounded(w_hh__dgh, options.half)
    w_hr__dqh = rounded(w_hr__dqh, options.half)
    given = w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, peephole__dp, w_hr__dqh
    fits_cells(f"{kind}_pack", {"lstm": 4, "gru": 3, "rnn": 1}[kind], given if kind == "lstm" else given[:4])
    b_ih, b_hh = (np.zeros(w_hh__dgh.shape[:2]) if b is None else b.astype(np.float64) for b in (b_ih__dg, b_hh__dg))
    peephole__dp, w_hr__dqh = (None if a is None else a.astype(np.float64) for a in (peephole__dp, w_hr__dqh))
    return Packed(w_ih__dgi.astype(np.float64), w_hh__dgh.astype(np.float64), b_ih, b_hh, peephole__dp, w_hr__dqh, options)


def lstm_pack(
    w_ih__dgi: np.ndarray,
    w_hh__dgh: np.ndarray,
    b_ih__dg: np.ndarray | None,
    b_hh__dg: np.ndarray | None,
    peephole__dp: np.ndarray | None,
    w_hr__dqh: np.ndarray | None,
    options: LstmOptions,
) -> Packed:
    """Packs an LSTM.

    Args:
        w_ih__dgi, w_hh__dgh: (d, 4h, i) and (d, 4h, h), gates in the order i f g o; d is 1 or 2.
        b_ih__dg, b_hh__dg: (d, 4h), or None.
        peephole__dp: (d, 3h), of i f o, or None.
        w_hr__dqh: (d, q, h), q from 1 to h, or None: what every h' is multiplied by, so that h has q values and w_hh is
            (d, 4h, q).
        options: the functions and what else differs.
    """
    return _pack("lstm", w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, peephole__dp, w_hr__dqh, options)


def gru_pack(
    w_ih__dgi: np.ndarray, w_hh__dgh: np.ndarray, b_ih__dg: np.ndarray | None, b_hh__dg: np.ndarray | None, options: GruOptions
) -> Packed:
    """Packs a GRU: as `lstm_pack`, with 3h gates in the order r z n."""
    return _pack("gru", w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, None, None, options)


def rnn_pack(
    w_ih__dgi: np.ndarray, w_hh__dgh: np.ndarray, b_ih__dg: np.ndarray | None, b_hh__dg: np.ndarray | None, options: RnnOptions
) -> Packed:
    """Packs a simple RNN: as `lstm_pack`, with h gates."""
    return _pack("rnn", w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, None, None, options)


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
    """Runs a sequence through all directions of an LSTM.

    Args:
        x: (t, b, i), or (b, t, i) if `batch_first`.
        packed: what `lstm_pack` made.
        h0__dbh, c0__dbu: the states before the first step, (d, b, h), or (d, b, q) of h with projections; None is zeros.
        lengths__b: int32, how many steps each sequence has, 0 .. t; or bool (b, t): which steps it has, all others being passed
            over; None: all t. Where it has none, out is zero and x is not read.
        out: receives h of every step, with projections of size q: (t, b, d h), or (b, t, d h) if `batch_first`; with
            `directions_apart` (t, d, b, h), or (b, t, d, h). None if it is not wanted.
        hn__dbh, cn__dbu: receive the states after the last step of each sequence, (d, b, h), or None.
        reverse: the only direction walks from the last step to the first. Of two directions, the second always does. Each step
            writes at its own time, and a sequence begins at its own end.

    With P the peephole (0 without one) and sigmoid, tanh, tanh for the functions f, g, h of the options:

    i = f(W_i x + R_i h + b + P_i c)    f = f(W_f x + R_f h + b + P_f c), or 1 - i    g = g(W_g x + R_g h + b)
    c' = f c + i g                      o = f(W_o x + R_o h + b + P_o c')             h' = o h(c'), or W_hr (o h(c'))

    The states are rounded to float32 after every step, so that a sequence in pieces gives the bits of the whole.
    """
    options: LstmOptions = packed.options

    def cell(d: int) -> Cell:
        gates = _lstm_gates(options, d, packed.peephole__dp)

        def step(state: State, x__bg: np.ndarray) -> State:
            h, c = gates(x__bg + state[0] @ packed.w_hh__dgh[d].T + packed.b_hh__dg[d], state[1])
            return h if packed.w_hr__dqh is None else h @ packed.w_hr__dqh[d].T, c

        return step

    given = x, h0__dbh, c0__dbu, lengths__b, out, hn__dbh, cn__dbu
    fits("lstm", packed.fixed, given, batch_first | directions_apart << 1)
    _run(x, packed, cell, (h0__dbh, c0__dbu), lengths__b, out, (hn__dbh, cn__dbu), batch_first, directions_apart, reverse)


def _lstm_gates(
    options: LstmOptions, d: int, peephole__dp: np.ndarray | None
) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Returns the function of a step in direction d: it makes h and c of the sums of the gates, (b, 4h), and of c before it."""
    gate, inner = (_clipped(f, options.clip) for f in options.activations[d][:2])
    peephole = None if peephole__dp is None else np.split(peephole__dp[d], 3)

    def seen(total: np.ndarray, k: int, c: np.ndarray) -> np.ndarray:
        """Applies gate k to its sum; without a peephole an infinite c is not multiplied by 0."""
        return gate(total if peephole is None else total + peephole[k] * c)

    def gates(sums: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        i, f, g, o = np.split(sums, 4, axis=1)
        i = seen(i, 0, c)
        f = 1 - i if options.couple_input_forget else seen(f, 1, c)
        c = (f * c + i * inner(g)).astype(np.float32).astype(np.float64)
        return seen(o, 2, c) * evaluate(c, options.activations[d][2]), c

    return gates


class PackedDynamic(NamedTuple):
    """Weights of bytes in float64, their zero points taken away, their scales in float32; the rest as given."""

    w_ih__dgi: np.ndarray
    w_hh__dgh: np.ndarray
    ih_scale__dg: np.ndarray
    hh_scale__dg: np.ndarray
    b__dg: np.ndarray | None
    peephole__dp: np.ndarray | None
    options: LstmOptions


def dynamic_lstm_pack(
    w_ih__dgi: np.ndarray,
    w_hh__dgh: np.ndarray,
    ih_zero__dg: np.ndarray | None,
    hh_zero__dg: np.ndarray | None,
    ih_scale__dg: np.ndarray,
    hh_scale__dg: np.ndarray,
    b__dg: np.ndarray | None,
    peephole__dp: np.ndarray | None,
    options: LstmOptions,
) -> PackedDynamic:
    """Packs an LSTM of bytes: as `lstm_pack`, with weights of int8 or uint8, for each of their rows a zero point of the same
    dtype (None: all are 0) and a scale, and the sum of both biases.
    """
    given = w_ih__dgi, w_hh__dgh, ih_zero__dg, hh_zero__dg, ih_scale__dg, hh_scale__dg, b__dg, peephole__dp
    hidden = w_hh__dgh.shape[-1] if w_hh__dgh.ndim else 0
    fits("dynamic_lstm_pack", (4 * hidden, 3 * hidden), given)
    one_or_two("dynamic_lstm_pack", w_ih__dgi.shape)
    wide = [
        w.astype(np.float64) if zero is None else w.astype(np.float64) - zero.astype(np.float64)[:, :, None]
        for w, zero in ((w_ih__dgi, ih_zero__dg), (w_hh__dgh, hh_zero__dg))
    ]
    return PackedDynamic(
        wide[0],
        wide[1],
        ih_scale__dg.copy(),
        hh_scale__dg.copy(),
        None if b__dg is None else b__dg.copy(),
        None if peephole__dp is None else peephole__dp.astype(np.float64),
        options,
    )


def _by_bytes(x: np.ndarray, w__gk: np.ndarray, scale__g: np.ndarray) -> np.ndarray:
    """x w', x quantized by its own range, as float32."""
    as_bytes, step, zero = np.empty(x.shape, np.uint8), np.empty(1, np.float32), np.empty(1, np.uint8)
    dynamic_quantize(x, as_bytes, step, zero)
    sums = (as_bytes.astype(np.float64) - float(zero[0])) @ w__gk.T
    with np.errstate(invalid="ignore"):  # the step of infinite values is infinite
        return np.asarray(sums.astype(np.int64).astype(np.int32).astype(np.float32) * (scale__g * step))


def dynamic_lstm(
    x__tbi: np.ndarray,
    packed: PackedDynamic,
    h0__dbh: np.ndarray | None,
    c0__dbh: np.ndarray | None,
    lengths__b: np.ndarray | None,
    out__tdbh: np.ndarray | None,
    hn__dbh: np.ndarray | None,
    cn__dbh: np.ndarray | None,
    reverse: bool,
) -> None:
    """An LSTM of bytes; arguments as for `lstm`, `lengths__b` int32, 0 .. t.

    W x + b and R h are products of integers: x is quantized by the range of all its steps and sequences, h in each step by the
    range of all sequences, those that have ended among them. So ONNX Runtime has them on one thread (its DynamicQuantizeLSTM).
    """
    given = x__tbi, h0__dbh, c0__dbh, lengths__b, out__tdbh, hn__dbh, cn__dbh
    (d, _, inputs), hidden = packed.w_ih__dgi.shape, packed.w_hh__dgh.shape[2]
    fits("dynamic_lstm", (d, inputs, hidden), given)
    steps, batch = x__tbi.shape[:2]
    ends = np.full(batch, steps) if lengths__b is None else np.clip(lengths__b, 0, steps)
    if out__tdbh is not None:
        out__tdbh[...] = 0
    for k in range(d):
        gates = _lstm_gates(packed.options, k, packed.peephole__dp)
        xg__tbg = _by_bytes(x__tbi, packed.w_ih__dgi[k], packed.ih_scale__dg[k])
        xg__tbg = xg__tbg if packed.b__dg is None else xg__tbg + packed.b__dg[k]
        h, c = (np.zeros((batch, hidden), np.float32) if s is None else s[k].copy() for s in (h0__dbh, c0__dbh))
        for s in range(steps):
            live = np.flatnonzero(ends > s)
            at = ends[live] - 1 - s if reverse or k == 1 else np.full(live.size, s)
            sums = _by_bytes(h, packed.w_hh__dgh[k], packed.hh_scale__dg[k])[live].astype(np.float64)
            h[live], c[live] = gates(sums + xg__tbg[at, live], c[live].astype(np.float64))
            if out__tdbh is not None:
                out__tdbh[at, k, live] = h[live]
        for state, final in ((h, hn__dbh), (c, cn__dbh)):
            if final is not None:
                final[k] = state


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
    """Runs a sequence through all directions of a GRU; arguments as for `lstm`.

    r, z = f(W x + b_ih + R h + b_hh)    h' = (1 - z) n + z h
    n = g(W_n x + b_ih + r (R_n h + b_hh)), or g(W_n x + b_ih + R_n (r h) + b_hh) without `reset_after`
    """
    options: GruOptions = packed.options

    def cell(d: int) -> Cell:
        gate, inner = (_clipped(f, options.clip) for f in options.activations[d])
        hidden = packed.w_hh__dgh.shape[2]
        w_rz, w_n = np.split(packed.w_hh__dgh[d], [2 * hidden])
        b_rz, b_n = np.split(packed.b_hh__dg[d], [2 * hidden])

        def step(state: State, x__bg: np.ndarray) -> State:
            (h,) = state
            x_rz, x_n = np.split(x__bg, [2 * hidden], axis=1)
            r, z = np.split(gate(x_rz + h @ w_rz.T + b_rz), 2, axis=1)
            n = inner(x_n + (r * (h @ w_n.T + b_n) if options.reset_after else (r * h) @ w_n.T + b_n))
            return (n + z * (h - n),)

        return step

    fits("gru", packed.fixed, (x, h0__dbh, lengths__b, out, hn__dbh), batch_first | directions_apart << 1)
    _run(x, packed, cell, (h0__dbh,), lengths__b, out, (hn__dbh,), batch_first, directions_apart, reverse)


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
    """Runs a sequence through all directions of a simple RNN, h' = f(W x + b_ih + R h + b_hh); arguments as for `lstm`."""
    options: RnnOptions = packed.options

    def cell(d: int) -> Cell:
        function = _clipped(options.activations[d], options.clip)
        return lambda state, x__bg: (function(x__bg + state[0] @ packed.w_hh__dgh[d].T + packed.b_hh__dg[d]),)

    fits("rnn", packed.fixed, (x, h0__dbh, lengths__b, out, hn__dbh), batch_first | directions_apart << 1)
    _run(x, packed, cell, (h0__dbh,), lengths__b, out, (hn__dbh,), batch_first, directions_apart, reverse)


def _clipped(activation: Activation, clip: float) -> Callable[[np.ndarray], np.ndarray]:
    """The function, its argument clipped where there is a clip."""
    return lambda x: evaluate(np.clip(x, -clip, clip) if clip else x, activation)


def _run(
    x: np.ndarray,
    packed: Packed,
    cell: Callable[[int], Cell],
    starts: tuple[np.ndarray | None, ...],
    lengths__b: np.ndarray | None,
    out: np.ndarray | None,
    finals: tuple[np.ndarray | None, ...],
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    """Walks every direction through time; `starts` and `finals` are its states before and after, the first one h."""
    x__tbi = x.swapaxes(0, 1) if batch_first else x
    steps, batch, _ = x__tbi.shape
    count = len(packed.w_hh__dgh)
    valid__bt = np.broadcast_to(True, (batch, steps))
    if lengths__b is not None:
        valid__bt = lengths__b if lengths__b.ndim == 2 else np.arange(steps) < lengths__b[:, None]
    out__tbdh = None if out is None else _apart(out, batch_first, directions_apart, count)
    if out__tbdh is not None:
        out__tbdh[...] = 0
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity propagate as in the formula
        for d in range(count):
            zeros = (np.zeros((batch, size), np.float32) for size in packed.sizes)
            step, states = cell(d), [zero if s is None else s[d].copy() for s, zero in zip(starts, zeros, strict=False)]
            for rows, times in _order(valid__bt, reverse or d == 1):
                x__bg = x__tbi[times, rows].astype(np.float64) @ packed.w_ih__dgi[d].T + packed.b_ih__dg[d]
                for state, new in zip(states, step(tuple(s[rows].astype(np.float64) for s in states), x__bg), strict=True):
                    state[rows] = new
                if out__tbdh is not None:
                    out__tbdh[times, rows, d] = states[0][rows]
            for state, final in zip(states, finals, strict=True):
                if final is not None:
                    final[d] = state


def _order(valid__bt: np.ndarray, backwards: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each step the sequences that have it, and the time at which each of them is."""
    lengths = valid__bt.sum(axis=1)
    times = np.argsort(~valid__bt.astype(bool), axis=1, kind="stable")  # of the steps that a sequence has, then of the others
    for s in range(valid__bt.shape[1]):
        rows = np.flatnonzero(lengths > s)
        yield rows, times[rows, lengths[rows] - 1 - s if backwards else s]


def _apart(out: np.ndarray, batch_first: bool, directions_apart: bool, count: int) -> np.ndarray:
    """A view of `out` as (t, b, d, h)."""
    tbdh: np.ndarray = out.swapaxes(0, 1) if batch_first else out
    if directions_apart:
        return tbdh if batch_first else tbdh.swapaxes(1, 2)
    return tbdh.reshape(*tbdh.shape[:2], count, out.shape[2] // count)

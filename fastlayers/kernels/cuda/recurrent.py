"""Recurrent layers: one product of all steps with the input's weights, then one launch that walks through time (`_walk.py`).

An LSTM with projections and a GRU whose r comes before the product (`reset_after` off) are the reference's, through the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..fits import fits, fits_cells, last_of
from ..halves import rounded
from ..reference import recurrent as reference
from ..table import Activation, GruOptions, LstmOptions, RnnOptions
from ._cuda import cdiv, processors
from ._device import Array, absent, empty, on_device, upload
from ._math import function
from ._walk import GRU, LSTM, RNN, UNITS, Has, Plan, in_registers, lengths_kernel, walk
from .gemm import Packed as Product
from .gemm import linear, linear_pack

__all__ = ["gru", "gru_pack", "lstm", "lstm_pack", "rnn", "rnn_pack"]

IDENTITY = Activation(0)
SHARED = 48 << 10  # bytes of a block
_NAMES = {LSTM: "lstm", GRU: "gru", RNN: "rnn"}  # by the number of gates


class Packed(NamedTuple):
    """Weights of all directions: the input's as one product, those of h as `_walk` reads them; and the options. `reference`: what
    the reference packs, where it is the reference that runs.
    """

    inputs: Product
    weights: Array
    bias_n: Array | None
    peephole: Array | None
    gates: int
    hidden: int
    directions: int
    options: Any
    inputs_size: int
    reference: Any = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Directions, inputs, sizes of h, of c, and of a step's outputs."""
        if self.reference is not None:
            return tuple(self.reference.fixed)
        return self.directions, self.inputs_size, self.hidden, self.hidden, self.directions * self.hidden


def _pack(
    gates: int,
    w_ih__dgi: np.ndarray,
    w_hh__dgh: np.ndarray,
    b_ih__dg: np.ndarray | None,
    b_hh__dg: np.ndarray | None,
    peephole__dp: np.ndarray | None,
    options: Any,
) -> Packed:
    w_ih__dgi, w_hh__dgh = rounded(w_ih__dgi, options.half), rounded(w_hh__dgh, options.half)
    given = w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg
    lstm = gates == LSTM
    fits_cells(f"{_NAMES[gates]}_pack", gates, (*given, peephole__dp, None) if lstm else given)
    directions, columns, hidden = w_hh__dgh.shape
    zeros: np.ndarray = np.zeros((directions, columns), np.float32)
    bias = (zeros if b_ih__dg is None else b_ih__dg).astype(np.float64)
    if b_hh__dg is not None:
        bias = bias + b_hh__dg
    bias_n = None
    if gates == GRU:  # r multiplies R_n h + b_n
        bias[:, 2 * hidden :] = 0 if b_ih__dg is None else b_ih__dg[:, 2 * hidden :]
        bias_n = upload(np.ascontiguousarray((zeros if b_hh__dg is None else b_hh__dg)[:, 2 * hidden :]))
    product = linear_pack(w_ih__dgi.reshape(directions * columns, w_ih__dgi.shape[2]), bias.reshape(-1).astype(np.float32))
    _, units, passes, quads = _sizes(hidden)
    # [direction][units at once][16 terms][gate][unit][quarter][term]
    padded = np.zeros((directions, passes * units, gates, quads * 16), np.float32)
    padded[:, :hidden, :, :hidden] = w_hh__dgh.reshape(directions, gates, hidden, hidden).swapaxes(1, 2)
    shaped = padded.reshape(directions, passes, units, gates, quads, 4, 4).transpose(0, 1, 4, 3, 2, 5, 6)
    peephole = None if peephole__dp is None else upload(np.ascontiguousarray(peephole__dp))
    weights = upload(np.ascontiguousarray(shaped).reshape(-1))
    return Packed(product, weights, bias_n, peephole, gates, hidden, directions, options, w_ih__dgi.shape[2])


def _sizes(hidden: int) -> tuple[int, int, int, int]:
    """Threads of a block, units that they have at once, how often they must take others, and quads of 4 x 4 terms."""
    units = min(UNITS, max(8, cdiv(hidden, 8) * 8))
    return 4 * units, units, max(1, cdiv(hidden, units)), max(1, cdiv(hidden, 16))


def _by_reference(gates: int, options: Any, packed: Any) -> Packed:
    nothing: Any = None
    directions, inputs, _, hidden, _ = packed.fixed
    return Packed(nothing, nothing, None, None, gates, hidden, directions, options, inputs, packed)


def lstm_pack(
    w_ih__dgi: np.ndarray,
    w_hh__dgh: np.ndarray,
    b_ih__dg: np.ndarray | None,
    b_hh__dg: np.ndarray | None,
    peephole__dp: np.ndarray | None,
    w_hr__dqh: np.ndarray | None,
    options: LstmOptions,
) -> Packed:
    """Packs an LSTM, as the reference explains."""
    given = w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, peephole__dp
    if w_hr__dqh is not None or _too_wide(last_of(w_hh__dgh.shape)):
        packed = reference.lstm_pack(*given, w_hr__dqh, options)
        return _by_reference(LSTM, options, packed)
    return _pack(LSTM, *given, options)


def gru_pack(
    w_ih__dgi: np.ndarray, w_hh__dgh: np.ndarray, b_ih__dg: np.ndarray | None, b_hh__dg: np.ndarray | None, options: GruOptions
) -> Packed:
    """Packs a GRU, as the reference explains."""
    given = w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg
    if not options.reset_after or _too_wide(last_of(w_hh__dgh.shape)):
        return _by_reference(GRU, options, reference.gru_pack(*given, options))
    return _pack(GRU, *given, None, options)


def rnn_pack(
    w_ih__dgi: np.ndarray, w_hh__dgh: np.ndarray, b_ih__dg: np.ndarray | None, b_hh__dg: np.ndarray | None, options: RnnOptions
) -> Packed:
    """Packs a simple RNN, as the reference explains."""
    given = w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg
    if _too_wide(last_of(w_hh__dgh.shape)):
        return _by_reference(RNN, options, reference.rnn_pack(*given, options))
    return _pack(RNN, *given, None, options)


def _too_wide(hidden: int) -> bool:
    """h and c, before and after a step, must fit a block's shared memory."""
    return _shared(max(1, cdiv(hidden, 16)), 1) > SHARED


def _shared(quads: int, sequences: int) -> int:
    return 4 * 4 * 16 * quads * sequences


@on_device
def lstm(
    x: Array,
    packed: Packed,
    h0__dbh: Array | None,
    c0__dbu: Array | None,
    lengths__b: Array | None,
    out: Array | None,
    hn__dbh: Array | None,
    cn__dbu: Array | None,
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    """Runs a sequence through all directions of an LSTM, as the reference explains."""
    states = (h0__dbh, c0__dbu), (hn__dbh, cn__dbu)
    _run(reference.lstm, x, packed, *states, lengths__b, out, batch_first, directions_apart, reverse)


@on_device
def gru(
    x: Array,
    packed: Packed,
    h0__dbh: Array | None,
    lengths__b: Array | None,
    out: Array | None,
    hn__dbh: Array | None,
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    """Runs a sequence through all directions of a GRU, as the reference explains."""
    _run(reference.gru, x, packed, (h0__dbh,), (hn__dbh,), lengths__b, out, batch_first, directions_apart, reverse)


@on_device
def rnn(
    x: Array,
    packed: Packed,
    h0__dbh: Array | None,
    lengths__b: Array | None,
    out: Array | None,
    hn__dbh: Array | None,
    batch_first: bool,
    directions_apart: bool,
    reverse: bool,
) -> None:
    """Runs a sequence through all directions of a simple RNN, as the reference explains."""
    _run(reference.rnn, x, packed, (h0__dbh,), (hn__dbh,), lengths__b, out, batch_first, directions_apart, reverse)


def _run(
    by_reference: Callable[..., None], x: Array, packed: Packed, starts: tuple[Array | None, ...],
    finals: tuple[Array | None, ...], lengths: Array | None, out: Array | None, batch_first: bool, directions_apart: bool,
    reverse: bool,
) -> None:  # fmt: skip
    fits(_NAMES[packed.gates], packed.sizes, (x, *starts, lengths, out, *finals), batch_first | directions_apart << 1)
    if packed.reference is not None:
        _through_host(by_reference, x, packed, starts, finals, lengths, out, batch_first, directions_apart, reverse)
        return
    (batch, steps) = x.shape[:2] if batch_first else x.shape[1::-1]
    gates, hidden, directions = packed.gates, packed.hidden, packed.directions
    if not batch or not hidden:
        return
    line = directions * gates * hidden
    inputs = empty((batch * steps, line))
    linear(x.reshape(batch * steps, x.shape[2]), packed.inputs, inputs, None, IDENTITY)
    counts = times = None
    if lengths is not None and lengths.ndim == 2:
        counts, times = empty((batch,), np.int32), empty((batch, max(steps, 1)), np.int32)
        lengths_kernel.launch(cdiv(batch, 32), 32, lengths.flat, times.flat, counts.flat, batch, steps)
    elif lengths is not None:
        counts = lengths
    if out is not None and lengths is not None:
        out.clear()
    h = hidden
    if directions_apart:  # (b, t, d, h), or (t, d, b, h)
        o_t, o_b, o_d = (directions * h, steps * directions * h, h) if batch_first else (directions * batch * h, h, batch * h)
    else:
        o_t, o_b, o_d = (
            (directions * h, steps * directions * h, h) if batch_first else (batch * directions * h, directions * h, h)
        )
    x_t, x_b = (line, steps * line) if batch_first else (batch * line, line)
    threads, _, passes, quads = _sizes(h)
    few = batch * directions <= processors() or _shared(quads, 4) > SHARED
    sequences = 1 if few else 4
    kept = in_registers(gates, quads, sequences, threads) if passes == 1 else 0
    first, c_first = starts[0], starts[1] if len(starts) > 1 else None
    last, c_last = finals[0], finals[1] if len(finals) > 1 else None
    maybe: dict[str, Array | None] = {
        "peephole": packed.peephole, "h0": first, "c0": c_first, "counts": counts, "times": times, "out": out, "hn": last,
        "cn": c_last,
    }  # fmt: skip
    has = Has(*(int(maybe[name] is not None) for name in Has._fields))
    given = (
        inputs.flat,
        packed.weights.flat,
        _flat(packed.bias_n),
        *(_flat(maybe[n], "i4" if n in ("counts", "times") else "f4") for n in Has._fields),
    )
    options, functions = packed.options, packed.options.activations
    alike = directions == 1 or functions[0] == functions[1]
    for direction in range(1 if alike else directions):
        chosen = functions[direction]
        used = [chosen] * 3 if isinstance(chosen, Activation) else [*chosen, chosen[-1]][:3]
        kernel = walk(gates, quads, kept, sequences, passes == 1, threads, *(function(a.code) for a in used))
        plan = Plan(
            steps, batch, hidden, passes, direction, int(reverse), x_t, x_b, o_t, o_b, o_d, used[0].a, used[0].b, used[1].a,
            used[1].b, used[2].a, used[2].b, options.clip, int(getattr(options, "couple_input_forget", False)), has,
        )  # fmt: skip
        kernel.launch((cdiv(batch, sequences), directions if alike else 1), threads, *given, plan)


def _flat(array: Array | None, dtype: str = "f4") -> Any:
    return absent(dtype) if array is None else array.flat


def _through_host(
    by_reference: Callable[..., None], x: Array, packed: Packed, starts: tuple[Array | None, ...],
    finals: tuple[Array | None, ...], lengths: Array | None, out: Array | None, *flags: bool,
) -> None:  # fmt: skip
    def here(array: Array | None) -> np.ndarray | None:
        return None if array is None else array.numpy()

    results = (out, *finals)
    made = [None if a is None else np.empty(a.shape, np.float32) for a in results]
    by_reference(here(x), packed.reference, *map(here, starts), here(lengths), *made, *flags)
    for array, result in zip(results, made, strict=True):
        if array is not None and result is not None:
            array.fill_from(result)

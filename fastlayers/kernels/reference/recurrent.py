"""Recurrent layers over a sequence in plain numpy: one direction a call, float64 within a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["lstm", "lstm_pack"]


class PackedLstm(NamedTuple):
    """Weights of one direction of an LSTM; the rows are torch's gates i f g o, h rows each."""

    w_ih__gi: np.ndarray
    w_hh__gh: np.ndarray
    bias__g: np.ndarray


def lstm_pack(w_ih__gi: np.ndarray, w_hh__gh: np.ndarray, b_ih__g: np.ndarray | None, b_hh__g: np.ndarray | None) -> PackedLstm:
    """Copies the weights (4h, i) and (4h, h) and adds up the biases (4h,), each of which may be None."""
    bias__g = np.zeros(len(w_hh__gh))
    for b__g in (b_ih__g, b_hh__g):
        if b__g is not None:
            bias__g += b__g
    return PackedLstm(w_ih__gi.astype(np.float64), w_hh__gh.astype(np.float64), bias__g)


def lstm(
    x: np.ndarray,
    packed: PackedLstm,
    h0__bh: np.ndarray | None,
    c0__bh: np.ndarray | None,
    out: np.ndarray,
    column: int,
    hn__bh: np.ndarray,
    cn__bh: np.ndarray,
    reverse: bool,
    batch_first: bool,
) -> None:
    """Runs a sequence through one direction of an LSTM.

    Args:
        x: (t, b, i), or (b, t, i) if `batch_first`.
        packed: what `lstm_pack` made.
        h0__bh, c0__bh: the state before the first step, (b, h); None is zeros.
        out: receives h of every step in its columns [column, column + h): (t, b, o), or (b, t, o) if `batch_first`.
        hn__bh, cn__bh: receive the state after the last step, (b, h).
        reverse: walk from the last step to the first; each step still writes at its own time.

    i, f, g, o = W_ih x_t + b_ih + W_hh h + b_hh;  c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)

    The state is rounded to float32 after every step, so that a sequence in pieces gives the bits of the whole.
    """
    x__tbi, out__tbo = (x.swapaxes(0, 1), out.swapaxes(0, 1)) if batch_first else (x, out)
    steps, hidden = len(x__tbi), packed.w_hh__gh.shape[1]
    hn__bh[...] = 0 if h0__bh is None else h0__bh
    cn__bh[...] = 0 if c0__bh is None else c0__bh
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity propagate as in the formula
        for t in reversed(range(steps)) if reverse else range(steps):
            gates__bg = x__tbi[t].astype(np.float64) @ packed.w_ih__gi.T + packed.bias__g
            gates__bg += hn__bh.astype(np.float64) @ packed.w_hh__gh.T
            i, f, g, o = np.split(gates__bg, 4, axis=1)
            cn__bh[...] = _sigmoid(f) * cn__bh + _sigmoid(i) * np.tanh(g)
            hn__bh[...] = _sigmoid(o) * np.tanh(cn__bh.astype(np.float64))
            out__tbo[t, :, column : column + hidden] = hn__bh


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(0.5 * x)  # exp(-x) would overflow

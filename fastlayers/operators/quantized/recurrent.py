"""DynamicQuantizeLSTM of ONNX Runtime: an LSTM with weights of bytes, whose inputs and states are quantized while it runs.

Weights are (d, i, 4h) and (d, h, 4h), gates in ONNX's order i o f c; everything else is as in LSTM. All steps' inputs share one
scale, as do the states of a step: so are they quantized in ONNX Runtime with one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.reference.activation import evaluate
from ...kernels.table import LstmOptions
from .._base import FLOAT32, Spec, View, register
from .._traits import PLAIN
from ..recurrent import _directions, _infer, _options
from .parameters import Arrays, applied, need_integers, need_like, need_scale, quantized, whole, wrapped
from .quantize import UINT8, dynamic_range

_Maybe = np.ndarray | None


def _as_lstm(n: View) -> View:
    """The same LSTM of floats."""

    def turned(i: int) -> Spec:
        shape = n.shape(i)
        return Spec(None if shape is None else (shape[0], shape[2], shape[1]) if len(shape) == 3 else shape, FLOAT32)

    rest = [n.inputs[i] if i < len(n.inputs) else None for i in range(3, 8)]
    return applied(n, "LSTM", [n.spec(0), turned(1), turned(2), *rest])


def infer(n: View) -> list[Spec]:
    """Inputs: those of LSTM, then scale and zero point of W, scale and zero point of R."""
    if n.spec(0).dtype != FLOAT32:
        raise n.wrong_dtype(f"input 0 has dtype {n.spec(0).dtype}: expected float32")
    need_integers(n, 1, 2)
    need_scale(n, 8, 10)
    for i, w in ((9, 1), (11, 2)):
        need_like(n, i, w)
    for i, w in ((8, 1), (9, 1), (10, 2), (11, 2)):
        shape, weight = n.shape(i) if n.has(i) else None, n.shape(w)
        if shape is not None and weight is not None and len(weight) == 3:
            sizes: Any = ((weight[0],), (weight[0], weight[2]), (weight[0], 1))
            if not any(len(shape) == len(s) and not any(_differ(p, q) for p, q in zip(shape, s, strict=True)) for s in sizes):
                raise n.fail(f"input {i} has shape {shape}, the weights {weight}: expected {sizes[0]} or {sizes[1]}")
    return _infer(_as_lstm(n))


def _differ(a: Any, b: Any) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _product(x: np.ndarray, w: np.ndarray, scale: np.ndarray, zero: _Maybe) -> np.ndarray:
    """x, quantized by its own range, times integers, as floats."""
    step, origin = dynamic_range(x)
    total = wrapped(whole(quantized(x / step, origin, UINT8), origin) @ whole(w, zero))
    return np.asarray(total.astype(FLOAT32) * (step * scale))


def run(
    n: View, x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: _Maybe, lengths: _Maybe, h0: _Maybe, c0: _Maybe, peephole: _Maybe,
    w_scale: np.ndarray, w_zero: _Maybe, r_scale: np.ndarray, r_zero: _Maybe = None,
) -> Arrays:  # fmt: skip
    """Step by step."""
    view = _as_lstm(n)
    d = _directions(view)
    options = _options(view, d)
    if options is None:
        raise n.fail(f"activations {n.get('activations')} are not all known")
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[1]
    y = np.zeros((steps, d, batch, hidden), FLOAT32)
    last = np.zeros((2, d, batch, hidden), FLOAT32)
    ends = np.full(batch, steps) if lengths is None else lengths
    # Position of step t of each sequence: those that go backwards begin at their own end.
    forward = np.broadcast_to(np.arange(steps)[:, None], (steps, batch))
    backward = np.where(forward < ends, ends - 1 - forward, forward)
    for k in range(d):
        at = backward if k == 1 or n.get("direction", "forward") == "reverse" else forward
        given = np.ascontiguousarray(np.take_along_axis(x, at[:, :, None], 0))
        gates = _product(given.reshape(steps * batch, x.shape[2]), w[k], w_scale[k], None if w_zero is None else w_zero[k])
        gates = gates.reshape(steps, batch, 4 * hidden)
        if bias is not None:
            gates = gates + (bias[k, : 4 * hidden] + bias[k, 4 * hidden :])
        h = np.zeros((batch, hidden), FLOAT32) if h0 is None else h0[k]
        c = np.zeros((batch, hidden), FLOAT32) if c0 is None else c0[k]
        peep = np.zeros((3, hidden), FLOAT32) if peephole is None else peephole[k].reshape(3, hidden)
        for t in range(steps):
            total = gates[t] + _product(h, r[k], r_scale[k], None if r_zero is None else r_zero[k])
            new_h, new_c = _cell(total.reshape(batch, 4, hidden), c, peep, options, k)
            live = (t < ends)[:, None]
            h, c = np.where(live, new_h, h), np.where(live, new_c, c)
            y[at[t], k, np.arange(batch)] = np.where(live, h, 0)
        last[0, k], last[1, k] = h, c
    return (y, last[0], last[1])[: len(n.node.outputs)]


def _cell(gates: np.ndarray, c: np.ndarray, peep: np.ndarray, options: LstmOptions, k: int) -> tuple[np.ndarray, np.ndarray]:
    """One step from the sums of i o f c."""
    gate, cell, out = options.activations[k]

    def limited(v: np.ndarray) -> np.ndarray:
        return np.clip(v, -options.clip, options.clip) if options.clip else v

    i = evaluate(limited(gates[:, 0] + peep[0] * c), gate)
    f = 1 - i if options.couple_input_forget else evaluate(limited(gates[:, 2] + peep[2] * c), gate)
    new = np.asarray(f * c + i * evaluate(limited(gates[:, 3]), cell), FLOAT32)
    o = evaluate(limited(gates[:, 1] + peep[1] * new), gate)
    return np.asarray(o * evaluate(new, out), FLOAT32), new


register("DynamicQuantizeLSTM", infer, run, traits=PLAIN)

"""DynamicQuantizeLSTM of ONNX Runtime: an LSTM with weights of bytes, whose inputs and states are quantized while it runs.

Weights are (d, i, 4h) and (d, h, 4h), gates in ONNX's order i o f c; everything else is as in LSTM. All steps' inputs share one
scale, as do the states of a step: so are they quantized in ONNX Runtime with one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calls.machine import Machine, reference
from .._base import FLOAT32, Spec, View, register
from .._costs import recurrent
from .._traits import Traits
from ..recurrent import ORDER, PEEPHOLES, directions_of, infer_layer, options_of, reordered
from .parameters import Arrays, applied, need_integers, need_like, need_scale

if TYPE_CHECKING:
    from ..builder import Builder

_Maybe = np.ndarray | None
_ORDER = ORDER["LSTM"]


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
    return infer_layer(_as_lstm(n))


def _differ(a: Any, b: Any) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _weights(n: View, values: Sequence[_Maybe], options: Any) -> tuple[Any, ...]:
    """Arguments of the pack kernel: (d, 4h, ..), gates in its order."""
    w, r, bias, peephole = values[1], values[2], values[3], values[7] if len(values) > 7 else None
    assert w is not None
    assert r is not None
    d, _, gates = w.shape

    def rows(i: int) -> _Maybe:
        """A scale or a zero point of each row."""
        value = values[i] if i < len(values) else None
        if value is None:
            return None
        return reordered(np.broadcast_to(value.reshape(d, -1), (d, gates)), _ORDER, value.dtype)

    both = None if bias is None else bias[:, :gates] + bias[:, gates:]
    return (
        reordered(w.swapaxes(1, 2), _ORDER, w.dtype),
        reordered(r.swapaxes(1, 2), _ORDER, r.dtype),
        rows(9),
        rows(11),
        rows(8),
        rows(10),
        None if both is None else reordered(both, _ORDER),
        None if peephole is None else reordered(peephole, PEEPHOLES),
        options._replace(half=0),
    )


def run(n: View, *arrays: _Maybe) -> Arrays:
    """Through the reference kernels."""
    view = _as_lstm(n)
    d = directions_of(view)
    options = options_of(view, d)
    if options is None:
        raise n.fail(f"activations {n.get('activations')} are not all known")
    x, r, lengths = arrays[0], arrays[2], arrays[4]
    assert x is not None
    assert r is not None
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[1]
    y = np.zeros((steps, d, batch, hidden), FLOAT32)
    last = np.zeros((2, d, batch, hidden), FLOAT32)
    ends = None if lengths is None else np.ascontiguousarray(lengths, np.int32)
    _call(reference(), n, arrays, options, x, arrays[5:7], ends, (y, *last))
    return (y, last[0], last[1])[: len(n.node.outputs)]


def lower(n: View, b: Builder) -> Any:
    view = _as_lstm(n)
    options = options_of(view, directions_of(view))
    fixed = all(not n.has(i) or n.value(i) is not None for i in (1, 2, 3, 7, 8, 9, 10, 11))
    if options is None or not fixed or not n.float32(0, 3, 5, 6, 7, 8, 10) or (n.has(4) and n.spec(4).dtype != np.int32):
        return False
    results = [b.output(i) if n.wants(i) else None for i in range(3)]
    _call(b.machine, n, n.values, options, b.input(0), (b.optional(5), b.optional(6)), b.optional(4), results)
    return True


def _call(
    m: Machine,
    n: View,
    values: Sequence[_Maybe],
    options: Any,
    x: Any,
    before: Sequence[Any],
    lengths: Any,
    results: Sequence[Any],
) -> None:
    packed = m.pack("dynamic_lstm_pack", lambda: _weights(n, values, options))
    m.call("dynamic_lstm", x, packed, *before, lengths, *results, n.get("direction", "forward") == "reverse")


register("DynamicQuantizeLSTM", infer, run, lower, Traits(work="products", multiply_adds=recurrent, weights=(1, 2, 3, 7)))

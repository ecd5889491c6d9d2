"""The formulas of layers in the plainest way: one position, one step at a time, in float64. Shares no code with the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["conv", "conv_transpose", "gru", "lstm", "pool", "rnn"]

Ints = Sequence[int]
Function = Callable[[np.ndarray], np.ndarray]


def conv(
    x: np.ndarray, w: np.ndarray, b: np.ndarray | None, out: Ints, strides: Ints, dilations: Ints, before: Ints, group: int = 1
) -> np.ndarray:
    """`out`: sizes of the result; `before`: how many positions of padding are in front of the image."""
    y = np.zeros((x.shape[0], w.shape[0], *out))
    each_in, each_out = w.shape[1], w.shape[0] // group
    for at in np.ndindex(*out):
        for tap in np.ndindex(*w.shape[2:]):
            source = tuple(a * s + t * d - p for a, s, t, d, p in zip(at, strides, tap, dilations, before, strict=True))
            if all(0 <= v < size for v, size in zip(source, x.shape[2:], strict=True)):
                for o in range(w.shape[0]):
                    first = o // each_out * each_in
                    pixels = x[(slice(None), slice(first, first + each_in), *source)].astype(float)
                    y[(slice(None), o, *at)] += pixels @ w[(o, slice(None), *tap)].astype(float)
    return (y if b is None else y + b.reshape(-1, *(1,) * len(out))).astype(x.dtype)


def conv_transpose(
    x: np.ndarray, w: np.ndarray, b: np.ndarray | None, out: Ints, strides: Ints, dilations: Ints, before: Ints, group: int = 1
) -> np.ndarray:
    """`before`: how much is cut off in front of the full result."""
    each_in, each_out = w.shape[0] // group, w.shape[1]
    y = np.zeros((x.shape[0], each_out * group, *out))
    for at in np.ndindex(*x.shape[2:]):
        for tap in np.ndindex(*w.shape[2:]):
            target = tuple(a * s + t * d - p for a, s, t, d, p in zip(at, strides, tap, dilations, before, strict=True))
            if all(0 <= v < size for v, size in zip(target, out, strict=True)):
                for i in range(x.shape[1]):
                    g = i // each_in
                    part = np.outer(x[(slice(None), i, *at)], w[(i, slice(None), *tap)])
                    y[(slice(None), slice(g * each_out, (g + 1) * each_out), *target)] += part
    return (y if b is None else y + b.reshape(-1, *(1,) * len(out))).astype(x.dtype)


def pool(
    x: np.ndarray,
    kernel: Ints,
    function: Function,
    out: Ints,
    strides: Ints,
    before: Ints,
    after: Ints = (),
    dilations: Ints = (),
    padding: float | None = None,
) -> np.ndarray:
    """`function` of (n, c, positions of a window inside the image); those in the padding count as `padding` if it is given."""
    after, dilations = after or (0,) * len(out), dilations or (1,) * len(out)
    y = np.zeros((*x.shape[:2], *out))
    for at in np.ndindex(*out):
        values = []
        for tap in np.ndindex(*kernel):
            source = tuple(a * s + t * d - p for a, s, t, d, p in zip(at, strides, tap, dilations, before, strict=True))
            if all(0 <= v < size for v, size in zip(source, x.shape[2:], strict=True)):
                values.append(x[(slice(None), slice(None), *source)])
            elif padding is not None and all(v < size + q for v, size, q in zip(source, x.shape[2:], after, strict=True)):
                values.append(np.full(x.shape[:2], padding))
        y[(slice(None), slice(None), *at)] = function(np.stack(values, -1).astype(float))
    return y.astype(x.dtype)


# ---- recurrent layers, in ONNX's conventions ----------------------------------------------------------------------------


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


Step = Callable[[np.ndarray, "list[np.ndarray]", int], "list[np.ndarray]"]


def _walk(
    step: Step, x: np.ndarray, hidden: int, starts: Sequence[np.ndarray | None], count: int, lengths: Ints | None, order: Ints
) -> list[np.ndarray]:
    """Y (t, d, b, h) and last states (d, b, h) of `count` states; `order` has +1 or -1: each direction's way through time."""
    time, batch = x.shape[:2]
    y = np.zeros((time, len(order), batch, hidden))
    last = [np.zeros((len(order), batch, hidden)) for _ in range(count)]
    for d, way in enumerate(order):
        for n in range(batch):
            length = time if lengths is None else lengths[n]
            states = [np.zeros(hidden) if s is None else s[d, n].astype(float) for s in (*starts, None, None)[:count]]
            for t in range(length)[::way]:
                states = step(x[t, n].astype(float), states, d)
                y[t, d, n] = states[0]
            for i in range(count):
                last[i][d, n] = states[i]
    return [y, *last]


def _biases(b: np.ndarray | None, d: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    return (np.zeros(rows), np.zeros(rows)) if b is None else (b[d, :rows].astype(float), b[d, rows:].astype(float))


def _clip(x: np.ndarray, limit: float) -> np.ndarray:
    return np.clip(x, -limit, limit) if limit else x


def rnn(
    x: np.ndarray,
    w: np.ndarray,
    r: np.ndarray,
    b: np.ndarray | None = None,
    lengths: Ints | None = None,
    h0: np.ndarray | None = None,
    order: Ints = (1,),
    f: Sequence[Function] = (np.tanh, np.tanh),
    clip: float = 0,
) -> list[np.ndarray]:
    def step(row: np.ndarray, states: list[np.ndarray], d: int) -> list[np.ndarray]:
        wb, rb = _biases(b, d, w.shape[1])
        return [f[d](_clip(w[d] @ row + r[d] @ states[0] + wb + rb, clip))]

    return _walk(step, x, r.shape[2], (h0,), 1, lengths, order)


def gru(
    x: np.ndarray,
    w: np.ndarray,
    r: np.ndarray,
    b: np.ndarray | None = None,
    lengths: Ints | None = None,
    h0: np.ndarray | None = None,
    order: Ints = (1,),
    f: Function = sigmoid,
    g: Function = np.tanh,
    after: bool = False,
    clip: float = 0,
) -> list[np.ndarray]:
    def step(row: np.ndarray, states: list[np.ndarray], d: int) -> list[np.ndarray]:
        (wz, wr, wh), (rz, rr, rh) = np.split(w[d].astype(float), 3), np.split(r[d].astype(float), 3)
        wb, rb = _biases(b, d, w.shape[1])
        (bwz, bwr, bwh), (brz, brr, brh) = np.split(wb, 3), np.split(rb, 3)
        h = states[0]
        z, reset = f(_clip(wz @ row + rz @ h + bwz + brz, clip)), f(_clip(wr @ row + rr @ h + bwr + brr, clip))
        inner = reset * (rh @ h + brh) if after else rh @ (reset * h) + brh
        return [(1 - z) * g(_clip(wh @ row + inner + bwh, clip)) + z * h]

    return _walk(step, x, r.shape[2], (h0,), 1, lengths, order)


def lstm(
    x: np.ndarray,
    w: np.ndarray,
    r: np.ndarray,
    b: np.ndarray | None = None,
    lengths: Ints | None = None,
    h0: np.ndarray | None = None,
    c0: np.ndarray | None = None,
    p: np.ndarray | None = None,
    order: Ints = (1,),
    f: Function = sigmoid,
    g: Function = np.tanh,
    h: Function = np.tanh,
    couple: bool = False,
    clip: float = 0,
) -> list[np.ndarray]:
    def step(row: np.ndarray, states: list[np.ndarray], d: int) -> list[np.ndarray]:
        wb, rb = _biases(b, d, w.shape[1])
        i, o, forget, c = np.split(w[d] @ row + r[d] @ states[0] + wb + rb, 4)
        pi, po, pf = np.zeros((3, r.shape[2])) if p is None else np.split(p[d].astype(float), 3)
        cell = states[1]
        i = f(_clip(i + pi * cell, clip))
        forget = 1 - i if couple else f(_clip(forget + pf * cell, clip))
        cell = forget * cell + i * g(_clip(c, clip))
        return [f(_clip(o + po * cell, clip)) * h(cell), cell]

    return _walk(step, x, r.shape[2], (h0, c0), 2, lengths, order)

"""Plain formulations in numpy, in float32, as a user would write them: the yardstick that Numba's kernels must not fall behind.

Each formulation takes a case's arguments, by name, and gives a function without arguments that computes the result. What is done
once for many calls is done outside of it: weights that are turned, places that are counted.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fastlayers.kernels.table import BINARY, COMPARE, REDUCE, UNARY

from .cases import Case

__all__ = ["TOLERANCE", "plain"]

Arguments = dict[str, Any]
Call = Callable[[], np.ndarray]

# Of the largest result: float32 sums in another order, of up to a few thousand terms.
TOLERANCE = 2e-4


def _sigmoid(x: np.ndarray) -> Any:
    return 1 / (1 + np.exp(-x))


_UNARY: dict[str, Callable[[np.ndarray], Any]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "silu": lambda x: x * _sigmoid(x),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) * np.float32(1 / 6),
}
_BY_CODE = {UNARY[name].code: function for name, function in _UNARY.items()}


def _activate(y: Any, activation: Any) -> Any:
    if activation.code == UNARY["clip"].code:
        return np.clip(y, np.float32(activation.a), np.float32(activation.b))
    return _BY_CODE[activation.code](y)


def _unary(a: Arguments) -> Call:
    return lambda: _activate(a["x"], a["activation"])


def _linear(a: Arguments) -> Call:
    weight, bias, residual = np.ascontiguousarray(a["packed"]["weight"].T), a["packed"]["bias"], a["residual"]

    def call() -> Any:
        y = a["x"] @ weight
        y = y if bias is None else y + bias
        return _activate(y if residual is None else y + residual, a["activation"])

    return call


def _windows(x: np.ndarray, kernel: Any, stride: Any, dilation: Any, first: int) -> Any:
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    views = sliding_window_view(x, reach, tuple(range(first, first + 3)))
    lead: tuple[Any, ...] = (slice(None),) * first
    views = views[(*lead, *(slice(None, None, s) for s in stride))]
    return views[(..., *(slice(None, None, d) for d in dilation))]


def _padded(x: np.ndarray, pads: Any, first: int, value: float = 0.0) -> np.ndarray:
    around = [(0, 0)] * x.ndim
    around[first : first + 3] = list(zip(pads[::2], pads[1::2], strict=True))
    return np.pad(x, around, constant_values=value) if any(pads) else x


def _conv(a: Arguments) -> Call:
    """im2col and one product."""
    packed, last = a["packed"], a["x_last"]
    weight, bias, groups = packed["weight"], packed["bias"], packed["groups"]
    o, _, *kernel = weight.shape
    first = 1 if last else 2
    parts = np.split(weight, groups)
    flat = [np.ascontiguousarray(w.reshape(o // groups, -1).T) for w in parts]
    each, residual = a["x"].shape[4 if last else 1] // groups, a["residual"]

    def call() -> Any:
        views = _windows(_padded(a["x"], a["pads"], first), kernel, packed["stride"], packed["dilation"], first)
        views = np.moveaxis(views, 4 if last else 1, 4)  # n, d, h, w, c, kernel
        space = views.shape[:4]
        ys = [views[..., g * each : (g + 1) * each, :, :, :].reshape(-1, flat[g].shape[0]) @ flat[g] for g in range(groups)]
        y = np.concatenate(ys, 1) if groups > 1 else ys[0]
        y = (y if bias is None else y + bias).reshape(*space, o)
        y = y if a["out_last"] else np.moveaxis(y, 4, 1)
        return _activate(y if residual is None else y + residual, a["activation"])

    return call


def _pool(fold: Callable[..., Any], value: float) -> Callable[[Arguments], Call]:
    def make(a: Arguments) -> Call:
        first = 1 if a["channels_last"] else 2

        def call() -> Any:
            x = _padded(a["x"], a["pads"], first, value)
            return fold(_windows(x, a["kernel"], a["stride"], a["dilation"], first), a)

        return call

    return make


def _avg(a: Arguments) -> Call:
    first = 1 if a["channels_last"] else 2
    size = [1 if not first <= i < first + 3 else n for i, n in enumerate(a["x"].shape)]
    ones = _padded(np.ones(size, np.float32), a["pads"], first, float(a["include_pad"]))
    counts = _windows(ones, a["kernel"], a["stride"], a["dilation"], first).sum((-3, -2, -1))
    return _pool(lambda v, a: v.sum((-3, -2, -1)) / counts, 0.0)(a)


def _lp(v: np.ndarray, a: Arguments) -> Any:
    p = np.float32(a["p"])
    return (np.abs(v) ** p).sum((-3, -2, -1)) ** (1 / p)


def _adaptive(a: Arguments) -> Call:
    axis = 1 if a["channels_last"] else 2

    def call() -> Any:
        y = a["x"]
        for at in range(axis, axis + 3):
            size, count = y.shape[at], a["out"].shape[at]
            cuts = [np.arange(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
            fold = np.mean if a["op"] == REDUCE["mean"] else np.max
            y = np.concatenate([fold(y.take(cut, at), at, keepdims=True) for cut in cuts], at)
        return y

    return call


def _softmax(x: np.ndarray, axis: int) -> Any:
    power = np.exp(x - x.max(axis, keepdims=True))
    return power / power.sum(axis, keepdims=True)


def _log_softmax(a: Arguments) -> Call:
    def call() -> Any:
        x = a["x"] - a["x"].max(1, keepdims=True)
        return x - np.log(np.exp(x).sum(1, keepdims=True))

    return call


def _layer_norm(a: Arguments) -> Call:
    def call() -> Any:
        x = a["x"] if a["rms"] else a["x"] - a["x"].mean(1, keepdims=True)
        y = x / np.sqrt((x * x).mean(1, keepdims=True) + np.float32(a["epsilon"]))
        y = y if a["weight"] is None else y * a["weight"]
        return y if a["bias"] is None else y + a["bias"]

    return call


def _group_norm(a: Arguments) -> Call:
    def call() -> Any:
        x = a["x"].reshape(len(a["x"]) * a["groups"], -1)
        x = x - x.mean(1, keepdims=True)
        y = (x / np.sqrt((x * x).mean(1, keepdims=True) + np.float32(a["epsilon"]))).reshape(a["x"].shape)
        return y * a["weight"][:, None] + a["bias"][:, None]

    return call


def _matmul(a: Arguments) -> Call:
    return lambda: _activate(a["a"] @ (a["b"].swapaxes(1, 2) if a["transpose_b"] else a["b"]), a["activation"])


def _attention(a: Arguments) -> Call:
    if a["heads_last"] or a["k_transposed"] or a["lengths"] is not None:
        raise KeyError("attention")
    keys, rows = a["k"].shape[2], a["q"].shape[2]
    share = a["q"].shape[1] // a["k"].shape[1]
    allowed = np.arange(keys) <= np.arange(rows)[:, None] + a["offset"]

    def call() -> Any:
        k, v = (x if share == 1 else x.repeat(share, 1) for x in (a["k"], a["v"]))
        scores = a["q"] @ k.swapaxes(2, 3) * np.float32(a["scale"])
        scores = scores if a["mask"] is None else scores + a["mask"]
        if a["causal"]:
            scores = np.where(allowed, scores, np.float32(-np.inf))
        return _softmax(scores, 3) @ v

    return call


_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "minimum": np.minimum, "maximum": np.maximum, "prelu": lambda x, b: np.where(x >= 0, x, x * b),
    "squared_difference": lambda x, y: np.square(x - y),
}  # fmt: skip


def _binary(a: Arguments) -> Call:
    function = next(_BINARY[name] for name, code in BINARY.items() if code == a["op"])
    return lambda: _activate(function(a["a"], a["b"]), a["activation"])


def _compare(a: Arguments) -> Call:
    function: Any = getattr(np, next(name for name, code in COMPARE.items() if code == a["op"]))
    return lambda: function(a["a"], a["b"])


def _rotary(a: Arguments) -> Call:
    if a["interleaved"]:
        raise KeyError("rotary")
    cos, sin = (a[name][:, None, :, None] for name in ("cos", "sin"))
    r = cos.shape[-1]

    def call() -> Any:
        x, y = a["x"][..., :r], a["x"][..., r : 2 * r]
        return np.concatenate([x * cos - y * sin, x * sin + y * cos, a["x"][..., 2 * r :]], -1)

    return call


def _lstm(a: Arguments) -> Call:
    """A loop over steps; forwards, all sequences of one length."""
    packed = a["packed"]
    w, r, hidden = packed["w_ih"], packed["w_hh"], packed["w_hh"].shape[2]
    gates = w.shape[1] // hidden
    usual = packed["options"] == type(packed["options"])() and packed.get("peephole") is None and packed.get("w_hr") is None
    if len(w) != 1 or a["lengths"] is not None or a["reverse"] or a["batch_first"] or a["out"] is None or not usual:
        raise KeyError("recurrent")
    biases = [np.zeros(gates * hidden, np.float32) if packed[name] is None else packed[name][0] for name in ("b_ih", "b_hh")]
    w_t, r_t = (np.ascontiguousarray(x[0].T) for x in (w, r))

    def call() -> Any:
        x = a["x"] @ w_t + biases[0]
        h = np.zeros((x.shape[1], hidden), np.float32) if a["h0"] is None else a["h0"][0]
        c = np.zeros((x.shape[1], hidden), np.float32) if a.get("c0") is None else a["c0"][0]
        out = np.empty((*x.shape[:2], hidden), np.float32)
        for t in range(len(x)):
            y = h @ r_t + biases[1]
            if gates == 4:
                i, f, g, o = np.split(y + x[t], 4, 1)
                c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
                h = _sigmoid(o) * np.tanh(c)
            elif gates == 3:
                (xr, xz, xn), (hr, hz, hn) = np.split(x[t], 3, 1), np.split(y, 3, 1)
                z = _sigmoid(xz + hz)
                n = np.tanh(xn + _sigmoid(xr + hr) * hn)
                h = n + z * (h - n)
            else:
                h = np.tanh(y + x[t])
            out[t] = h
        return out.reshape(a["out"].shape)

    return call


_REDUCTIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "sum": lambda x: x.sum(1), "mean": lambda x: x.mean(1), "max": lambda x: x.max(1), "min": lambda x: x.min(1),
    "prod": lambda x: x.prod(1), "sum_square": lambda x: (x * x).sum(1), "l1": lambda x: np.abs(x).sum(1),
    "l2": lambda x: np.sqrt((x * x).sum(1)),
}  # fmt: skip


def _reduce(a: Arguments) -> Call:
    function = _REDUCTIONS[next(name for name, code in REDUCE.items() if code == a["op"])]
    return lambda: function(a["x"])


def _copied(a: Arguments) -> Call:
    if a["x_offset"] or a["out_offset"]:
        raise KeyError("copy")
    views = [np.lib.stride_tricks.as_strided(a[name], a["shape"], [4 * s for s in a[f"{name}_strides"]]) for name in ("x", "out")]

    def call() -> Any:
        views[1][...] = views[0]
        return a["out"]

    return call


def _pad(a: Arguments) -> Call:
    mode: Any = ("constant", "reflect", "edge", "wrap")[a["mode"]]
    around = [(0, 0), *zip(a["pads"][::2], a["pads"][1::2], strict=True), (0, 0)]
    return lambda: np.pad(a["x"], around, mode)


_FORMS: dict[str, Callable[[Arguments], Call]] = {
    "linear": _linear,
    "conv": _conv,
    "unary": _unary,
    "prelu": lambda a: lambda: np.where(a["x"] >= 0, a["x"], a["x"] * a["slope"][:, None]),
    "gated": lambda a: lambda: a["x"][:, 1 - a["gate"]] * _activate(a["x"][:, a["gate"]], a["activation"]),
    "binary": _binary,
    "compare": _compare,
    "where": lambda a: lambda: np.where(a["condition"], a["a"], a["b"]),
    "softmax": lambda a: lambda: _softmax(a["x"], 1),
    "log_softmax": _log_softmax,
    "lstm": _lstm,
    "gru": _lstm,
    "rnn": _lstm,
    "max_pool": _pool(lambda v, a: v.max((-3, -2, -1)), -np.inf),
    "avg_pool": _avg,
    "sum_pool": _pool(lambda v, a: v.sum((-3, -2, -1)) * np.float32(a["factor"]), 0.0),
    "lp_pool": _pool(_lp, 0.0),
    "adaptive_pool": _adaptive,
    "reduce": _reduce,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "affine": lambda a: lambda: _activate(a["x"] * a["scale"][:, None] + a["shift"][:, None], a["activation"]),
    "matmul": _matmul,
    "attention": _attention,
    "rotary": _rotary,
    "transpose": lambda a: lambda: np.ascontiguousarray(a["x"].swapaxes(1, 2)),
    "copy": _copied,
    "gather": lambda a: lambda: a["x"][:, a["indices"]],
    "embedding": lambda a: lambda: a["weight"][a["ids"]],
    "cast": lambda a: lambda: a["x"].astype(a["out"].dtype),
    "pad": _pad,
    "additive_scores": lambda a: lambda: (np.tanh(a["q"][:, :, None] + a["k"][:, None]) * a["scale"]).sum(3),
    "lookup": lambda a: lambda: a["table"][a["x"]],
}


def plain(case: Case) -> Call | None:
    """A case computed the plain way, on the arrays that every variant gets; None where nobody wrote that down."""
    arguments = case.arguments(np.random.default_rng(zlib.crc32(case.id.encode())))
    activation = arguments.get("activation")
    if activation is not None and activation.code not in (*_BY_CODE, UNARY["clip"].code):
        return None  # numpy has no erf, say
    try:
        return _FORMS[case.kernel](arguments)
    except (KeyError, StopIteration):
        return None

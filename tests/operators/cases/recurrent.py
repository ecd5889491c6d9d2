"""RNN, GRU and LSTM in ONNX's conventions, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import naive
from . import Case, array, case

T, N, I, H = 5, 3, 4, 6  # steps, batch, inputs, hidden  # noqa: E741
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ORDERS = {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}
LENGTHS = (5, 2, 0)


def normal(*shape: int, seed: int = 0, scale: float = 0.5) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float32)


def turned(array: np.ndarray | None) -> np.ndarray | None:
    """From ONNX's layout 0 to 1 and back: batch first."""
    if array is None:
        return None
    return np.ascontiguousarray(np.moveaxis(array, 2, 0) if array.ndim == 4 else np.swapaxes(array, 0, 1))


def made(
    op: str,
    label: str,
    parts: str = "b",
    direction: str = "forward",
    outputs: str = "yhc",
    native: bool = True,
    layout: int = 0,
    options: dict[str, Any] | None = None,
    **attributes: Any,
) -> Case:
    """`parts`: which of b (biases), l (lengths), h, c (initial states), p (peepholes) are there; `options` are for `naive`."""
    d, gates = len(ORDERS[direction]), GATES[op]
    x, w, r = normal(T, N, I, scale=1), normal(d, gates * H, I, seed=1), normal(d, gates * H, H, seed=2)
    b = normal(d, 2 * gates * H, seed=3) if "b" in parts else None
    lengths = array(LENGTHS, np.int32) if "l" in parts else None
    h0 = normal(d, N, H, seed=4) if "h" in parts else None
    c0 = normal(d, N, H, seed=5) if "c" in parts else None
    p = normal(d, 3 * H, seed=6) if "p" in parts else None
    given: dict[str, Any] = {"order": ORDERS[direction], **(options or {})}
    lens = None if lengths is None else LENGTHS
    if op == "LSTM":
        results = naive.lstm(x, w, r, b, lens, h0, c0, p, **given)
    else:
        results = (naive.gru if op == "GRU" else naive.rnn)(x, w, r, b, lens, h0, **given)
    inputs: list[Any] = [x, w, r, b, lengths, h0, *((c0, p) if op == "LSTM" else ())]
    if layout:
        x_, h_, c_ = turned(x), turned(h0), turned(c0)
        inputs = [x_, w, r, b, lengths, h_, *((c_, p) if op == "LSTM" else ())]
        results = [turned(a) for a in results]  # type: ignore[misc]
    while inputs[-1] is None:
        inputs.pop()
    wanted: Sequence[np.ndarray] = [a.astype(np.float32) for name, a in zip("yhc", results, strict=False) if name in outputs]
    extra = {"layout": 1} if layout else {}
    # Lengths and states are data, but weights, which come before them, are constants of models.
    return case(op, label, inputs, *wanted, native=native, ulp=64, direction=direction, hidden_size=H, **extra, **attributes)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def hard_sigmoid(x: np.ndarray) -> np.ndarray:
    return np.clip(0.3 * x + 0.4, 0, 1)


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, x, 0.1 * x)


CASES = [made(op, f"{direction}, all", "blhc", direction) for op in GATES for direction in ORDERS]
CASES += [made(op, "plain", "", outputs="yh") for op in GATES]
CASES += [made(op, "Y alone", "b", outputs="y") for op in GATES]
CASES += [made(op, "batch first", "bhc", layout=1) for op in GATES]
CASES += [made(op, "batch first, two directions", "bl", "bidirectional", "y", layout=1) for op in GATES]
CASES += [made(op, "batch first, two directions, states", "bhc", "bidirectional", layout=1, native=False) for op in GATES]
CASES += [made(op, "clip", "bhc", options={"clip": 0.25}, clip=0.25) for op in GATES]
CASES += [
    made("RNN", "activations", "b", "bidirectional", options={"f": (relu, leaky)}, activations=("Relu", "LeakyRelu"),
         activation_alpha=(0.1,)),
    made("GRU", "reset after", "bh", options={"after": True}, linear_before_reset=1),
    made("GRU", "activations", "bh", options={"f": hard_sigmoid, "g": leaky}, activations=("HardSigmoid", "LeakyRelu"),
         activation_alpha=(0.3, 0.1), activation_beta=(0.4,)),
    made("LSTM", "peepholes", "bhcp"),
    made("LSTM", "peepholes, both directions, lengths", "bhclp", "bidirectional"),
    made("LSTM", "coupled gates", "bhcp", options={"couple": True}, input_forget=1),
    made("LSTM", "activations", "bc", options={"f": hard_sigmoid, "g": np.tanh, "h": relu}, activations=("HardSigmoid", "tanh",
         "RELU"),
         activation_alpha=(0.3,), activation_beta=(0.4,)),
    made("LSTM", "no biases, states", "hc"),
]  # fmt: skip

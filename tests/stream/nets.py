"""Networks over sequences as functions of layers, and the ways to cut a sequence into pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers import functional as F

LENGTH = 23


def filled(layer: Any, seed: int = 0) -> Any:
    """The layer with weights."""
    rng = np.random.default_rng(seed)
    weights = {k: rng.standard_normal(s).astype(np.float32) * 0.3 for k, s in layer.tensor_shapes().items()}
    layer.load_state_dict({k: abs(w) if k.endswith("running_var") else w for k, w in weights.items()})
    return layer


def compiled(function: Callable[..., Any], *shape: Any) -> fl.Model:
    """A model of one input x."""
    return fl.compile(function, fl.graph.Input("x", shape))


def pieces(length: int) -> Iterator[list[int]]:
    """Every cut in two, single steps, steps of some sizes, pieces without steps between, all at once; as lists of sizes."""
    for i in range(length + 1):
        yield [i, length - i]
    for size in (1, 2, 3, 5, 7):
        yield [size] * (length // size) + [length % size]
    yield [0, 1, 0, 0, 4, 0, length - 5, 0]
    yield [length]


def run(stream: fl.Stream, x: np.ndarray, sizes: list[int], axis: int) -> list[np.ndarray]:
    """What a stream gives for x in pieces of these sizes: the outputs one after the other, each as a list."""
    ends = np.cumsum(sizes)
    parts: list[Any] = []
    for size, end in zip(sizes, ends, strict=True):
        found = stream(x[(slice(None),) * axis + (slice(end - size, end),)])
        parts.append(found if isinstance(found, tuple) else (found,))
    return list(zip(*parts, strict=True))


def tcn() -> Callable[..., Any]:
    """Dilated convolutions, padded on both sides and cut off again, with residuals."""
    layers = [
        (filled(fl.Conv1d(4, 4, 3, padding=2 * d, dilation=d), d), filled(fl.Conv1d(4, 4, 1), d + 9), 2 * d) for d in (1, 2, 4)
    ]

    def net(x: Any) -> Any:
        for wide, one, cut in layers:
            x = F.relu(one(F.relu(wide(x)[:, :, :-cut])) + x)
        return x

    return net


def padded_convolutions() -> Callable[..., Any]:
    """Zeros before the first step as an operation of their own, then strides."""
    a, b = filled(fl.Conv1d(4, 6, 5)), filled(fl.Conv1d(6, 5, 4, stride=2))
    return lambda x: F.relu(b(F.relu(a(F.pad(x, (4, 0))))))


def conv_lstm() -> Callable[..., Any]:
    """Convolutions with strides, an LSTM, a Linear."""
    a, b = filled(fl.Conv1d(4, 8, 3, stride=2)), filled(fl.Conv1d(8, 8, 3))
    lstm, out = filled(fl.LSTM(8, 6, batch_first=True)), filled(fl.Linear(6, 3))

    def net(x: Any) -> Any:
        h = F.relu(b(F.relu(a(x))))
        y, (h_n, c_n) = lstm(F.permute(h, (0, 2, 1)))
        return F.softmax(out(y), -1), h_n, c_n

    return net

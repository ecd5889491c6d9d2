"""First calls: each builds what it needs without a kernel or a file, and gives a function that uses it for the first time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import fastlayers as fl

__all__ = ["SCENARIOS"]

Use = Callable[[], Any]


def _x(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def _filled(layer: Any) -> Any:
    rng = np.random.default_rng(0)
    layer.load_state_dict({name: rng.standard_normal(shape).astype(np.float32) for name, shape in layer.tensor_shapes().items()})
    return layer


def _linear(_: str) -> Use:
    layer, x = _filled(fl.Linear(64, 64)), _x(64, 64)
    return lambda: layer(x)


def _conv(_: str) -> Use:
    layer, x = _filled(fl.Conv2d(32, 32, 3, padding=1)), _x(1, 32, 24, 24)
    return lambda: layer(x)


def _lstm(_: str) -> Use:
    layer, x = _filled(fl.LSTM(16, 24, num_layers=2)), _x(7, 2, 16)
    return lambda: layer(x)[0]


def _function(_: str) -> Use:
    x = _x(9, 300)
    return lambda: fl.functional.softmax(fl.functional.gelu(x))


def _again(_: str) -> Use:
    """A call that comes again gets a plan."""
    x, weight = _x(9, 30), _x(40, 30)

    def use() -> Any:
        for _ in range(12):
            made = fl.functional.linear(x, weight)
        return made

    return use


def _compiled(_: str) -> Use:
    net = fl.Sequential(_filled(fl.Conv2d(3, 8, 3)), fl.ReLU(), fl.MaxPool2d(2), fl.Flatten(), _filled(fl.Linear(8 * 49, 5)))
    x = _x(2, 3, 16, 16)
    return lambda: fl.compile(net, fl.graph.Input("x", ("n", 3, 16, 16)))(x)


def _loaded(folder: str) -> Use:
    path = os.path.join(folder, "net.onnx")
    feeds = dict(np.load(os.path.join(folder, "feeds.npz")))
    return lambda: next(iter(fl.load(path).run(feeds).values()))


def _weights(folder: str) -> Use:
    path = os.path.join(folder, "w.safetensors")
    return lambda: fl.load_weights(path)["w"]


def _own(folder: str) -> Use:
    path, x = os.path.join(folder, "net.fl"), _x(3, 6)
    return lambda: fl.load(path)(x)


def _stream(_: str) -> Use:
    net, x = _filled(fl.Conv1d(2, 4, 3)), _x(1, 2, 40)

    def use() -> Any:
        model = fl.compile(net, fl.graph.Input("x", (1, 2, "t")), streaming=True)
        stream = model.stream()
        return stream(x[..., :19]), stream(x[..., 19:])

    return use


def _awaited(_: str) -> Use:
    net, x = _filled(fl.Linear(6, 5)), _x(3, 6)

    async def answer() -> Any:
        return await fl.compile(net, fl.graph.Input("x", ("n", 6))).arun({"x": x})

    loop = asyncio.new_event_loop()  # which has files and memory of its own
    return lambda: next(iter(loop.run_until_complete(answer()).values()))


def _asked(_: str) -> Use:
    def use() -> Any:
        fl.kernels.info()
        return fl.get_num_threads(), len(fl.kernels.available())

    return use


SCENARIOS: dict[str, Callable[[str], Use]] = {
    "linear": _linear, "conv": _conv, "lstm": _lstm, "function": _function, "again": _again, "compiled": _compiled,
    "loaded": _loaded, "weights": _weights, "own": _own, "stream": _stream, "awaited": _awaited, "asked": _asked,
}  # fmt: skip

"""Networks of layers, each of the kind that its name says, small but of sizes that the large ones have at some place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fastlayers as fl

F = fl.functional
Input = fl.graph.Input


def _ready(net: Any, rng: np.random.Generator) -> Any:
    shapes = net.tensor_shapes()
    net.load_state_dict({k: np.abs(rng.standard_normal(s, np.float32)) / 8 for k, s in shapes.items()})
    return net


def _conv(i: int, o: int, k: int = 3, **more: Any) -> fl.Layer:
    return fl.Sequential(fl.Conv2d(i, o, k, padding=k // 2, **more), fl.BatchNorm2d(o), fl.ReLU())


def _residual(rng: np.random.Generator) -> fl.Model:
    first, second = _ready(_conv(64, 64), rng), _ready(fl.Conv2d(64, 64, 3, padding=1), rng)
    return fl.compile(lambda x: F.relu(F.add(second(first(x)), x)), Input("x", (1, 64, 28, 28)))


def _of(net: Callable[[], Any], *shape: int | str) -> Callable[[np.random.Generator], fl.Model]:
    return lambda rng: fl.compile(_ready(net(), rng), Input("x", shape))


NETS: dict[str, Callable[[np.random.Generator], fl.Model]] = {
    "perceptron": _of(lambda: fl.Sequential(fl.Linear(64, 128), fl.GELU(), fl.Linear(128, 10)), 1, 64),
    "resnet block": _residual,
    "mobilenet block": _of(
        lambda: fl.Sequential(_conv(16, 96, 1), _conv(96, 96, 3, groups=96), fl.Conv2d(96, 24, 1)), 1, 16, 56, 56
    ),
    "stem": _of(lambda: fl.Sequential(_conv(3, 64, 7, stride=2), fl.MaxPool2d(3, 2, 1)), 1, 3, 224, 224),
    "wide convolution": _of(lambda: fl.Conv2d(256, 256, 3, padding=1), 1, 256, 14, 14),
    "dilated convolutions": _of(
        lambda: fl.Sequential(*[fl.Conv1d(32, 32, 3, padding=2**i, dilation=2**i) for i in range(4)]), 1, 32, 400
    ),
    "upsampling": _of(
        lambda: fl.Sequential(fl.ConvTranspose2d(32, 16, 2, stride=2), fl.ReLU(), fl.Conv2d(16, 1, 1)), 1, 32, 28, 28
    ),
    "pooled classifier": _of(
        lambda: fl.Sequential(_conv(3, 32), fl.AvgPool2d(2), fl.Flatten(), fl.Linear(8192, 10)), 1, 3, 32, 32
    ),
    "one lstm": _of(lambda: fl.LSTM(64, 128), 100, 1, 64),
    "one gru": _of(lambda: fl.GRU(64, 128), 100, 1, 64),
    "encoder layer": _of(lambda: fl.TransformerEncoderLayer(128, 4, 256, batch_first=True), 1, 64, 128),
    "normalized": _of(lambda: fl.Sequential(fl.LayerNorm(256), fl.Linear(256, 256), fl.SiLU()), 8, 256),
}


def nets() -> Iterator[tuple[str, fl.Model]]:
    """All of them, by name."""
    for name, make in NETS.items():
        yield name, make(np.random.default_rng(0))

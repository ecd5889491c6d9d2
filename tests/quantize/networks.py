"""Networks with seeded weights that the tests of `fl.quantize` share, and samples for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model import quantization

F = fl.functional


@pytest.fixture(autouse=True)
def short_races(monkeypatch: pytest.MonkeyPatch) -> None:
    """For modules that import it: to measure how long a network takes, few runs do, not the second that they get."""
    monkeypatch.setattr(quantization, "_WHOLE_SECONDS", 0.01)


def filled(net: Any, seed: int = 0) -> Any:
    """The layer with weights whose products are about as large as what they multiply; variances and scales are positive."""
    rng = np.random.default_rng(seed)

    def made(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name.endswith(("running_var", "norm.weight")):
            return rng.uniform(0.5, 1.5, shape).astype(np.float32)
        scale = 1.0 / np.sqrt(max(int(np.prod(shape[1:])), 1)) if len(shape) > 1 else 0.3
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    net.load_state_dict({name: made(name, shape) for name, shape in net.tensor_shapes().items()})
    return net


class Residual(fl.Layer):
    """Convolutions with normalizations, a depthwise one, a gate, an addition, pools, and a matrix."""

    def __init__(self) -> None:
        self.first, self.norm1 = fl.Conv2d(3, 32, 3, padding=1, stride=2), fl.BatchNorm2d(32)
        self.second, self.norm2 = fl.Conv2d(32, 32, 3, padding=1), fl.BatchNorm2d(32)
        self.deep = fl.Conv2d(32, 32, 3, padding=1, groups=32)
        self.third = fl.Conv2d(32, 64, 1)
        self.gate = fl.Conv2d(64, 64, 1)
        self.last = fl.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm1(self.first(x)))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.norm2(self.second(x)) + x)
        x = F.silu(self.third(F.relu6(self.deep(x))))
        x = x * F.sigmoid(self.gate(F.adaptive_avg_pool2d(x, 1)))
        return self.last(F.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Attending(fl.Layer):
    """A layer of a transformer."""

    def __init__(self) -> None:
        self.layer = fl.TransformerEncoderLayer(64, 4, 128, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Recurring(fl.Layer):
    """An LSTM between matrices."""

    def __init__(self) -> None:
        self.first, self.lstm, self.last = fl.Linear(32, 64), fl.LSTM(64, 64, batch_first=True), fl.Linear(64, 16)

    def forward(self, x: Any) -> Any:
        return self.last(self.lstm(F.relu(self.first(x)))[0])


NETWORKS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "convolutions": (Residual, ("n", 3, 32, 32)),
    "products": (lambda: fl.Sequential(fl.Linear(48, 96), fl.ReLU(), fl.Linear(96, 32), fl.Tanh(), fl.Linear(32, 8)), ("n", 48)),
    "attention": (Attending, ("n", 12, 64)),
    "lstm": (Recurring, ("n", 9, 32)),
}


def model(name: str, **options: Any) -> fl.Model:
    """The network of a name, compiled."""
    make, shape = NETWORKS[name]
    return fl.compile(filled(make()), fl.graph.Input("x", shape), **options)


def samples(name: str, count: int = 6, seed: int = 1) -> Iterator[np.ndarray]:
    """Arrays that the network takes."""
    rng = np.random.default_rng(seed)
    shape = NETWORKS[name][1]
    for _ in range(count):
        yield rng.standard_normal((2, *shape[1:]), np.float32)

"""Whole networks and inputs for them in many sizes: ONNX files of the goldens, recorded layers, trained models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers import functional as F
from fastlayers.cli import vad
from fastlayers.model.model import Model
from tests.formats.test_onnx_models import NAMES, arrays, data
from tests.stream import nets

from .check import Feeds, Step
from .meaning import meaning

__all__ = ["NETWORKS", "Network", "batch_axes", "fresh", "network", "steps_of"]


class Network(NamedTuple):
    """A model and its inputs at one choice of sizes."""

    model: Model
    feeds: Feeds


def _golden(name: str) -> Network:
    return Network(fl.load(data(name)), arrays(name, 0, "in"))


def _recorded(function: Callable[..., Any], *shape: int | str, **sizes: int) -> Network:
    model = nets.compiled(function, *shape)
    x = np.random.default_rng(0).standard_normal([sizes[s] if isinstance(s, str) else s for s in shape]).astype(np.float32)
    return Network(model, {"x": x})


def _silero() -> Network:
    net = vad.VoiceActivity()
    net.load_state_dict({k: w * 0.3 for k, w in nets.filled(vad.VoiceActivity()).state_dict().items()})
    record = [fl.graph.Input("x", ("n", 576)), fl.graph.Input("h", ("n", 128)), fl.graph.Input("c", ("n", 128))]
    model = fl.compile(lambda x, h, c: net(x, vad.State(h, c)), *record)
    rng = np.random.default_rng(0)
    feeds = {spec.name: rng.standard_normal((2, int(spec.shape[1]))).astype(np.float32) * 0.3 for spec in model.inputs}  # type: ignore[index, arg-type]
    return Network(model, feeds)


def _residual() -> Network:
    """Blocks as in ResNet, of which Winograd's algorithm does some; a pool over all pixels, a Linear."""
    first, end = nets.filled(fl.Conv2d(3, 16, 3, padding=1)), nets.filled(fl.Linear(16, 5))
    blocks = [(nets.filled(fl.Conv2d(16, 16, 3, padding=1), i), nets.filled(fl.BatchNorm2d(16), i)) for i in range(2)]

    def net(x: Any) -> Any:
        x = F.relu(first(x))
        for conv, norm in blocks:
            x = F.relu(norm(conv(x)) * 0.2 + x)
        return end(F.adaptive_avg_pool2d(x, 1)[:, :, 0, 0])

    return _recorded(net, "n", 3, "h", "w", n=2, h=9, w=8)


def _volumes() -> Network:
    a, b = (
        nets.filled(fl.Conv3d(2, 16, (1, 3, 3), padding=(0, 1, 1))),
        nets.filled(fl.Conv3d(16, 4, (3, 1, 1), padding=(1, 0, 0))),
    )
    return _recorded(lambda x: b(F.relu(a(x))), "n", 2, "d", "h", "w", n=2, d=3, h=6, w=5)


def _encoder() -> Network:
    layer = nets.filled(fl.TransformerEncoderLayer(16, 2, 32, batch_first=True))
    return _recorded(layer, "n", "t", 16, n=2, t=5)


def _up_and_down() -> Network:
    """A convolution with strides, a transposed one back, and what was before next to it."""
    down, up = nets.filled(fl.Conv2d(4, 8, 2, stride=2)), nets.filled(fl.ConvTranspose2d(8, 4, 2, stride=2))
    end = nets.filled(fl.Conv2d(8, 3, 1))
    return _recorded(lambda x: end(F.concat([x, up(F.relu(down(x)))], 1)), "n", 4, "h", "w", n=2, h=6, w=8)


RECORDED: Mapping[str, Callable[[], Network]] = {
    "silero-vad": _silero, "residual": _residual, "volumes": _volumes, "encoder": _encoder, "up and down": _up_and_down,
    "tcn": lambda: _recorded(nets.tcn(), "n", 4, "t", n=2, t=11),
    "padded convolutions": lambda: _recorded(nets.padded_convolutions(), "n", 4, "t", n=2, t=11),
    "convolutions and LSTM": lambda: _recorded(nets.conv_lstm(), "n", 4, "t", n=2, t=11),
}  # fmt: skip
NETWORKS = (*NAMES, *RECORDED)


@cache
def network(name: str) -> Network:
    """A network by name."""
    return RECORDED[name]() if name in RECORDED else _golden(name)


def fresh(model: Model) -> Callable[[], Model]:
    """What makes a model that has run nothing."""
    return lambda: Model(model._graph, model._options, model.metadata)


def batch_axes(model: Model) -> dict[str, int | None]:
    """The axis of each input that is the batch's, by its name."""
    return {spec.name: next((i for i, dim in enumerate(spec.shape or ()) if dim in ("n", "b")), None) for spec in model.inputs}


def resized(found: Network, sizes: Mapping[str, int]) -> Feeds:
    """The inputs with other sizes, by name, their elements repeated."""
    feeds = {}
    for spec in found.model.inputs:
        array = found.feeds[spec.name]
        for axis, dim in enumerate(spec.shape or ()):
            if isinstance(dim, str) and dim in sizes:
                array = np.take(array, np.arange(sizes[dim]) % array.shape[axis], axis)
        feeds[spec.name] = np.ascontiguousarray(array).reshape(array.shape)
    return feeds


def steps_of(found: Network, count: int = 7, seed: int = 0, plain: bool = True) -> list[Step]:
    """A walk over sizes near the network's own. `plain`: whether numpy's meaning is asked for."""
    random = np.random.default_rng(seed)
    own = {
        dim: found.feeds[spec.name].shape[axis]
        for spec in found.model.inputs
        for axis, dim in enumerate(spec.shape or ())
        if isinstance(dim, str)
    }
    steps = []
    for i in range(count):
        feeds = found.feeds if i in (0, count - 1) else resized(found, {dim: near(random, size) for dim, size in own.items()})
        if i % 3 == 2:  # other values in floats
            feeds = {n: a * np.array(0.5, a.dtype) if a.dtype.kind == "f" else a for n, a in feeds.items()}
        steps.append(Step(feeds, _means(found.model, feeds) if plain else None))
    return steps


def near(random: np.random.Generator, size: int) -> int:
    """A size near this one, at least 1."""
    return max(int(random.choice([size, size, size + 1, size - 1, 2 * size, size // 2, 1])), 1)


def _means(model: Model, feeds: Feeds) -> dict[str, Any] | None:
    try:
        return meaning(model._graph, feeds)
    except fl.Error:
        return None

"""Elementwise kernels: whole feature maps and hidden states, and the few values that a recurrent step has."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation

from . import Case, normal


def _unary(name: str, *shape: int) -> Case:
    code, _, defaults, *_ = UNARY[name]
    limits = (0.0, 6.0) if name == "clip" else defaults

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = normal(rng, *shape) * np.float32(3)
        if name in ("log", "sqrt"):
            x = np.abs(x)
        return {"x": x, "out": np.empty(shape, np.float32), "activation": Activation(code, *limits)}

    return Case("unary", f"{name} {'x'.join(map(str, shape))}", arguments, moved=8.0 * np.prod(shape))


def _prelu(outer: int, channels: int, inner: int) -> Case:
    shape = (outer, channels, inner)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": normal(rng, *shape), "slope": normal(rng, channels), "out": np.empty(shape, np.float32)}

    return Case("prelu", f"{outer}x{channels}x{inner}", arguments, moved=8.0 * outer * channels * inner)


def _gated(name: str, outer: int, inner: int, gate: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        out = np.empty((outer, inner), np.float32)
        return {"x": normal(rng, outer, 2, inner) * 3, "out": out, "activation": Activation(UNARY[name].code), "gate": gate}

    return Case("gated", f"{name} {outer}x{inner}", arguments, moved=12.0 * outer * inner)


CASES: tuple[Case, ...] = (
    _unary("sigmoid", 256, 1024),
    _unary("tanh", 256, 1024),
    _unary("erf", 128, 3072),
    _unary("gelu", 128, 3072),  # the feed-forward half of a transformer layer
    _unary("gelu_tanh", 128, 3072),
    _unary("silu", 1, 32, 80, 80),
    _unary("relu", 1, 64, 112, 112),
    _unary("clip", 1, 32, 112, 112),
    _unary("leaky_relu", 1, 64, 52, 52),
    _unary("elu", 64, 1024),
    _unary("selu", 64, 1024),
    _unary("hardsigmoid", 1, 576),
    _unary("hardswish", 1, 72, 56, 56),
    _unary("softplus", 64, 1024),
    _unary("softsign", 64, 1024),
    _unary("mish", 1, 64, 52, 52),
    _unary("exp", 256, 1024),
    _unary("log", 256, 1024),
    _unary("sqrt", 64, 1024),
    _unary("square", 64, 1024),
    _unary("reciprocal", 64, 1024),
    _unary("floor", 64, 1024),
    _unary("round", 64, 1024),
    _unary("sin", 64, 256),
    _unary("cos", 64, 256),
    _unary("celu", 64, 1024),
    _unary("shrink", 64, 1024),
    _unary("threshold", 64, 1024),
    _unary("tanhshrink", 64, 1024),
    _unary("logsigmoid", 64, 1024),
    _unary("quick_gelu", 50, 3072),
    _unary("sigmoid", 1, 128),
    _unary("tanh", 7),
    _prelu(1, 64, 3136),
    _prelu(128, 64, 1),
    _prelu(3, 37, 9),
    _gated("sigmoid", 128, 512, 1),
    _gated("silu", 128, 2816, 0),
    _gated("gelu", 3, 101, 0),
)

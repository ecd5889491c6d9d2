"""Convolutions of real networks with bias, in one to three dimensions, channels-last and, for the main ones, channels-first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation

from . import Case, normal

Triple = tuple[int, int, int]


def case(
    kernel: str,
    name: str,
    x: tuple[int, ...],
    weight: tuple[int, int, Triple],
    stride: Triple = (1, 1, 1),
    dilation: Triple = (1, 1, 1),
    groups: int = 1,
    batch: int = 1,
    channels_last: bool = True,
    activation: str = "identity",
    residual: bool = False,
) -> Case:
    """A case of `conv` or `depthwise`: x (c, d, h, w), weight (o, c / groups, kernel), padded so that stride 1 keeps the size."""
    (c, *size), (o, fan, taps) = x, weight
    half = [d * (k - 1) // 2 for k, d in zip(taps, dilation, strict=True)]
    space = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, k, s, d in zip(size, half, taps, stride, dilation, strict=True)]
    shape_in, shape_out = ([batch, n, *s] if not channels_last else [batch, *s, n] for n, s in ((c, size), (o, space)))
    fan_in = fan * math.prod(taps)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        weights = {"weight": normal(rng, o, fan, *taps, fan_in=fan_in), "bias": normal(rng, o)}
        return {
            "x": normal(rng, *shape_in),
            "packed": weights | {"stride": stride, "dilation": dilation, "groups": groups, "channels": c},
            "out": np.empty(shape_out, np.float32),
            "pads": tuple(p for p in half for _ in "ba"),
            "mode": 0,
            "channels_last": channels_last,
            "residual": normal(rng, *shape_out) if residual else None,
            "activation": Activation(UNARY[activation].code, *UNARY[activation].defaults),
        }

    words = [
        f"{'x'.join(str(k) for k in taps if k > 1) or 1} {c}->{o} @{'x'.join(str(n) for n in size if n > 1) or 1}",
        *(f"s{max(stride)}" for _ in "s" if max(stride) > 1),
        *(f"d{max(dilation)}" for _ in "d" if max(dilation) > 1),
        *(f"g{groups}" for _ in "g" if 1 < groups < c),
        *(f"b{batch}" for _ in "b" if batch > 1),
        *(a for a in (activation, name) if a not in ("", "identity")),
        *("residual" for _ in "r" if residual),
        "nhwc" if channels_last else "nchw",
    ]
    floats = math.prod(shape_in) + math.prod(shape_out) * (1 + residual) + o * fan_in
    return Case(kernel, " ".join(words), arguments, 2.0 * fan_in * math.prod(shape_out), 4.0 * floats)


def _conv2d(c: int, size: int, k: int, o: int, stride: int = 1, **rest: Any) -> Case:
    return case("conv", "", (c, 1, size, size), (o, c // rest.get("groups", 1), (1, k, k)), (1, stride, stride), **rest)


def _conv1d(c: int, size: int, k: int, o: int, stride: int = 1, dilation: int = 1, **rest: Any) -> Case:
    return case("conv", "", (c, 1, 1, size), (o, c, (1, 1, k)), (1, 1, stride), (1, 1, dilation), **rest)


CASES: tuple[Case, ...] = (
    *(
        entry
        for last in (True, False)
        for entry in (
            _conv2d(64, 56, 3, 64, channels_last=last),
            _conv2d(128, 28, 3, 128, channels_last=last),
            _conv2d(256, 14, 3, 256, channels_last=last),
            _conv2d(512, 7, 3, 512, channels_last=last),
            _conv2d(64, 56, 3, 128, 2, channels_last=last),
            _conv2d(32, 56, 5, 64, channels_last=last),
            _conv2d(64, 56, 1, 256, channels_last=last),
            _conv2d(3, 224, 7, 64, 2, channels_last=last),
            _conv2d(3, 224, 3, 32, 2, channels_last=last),
            _conv1d(64, 4000, 3, 64, channels_last=last),
            _conv1d(32, 10000, 11, 32, dilation=4, channels_last=last),
        )
    ),
    _conv2d(64, 56, 3, 64, activation="relu", residual=True),
    _conv2d(64, 56, 3, 64, batch=8),
    _conv2d(256, 14, 1, 1024),
    _conv2d(64, 28, 3, 64, groups=4),
    _conv1d(129, 4, 3, 128, activation="relu", channels_last=False),
    case("conv", "", (16, 16, 28, 28), (32, 16, (3, 3, 3))),
)

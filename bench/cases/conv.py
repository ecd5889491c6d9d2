"""Convolutions of real networks with bias, in one to three dimensions: channels-last, the main ones also first, some mixed."""

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
    last: bool = True,
    out_last: bool | None = None,
    activation: str = "identity",
    residual: bool = False,
) -> Case:
    """A case of `conv` or `depthwise`: x (c, d, h, w), weight (o, c / groups, kernel), padded so that stride 1 keeps the size.

    `last`: is x channels-last, and the result too, unless `out_last` says otherwise?
    """
    out_last = last if out_last is None else out_last
    (c, *size), (o, fan, taps) = x, weight
    half = [d * (k - 1) // 2 for k, d in zip(taps, dilation, strict=True)]
    space = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, k, s, d in zip(size, half, taps, stride, dilation, strict=True)]
    shape_in = [batch, *size, c] if last else [batch, c, *size]
    shape_out = [batch, *space, o] if out_last else [batch, o, *space]
    fan_in = fan * math.prod(taps)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        weights = {"weight": normal(rng, o, fan, *taps, fan_in=fan_in), "bias": normal(rng, o)}
        return {
            "x": normal(rng, *shape_in),
            "packed": weights | {"stride": stride, "dilation": dilation, "groups": groups, "channels": c},
            "out": np.empty(shape_out, np.float32),
            "pads": tuple(p for p in half for _ in "ba"),
            "mode": 0,
            "channels_last": last,
            "x_last": last,
            "out_last": out_last,
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
        "nhwc" if last else "nchw",
        *(f"to {'nhwc' if out_last else 'nchw'}" for _ in "t" if last != out_last),
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
            _conv2d(64, 56, 3, 64, last=last),
            _conv2d(128, 28, 3, 128, last=last),
            _conv2d(256, 14, 3, 256, last=last),
            _conv2d(512, 7, 3, 512, last=last),
            _conv2d(64, 56, 3, 128, 2, last=last),
            _conv2d(32, 56, 5, 64, last=last),
            _conv2d(64, 56, 1, 256, last=last),
            _conv2d(3, 224, 7, 64, 2, last=last),
            _conv2d(3, 224, 3, 32, 2, last=last),
            _conv1d(64, 4000, 3, 64, last=last),
            _conv1d(32, 10000, 11, 32, dilation=4, last=last),
        )
    ),
    *(
        entry
        for last in (True, False)
        for entry in (
            _conv2d(64, 56, 3, 64, last=last, out_last=not last),
            _conv2d(128, 28, 1, 64, activation="relu", residual=True, last=last, out_last=not last),
            _conv2d(3, 112, 3, 32, 2, last=last, out_last=not last),
            _conv1d(40, 300, 5, 48, last=last, out_last=not last),
        )
    ),
    _conv2d(64, 56, 3, 64, activation="relu", residual=True),
    _conv2d(64, 56, 3, 64, batch=8),
    _conv2d(256, 14, 1, 1024),
    _conv2d(64, 28, 3, 64, groups=4),
    *(
        entry
        for last in (True, False)
        for entry in (  # few results a group: of a network that transcribes music, and of one with narrow groups
            case("conv", "", (8, 1, 43, 264), (8, 8, (1, 3, 39)), last=last, activation="relu"),
            case("conv", "", (32, 1, 86, 88), (1, 32, (1, 7, 3)), last=last, activation="sigmoid"),
            _conv2d(64, 28, 3, 64, groups=16, last=last),
            _conv2d(368, 14, 3, 368, groups=46, last=last),
        )
    ),
    *(
        entry
        for last in (True, False)
        for entry in (  # taps in the padding: of a network that segments images, and of one that reads videos
            _conv2d(64, 28, 3, 64, dilation=(1, 12, 12), last=last),
            _conv2d(64, 28, 3, 64, dilation=(1, 36, 36), last=last),
            case("conv", "", (128, 2, 7, 7), (128, 128, (3, 3, 3)), last=last),
        )
    ),
    _conv1d(129, 4, 3, 128, activation="relu", last=False),
    case("conv", "", (16, 16, 28, 28), (32, 16, (3, 3, 3))),
)

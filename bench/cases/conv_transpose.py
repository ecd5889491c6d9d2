"""Transposed convolutions of decoders: images, masks with few channels, and sequences; in both layouts and between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation

from . import Case, normal

Pair = tuple[int, int]


def _case(
    c: int,
    size: Pair,
    kernel: Pair,
    o: int,
    stride: Pair,
    padding: Pair,
    groups: int = 1,
    batch: int = 1,
    last: bool = False,
    out_last: bool | None = None,
    activation: str = "identity",
) -> Case:
    """x (c, 1, *size), weight (c, o / groups, 1, *kernel). `last`: is x channels-last, and so the result, without `out_last`?"""
    out_last = last if out_last is None else out_last
    space = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(size, stride, padding, kernel, strict=True)]
    shape_in = [batch, 1, *size, c] if last else [batch, c, 1, *size]
    shape_out = [batch, 1, *space, o] if out_last else [batch, o, 1, *space]
    taps = c // groups * math.prod(kernel)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        weight = normal(rng, c, o // groups, 1, *kernel, fan_in=taps // math.prod(stride))
        return {
            "x": normal(rng, *shape_in),
            "packed": {"weight": weight, "bias": normal(rng, o), "stride": (1, *stride), "dilation": (1, 1, 1), "groups": groups},
            "out": np.empty(shape_out, np.float32),
            "pads": (0, 0, *(p for p in padding for _ in "ba")),
            "x_last": last,
            "out_last": out_last,
            "activation": Activation(UNARY[activation].code, *UNARY[activation].defaults),
        }

    words = [
        f"{'x'.join(str(k) for k in kernel if k > 1) or 1} {c}->{o} @{'x'.join(str(n) for n in size if n > 1) or 1}",
        f"s{max(stride)}",
        *(f"g{groups}" for _ in "g" if groups > 1),
        *(f"b{batch}" for _ in "b" if batch > 1),
        *(a for a in (activation,) if a != "identity"),
        "nhwc" if last else "nchw",
        *(f"to {'nhwc' if out_last else 'nchw'}" for _ in "t" if last != out_last),
    ]
    floats = math.prod(shape_in) + math.prod(shape_out) + o * taps
    flops = 2.0 * math.prod(shape_in) * o // groups * math.prod(kernel)
    return Case("conv_transpose", " ".join(words), arguments, flops, 4.0 * floats)


def _square(c: int, size: int, k: int, o: int, stride: int, padding: int, **rest: Any) -> Case:
    return _case(c, (size, size), (k, k), o, (stride, stride), (padding, padding), **rest)


CASES: tuple[Case, ...] = (
    *(
        entry
        for last in (False, True)
        for entry in (
            _square(32, 32, 4, 64, 2, 1, last=last),
            _square(128, 16, 3, 64, 2, 1, last=last),
            _square(64, 28, 2, 64, 2, 0, last=last),
            _square(64, 32, 4, 3, 2, 1, activation="tanh", last=last),
            _case(256, (1, 100), (1, 16), 128, (1, 8), (0, 4), last=last),
        )
    ),
    _square(32, 32, 4, 64, 2, 1, last=True, out_last=False),
    _square(32, 32, 4, 64, 2, 1, last=False, out_last=True),
    _square(512, 4, 4, 256, 2, 1),
    _square(64, 28, 4, 64, 2, 1, groups=64),
    _square(21, 16, 16, 21, 8, 4),  # a map of 21 classes
    _case(514, (1, 20), (1, 512), 1, (1, 128), (0, 256)),  # an inverse Fourier transform by frames
    _square(24, 9, 3, 20, 1, 0, batch=3, activation="relu"),
)

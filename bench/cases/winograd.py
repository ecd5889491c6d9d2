"""Convolutions of real networks for Winograd's algorithm; the operations are those of the direct way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation
from fastlayers.kernels.winograd_points import kinds, terms_of

from . import Case, normal


def case(
    c: int,
    size: int,
    o: int,
    tile: int,
    batch: int = 1,
    x_last: bool = False,
    out_last: bool = False,
    activation: str = "identity",
    residual: bool = False,
    kernel: tuple[int, int, int] = (1, 3, 3),
    groups: int = 1,
    stride: tuple[int, int, int] = (1, 1, 1),
) -> Case:
    """A case of `winograd`: x (batch, c, depth, height, width), padded so that the output has its size, or with a stride a part.

    Axes have `size` pixels, but 1 where the kernel has none of its taps; next to a depth there are 28 x 28.
    """
    space = [28 if kernel[0] > 1 and axis else size if k > 1 else 1 for axis, k in enumerate(kernel)]
    made = [-(-n // step) for n, step in zip(space, stride, strict=True)]
    shape_in, shape_out = (
        (batch, *sizes, n) if last else (batch, n, *sizes) for n, last, sizes in ((c, x_last, space), (o, out_last, made))
    )

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, *shape_in),
            "packed": {
                "weight": normal(rng, o, c // groups, *kernel, fan_in=taps * c // groups),
                "bias": normal(rng, o),
                "tile": tile,
                "groups": groups,
                "stride": stride,
            },
            "out": np.empty(shape_out, np.float32),
            "pads": tuple(k // 2 for k in kernel for _ in range(2)),
            "x_last": x_last,
            "out_last": out_last,
            "residual": normal(rng, *shape_out) if residual else None,
            "activation": Activation(UNARY[activation].code, *UNARY[activation].defaults),
        }

    taps = math.prod(kernel)
    words = [
        f"F{tile}",
        *("x".join(map(str, kernel)) for _ in "k" if kernel != (1, 3, 3)),
        f"{c}->{o} @{'x'.join(str(n) for n in space if n > 1)}",
        *(f"g{groups}" for _ in "g" if groups > 1),
        *("s" + "x".join(map(str, stride)) for _ in "s" if stride != (1, 1, 1)),
        *(f"b{batch}" for _ in "b" if batch > 1),
        *(a for a in (activation,) if a != "identity"),
        *("residual" for _ in "r" if residual),
        "-".join("nhwc" if last else "nchw" for last in (x_last, out_last)),
    ]
    pixels = batch * math.prod(made)
    floats = batch * math.prod(space) * c + pixels * o * (1 + residual)
    floats += terms_of(kernel) * math.prod(kinds(kernel, tile, stride)) * o * c // groups
    return Case("winograd", " ".join(words), arguments, 2.0 * taps * pixels * o * c / groups, 4.0 * floats)


CASES: tuple[Case, ...] = (
    *(
        case(c, size, c, tile, batch, last, last)
        for last in (False, True)
        for batch in (1, 8)
        for c, size, tile in ((64, 56, 4), (128, 28, 4), (256, 14, 4), (512, 7, 2), (512, 7, 4))
    ),
    case(64, 56, 64, 4, activation="relu", residual=True),
    case(64, 56, 64, 4, x_last=True, out_last=True, activation="relu", residual=True),
    case(40, 13, 24, 4, x_last=True, activation="silu"),
    case(40, 13, 24, 2, out_last=True, residual=True),
    case(80, 3000, 512, 6, kernel=(1, 1, 3)),
    case(128, 160, 128, 4, kernel=(1, 1, 5)),
    case(32, 1000, 32, 2, kernel=(1, 1, 7), x_last=True, out_last=True),
    case(64, 16, 64, 4, kernel=(3, 1, 1)),
    case(64, 28, 64, 2, kernel=(1, 5, 5)),
    case(64, 28, 64, 4, kernel=(1, 5, 5)),
    case(64, 14, 64, 2, kernel=(1, 7, 7)),
    case(64, 8, 64, 4, kernel=(3, 3, 3)),
    case(128, 4, 128, 4, kernel=(3, 3, 3), x_last=True, out_last=True),
    case(256, 28, 256, 4, groups=8),
    case(64, 56, 128, 4, stride=(1, 2, 2)),
    case(128, 56, 128, 4, x_last=True, out_last=True, stride=(1, 2, 2)),
    case(64, 8, 128, 4, kernel=(3, 3, 3), stride=(2, 2, 2)),
)

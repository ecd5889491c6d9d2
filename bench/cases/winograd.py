"""3x3 convolutions of real networks for Winograd's algorithm, in both layouts; the operations are those of the direct way."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation

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
) -> Case:
    """A case of `winograd`: x (batch, c, 1, size, size), padded so that the output has its size."""
    shape_in, shape_out = (
        (batch, 1, size, size, n) if last else (batch, n, 1, size, size) for n, last in ((c, x_last), (o, out_last))
    )

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, *shape_in),
            "packed": {"weight": normal(rng, o, c, 1, 3, 3, fan_in=9 * c), "bias": normal(rng, o), "tile": tile},
            "out": np.empty(shape_out, np.float32),
            "pads": (0, 0, 1, 1, 1, 1),
            "x_last": x_last,
            "out_last": out_last,
            "residual": normal(rng, *shape_out) if residual else None,
            "activation": Activation(UNARY[activation].code, *UNARY[activation].defaults),
        }

    words = [
        f"F{tile} {c}->{o} @{size}x{size}",
        *(f"b{batch}" for _ in "b" if batch > 1),
        *(a for a in (activation,) if a != "identity"),
        *("residual" for _ in "r" if residual),
        "-".join("nhwc" if last else "nchw" for last in (x_last, out_last)),
    ]
    pixels = batch * size * size
    floats = pixels * (c + o * (1 + residual)) + (tile + 2) ** 2 * o * c
    return Case("winograd", " ".join(words), arguments, 18.0 * pixels * o * c, 4.0 * floats)


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
)

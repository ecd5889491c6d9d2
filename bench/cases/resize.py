"""Resampling of image networks: decoders and pyramids, in both layouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.resize_tables import torch_tables

from . import Case, normal


def _resize(mode: str, c: int, size: tuple[int, ...], out: tuple[int, ...], channels_last: bool) -> Case:
    lead = (1,) * (3 - len(size))
    outer, inner = (1, c) if channels_last else (c, 1)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        tables = torch_tables(size, out, mode, False)
        return {
            "x": normal(rng, outer, *lead, *size, inner),
            "packed": {"axes": (*(None,) * len(lead), *tables), "size": (*lead, *size, inner)},
            "out": np.empty((outer, *lead, *out, inner), np.float32),
        }

    sizes = "x".join(map(str, size)), "x".join(map(str, out))
    text = f"{mode} {c}@{sizes[0]} to {sizes[1]} {'nhwc' if channels_last else 'nchw'}"
    return Case("resize", text, arguments, moved=4.0 * c * (math.prod(size) + math.prod(out)))


CASES: tuple[Case, ...] = tuple(
    _resize(mode, c, size, out, last)
    for last in (False, True)
    for mode, c, size, out in (
        ("linear", 64, (56, 56), (112, 112)),
        ("nearest", 64, (56, 56), (112, 112)),
        ("cubic", 32, (56, 56), (112, 112)),
        ("linear", 3, (224, 224), (128, 128)),
        ("linear", 8, (8, 16, 16), (16, 32, 32)),
        ("linear", 256, (33, 33), (65, 65)),
    )
)

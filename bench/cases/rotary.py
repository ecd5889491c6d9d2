"""Rotary positions: language models' heads, next to each other and apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, normal


def _rotary(shape: tuple[int, ...], half: int, entries: int = 1, interleaved: bool = False) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        angles = normal(rng, entries, shape[2], half)
        x = normal(rng, *shape)
        return {"x": x, "cos": np.cos(angles), "sin": np.sin(angles), "out": np.empty_like(x), "interleaved": interleaved}

    size = float(np.prod(shape))
    label = "x".join(map(str, shape)) + f" turns {2 * half}" + (" interleaved" if interleaved else "")
    return Case("rotary", label + (f" {entries} tables" if entries > 1 else ""), arguments, 3 * size, 8 * size)


CASES: tuple[Case, ...] = (
    _rotary((1, 1, 128, 12, 64), 32),
    _rotary((1, 32, 512, 1, 64), 32),
    _rotary((2, 1, 7, 3, 20), 9, entries=2),
    _rotary((2, 3, 5, 1, 37), 17, entries=2, interleaved=True),
    _rotary((1, 1, 128, 12, 64), 32, interleaved=True),
)

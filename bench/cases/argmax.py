"""Positions of the largest: classes of a batch, labels of the pixels of a segmentation."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, normal


def _argmax(outer: int, n: int, inner: int, least: bool = False) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = normal(rng, outer, n, inner)
        x[rng.random(x.shape) < 0.02] = 3  # equals, of which the first counts
        x[rng.random(x.shape) < 0.001] = np.nan
        return {"x": x, "out": np.empty((outer, inner), np.int64), "reverse": least}

    return Case("argmax", f"{outer}x{n}x{inner}" + " least" * least, arguments, moved=4.0 * outer * n * inner)


CASES: tuple[Case, ...] = (
    _argmax(64, 1000, 1),
    _argmax(1, 21, 4096),
    _argmax(3, 7, 65, least=True),
    _argmax(1000, 3, 1),
    _argmax(1001, 2, 1),
    _argmax(37, 2, 1, least=True),
)

"""Matrices to transpose: activations of image and speech networks between their two layouts, and images of few channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, normal


def _transpose(batch: int, rows: int, cols: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": normal(rng, batch, rows, cols), "out": np.empty((batch, cols, rows), np.float32)}

    return Case("transpose", f"{batch}x{rows}x{cols}", arguments, moved=8.0 * batch * rows * cols)


CASES: tuple[Case, ...] = (
    _transpose(1, 64, 3136),
    _transpose(1, 3136, 64),
    _transpose(1, 512, 49),
    _transpose(1, 196, 576),
    _transpose(1, 3, 50176),
    _transpose(1, 50176, 3),
    _transpose(8, 64, 3136),
    _transpose(1, 1024, 1024),
    _transpose(16, 80, 101),
)

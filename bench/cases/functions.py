"""Functions without vectors: masks of NaN, angles, all of float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import FUNCTIONS, KINDS

from . import Case


def _function(name: str, dtype: str, *shape: int) -> Case:
    tests = FUNCTIONS[name] <= FUNCTIONS["is_negative_inf"]

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = (rng.random(shape) * 0.9 + 0.05 if dtype.startswith("float") else rng.integers(-99, 99, shape)).astype(dtype)
        out: Any = np.empty(shape, np.bool_ if tests else dtype)
        return {"x": x, "out": out, "op": FUNCTIONS[name], "source": KINDS[dtype]}

    moved = float(np.prod(shape)) * (np.dtype(dtype).itemsize + (1 if tests else np.dtype(dtype).itemsize))
    return Case("function", f"{name} {dtype} {'x'.join(map(str, shape))}", arguments, moved=moved)


CASES: tuple[Case, ...] = (
    _function("is_nan", "float32", 1, 64, 56, 56),
    _function("is_inf", "float16", 128, 768),
    _function("atan", "float32", 8400, 2),
    _function("exp", "float64", 128, 100),
    _function("abs", "int64", 128, 128),
)

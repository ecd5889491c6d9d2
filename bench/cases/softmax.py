"""Softmax: attention scores, classifiers' heads, and class maps with the classes on an axis that is not the last."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, normal


def _case(kernel: str, outer: int, n: int, inner: int = 1) -> Case:
    shape = (outer, n, inner)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": normal(rng, *shape) * np.float32(4), "out": np.empty(shape, np.float32)}

    return Case(kernel, "x".join(map(str, shape)), arguments, moved=8.0 * outer * n * inner)


CASES: tuple[Case, ...] = (
    _case("softmax", 1536, 128),
    _case("softmax", 128, 768),
    _case("softmax", 6144, 512),
    _case("softmax", 1, 1000),
    _case("softmax", 2048, 10),
    _case("softmax", 1, 21, 16384),  # a map of 21 classes
    _case("softmax", 2, 3, 8400),
    _case("softmax", 4, 16, 400),
    _case("softmax", 5, 1000, 3),
    _case("softmax", 2000, 3, 2),
    _case("log_softmax", 1, 1000),
    _case("log_softmax", 400, 29),  # letters a frame
    _case("log_softmax", 128, 768),
    _case("log_softmax", 1, 21, 4096),
)

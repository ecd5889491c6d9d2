"""Pooling over the steps of texts and sounds of unequal lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import REDUCE

from . import Case, normal


def _over_time(op: str, n: int, t: int, c: int, kind: str, batch_first: bool = True) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, *((n, t, c) if batch_first else (t, n, c))),
            "lengths": rng.integers(1, t, n, endpoint=True) if kind == "lengths" else None,
            "mask": rng.random((n, t)) < 0.7 if kind == "mask" else None,
            "out": np.empty((n, c), np.float32),
            "op": REDUCE[op],
            "batch_first": batch_first,
        }

    return Case("time_pool", f"{op} {n}x{t}x{c} {kind}{'' if batch_first else ' time first'}", arguments, moved=4.0 * n * t * c)


CASES: tuple[Case, ...] = (
    _over_time("mean", 8, 128, 768, "lengths"),
    _over_time("mean", 8, 128, 768, "mask"),
    _over_time("max", 8, 128, 768, "lengths"),
    _over_time("mean", 16, 100, 32, "all"),
    _over_time("max", 16, 100, 64, "lengths", False),
    _over_time("mean", 16, 100, 32, "lengths", False),
)

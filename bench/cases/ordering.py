"""The best of many: beams, boxes and classes; masks and counts that are reduced."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import KINDS, REDUCE

from . import Case, normal


def _array(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    if not dtype.startswith("float"):
        return rng.integers(0, 100, shape).astype(dtype)
    x = normal(rng, *shape)
    x[rng.random(x.shape) < 0.02] = 3  # equals, of which the first counts
    return x.astype(dtype)


def _topk(outer: int, n: int, inner: int, k: int, dtype: str = "float32", least: bool = False) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x, out = _array(rng, dtype, outer, n, inner), np.empty((outer, k, inner), dtype)
        at = np.empty(out.shape, np.int64)
        return {"x": x, "out": out, "indices": at, "source": KINDS[dtype], "reverse": least}

    label = f"{outer}x{n}x{inner} of {dtype}, {k}" + " least" * least
    return Case("topk", label, arguments, moved=float(np.dtype(dtype).itemsize * outer * n * inner))


def _extreme(outer: int, n: int, inner: int, dtype: str, last: bool) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        out = np.empty((outer, inner), np.int64)
        return {"x": _array(rng, dtype, outer, n, inner), "out": out, "source": KINDS[dtype], "reverse": False, "last": last}

    return Case("arg_extreme", f"{outer}x{n}x{inner} of {dtype}" + " last" * last, arguments, moved=8.0 * outer * n * inner)


def _fold(name: str, outer: int, n: int, inner: int, dtype: str) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        out = np.empty((outer, inner), dtype)
        return {"x": _array(rng, dtype, outer, n, inner), "out": out, "op": REDUCE[name], "source": KINDS[dtype]}

    return Case("fold", f"{name} {outer}x{n}x{inner} of {dtype}", arguments, moved=8.0 * outer * n * inner)


CASES: tuple[Case, ...] = (
    _topk(1, 8400, 1, 300),
    _topk(8, 32000, 1, 10),
    _topk(1, 80, 1000, 1),
    _topk(4, 1000, 1, 1000, "int64", least=True),
    _extreme(8, 128, 1, "int64", False),
    _extreme(3, 7, 65, "float32", True),
    _fold("sum", 8, 128, 1, "int64"),
    _fold("max", 8, 50, 33, "int32"),
    _fold("mean", 8, 100, 1, "float64"),
)

"""The best of many: beams, boxes and classes, labels of pixels; masks and counts that are reduced; labels that there are."""

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


def _argmax(outer: int, n: int, inner: int, least: bool = False) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = normal(rng, outer, n, inner)
        x[rng.random(x.shape) < 0.02] = 3  # equals, of which the first counts
        x[rng.random(x.shape) < 0.001] = np.nan
        return {"x": x, "out": np.empty((outer, inner), np.int64), "reverse": least}

    return Case("argmax", f"{outer}x{n}x{inner}" + " least" * least, arguments, moved=4.0 * outer * n * inner)


def _unique(n: int, dtype: str, most: int, ordered: bool = True) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = rng.integers(0, most, n).astype(dtype)
        out, count = np.zeros(n, dtype), np.zeros(1, np.int64)  # what is left of the room keeps what it was
        words = {"source": KINDS[dtype], "mode": ordered}
        vectors = {name: np.zeros(n, np.int64) for name in ("indices", "inverse", "counts")}
        return {"x": x, "out": out, **vectors, "count": count, **words}

    return Case("unique", f"{n} of {dtype} below {most}" + " as they come" * (not ordered), arguments, moved=40.0 * n)


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
    _argmax(64, 1000, 1),
    _argmax(29, 65, 1, least=True),
    _argmax(61, 64, 1),
    _argmax(23, 193, 1, least=True),
    _argmax(1, 21, 4096),
    _argmax(3, 7, 65, least=True),
    _argmax(1000, 3, 1),
    _argmax(1001, 2, 1),
    _argmax(37, 2, 1, least=True),
    _unique(1000, "int64", 50),
    _unique(1000, "int64", 1 << 40, ordered=False),
    _unique(333, "float32", 500, ordered=False),
    _unique(100, "float64", 1000),
)

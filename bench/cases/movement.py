"""Copies as whole networks have them: reordered axes, slices, joined and repeated tensors, embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import KINDS

from . import Case, normal


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _permute(label: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> Case:
    to = tuple(shape[i] for i in axes)
    steps = tuple(_strides(shape)[i] for i in axes)
    return _copy(f"{label} {'x'.join(map(str, shape))}", shape, to, to, 0, steps, 0, _strides(to))


def _copy(
    label: str,
    x: tuple[int, ...],
    out: tuple[int, ...],
    shape: tuple[int, ...],
    x_offset: int,
    x_strides: tuple[int, ...],
    out_offset: int,
    out_strides: tuple[int, ...],
) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        places = {"x_offset": x_offset, "x_strides": x_strides, "out_offset": out_offset, "out_strides": out_strides}
        # A copy may leave a part of out as it is, which is compared as well.
        return {"x": normal(rng, *x), "out": np.zeros(out, np.float32), "shape": shape, "itemsize": 4, **places}

    return Case("copy", label, arguments, moved=8.0 * math.prod(shape))


def _gather(label: str, x: tuple[int, int, int], m: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        out = np.empty((x[0], m, x[2]), np.float32)
        return {"x": normal(rng, *x), "indices": rng.integers(-x[1], x[1], m), "out": out, "itemsize": 4}

    return Case("gather", f"{label} {'x'.join(map(str, x))}", arguments, moved=8.0 * x[0] * m * x[2])


def _cast(source: str, target: str, *shape: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = (normal(rng, *shape) * 50).astype(source)
        return {"x": x, "out": np.empty(shape, target), "source": KINDS[source], "target": KINDS[target]}

    moved = float(math.prod(shape) * (np.dtype(source).itemsize + np.dtype(target).itemsize))
    return Case("cast", f"{source} {target} {'x'.join(map(str, shape))}", arguments, moved=moved)


def _embedding(rows: int, width: int, ids: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        picks = rng.integers(0, rows, ids).astype(np.int64)
        return {"weight": normal(rng, rows, width), "ids": picks, "out": np.empty((ids, width), np.float32)}

    return Case("embedding", f"{rows}x{width} {ids}", arguments, moved=8.0 * ids * width)


CASES: tuple[Case, ...] = (
    _permute("heads", (1, 128, 12, 64), (0, 2, 1, 3)),
    _permute("keys", (1, 128, 12, 64), (0, 2, 3, 1)),
    _permute("channel shuffle", (1, 2, 58, 784), (0, 2, 1, 3)),
    _permute("channel shuffle last", (1, 28, 28, 2, 58), (0, 1, 2, 4, 3)),
    _permute("depth to space", (1, 32, 2, 2, 64, 64), (0, 1, 4, 2, 5, 3)),
    _permute("windows", (1, 8, 7, 8, 7, 96), (0, 1, 3, 2, 4, 5)),
    _permute("points", (1, 3, 85, 40, 40), (0, 1, 3, 4, 2)),
    _copy("crop", (64, 56, 56), (64, 54, 54), (64, 54, 54), 57, (3136, 56, 1), 0, (2916, 54, 1)),
    _copy("focus", (3, 320, 320), (3, 160, 160), (3, 160, 160), 0, (102400, 640, 2), 0, (25600, 160, 1)),
    _copy("flip", (80, 1000), (80, 1000), (80, 1000), 999, (1000, -1), 0, (1000, 1)),
    _copy("join last", (784, 64), (784, 128), (784, 64), 0, (64, 1), 64, (128, 1)),
    _copy("repeat", (64, 20, 20), (64, 40, 40), (64, 20, 2, 20, 2), 0, (400, 20, 0, 1, 0), 0, (1600, 80, 40, 2, 1)),
    _copy("expand", (64, 1, 1), (64, 28, 28), (64, 28, 28), 0, (1, 0, 0), 0, (784, 28, 1)),
    _copy("plain", (100000,), (100000,), (100000,), 0, (1,), 0, (1,)),
    _gather("embedding", (1, 2048, 768), 128),
    _gather("numbers", (1, 1000, 1), 2401),
    _gather("columns", (64, 49, 7), 20),
    _embedding(30522, 384, 128),
    _embedding(1000, 7, 33),
    _cast("uint8", "float32", 3, 224, 224),
    _cast("float16", "float32", 128, 768),
    _cast("float32", "float16", 128, 768),
    _cast("int64", "float32", 1, 512),
    _cast("float32", "int64", 1, 2000),
    _cast("float32", "bool", 128, 128),
    _cast("bool", "float32", 128, 128),
    _cast("int64", "int32", 1, 2000),
)

"""Rows by number: box coordinates by class, caches and maps that are written into, labels as vectors, sequences turned around."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import KINDS, SCATTER
from fastlayers.operators.calls import strides_of

from . import Case, normal

Shape = tuple[int, ...]


def _elements(x: Shape, indices: Shape, axis: int, scattered: str = "") -> Case:
    """GatherElements, or ScatterElements with a reduction."""
    strides = strides_of(x)
    steps = [0 if k == axis else s for k, s in enumerate(strides)]
    where = {"shape": indices, "size": (x[axis],), "stride": (strides[axis],), "itemsize": 4}

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        at = rng.integers(-x[axis], x[axis], indices)
        rows = normal(rng, math.prod(x), 1)
        made = {"x": rows, "indices": at, **where}
        if not scattered:
            return {**made, "out": np.empty((math.prod(indices), 1), np.float32), "x_strides": steps}
        more = {"updates": normal(rng, math.prod(indices), 1), "out": np.empty_like(rows), "out_strides": steps}
        return {**made, **more, "op": SCATTER[scattered], "source": KINDS["float32"]}

    label = f"elements{axis} {'x'.join(map(str, x))} {'x'.join(map(str, indices))} {scattered}".strip()
    moved = 16.0 * math.prod(indices) + 8.0 * math.prod(x) * bool(scattered)
    return Case("scatter" if scattered else "pick", label, arguments, moved=moved)


def _nd(x: Shape, count: int, last: int, scattered: str = "") -> Case:
    """GatherND, or ScatterND with a reduction."""
    inner = math.prod(x[last:])
    strides = strides_of(x[:last])
    where = {"shape": (count,), "size": x[:last], "stride": strides, "itemsize": 4 * inner}

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        at = np.stack([rng.integers(-n, n, count) for n in x[:last]], axis=1)
        rows = normal(rng, math.prod(x[:last]), inner)
        made = {"x": rows, "indices": at, **where}
        if not scattered:
            return {**made, "out": np.empty((count, inner), np.float32), "x_strides": (0,)}
        more = {"updates": normal(rng, count, inner), "out": np.empty_like(rows), "out_strides": (0,)}
        return {**made, **more, "op": SCATTER[scattered], "source": KINDS["float32"]}

    label = f"tuples{last} {'x'.join(map(str, x))} {count} {scattered}".strip()
    moved = count * (8.0 * last + 8 * inner) + 8.0 * math.prod(x) * bool(scattered)
    return Case("scatter" if scattered else "pick", label, arguments, moved=moved)


def _one_hot(outer: int, n: int, inner: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        at = rng.integers(-n - 1, n + 1, (outer, inner))
        out = np.empty((outer, n, inner), np.float32)
        return {"indices": at, "values": np.array([0, 1], np.float32), "out": out, "itemsize": 4}

    return Case("one_hot", f"{outer}x{n}x{inner}", arguments, moved=4.0 * outer * n * inner)


def _reversed(batch: int, time: int, units: int, batch_first: bool) -> Case:
    shape = (batch, time, units) if batch_first else (time, batch, units)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = normal(rng, *shape)
        lengths = rng.integers(0, time + 1, batch)
        return {"x": x, "lengths": lengths, "out": np.empty_like(x), "batch_first": batch_first, "itemsize": 4 * units}

    words = "x".join(map(str, shape)) + " batch first" * batch_first
    return Case("reverse_sequence", words, arguments, moved=8.0 * math.prod(shape))


def _chosen(kernel: str, shape: Shape, dtype: str = "float32") -> Case:
    """NonZero of a tenth, or Compress of a third of the middle axis."""

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x, count = rng.integers(1, 9, shape).astype(dtype), np.zeros(1, np.int64)
        if kernel == "compress":  # what is left of the room keeps what it was
            out = np.zeros(x.size, dtype)
            return {"x": x, "condition": rng.random(shape[1]) < 0.7, "out": out, "count": count, "itemsize": x.itemsize}
        x[rng.random(shape) < 0.9] = 0
        x.flat[-1] = 1  # where none is found, the place for the next one has any number
        return {"x": x, "out": np.zeros(x.ndim * x.size, np.int64), "count": count, "source": KINDS[dtype]}

    return Case(
        kernel, f"{'x'.join(map(str, shape))} of {dtype}", arguments, moved=1.0 * np.dtype(dtype).itemsize * math.prod(shape)
    )


def _cut(shape: Shape, start: int, end: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x, bounds = normal(rng, *shape), {"starts": np.array([start]), "ends": np.array([end])}
        return {"x": x, **bounds, "out": np.zeros(x.size, np.float32), "count": np.zeros(1, np.int64), "itemsize": 4}

    return Case("cut", f"{'x'.join(map(str, shape))} from {start} to {end}", arguments, moved=4.0 * math.prod(shape))


CASES: tuple[Case, ...] = (
    _elements((1, 8400, 80), (1, 300, 80), 1),
    _elements((32, 1000), (32, 10), 1),
    _nd((1, 8400, 4), 300, 2),
    _nd((64, 56, 56), 2000, 3),
    _elements((1, 1000, 64), (1, 300, 64), 1, "none"),
    _elements((16, 1000), (16, 1000), 1, "add"),
    _nd((8, 128, 64), 40, 2, "none"),
    _nd((100, 30), 500, 2, "max"),
    _one_hot(128, 1000, 1),
    _one_hot(1, 21, 4096),
    _reversed(8, 100, 128, True),
    _reversed(8, 100, 128, False),
    _chosen("non_zero", (10000,)),
    _chosen("non_zero", (3, 50, 7), "bool"),
    _chosen("non_zero", (17, 33), "int64"),
    _chosen("compress", (1, 1000, 4)),
    _chosen("compress", (5, 37, 1), "int16"),
    _cut((3, 50, 16), 2, -1),
    _cut((1, 640, 1), -600, 10**9),
)

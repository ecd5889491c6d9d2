"""`max_pool_places` against loops over windows: padding, dilation, equal elements, NaN, images of the least number alone."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KINDS
from tests.guard import guarded

from ..each import each

Three = tuple[int, int, int]
# x, kernel, stride, dilation, pads
WINDOWS: list[tuple[tuple[int, ...], Three, Three, Three, tuple[int, ...]]] = [
    ((1, 1, 1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0,) * 6),
    ((2, 3, 1, 6, 7), (1, 2, 2), (1, 2, 2), (1, 1, 1), (0,) * 6),
    ((1, 2, 1, 5, 5), (1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 0, 1, 1, 1, 1)),
    ((1, 2, 1, 9, 8), (1, 3, 2), (1, 2, 3), (1, 2, 3), (0, 0, 2, 1, 1, 2)),
    ((1, 2, 4, 5, 6), (2, 3, 2), (2, 1, 2), (1, 1, 2), (1, 1, 1, 1, 0, 2)),
    ((1, 1, 1, 1, 3), (1, 1, 2), (1, 1, 1), (1, 1, 1), (0, 0, 0, 0, 4, 5)),  # windows of padding alone
    ((0, 2, 1, 4, 4), (1, 2, 2), (1, 1, 1), (1, 1, 1), (0,) * 6),
    ((1, 2, 1, 5, 37), (1, 2, 3), (1, 2, 2), (1, 1, 1), (0, 0, 1, 0, 1, 2)),  # rows of so many that some are taken together
    ((1, 1, 3, 4, 29), (2, 2, 2), (1, 1, 1), (1, 2, 3), (0, 1, 0, 0, 2, 2)),
]


def numbers(dtype: str, seed: int, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    some = [0, 1, 2, 3, 100]
    if dtype.startswith("float"):
        return np.asarray(rng.choice(np.array([*some, -math.inf, -math.inf, -math.inf, math.nan]), shape)).astype(dtype)
    info = np.iinfo(dtype)
    return np.asarray(rng.choice(np.array([info.min, info.min, info.max, *some], dtype), shape))


@each("dtype, window", itertools.product(("float32", "float64", "int8", "uint8"), WINDOWS))
def test_loops_over_windows(dtype: str, window: Any, variant: str) -> None:
    shape, kernel, stride, dilation, pads = window
    for seed in range(3):
        x = numbers(dtype, seed, shape)
        if seed == 0 and dtype.startswith("float"):
            x[:] = -math.inf
        sizes = [
            (shape[2 + i] + pads[2 * i] + pads[2 * i + 1] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(3)
        ]
        out = guarded(np.zeros((*shape[:2], *sizes), dtype), "end")
        at = guarded(np.zeros(out.shape, np.int64), "end")
        dispatch.kernel("max_pool_places")(guarded(x, "end"), out, at, kernel, stride, dilation, pads, KINDS[dtype])
        least = -math.inf if dtype.startswith("float") else np.iinfo(dtype).min
        area = math.prod(shape[2:])
        for n, c, *place in itertools.product(*map(range, out.shape)):
            best: Any = None
            first = -1
            for taps in itertools.product(*map(range, kernel)):
                p = [place[i] * stride[i] - pads[2 * i] + taps[i] * dilation[i] for i in range(3)]
                if all(0 <= p[i] < shape[2 + i] for i in range(3)):
                    v = x[(n, c, *p)]
                    if best is None or (best == best and (v > best or v != v)):
                        best, first = v, (p[0] * shape[3] + p[1]) * shape[4] + p[2]
            want = least if best is None else best
            got = out[(n, c, *place)]
            assert got == want or (got != got and want != want)
            assert at[(n, c, *place)] == (n * shape[1] + c) * area + first


@pytest.mark.without("reference", "jit", "cuda")
def test_arrays_that_do_not_fit(variant: str) -> None:
    x, out, at = np.zeros((1, 2, 1, 4, 4), np.float32), np.zeros((1, 2, 1, 2, 2), np.float32), np.zeros((1, 2, 1, 2, 2), np.int64)
    run = dispatch.kernel("max_pool_places")
    with pytest.raises(ShapeError, match="max_pool_places: x has shape"):
        run(x, out, at[:, :1], (1, 2, 2), (1, 2, 2), (1, 1, 1), (0,) * 6, 0)
    with pytest.raises(ShapeError, match="pads of at least 0"):
        run(x, out, at, (1, 2, 2), (1, 2, 2), (1, 1, 1), (0, 0, -1, 0, 0, 0), 0)
    with pytest.raises(ShapeError):
        run(x, out, at, (1, 2, 2), (1, 0, 2), (1, 1, 1), (0,) * 6, 0)


def test_threads_change_nothing() -> None:
    x = numbers("float32", 1, (3, 20, 1, 61, 67))
    found = []
    before = fl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            out, at = np.zeros((3, 20, 1, 30, 33), np.float32), np.zeros((3, 20, 1, 30, 33), np.int64)
            dispatch.kernel("max_pool_places")(x, out, at, (1, 2, 2), (1, 2, 2), (1, 1, 1), (0,) * 6, KINDS["float32"])
            found.append((out.tobytes(), at.tobytes()))
    finally:
        fl.set_num_threads(before)
    assert found[0] == found[1] == found[2]

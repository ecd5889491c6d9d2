"""`pad` against indexing that is written out by hand, exactly: padding only copies."""

from __future__ import annotations

import os

import numpy as np
import pytest

from fastlayers.kernels import dispatch
from fastlayers.kernels.table import PAD_MODES

from ..each import each
from ..guard import guarded, guarded_empty

# shape (o, d, h, w, i), pads
CASES = (
    ((2, 3, 4, 5, 1), (1, 2, 3, 1, 2, 4)),
    ((1, 1, 4, 5, 3), (0, 0, 2, 3, 4, 1)),
    ((3, 1, 1, 7, 1), (0, 0, 0, 0, 6, 0)),
    ((3, 1, 1, 17, 8), (0, 0, 0, 0, 0, 5)),
    ((2, 5, 1, 2, 4), (4, 4, 0, 0, 1, 1)),
    ((1, 2, 3, 4, 5), (0, 0, 0, 0, 0, 0)),
    ((0, 2, 3, 4, 1), (1, 1, 1, 1, 1, 1)),
    ((2, 2, 3, 4, 0), (1, 1, 1, 1, 1, 1)),
)
EMPTY_SPACE = ((2, 1, 0, 4, 1), (0, 0, 1, 2, 1, 1))


def source(i: int, before: int, n: int, mode: str) -> int | None:
    """The position that padded position i reads, one step outside at a time; None for the constant."""
    i -= before
    if 0 <= i < n:
        return i
    if mode == "zeros":
        return None
    if mode == "replicate":
        return min(max(i, 0), n - 1)
    if mode == "circular":
        return i % n
    return -i if i < 0 else 2 * n - 2 - i


def expected(x: np.ndarray, pads: tuple[int, ...], mode: str, value: float) -> np.ndarray:
    for axis, before, after in ((1, *pads[:2]), (2, *pads[2:4]), (3, *pads[4:])):
        n = x.shape[axis]
        index = [source(i, before, n, mode) for i in range(n + before + after)]
        rows = [np.full_like(np.zeros(np.delete(x.shape, axis)), value) if i is None else x.take(i, axis) for i in index]
        x = np.stack(rows, axis).astype(np.float32)
    return x


def run(x: np.ndarray, pads: tuple[int, ...], mode: str, value: float, edge: str | None = None) -> np.ndarray:
    o, d, h, w, i = x.shape
    shape = (o, d + pads[0] + pads[1], h + pads[2] + pads[3], w + pads[4] + pads[5], i)
    out = np.full(shape, np.nan, np.float32) if edge is None else guarded_empty(shape, edge)
    x = x.copy() if edge is None else guarded(x, edge)
    x.flags.writeable = False
    dispatch.kernel("pad")(x, out, pads, PAD_MODES[mode], value)
    return out


@each("mode", PAD_MODES)
@each(("shape", "pads"), CASES)
def test_every_mode(variant: str, shape: tuple[int, ...], pads: tuple[int, ...], mode: str) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    if mode == "reflect":
        pads = tuple(min(p, shape[1 + i // 2] - 1) for i, p in enumerate(pads))
    if mode == "circular":
        pads = tuple(min(p, shape[1 + i // 2]) for i, p in enumerate(pads))
    np.testing.assert_array_equal(run(x, pads, mode, 0.5), expected(x, pads, mode, 0.5))


@pytest.mark.parametrize("value", [0.0, -1.5, float("nan"), float("-inf")])
def test_constants(variant: str, value: float) -> None:
    x = np.random.default_rng(0).standard_normal(CASES[0][0]).astype(np.float32)
    x[0, 0, 0, 0, 0] = np.nan
    np.testing.assert_array_equal(run(x, CASES[0][1], "zeros", value), expected(x, CASES[0][1], "zeros", value))


def test_an_empty_axis_becomes_constants(variant: str) -> None:
    shape, pads = EMPTY_SPACE
    y = run(np.zeros(shape, np.float32), pads, "zeros", 2.0)
    np.testing.assert_array_equal(y, np.full((2, 1, 3, 6, 1), 2.0))


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.parametrize("edge", ["start", "end"])
def test_stays_inside_its_operands(variant: str, edge: str) -> None:
    for shape, pads in CASES:
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        for mode in ("zeros", "replicate"):
            np.testing.assert_array_equal(run(x, pads, mode, 0.5, edge), expected(x, pads, mode, 0.5))


def test_large_planes_on_two_threads(variant: str, threads: int) -> None:
    x = np.random.default_rng(0).standard_normal((40, 1, 160, 170, 1)).astype(np.float32)
    pads = (0, 0, 1, 2, 3, 1)
    np.testing.assert_array_equal(run(x, pads, "zeros", 0.0), np.pad(x, ((0, 0), (0, 0), (1, 2), (3, 1), (0, 0))))

"""Adaptive pooling, pooling over time, resampling and pools of boxes next to the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import ShapeError
from fastlayers.kernels.table import REDUCE

from .calls import agree, numbers, requires_cuda

pytestmark = requires_cuda
LAYOUTS = pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
OPS = pytest.mark.parametrize("op", ["mean", "max"])


def laid(a: np.ndarray, last: bool) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(a, 1, -1)) if last else a


@LAYOUTS
@OPS
@pytest.mark.parametrize(
    ("size", "space"),
    [((1, 5, 7), (1, 3, 2)), ((2, 4, 4), (1, 1, 1)), ((1, 2, 3), (1, 4, 5)), ((3, 3, 3), (2, 2, 2)), ((1, 0, 3), (1, 2, 2))],
)
def test_adaptive_pool(size: tuple[int, ...], space: tuple[int, ...], op: str, last: bool) -> None:
    x, out = laid(numbers(2, 3, *size), last), laid(np.full((2, 3, *space), np.nan, np.float32), last)
    agree("adaptive_pool", x, out, REDUCE[op], last)
    if x.size:
        x[1, 0, 0, 1, 1] = np.nan
        assert np.isnan(agree("adaptive_pool", x, out, REDUCE[op], last)[0]).any()


@OPS
@pytest.mark.parametrize("batch_first", [True, False])
def test_time_pool(batch_first: bool, op: str) -> None:
    x = numbers(3, 5, 4) if batch_first else numbers(5, 3, 4)
    x[0, 0, 1] = np.nan
    lengths, mask = np.array([5, 0, 3]), numbers(3, 5) > 0
    mask[2] = False
    for arguments in ((None, None), (lengths, None), (None, mask), (lengths, mask)):
        agree("time_pool", x, *arguments, np.full((3, 4), np.nan, np.float32), REDUCE[op], batch_first)
    with pytest.raises(ShapeError, match="out of range"):
        agree("time_pool", x, lengths + 1, None, np.empty((3, 4), np.float32), REDUCE[op], batch_first)


def table(rng: np.random.Generator, taps: int, outputs: int, size: int) -> tuple[np.ndarray, np.ndarray | None]:
    weight = rng.standard_normal((taps, outputs)).astype(np.float32)
    weight[0, ::2] = 0
    return rng.integers(0, size, (taps, outputs)), weight if taps > 1 else None


@pytest.mark.parametrize("taps", [(None, 2, 4), (1, None, 1), (2, 1, 3), (None, None, None)], ids=str)
@pytest.mark.parametrize("inner", [1, 4])
def test_resize(taps: tuple[int | None, ...], inner: int) -> None:
    rng, size, space = np.random.default_rng(3), (2, 3, 4), (3, 2, 5)
    axes: list[Any] = [None if t is None else table(rng, t, o, n) for t, o, n in zip(taps, space, size, strict=True)]
    to = [n if t is None else o for t, o, n in zip(taps, space, size, strict=True)]
    x = numbers(2, *size, inner)
    x[0, 0, 0, 0] = np.inf  # not read where its weight is 0
    out = np.full((2, *to, inner), np.nan, np.float32)
    agree("resize", x, None, out, pack=(axes, (*size, inner)), rtol=4e-6, atol=4e-6)


BOXES = np.array([[0, 0, 7, 5], [2, 1, 4.5, 3], [5, 4, 1, 1], [-9, -3, 30, 2], [3, 3, 3, 3], [20, 20, 30, 30]], np.float32)


@LAYOUTS
def test_roi_pool(last: bool) -> None:
    x = numbers(2, 3, 6, 7)
    x[1, 1, 2, 3] = np.nan
    boxes = np.concatenate([np.float32([[0], [1], [0], [1], [1], [0]]), BOXES], 1)
    out = laid(np.full((6, 3, 2, 3), np.nan, np.float32), last)
    agree("roi_pool", laid(x, last), boxes, out, 0.5, last)
    agree("roi_pool", laid(x, last), boxes[:0], out[:0], 0.5, last)
    for image in (2.0, -1.0, 0.5, np.nan):
        boxes[2, 0] = image
        with pytest.raises(ShapeError, match="out of range"):
            agree("roi_pool", laid(x, last), boxes, out, 0.5, last)


@LAYOUTS
@OPS
@pytest.mark.parametrize(("samples", "offset", "least"), [(2, 0.5, -1e10), (0, 0.0, 1.0)])
def test_roi_align(samples: int, offset: float, least: float, op: str, last: bool) -> None:
    x, images = numbers(2, 3, 6, 7), np.array([0, 1, 0, 1, 1, 0])
    out = laid(np.full((6, 3, 2, 3), np.nan, np.float32), last)
    # Places are sums in single precision: a few units of 2^-20, times the difference of two pixels.
    arguments = (0.5, offset, least, samples, REDUCE[op], last)
    agree("roi_align", laid(x, last), BOXES, images, out, *arguments, rtol=0, atol=1e-5)
    with pytest.raises(ShapeError, match="out of range"):
        agree("roi_align", laid(x, last), BOXES, images + 1, out, *arguments)

"""Kernels over windows next to the reference: pooling of every kind, and depthwise convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.kernels.table import PAD_MODES

from ..kernels.space import FIRST, LAST, Layout, Problem, random_problem
from .calls import activation, agree, numbers, requires_cuda
from .test_conv import check

pytestmark = requires_cuda
LAYOUTS = pytest.mark.parametrize("last", [False, True], ids=["first", "last"])

# x, the result's size, kernel, stride, dilation, pads: overlaps, gaps, windows that reach out, or are in the padding alone.
WINDOWS: tuple[tuple[Any, ...], ...] = (
    ((2, 4, 1, 5, 6), (1, 3, 3), (1, 3, 3), (1, 2, 2), (1, 1, 1), (0, 0, 1, 1, 1, 1)),
    ((1, 3, 1, 4, 4), (1, 2, 2), (1, 2, 2), (1, 2, 2), (1, 1, 1), (0,) * 6),
    ((1, 3, 3, 4, 5), (2, 3, 3), (2, 2, 3), (1, 2, 2), (2, 1, 1), (0, 0, 1, 1, 1, 1)),
    ((1, 8, 1, 1, 7), (1, 1, 4), (1, 1, 3), (1, 1, 2), (1, 1, 2), (0, 0, 0, 0, 2, 0)),  # the last one ends outside
    ((1, 2, 1, 2, 2), (1, 3, 3), (1, 1, 1), (1, 2, 2), (1, 1, 1), (0, 0, 1, 1, 1, 1)),  # some are in the padding
    ((1, 5, 1, 3, 3), (1, 1, 1), (1, 3, 3), (1, 1, 1), (1, 1, 1), (0,) * 6),
    ((0, 3, 1, 2, 2), (1, 1, 1), (1, 2, 2), (1, 1, 1), (1, 1, 1), (0,) * 6),
    ((1, 3, 1, 2, 2), (1, 0, 1), (1, 2, 2), (1, 1, 1), (1, 1, 1), (0,) * 6),
)


def pool(kind: str, i: int, last: bool, *options: Any, x: np.ndarray | None = None) -> np.ndarray:
    shape, space, *window = WINDOWS[i]
    x = numbers(*shape) if x is None else x
    out = np.full((*shape[:2], *space), np.nan, np.float32)
    if last:
        x, out = (np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, out))
    # sums of a few values, roots of a few ulp
    return agree(f"{kind}_pool", x, out, *window, *options, last, rtol=4e-6, atol=4e-6)[0]


@LAYOUTS
@pytest.mark.parametrize("i", range(len(WINDOWS)))
def test_pools(i: int, last: bool) -> None:
    pool("max", i, last)
    pool("avg", i, last, False)
    pool("avg", i, last, True)
    pool("sum", i, last, 0.25)
    pool("lp", i, last, 2.0, True)


def test_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread has of a large result: here of rows that make no whole strip, with a NaN and an infinity in a window."""
    from fastlayers.kernels.cuda import pooling

    monkeypatch.setattr(pooling, "_MANY", 0)
    for kernel, h in (((1, 3, 3), 9), ((1, 2, 2), 7)):  # 9 and 8 rows
        x = numbers(2, 3, 2, h, 5)
        x[0, 1, 0, 2, 2], x[1, 2, 1, h - 1, 4] = np.nan, np.inf
        window = (kernel, (1, 1, 2), (1, 1, 1), (0, 0, 1, 1, 1, 0))
        out = np.full((2, 3, 2, h + 3 - kernel[1], (6 - kernel[2]) // 2 + 1), np.nan, np.float32)
        agree("max_pool", x, out, *window, False)
        for padded in (False, True):
            agree("avg_pool", x, out, *window, padded, False, rtol=4e-6, atol=4e-6)
        agree("lp_pool", x, out, *window, 2.0, True, False, rtol=4e-6, atol=4e-6)


@LAYOUTS
def test_norms(last: bool) -> None:
    for p in (1.0, 2.0, 3.0):
        for norm in (False, True):
            x = np.abs(numbers(2, 4, 1, 5, 6)) if not norm else None
            pool("lp", 0, last, p, norm, x=x)


@LAYOUTS
def test_nan_and_infinity(last: bool) -> None:
    x = numbers(2, 4, 1, 5, 6)
    x[0, 1, 0, 2, 2], x[1, 2, 0, 3, 3], x[1, 3] = np.nan, np.inf, -np.inf
    got = pool("max", 0, last, x=x)
    assert np.isnan(got).any() and np.isposinf(got).any() and np.isneginf(got).any()
    assert np.isnan(pool("avg", 0, last, False, x=x)).any()


# x, weight, the rest of a Problem: 3x3, 5x5 and the general way, several results of a channel, four channels at once.
DEPTHWISE: tuple[tuple[Any, Any, dict[str, Any]], ...] = (
    ((1, 4, 1, 5, 6), (4, 1, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 3, 1, 5, 4), (3, 1, 1, 3, 3), {"stride": (1, 2, 1), "pads": (0, 0, 0, 1, 1, 0)}),
    ((1, 3, 1, 5, 6), (3, 1, 1, 5, 5), {"pads": (0, 0, 2, 2, 2, 2), "dilation": (1, 1, 1)}),
    ((1, 2, 1, 6, 7), (4, 1, 1, 3, 3), {"dilation": (1, 2, 3)}),
    ((1, 4, 2, 3, 3), (12, 1, 2, 2, 1), {"pads": (1, 0, 0, 1, 0, 0)}),
    ((1, 4, 1, 1, 260), (4, 1, 1, 1, 257), {}),  # two chains
    ((1, 3, 1, 2, 2), (3, 1, 1, 3, 3), {}),
    ((1, 0, 1, 4, 4), (0, 1, 1, 3, 3), {}),
    ((1, 3, 1, 0, 0), (3, 1, 1, 3, 3), {"pads": (0, 0, 2, 2, 2, 2)}),
)


def problem(i: int, **more: Any) -> Problem:
    x, weight, rest = DEPTHWISE[i]
    return random_problem(np.random.default_rng(i), x, weight, bias=i % 3 > 0, groups=x[1], **{**rest, **more})


@pytest.mark.parametrize("i", range(len(DEPTHWISE)))
def test_depthwise(i: int) -> None:
    results = []
    for layout in (FIRST, LAST):
        got = check(problem(i), layout, residual=i % 2 == 0, f=activation("gelu" if i == 1 else "relu"), kernel="depthwise")
        results.append(np.moveaxis(got, -1, 1) if layout == LAST else got)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("mode", PAD_MODES.values(), ids=PAD_MODES)
def test_depthwise_padding(mode: int) -> None:
    layouts: tuple[Layout, ...] = (FIRST, LAST)
    for layout in layouts:
        check(problem(1, pads=(0, 0, 2, 1, 1, 3), mode=mode), layout, kernel="depthwise")


def test_depthwise_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import depthwise

    for i in range(4):
        whole = check(problem(i), FIRST, residual=True, kernel="depthwise")
        monkeypatch.setattr(depthwise, "_MANY", 0)
        np.testing.assert_array_equal(check(problem(i), FIRST, residual=True, kernel="depthwise"), whole)
        monkeypatch.undo()


def test_depthwise_special_values() -> None:
    case = problem(0)
    case.x[0, 0, 0, 1, 1], case.x[0, 1, 0, 3, 4] = np.nan, np.inf
    case.weight[2, 0, 0, 0, 0] = np.inf  # times the zeros around x: NaN
    for layout in (FIRST, LAST):
        got = check(case, layout, f=activation("relu"), kernel="depthwise")
        assert np.isnan(got).any() and np.isinf(got).any()

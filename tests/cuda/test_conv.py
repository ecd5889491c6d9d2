"""Convolutions next to the reference: strides, dilation, groups, every padding, both layouts, sizes around a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.kernels.table import PAD_MODES, Activation

from ..kernels.space import FIRST, LAST, Layout, Problem, random_problem
from .calls import activation, agree, requires_cuda

pytestmark = requires_cuda
ATOL = 1e-5
IDENTITY = activation("identity")
EVERY_LAYOUT: tuple[Layout, ...] = (FIRST, LAST, (False, True), (True, False))

# x, weight and the rest of a Problem: all that takes a way of its own.
CASES: tuple[tuple[Any, Any, dict[str, Any]], ...] = (
    ((1, 3, 1, 4, 5), (5, 3, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 4, 1, 3, 4), (4, 4, 1, 3, 3), {"pads": (0, 0, 1, 0, 0, 2)}),  # fours are read, and written
    ((2, 3, 1, 3, 11), (3, 3, 1, 1, 2), {}),  # 66 pixels
    ((1, 2, 1, 7, 7), (33, 2, 1, 3, 2), {"stride": (1, 2, 3), "pads": (0, 0, 0, 1, 1, 0)}),
    ((1, 6, 1, 4, 4), (6, 2, 1, 2, 2), {"groups": 3, "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 8, 1, 3, 3), (8, 4, 1, 2, 2), {"groups": 2}),
    ((5, 4, 1, 3, 3), (8, 2, 1, 3, 3), {"groups": 2}),  # one pixel an image, channels by fours
    ((2, 2, 3, 2, 3), (3, 2, 2, 2, 2), {"stride": (2, 1, 2), "pads": (1, 0, 1, 1, 0, 1), "dilation": (1, 2, 1)}),
    ((1, 2, 1, 1, 70), (2, 2, 1, 1, 66), {"pads": (0, 0, 0, 0, 3, 2)}),  # more taps than a word has bits
    ((1, 5, 1, 3, 3), (6, 5, 1, 1, 1), {}),  # a matrix
    ((1, 4, 1, 1, 1), (5, 4, 1, 1, 1), {}),
    ((1, 6, 1, 4, 4), (4, 6, 1, 1, 1), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 6, 1, 5, 5), (4, 6, 1, 1, 1), {"stride": (1, 2, 2)}),
    ((0, 3, 1, 5, 5), (4, 3, 1, 3, 3), {}),
    ((1, 3, 1, 2, 5), (4, 3, 1, 3, 3), {}),
    ((1, 0, 1, 5, 5), (4, 0, 1, 3, 3), {}),
    ((1, 3, 1, 5, 5), (0, 3, 1, 3, 3), {}),
    ((1, 3, 1, 0, 0), (2, 3, 1, 3, 3), {"pads": (0, 0, 2, 2, 2, 2)}),
)


def check(p: Problem, layout: Layout, residual: bool = False, f: Activation = IDENTITY, kernel: str = "conv") -> np.ndarray:
    """`kernel` in a layout; the result as it is."""
    x_last, out_last = layout
    x = np.ascontiguousarray(np.moveaxis(p.x, 1, -1)) if x_last else p.x
    out = np.full(p.out_shape, np.nan, np.float32)
    more = np.random.default_rng(9).standard_normal(p.out_shape).astype(np.float32)
    if out_last:
        out, more = np.ascontiguousarray(np.moveaxis(out, 1, -1)), np.ascontiguousarray(np.moveaxis(more, 1, -1))
    flags = (x_last, out_last) if kernel == "conv" else (x_last,)
    pack = (p.weight, p.bias, p.stride, p.dilation, p.groups)
    return agree(kernel, x, None, out, p.pads, p.mode, *flags, more if residual else None, f, pack=pack, rtol=ATOL, atol=ATOL)[0]


def problem(i: int, **more: Any) -> Problem:
    x, weight, rest = CASES[i]
    return random_problem(np.random.default_rng(i), x, weight, bias=i % 3 > 0, **{**rest, **more})


@pytest.mark.parametrize("i", range(len(CASES)))
def test_layouts(i: int) -> None:
    for layout in EVERY_LAYOUT:
        check(problem(i), layout, residual=layout[0], f=activation("relu" if layout[1] else "identity"))


@pytest.mark.parametrize("mode", PAD_MODES.values(), ids=PAD_MODES)
def test_padding(mode: int) -> None:
    case = random_problem(np.random.default_rng(mode), (1, 2, 2, 3, 4), (2, 2, 1, 2, 2), pads=(1, 0, 2, 1, 0, 3), mode=mode)
    for layout in EVERY_LAYOUT[:2]:
        check(case, layout, f=activation("gelu"))


def test_special_values() -> None:
    case = problem(1)
    case.x[0, 1, 0, 1, 1], case.x[1, 2, 0, 2, 2] = np.nan, np.inf
    case.weight[2, 0, 0, 0, 0] = np.inf  # times the zeros around x: NaN
    for layout in EVERY_LAYOUT:
        got = check(case, layout, f=activation("relu"))
        assert np.isnan(got).any() and np.isinf(got).any()


def test_batches_and_layouts_change_no_bit() -> None:
    case = problem(1)
    first = check(case, EVERY_LAYOUT[0])
    for i in range(2):
        np.testing.assert_array_equal(check(case._replace(x=case.x[i : i + 1]), EVERY_LAYOUT[0])[0], first[i])
    for layout in EVERY_LAYOUT[1:]:
        got = check(case, layout)
        np.testing.assert_array_equal(np.moveaxis(got, -1, 1) if layout[1] else got, first)


def test_a_sum_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import _product, _tile

    case = random_problem(np.random.default_rng(3), (2, 33, 1, 3, 4), (5, 33, 1, 3, 3))
    for layout in EVERY_LAYOUT[:2]:
        whole = check(case, layout, residual=True)
        monkeypatch.setattr(_product, "choose", lambda *_: (_tile.SMALL, 1))
        np.testing.assert_array_equal(check(case, layout, residual=True), whole)
        monkeypatch.undo()


def test_winograd_is_the_direct_convolution() -> None:
    x, weight = np.float32(np.arange(50)).reshape(1, 2, 1, 5, 5) / 50, np.float32(np.arange(54)).reshape(3, 2, 1, 3, 3) / 54
    out = np.full((1, 3, 1, 5, 5), np.nan, np.float32)
    pads = (0, 0, 1, 1, 1, 1)
    agree("winograd", x, None, out, pads, False, False, None, activation("relu"), pack=(weight, None, 4, 1), rtol=ATOL, atol=ATOL)

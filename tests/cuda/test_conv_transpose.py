"""Transposed convolutions next to the reference: phases, those without a tap, crops and pads, groups, both layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import LimitError

from ..kernels.space import FIRST, LAST, Layout
from .calls import activation, agree, numbers, requires_cuda

pytestmark = requires_cuda
ATOL = 1e-5
LAYOUTS: tuple[Layout, ...] = (FIRST, LAST, (False, True), (True, False))

# x, weight, the result's size, stride, dilation, groups, pads.
CASES: tuple[tuple[Any, ...], ...] = (
    ((1, 3, 1, 3, 4), (3, 5, 1, 4, 4), (1, 6, 8), (1, 2, 2), (1, 1, 1), 1, (0, 0, 1, 1, 1, 1)),
    ((2, 4, 1, 2, 3), (4, 4, 1, 2, 2), (1, 4, 6), (1, 2, 2), (1, 1, 1), 1, (0,) * 6),
    ((1, 4, 1, 3, 3), (4, 3, 1, 3, 2), (1, 5, 8), (1, 1, 1), (1, 1, 3), 2, (0, 0, 0, 0, -2, 0)),
    ((1, 2, 1, 1, 5), (2, 3, 1, 1, 2), (1, 1, 16), (1, 1, 3), (1, 1, 1), 1, (0, 0, 0, 0, 1, 0)),  # some outputs have no tap
    ((1, 2, 2, 2, 2), (2, 2, 2, 2, 2), (3, 3, 4), (2, 1, 2), (1, 2, 1), 1, (1, 0, 0, 0, 0, 0)),
    ((1, 2, 1, 1, 3), (2, 2, 1, 1, 70), (1, 1, 70), (1, 1, 1), (1, 1, 1), 1, (0, 0, 0, 0, 1, 1)),  # more taps than bits
    ((1, 2, 1, 0, 2), (2, 2, 1, 1, 1), (1, 2, 2), (1, 1, 1), (1, 1, 1), 1, (0,) * 6),
    ((0, 2, 1, 2, 2), (2, 2, 1, 1, 1), (1, 2, 2), (1, 1, 1), (1, 1, 1), 1, (0,) * 6),
    ((1, 0, 1, 2, 2), (0, 2, 1, 2, 2), (1, 3, 3), (1, 1, 1), (1, 1, 1), 1, (0,) * 6),
)


@pytest.mark.parametrize("i", range(len(CASES)))
def test_layouts(i: int) -> None:
    x, weight, space, stride, dilation, groups, pads = CASES[i]
    given, w, bias = numbers(*x), numbers(*weight, seed=1), numbers(weight[1] * groups, seed=2)
    results = []
    for x_last, out_last in LAYOUTS:
        source = np.ascontiguousarray(np.moveaxis(given, 1, -1)) if x_last else given
        out = np.full((x[0], *space, len(bias)) if out_last else (x[0], len(bias), *space), np.nan, np.float32)
        pack = (w, bias if i % 2 else None, stride, dilation, groups)
        arguments = (source, None, out, pads, x_last, out_last, activation("relu"))
        got = agree("conv_transpose", *arguments, pack=pack, rtol=ATOL, atol=ATOL)[0]
        results.append(np.moveaxis(got, -1, 1) if out_last else got)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_too_many_phases() -> None:
    from fastlayers.kernels.cuda.conv_transpose import conv_transpose_pack

    with pytest.raises(LimitError, match="number of phases"):
        conv_transpose_pack(numbers(1, 1, 1, 1, 1), None, (1, 300, 300), (1, 1, 1), 1)

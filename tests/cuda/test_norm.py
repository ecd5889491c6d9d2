"""Normalization: rows in registers and long ones, groups, affine maps, local response."""

from __future__ import annotations

import numpy as np
import pytest

from .calls import activation, agree, numbers, requires_cuda

pytestmark = requires_cuda
# Sums of a few hundred numbers near 1, and the reciprocal root of their mean.
TOLERANCE = {"rtol": 4e-6, "atol": 4e-6}


@pytest.mark.parametrize("shape", [(3, 1), (1, 33), (2, 1030), (0, 4), (3, 0)], ids=str)
@pytest.mark.parametrize("rms", [False, True])
def test_layer_norm(shape: tuple[int, int], rms: bool) -> None:
    x, n = numbers(*shape) + np.float32(3), shape[1]
    agree("layer_norm", x, numbers(n), numbers(n, seed=1), np.empty_like(x), 1e-5, rms, **TOLERANCE)
    agree("layer_norm", x, None, None, np.empty_like(x), 1e-5, rms, **TOLERANCE)
    agree("layer_norm", x, numbers(n), None, x, 1e-3, rms, **TOLERANCE)


def test_layer_norm_of_special_values() -> None:
    x = numbers(3, 6)
    x[0, 1], x[1, 2] = np.nan, np.inf
    agree("layer_norm", x, None, None, np.empty_like(x), 1e-5, False, **TOLERANCE)


@pytest.mark.parametrize(("shape", "groups"), [((2, 6, 5), 3), ((1, 4, 7), 1), ((1, 4, 9), 4), ((2, 6, 1), 2), ((0, 4, 2), 2)])
def test_group_norm(shape: tuple[int, int, int], groups: int) -> None:
    x, c = numbers(*shape) + np.float32(2), shape[1]
    agree("group_norm", x, numbers(c), numbers(c, seed=1), np.empty_like(x), groups, 1e-5, **TOLERANCE)
    agree("group_norm", x, None, None, np.empty_like(x), groups, 1e-5, **TOLERANCE)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 8), (5, 8, 1), (5, 3, 1), (1, 1, 4), (0, 2, 3)], ids=str)
def test_affine(shape: tuple[int, int, int]) -> None:
    x = numbers(*shape)
    for f in (activation("identity"), activation("relu"), activation("clip", -0.5, 0.25)):
        agree("affine", x, numbers(shape[1]), numbers(shape[1], seed=1), np.empty_like(x), f)
        agree("affine", x, numbers(shape[1]), numbers(shape[1], seed=1), x, f)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 7, 1)], ids=str)
def test_lrn(shape: tuple[int, int, int], size: int) -> None:
    x = numbers(*shape)
    agree("lrn", x, np.empty_like(x), size, 0.1, 0.75, 1.0)

"""Softmax and log-softmax: rows in registers, long rows, columns."""

from __future__ import annotations

import numpy as np
import pytest

from .calls import agree, numbers, requires_cuda

pytestmark = requires_cuda
SHAPES = (
    (3, 1, 1),
    (2, 5, 1),
    (3, 32, 1),
    (1, 33, 1),
    (2, 70, 1),
    (1, 1025, 1),
    (2, 5, 3),
    (1, 65, 2),
    (2, 3, 40),
    (0, 3, 1),
    (2, 0, 3),
)


@pytest.mark.parametrize("kernel", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(kernel: str, shape: tuple[int, int, int]) -> None:
    x = numbers(*shape, scale=4)
    # a logarithm near 20 is a few ulp of 20 off
    agree(kernel, x, np.empty_like(x), rtol=2e-6, atol=2e-6, repeat=shape == (2, 5, 3))


@pytest.mark.parametrize("kernel", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(6, 5, 1), (6, 1030, 1), (1, 5, 6), (1, 64, 6)], ids=str)
def test_special_values(kernel: str, shape: tuple[int, int, int]) -> None:
    """NaN, an infinity, minus infinity first or everywhere, values that would overflow: each in a column of its own."""
    x = numbers(*shape)
    columns = x[:, :, 0] if shape[2] == 1 else x[0].T
    columns[0, 1] = np.nan
    columns[1, 2] = np.inf
    columns[2, :2] = -np.inf
    columns[3] = -np.inf
    columns[4] *= 1e30
    agree(kernel, x, np.empty_like(x), rtol=2e-6, atol=2e-6)

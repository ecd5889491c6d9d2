"""Elementwise functions, PReLU, gated units."""

from __future__ import annotations

import numpy as np
import pytest

from fastlayers.kernels.table import UNARY

from .calls import activation, agree, numbers, requires_cuda

pytestmark = requires_cuda
# libdevice's functions are within 4 ulp together with what is around them; where one cancels, 2^-21 (erfc alone has 6 ulp).
RTOL, ATOL = 8 * 2.0**-23, 2.0**-21
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4028235e38, -3.4028235e38, 1e-45, -1e-45], np.float32)


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(name: str) -> None:
    f = activation(name, -1.0, 2.0) if name == "clip" else activation(name)
    x = numbers(37, scale=4)
    agree("unary", x, np.full(37, 77, np.float32), f, rtol=RTOL, atol=ATOL)
    got = agree("unary", x, x, f, rtol=RTOL, atol=ATOL)  # in place
    special = SPECIAL if name != "softplus" else SPECIAL[:5]
    agree("unary", special, np.empty_like(special), f, rtol=RTOL, atol=ATOL)
    assert np.isnan(agree("unary", np.full(4, np.nan, np.float32), np.empty(4, np.float32), f)).all()
    assert got[0].shape == x.shape


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 31, 127, 128, 129, 515])
def test_sizes(size: int) -> None:
    agree("unary", numbers(size), np.full(size, 77, np.float32), activation("silu"), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 3, 0), (1, 1, 1), (3, 5, 1), (2, 3, 7), (1, 2, 65)], ids=str)
def test_prelu(shape: tuple[int, int, int]) -> None:
    x = numbers(*shape)
    agree("prelu", x, numbers(shape[1], seed=1), np.empty_like(x))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (1, 1), (5, 1), (3, 7), (2, 33)], ids=str)
@pytest.mark.parametrize("gate", [0, 1])
def test_gated(shape: tuple[int, int], gate: int) -> None:
    agree("gated", numbers(shape[0], 2, shape[1]), np.empty(shape, np.float32), activation("gelu"), gate, rtol=RTOL, atol=ATOL)

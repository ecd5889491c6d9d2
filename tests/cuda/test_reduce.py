"""Reductions: by thread, by block, in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from fastlayers.kernels.table import REDUCE

from .calls import agree, numbers, requires_cuda

pytestmark = requires_cuda
SHAPES = ((2, 70, 1), (2, 5, 3), (1, 65, 2), (0, 3, 1), (1, 0, 3), (2, 3, 0), (1, 1, 1))


@pytest.mark.parametrize("op", sorted(REDUCE))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(op: str, shape: tuple[int, int, int]) -> None:
    x = numbers(*shape) if op != "log_sum" else np.abs(numbers(*shape))
    out = np.full((shape[0], shape[2]), 77, np.float32)
    agree("reduce", x, out, REDUCE[op], rtol=4e-6, atol=4e-6)  # up to 70 numbers near 1
    if x.size:
        x.reshape(-1)[0] = np.nan
        x.reshape(-1)[-1] = -np.inf if op != "log_sum" else np.inf
        agree("reduce", x, out, REDUCE[op], rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("op", ["mean", "l2", "max"])
def test_pieces(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import reduce

    monkeypatch.setattr(reduce, "PIECE", 40)
    for shape in ((1, 100, 1), (2, 81, 1), (1, 161, 2)):
        agree(
            "reduce", numbers(*shape), np.empty((shape[0], shape[2]), np.float32), REDUCE[op], rtol=4e-6, atol=4e-6, repeat=True
        )

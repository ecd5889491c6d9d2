"""Reductions: by thread, by block, in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from fastlayers.kernels.table import KINDS, REDUCE

from .calls import agree, numbers, requires_cuda

pytestmark = requires_cuda
SHAPES = ((2, 70, 1), (2, 5, 3), (1, 65, 2), (0, 3, 1), (1, 0, 3), (2, 3, 0), (1, 1, 1))


@pytest.mark.parametrize("op", sorted(REDUCE))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(op: str, shape: tuple[int, int, int]) -> None:
    x = numbers(*shape) if op != "log_sum" else np.abs(numbers(*shape))
    out = np.full((shape[0], shape[2]), 77, np.float32)
    agree("reduce", x, out, REDUCE[op], rtol=4e-6, atol=4e-6)  # up to 70 values near 1
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


@pytest.mark.parametrize("op", REDUCE)
def test_more_columns_than_blocks(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import reduce

    monkeypatch.setattr(reduce, "MOST_BLOCKS", 2)
    agree("reduce", numbers(5, 3, 1), np.empty((5, 1), np.float32), REDUCE[op], rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(dtype: str, exclusive: bool, reverse: bool) -> None:
    for shape in ((2, 5, 3), (1, 40, 1), (2, 1, 2), (0, 2, 1)):
        x = (numbers(*shape) * 100).astype(dtype)
        agree("running_sum", x, np.empty_like(x), KINDS[dtype], exclusive, reverse, rtol=0, atol=0)
    if dtype == "float32":
        x = np.array([np.inf, 1, -np.inf, np.nan, 2], np.float32).reshape(1, 5, 1)
        agree("running_sum", x, np.empty_like(x), KINDS[dtype], exclusive, reverse)

"""Products: sizes around tiles, both ways that operands are, chains of 256 terms, their order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fastlayers.kernels import dispatch

from .calls import activation, agree, numbers, requires_cuda, run

pytestmark = requires_cuda
ATOL = 2e-5  # sums of a few hundred products of normal numbers
IDENTITY = activation("identity")


def linear(m: int, k: int, n: int, function: str = "identity", bias: bool = True, residual: bool = False) -> np.ndarray:
    out = np.full((m, n), np.nan, np.float32)
    more = numbers(m, n, seed=2) if residual else None
    pack = (numbers(n, k, seed=1), numbers(n) if bias else None)
    return agree("linear", numbers(m, k), None, out, more, activation(function), pack=pack, atol=ATOL)[0]


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 31, 32, 33])
def test_rows(m: int) -> None:
    linear(m, 5, 3, "relu", residual=True)


@pytest.mark.parametrize(("k", "n"), [(0, 3), (1, 1), (8, 31), (15, 32), (17, 33), (16, 36), (20, 4)])
def test_terms_and_columns(k: int, n: int) -> None:
    for m in (3, 5):
        linear(m, k, n, bias=n % 2 == 0)


def test_nothing() -> None:
    for m, k, n in ((0, 3, 4), (3, 4, 0), (9, 4, 0)):
        assert linear(m, k, n).size == 0


@pytest.mark.parametrize("function", ["clip", "gelu"])
def test_activations(function: str) -> None:
    for m in (2, 6):
        linear(m, 6, 5, function, residual=True)


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    "shape", [(2, 2, 5, 7, 9), (1, 3, 4, 8, 12), (3, 1, 4, 8, 12), (1, 1, 33, 9, 3), (2, 2, 3, 0, 4)], ids=str
)
def test_batches(shape: tuple[int, ...], transpose_b: bool) -> None:
    a_batch, b_batch, m, k, n = shape
    a, b = numbers(a_batch, m, k), numbers(b_batch, *((n, k) if transpose_b else (k, n)), seed=1)
    agree("matmul", a, b, np.full((max(a_batch, b_batch), m, n), np.nan, np.float32), transpose_b, activation("relu"), atol=ATOL)


def chained(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """x wᵀ in the order of the contract, without fused multiply-adds."""
    total = np.zeros((len(x), len(w)), np.float32)
    for begin in range(0, x.shape[1], 256):
        part = np.zeros_like(total)
        for k in range(begin, min(begin + 256, x.shape[1])):
            part += np.outer(x[:, k], w[:, k])
        total = total + part if begin else part
    return total


@pytest.mark.parametrize("k", [255, 257, 520])
def test_order_of_summation(k: int) -> None:
    """The simulator has no fused multiply-add; the GPU has, as have most levels of the compiled engine."""
    from fastlayers.kernels.cuda._cuda import SIMULATED

    x, w = numbers(6, k), numbers(4, k, seed=1)
    want = chained(x, w)
    if not SIMULATED:
        if "aot/x86_v3" not in dispatch.available():
            pytest.skip("nothing here adds as the GPU does")
        with dispatch.use("aot/x86_v3"):
            dispatch.kernel("linear")(x, dispatch.kernel("linear_pack")(w, None), want, None, IDENTITY)
    for rows in (2, 6):  # two kernels
        out = np.empty((rows, 4), np.float32)
        np.testing.assert_array_equal(run("cuda", "linear", (x[:rows], None, out, None, IDENTITY), (w, None))[0], want[:rows])
    got = run("cuda", "matmul", (x[None], w[None], np.empty((1, 6, 4), np.float32), True, IDENTITY))[0]
    np.testing.assert_array_equal(got[0], want)


def test_parts_and_tiles_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import _product, _tile

    x, w, bias, more = numbers(5, 520), numbers(6, 520, seed=1), numbers(6), numbers(5, 6, seed=2)
    arguments = (x, None, np.empty((5, 6), np.float32), more, activation("relu"))
    results = []
    for tile, share in ((_tile.SMALL, 1), (_tile.SMALL, 2), (_tile.SHORT, 3)):
        monkeypatch.setattr(_product, "choose", lambda *_, choice=(tile, share): choice)
        results.append(run("cuda", "linear", arguments, (w, bias))[0])
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("name", ["LARGE", "MEDIUM", "NARROW"])
def test_larger_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import _product, _tile

    tile = getattr(_tile, name)
    monkeypatch.setattr(_product, "choose", lambda *_: (tile, 1))
    linear(tile.rows + 1, 9, tile.columns - 1, "relu", residual=True)


def test_special_values() -> None:
    for m in (2, 5):
        x = numbers(m, 20)
        x[0, 3], x[1, 4] = np.nan, np.inf
        got = agree(
            "linear", x, None, np.empty((m, 7), np.float32), None, activation("relu"), pack=(numbers(7, 20), None), atol=ATOL
        )
        assert np.isnan(got[0][0]).all() and not np.isfinite(got[0][1]).all() and np.isfinite(got[0][2:]).all()


def test_the_choice_of_a_tile() -> None:
    from fastlayers.kernels.cuda._product import choose

    for rows, columns, terms, count in product((1, 40, 5000), (1, 40, 5000), (0, 1, 5000), (1, 70)):
        tile, share = choose(rows, columns, terms, count, count == 1)
        assert 1 <= share <= max(-(-terms // 256), 1)
        assert tile.threads % 32 == 0 and tile.threads <= 256

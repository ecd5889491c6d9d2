"""Batched products: torch's figures, awkward sizes, both ways to be, the bits of `linear`, special values, threads."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import matmul as reference
from fastlayers.kernels.table import UNARY, Activation
from tests.goldens import make_attention
from tests.guard import guarded, guarded_empty

from .space import bits

IDENTITY = Activation(0)
GOLDEN = make_attention.__file__.replace("make_attention.py", "attention.npz")
# Rows around tiles and the limits up to which b is read in place; columns around panels and strips; terms around a block.
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 65)
COLUMNS = (1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 80, 96, 128, 129, 144)
TERMS = (0, 1, 2, 3, 5, 8, 31, 255, 256, 257, 513)
across = pytest.mark.parametrize("transpose_b", [False, True], ids=["(k, n)", "(n, k)"])


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def run(a: np.ndarray, b: np.ndarray, transpose_b: bool, activation: Activation = IDENTITY, edge: str = "") -> np.ndarray:
    """The current variant's product of a and b, which is (b, k, n) here however the kernel gets it. Inputs are read-only."""
    shape = (max(len(a), len(b)) if len(a) and len(b) else 0, a.shape[1], b.shape[2])
    out = guarded_empty(shape, edge) if edge else np.full(shape, 77, np.float32)
    b = b.swapaxes(1, 2) if transpose_b else b
    inputs = [guarded(x, edge) if edge else np.array(x, order="C") for x in (a, b)]
    for x in inputs:
        x.flags.writeable = False
    dispatch.kernel("matmul")(*inputs, out, transpose_b, activation)
    return out


def close(a: np.ndarray, b: np.ndarray, got: np.ndarray, activation: Activation = IDENTITY) -> None:
    """Within 16 units of 2^-24 of the sum of the magnitudes: sums in blocks of 256 terms err by less in practice."""
    want = np.empty_like(got)
    reference.matmul(a, b, want, False, activation)
    bound = 16 * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)) + 2.0**-22
    error = np.abs(got.astype(np.float64) - want)
    assert not np.any(error > bound), f"{np.max(error / bound):.2f} times the bound"


@pytest.mark.parametrize("number", range(len(make_attention.MATMUL)))
@across
def test_torch(number: int, transpose_b: bool, variant: str) -> None:
    a, b, y = (golden()[f"matmul.{number}.{name}"] for name in ("a", "b", "y"))
    np.testing.assert_allclose(run(a, b, transpose_b), y, rtol=0, atol=3e-5)


@across
@pytest.mark.parametrize("m", ROWS)
def test_sizes(m: int, transpose_b: bool, variant: str) -> None:
    for i, (n, k) in enumerate(product(COLUMNS, (1, 7, 64))):
        a, b = numbers(2, m, k), numbers(2, k, n)
        close(a, b, run(a, b, transpose_b, edge=("start", "end")[i % 2]))


@across
@pytest.mark.parametrize("k", TERMS)
def test_terms(k: int, transpose_b: bool, variant: str) -> None:
    for (m, n), edge in product(((1, 1), (3, 40), (5, 70), (20, 130), (70, 20)), ("start", "end")):
        a, b = numbers(1, m, k), numbers(1, k, n)
        close(a, b, run(a, b, transpose_b, edge=edge))


@across
def test_nothing_to_do(transpose_b: bool, variant: str) -> None:
    for batch, m, n in ((0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0), (2, 0, 300)):
        assert run(numbers(batch, m, 5), numbers(batch, 5, n), transpose_b).size == 0
    for m, n in ((2, 3), (20, 100)):
        got = run(numbers(2, m, 0), numbers(2, 0, n), transpose_b, Activation(UNARY["sigmoid"].code))
        np.testing.assert_array_equal(got, np.full((2, m, n), 0.5, np.float32))


@across
def test_batches(transpose_b: bool, variant: str) -> None:
    """An operand may have one entry for the whole batch; the result is that of each entry alone, bit for bit."""
    for (ba, bb), m, n in product(((1, 3), (3, 1), (3, 3), (1, 1)), (1, 5, 30), (10, 33, 64, 300)):
        a, b = numbers(ba, m, 50), numbers(bb, 50, n)
        got = run(a, b, transpose_b, edge="end")
        close(a, b, got)
        for i in range(len(got)):
            alone = run(a[i % ba : i % ba + 1], b[i % bb : i % bb + 1], transpose_b)
            if variant == "reference":
                np.testing.assert_allclose(got[i], alone[0], rtol=0, atol=1e-4)
            else:
                np.testing.assert_array_equal(bits(got[i]), bits(alone[0]))


@across
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 16, 17, 100])
@pytest.mark.without("reference")  # numpy orders its own sums
def test_bits_of_linear(m: int, transpose_b: bool, variant: str) -> None:
    """The order of summation is the contract's, whichever way a product takes."""
    for n, k in product((5, 16, 33, 64, 70, 257), (9, 256, 300, 777)):
        a, b = numbers(1, m, k), numbers(1, k, n)
        for name in ("identity", "relu", "gelu"):
            activation = Activation(UNARY[name].code)
            packed = dispatch.kernel("linear_pack")(np.ascontiguousarray(b[0].T), None)
            want = np.empty((m, n), np.float32)
            dispatch.kernel("linear")(a[0], packed, want, None, activation)
            np.testing.assert_array_equal(bits(run(a, b, transpose_b, activation)[0]), bits(want))


@across
def test_activations(transpose_b: bool, variant: str) -> None:
    for name, (m, n) in product(("relu", "clip", "tanh", "gelu"), ((3, 20), (20, 70))):
        activation = Activation(UNARY[name].code, *((-0.5, 0.5) if name == "clip" else UNARY[name].defaults))
        a, b = numbers(2, m, 30), numbers(2, 30, n)
        close(a, b, run(a, b, transpose_b, activation), activation)


@across
def test_special_values(transpose_b: bool, variant: str) -> None:
    """What is not finite spoils its row or its column, none next to it."""
    for value, m, n in product((np.nan, np.inf), (2, 6, 20), (3, 18, 100, 300)):
        a, b = np.abs(numbers(2, m, 40)) + 1, np.abs(numbers(2, 40, n)) + 1
        plain = run(a, b, transpose_b)
        a[1, 1, 39], b[0, 7, n - 1] = value, value
        got = run(a, b, transpose_b)
        spoilt = np.zeros(got.shape, bool)
        spoilt[1, 1], spoilt[0, :, n - 1] = True, True
        assert not np.isfinite(got[spoilt]).any()
        np.testing.assert_array_equal(got[~spoilt], plain[~spoilt])


@across
@pytest.mark.parametrize(
    "shape", [(1, 1500, 64, 70), (1, 3, 700, 3000), (20, 64, 64, 64), (1, 4000, 30, 20), (2, 90, 300, 600)], ids=str
)
def test_threads(shape: tuple[int, int, int, int], transpose_b: bool, variant: str) -> None:
    batch, m, k, n = shape
    a, b = numbers(batch, m, k), numbers(batch, k, n)
    before = fl.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            fl.set_num_threads(threads)
            results.append(run(a, b, transpose_b))
    finally:
        fl.set_num_threads(before)
    np.testing.assert_array_equal(bits(results[1]), bits(results[0]))
    close(a, b, results[0])


def test_comparison_can_fail() -> None:
    a, b = numbers(1, 4, 9), numbers(1, 9, 5)
    got = run(a, b, False)
    close(a, b, got)
    got[0, 2, 3] += 1e-4
    with pytest.raises(AssertionError, match="times the bound"):
        close(a, b, got)

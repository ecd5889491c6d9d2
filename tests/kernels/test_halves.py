"""Weights of 16 bits: every variant next to the reference, whose weights are rounded by numpy."""

from __future__ import annotations

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ArgumentError
from fastlayers.kernels import dispatch
from fastlayers.kernels.halves import narrowed, rounded, widened
from fastlayers.kernels.reference import gemm as reference
from fastlayers.kernels.reference import recurrent as recurrent_reference
from fastlayers.kernels.table import EXACT_BFLOAT16, HALVES, UNARY, Activation, GruOptions, LstmOptions, RnnOptions

BRAIN = HALVES["bfloat16"]
IDENTITY, RELU, GELU = (Activation(UNARY[name].code) for name in ("identity", "relu", "gelu"))
# Rows, terms, columns: nothing, one, edges of panels, tiles, pairs and blocks of K, primes.
SIZES = [
    (0, 3, 5), (3, 0, 5), (3, 5, 0), (1, 1, 1), (1, 2, 16), (1, 255, 17), (1, 256, 128), (1, 257, 129), (1, 513, 271),
    (2, 31, 47), (6, 256, 64), (7, 511, 65), (13, 300, 31), (49, 129, 80), (97, 258, 33), (257, 17, 100),
    (3, 257, 31), (4, 40, 33), (5, 300, 48), (8, 33, 16), (9, 512, 17), (16, 270, 47), (17, 40, 40),
]  # fmt: skip


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def test_rounding_is_to_nearest_even() -> None:
    exact = np.array([1.0, 1 + 2**-7, 0.0, -0.0, np.inf, -np.inf, 2.0**-126], np.float32)
    np.testing.assert_array_equal(rounded(exact, BRAIN).view(np.uint32), exact.view(np.uint32))
    between = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4e38], np.float32)
    np.testing.assert_array_equal(rounded(between, BRAIN), np.array([1, 1 + 2**-6, 1 + 2**-7, np.inf], np.float32))
    assert np.isnan(rounded(np.array([np.nan, -np.nan], np.float32), BRAIN)).all()
    quiet = np.array([0x7F800001], np.uint32).view(np.float32)  # its upper half alone would be infinity
    assert np.isnan(rounded(quiet, BRAIN)).all()
    np.testing.assert_array_equal(rounded(normal(99), 1), normal(99).astype(np.float16).astype(np.float32))
    np.testing.assert_array_equal(rounded(between, EXACT_BFLOAT16), rounded(between, BRAIN))
    with pytest.raises(ArgumentError, match="half is 4"):
        rounded(normal(2), 4)


def linear(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, half: int, residual: np.ndarray | None, act: Activation
) -> np.ndarray:
    packed = dispatch.kernel("linear_half_pack")(weight, bias, half)
    out = np.full((x.shape[0], weight.shape[0]), np.nan, np.float32)
    dispatch.kernel("linear")(x, packed, out, residual, act)
    return out


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_products_agree_with_the_reference(variant: str, half: int) -> None:
    for m, k, n in SIZES:
        weight, bias, residual = normal(n, k), normal(n), normal(m, n)
        x = rounded(normal(m, k, seed=1), half if half == BRAIN else 0)  # of which no processor rounds any more
        for b, r, act in ((None, None, IDENTITY), (bias, residual, RELU), (bias, None, GELU)):
            want = np.empty((m, n), np.float32)
            reference.linear(x, reference.linear_half_pack(weight, b, half), want, r, act)
            found = linear(x, weight, b, half, r, act)
            # float32 sums of at most 513 terms of magnitude 1
            np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5, err_msg=f"{m} {k} {n}")


@pytest.mark.parametrize("half", [HALVES["float16"], EXACT_BFLOAT16])
def test_weights_that_have_16_bits_give_the_bits_of_the_same_in_float32(variant: str, half: int) -> None:
    pack = dispatch.kernel("linear_pack")
    for m, k, n in SIZES:
        stored, bias, residual, x = narrowed(normal(n, k), half), normal(n), normal(m, n), normal(m, k, seed=1)
        want, wide = np.empty((m, n), np.float32), widened(stored, half)
        dispatch.kernel("linear")(x, pack(wide, bias), want, residual, RELU)
        for weight in (stored, np.asfortranarray(stored), wide):
            weight = weight if variant.startswith("aot") else np.ascontiguousarray(weight)
            np.testing.assert_array_equal(linear(x, weight, bias, half, residual, RELU), want, err_msg=f"{m} {k} {n}")


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_a_row_has_the_same_bits_in_every_batch_and_with_any_threads(variant: str, half: int) -> None:
    for k, n in ((257, 129), (1024, 1040)):
        x, weight, bias = normal(70, k), normal(n, k), normal(n)
        fl.set_num_threads(1)
        whole = linear(x, weight, bias, half, None, RELU)
        for rows in (slice(0, 1), slice(1, 3), slice(2, 5), slice(3, 9), slice(4, 20), slice(20, 70)):
            np.testing.assert_array_equal(linear(np.ascontiguousarray(x[rows]), weight, bias, half, None, RELU), whole[rows])
        fl.set_num_threads(2)
        np.testing.assert_array_equal(linear(x, weight, bias, half, None, RELU), whole)


def test_rounding_x_too_stays_within_its_bound(variant: str) -> None:
    x, weight = normal(5, 300), normal(40, 300)
    exact = x.astype(np.float64) @ rounded(weight, BRAIN).T.astype(np.float64)
    bound = 2**-8 * (np.abs(x) @ np.abs(weight).T) + 1e-4
    assert (np.abs(linear(x, weight, None, BRAIN, None, IDENTITY) - exact) <= bound).all()


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_extreme_numbers(variant: str, half: int) -> None:
    weight = normal(33, 40)
    weight[0, 0], weight[1, 1], weight[2, 2], weight[32, 39] = np.nan, np.inf, -np.inf, 6.1e-8
    for x in (normal(1, 40), normal(9, 40)):
        x = rounded(x, BRAIN)
        found = linear(x, weight, None, half, None, RELU)
        assert np.isnan(found[:, 0]).all()
        np.testing.assert_array_equal(found[:, 1], np.where(x[:, 1] > 0, np.inf, 0))
        np.testing.assert_array_equal(found[:, 2], np.where(x[:, 2] < 0, np.inf, 0))
        assert np.isfinite(found[:, 3:]).all()
        x[0, 5] = np.nan
        assert np.isnan(linear(x, weight, None, half, None, IDENTITY)[0]).all()


@pytest.mark.without("reference")
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_layers_agree_with_the_reference(variant: str, half: int) -> None:
    def weights(d: int, gates: int, i: int, h: int) -> list[np.ndarray]:
        scale = np.float32(1 / np.sqrt(h + i))
        return [normal(d, gates * h, i) * scale, normal(d, gates * h, h, seed=1) * scale, normal(d, gates * h) * scale,
                normal(d, gates * h, seed=2) * scale]  # fmt: skip

    for b, i, h, d in ((1, 5, 7, 1), (1, 33, 65, 2), (3, 16, 32, 1), (20, 31, 129, 1), (1, 40, 272, 1)):
        x = normal(4, b, i)
        for kind, gates, options in (
            ("lstm", 4, LstmOptions(half=half)), ("gru", 3, GruOptions(half=half)),
            ("gru", 3, GruOptions(reset_after=False, half=half)), ("rnn", 1, RnnOptions(half=half)),
        ):  # fmt: skip
            given = weights(d, gates, i, h)
            also = [normal(d, 3 * h), None] if kind == "lstm" else []
            if kind == "lstm" and h == 65:
                given[1], also = normal(d, 4 * h, 30) * np.float32(0.1), [None, normal(d, 30, h) * np.float32(0.1)]
            outs = given[1].shape[2]
            states = [None, None] if kind == "lstm" else [None]
            found, want = (np.empty((4, b, d * outs), np.float32) for _ in range(2))
            for get, out in ((dispatch.kernel, found), (lambda name: getattr(recurrent_reference, name), want)):
                packed = get(f"{kind}_pack")(*given, *also, options)
                get(kind)(x, packed, *states, None, out, *states, False, False, False)
            # bfloat16 rounds x and h to 8 bits where the processor multiplies it
            tolerance = 2e-2 if half == BRAIN else 1e-5
            np.testing.assert_allclose(found, want, rtol=0, atol=tolerance, err_msg=f"{kind} {b} {i} {h} {d} {options}")


def test_a_half_that_there_is_not(variant: str) -> None:
    with pytest.raises(ArgumentError, match="half is 7"):
        dispatch.kernel("linear_half_pack")(normal(2, 2), None, 7)
    cases: tuple[tuple[str, int, object], ...] = (
        ("lstm", 4, LstmOptions(half=7)), ("gru", 3, GruOptions(half=7)), ("rnn", 1, RnnOptions(half=7)),
    )  # fmt: skip
    for kind, gates, options in cases:
        also = [None, None] if kind == "lstm" else []
        with pytest.raises(ArgumentError, match="half is 7"):
            dispatch.kernel(f"{kind}_pack")(normal(1, gates * 2, 2), normal(1, gates * 2, 2), None, None, *also, options)

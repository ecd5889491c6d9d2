"""Attention whose scores are wanted: masks of every shape, causality, lengths, rows that see nothing, special values, bits."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import scores as reference
from tests.guard import guarded, guarded_empty

KEYS = (0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65)
INFINITY = np.float32(np.inf)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def both(
    function: Any, inputs: list[Any], shape: tuple[int, ...], outs: int, *rest: Any, edge: str = ""
) -> list[list[np.ndarray]]:
    """What the current variant and the reference write."""
    found = []
    for call, at in ((dispatch.kernel(function), edge), (getattr(reference, function), "")):
        given = [None if x is None else guarded(x, at) if at else np.array(x, order="C") for x in inputs]
        for x in given:
            if x is not None:
                x.flags.writeable = False
        out = [guarded_empty(shape, at) if at else np.full(shape, 77, np.float32) for _ in range(outs)]
        call(*given, *out, *rest)
        found.append(out)
    return found


def weights_close(x: np.ndarray, mask: Any = None, lengths: Any = None, *rest: Any, edge: str = "") -> np.ndarray:
    got, want = both("attention_weights", [x, mask, lengths], x.shape, 2, *(rest or (0.5, False, 0, 0)), edge=edge)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)
    return got[1]


def test_sizes(variant: str) -> None:
    for keys, edge in product(KEYS, ("start", "end")):
        x = numbers(2, 2, 3, keys)
        weights_close(x, edge=edge)
        weights_close(x, None, np.array([keys, keys // 2]), 2.0, True, keys - 2, 1, edge=edge)


def test_every_shape_of_mask(variant: str) -> None:
    for full, low in product(product((False, True), repeat=4), (-INFINITY, np.float32(-1e9), np.float32(1.5))):
        shape = [n if keep else 1 for n, keep in zip((2, 3, 4, 19), full, strict=True)]
        mask = np.where(np.random.default_rng(1).random(shape) < 0.5, low, np.float32(0.5))
        for causal, lengths in product((False, True), (None, np.array([0, 12]))):
            weights_close(numbers(2, 3, 4, 19), mask, lengths, 0.7, causal, 5, 0, edge="end")


def test_rows_that_see_no_key(variant: str) -> None:
    for empty in (0, 1):
        mask = np.zeros((1, 1, 3, 9), np.float32)
        mask[0, 0, 1] = -np.inf
        got = weights_close(numbers(1, 2, 3, 9), mask, None, 1.0, False, 0, empty)
        np.testing.assert_array_equal(got[:, :, 1], np.full((1, 2, 9), np.nan if empty else 0))
        np.testing.assert_array_equal(
            weights_close(numbers(1, 1, 2, 5), None, np.array([-3]), 1.0, False, 0, empty)[0, 0, 0, 0], np.nan if empty else 0
        )


def test_special_values(variant: str) -> None:
    for value, place in product((np.nan, np.inf, -np.inf), (0, 7, 18)):
        x = numbers(1, 1, 3, 19)
        x[0, 0, 1, place] = value
        got = weights_close(x)
        assert np.isfinite(got[0, 0, ::2]).all()
    low = np.full((1, 1, 1, 19), -1e9, np.float32)
    np.testing.assert_allclose(weights_close(numbers(1, 1, 2, 19), low), np.full((1, 1, 2, 19), 1 / 19), rtol=1e-6)


@pytest.mark.parametrize("units", [0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 33, 64])
def test_additive(units: int, variant: str) -> None:
    for keys, edge in product((0, 1, 3, 4, 5, 9), ("start", "end")):
        q, k, scale = numbers(2, 3, units), numbers(2, keys, units), numbers(units)
        for factor in (scale, None):
            got, want = both("additive_scores", [q, k, factor], (2, 3, keys), 1, edge=edge)
            np.testing.assert_allclose(got[0], want[0], rtol=0, atol=1e-6 * max(1, units))


def test_additive_special_values(variant: str) -> None:
    for value in (np.nan, np.inf, -np.inf, 1e30):
        q, k, scale = numbers(1, 3, 19), numbers(1, 5, 19), numbers(19)
        q[0, 1, 17] = value
        k[0, 2, 3] = value
        got, want = both("additive_scores", [q, k, scale], (1, 3, 5), 1)
        np.testing.assert_allclose(got[0], want[0], rtol=0, atol=2e-5)


@pytest.mark.without("reference")  # numpy cuts no tasks
def test_threads(variant: str) -> None:
    x, q, k, scale = numbers(2, 3, 200, 150), numbers(2, 70, 64), numbers(2, 90, 64), numbers(64)
    before, found = fl.get_num_threads(), []
    try:
        for threads in (1, 2):
            fl.set_num_threads(threads)
            weights = both("attention_weights", [x, None, None], x.shape, 2, 0.3, True, 0, 0)[0][1]
            found.append((weights, both("additive_scores", [q, k, scale], (2, 70, 90), 1)[0][0]))
    finally:
        fl.set_num_threads(before)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)

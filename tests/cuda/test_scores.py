"""Attention's scores as arrays, additive scores, rotary positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .calls import agree, numbers, requires_cuda

pytestmark = requires_cuda


@pytest.mark.parametrize("keys", [1, 5, 40])
@pytest.mark.parametrize("axes", [None, (1, 1, 1, 1), (2, 1, 3, 1), (2, 2, 3, 0)], ids=str)
def test_attention_weights(keys: int, axes: Any) -> None:
    x = numbers(2, 2, 3, keys)
    mask = None if axes is None else numbers(*axes[:3], axes[3] or keys, seed=1)
    for lengths, causal, offset, empty in ((None, False, 0, 0), ([0, keys], True, 1, 1), (None, True, -1, 0)):
        counts = None if lengths is None else np.array(lengths, np.int64)
        given = mask, counts, np.empty_like(x), np.empty_like(x), 0.5, causal, offset, empty
        agree("attention_weights", x, *given, rtol=4e-6, atol=2e-6)


def test_attention_weights_in_place_and_special_values() -> None:
    x = numbers(1, 1, 4, 6)
    x[0, 0, 0, 1], x[0, 0, 1], x[0, 0, 2, :3] = np.nan, -np.inf, -np.inf
    agree("attention_weights", x, None, None, x, np.empty_like(x), 1.0, False, 0, 0, rtol=4e-6, atol=2e-6)
    nothing = numbers(0, 1, 4, 6)
    agree("attention_weights", nothing, None, None, np.empty_like(nothing), np.empty_like(nothing), 1.0, False, 0, 0)


@pytest.mark.parametrize("units", [0, 1, 33])
def test_additive_scores(units: int) -> None:
    q, k = numbers(2, 3, units), numbers(2, 4, units, seed=1)
    for scale in (None, numbers(units)):
        agree("additive_scores", q, k, scale, np.empty((2, 3, 4), np.float32), rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("o", "i", "d", "r"), [(2, 1, 8, 4), (1, 3, 6, 2), (1, 1, 5, 0)])
def test_rotary(o: int, i: int, d: int, r: int, interleaved: bool) -> None:
    x = numbers(2, o, 3, i, d)
    for entries in (1, 2):
        given = numbers(entries, 3, r), numbers(entries, 3, r, seed=1)
        agree("rotary", x, *given, np.empty_like(x), interleaved)

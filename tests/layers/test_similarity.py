"""Cosine similarity against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl

f = fl.functional


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def cosines(a: np.ndarray, b: np.ndarray, dim: int, eps: float) -> np.ndarray:
    x, y = np.broadcast_arrays(a.astype(np.float64), b.astype(np.float64))
    norms = (np.maximum(np.sqrt((v * v).sum(dim)), eps) for v in (x, y))
    return np.asarray((x * y).sum(dim) / np.prod([*norms], axis=0))


@pytest.mark.parametrize(("a", "b", "dim"), [
    ((2, 3, 4), (2, 3, 4), 1), ((5, 300), (5, 300), -1), ((7, 20), (1, 20), 1), ((2, 1, 4), (3, 4), 2), ((4,), (4,), 0),
    ((6, 1), (6, 9), 1), ((0, 3), (0, 3), 1), ((3, 0), (3, 0), 1),
])  # fmt: skip
@pytest.mark.parametrize("eps", [1e-8, 5.0])
def test_cosines(a: tuple[int, ...], b: tuple[int, ...], dim: int, eps: float, variant: str) -> None:
    x, y = random(*a), random(*b) + 0.5
    want = cosines(x, y, dim, eps)
    layer = fl.CosineSimilarity(dim, eps)
    for got in (f.cosine_similarity(x, y, dim, eps), layer(x, y), fl.compile(layer, x, y)(x, y)):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    named = fl.compile(layer, *(fl.graph.Input(name, ("n", *s[1:])) for name, s in (("x", a), ("y", b)))) if a == b else layer
    np.testing.assert_array_equal(named(x, y), layer(x, y))


def test_vectors_of_no_length_are_like_nothing() -> None:
    np.testing.assert_array_equal(f.cosine_similarity([[0.0, 0.0]], [[1.0, 2.0]]), [0.0])
    np.testing.assert_array_equal(f.cosine_similarity([[3.0, 4.0]], [[-3.0, -4.0]]), [-1.0])


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: f.cosine_similarity(random(2, 3), random(2, 4)), fl.ShapeError, "^cosine_similarity: operands have shapes"),
    (lambda: f.cosine_similarity(random(3), random(3)), fl.ShapeError, "^cosine_similarity: dim is 1"),
    (lambda: f.cosine_similarity(1.0, 2.0, 0), fl.ShapeError, "^cosine_similarity: x1 and x2 have no axes"),
    (lambda: fl.CosineSimilarity(eps=0), fl.ArgumentError, "eps is 0"),
    (lambda: fl.CosineSimilarity("x"), (fl.Error, TypeError), "^CosineSimilarity: dim is 'x'"),
    (lambda: f.cosine_similarity(np.ones(3, complex), np.ones(3), 0), fl.DTypeError, "^cosine_similarity: x1 has dtype complex"),
])  # fmt: skip
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()

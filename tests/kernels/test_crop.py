"""`crop`: parts of images, resized, next to bilinear interpolation place by place; edges, no size, NaN, threads."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch
from tests.guard import guarded

F = np.float32


def place(size: int, out: int, i: int, start: float, end: float) -> float:
    """Position of an output, in the order of operations of the specification, in float32."""
    if out == 1:
        return float(F(0.5 * float(F(start) + F(end)) * (size - 1)))
    return float(F(start) * F(size - 1) + F(i) * (F(end) - F(start)) * F(size - 1) / F(out - 1))


def expected(x: np.ndarray, roi: np.ndarray, shape: tuple[int, ...], value: float) -> np.ndarray:
    y = np.full(shape, value)
    for at in itertools.product(*map(range, shape)):
        axes = zip(x.shape, shape, at, roi[:4], roi[4:], strict=True)
        places = [place(*axis) for axis in axes]
        if all(0 <= p <= size - 1 for p, size in zip(places, x.shape, strict=True)):
            y[at] = 0
            for corner in itertools.product((0, 1), repeat=4):
                weight = math.prod(p - math.floor(p) if c else 1 - p + math.floor(p) for p, c in zip(places, corner, strict=True))
                if weight:
                    y[at] += weight * float(x[tuple(math.floor(p) + c for p, c in zip(places, corner, strict=True))])
    return y


SIZES = (
    ((1, 2, 5, 7), (1, 2, 3, 4), [0, 0, 0.1, 0.25, 1, 1, 0.9, 0.5]),
    ((1, 1, 5, 7), (1, 1, 1, 1), [0, 0, 0.2, 0.3, 1, 1, 0.8, 0.4]),
    ((2, 3, 4, 17), (2, 3, 4, 17), [0, 0, 0, 0, 1, 1, 1, 1]),  # itself
    ((1, 1, 6, 6), (1, 1, 5, 8), [0, 0, -0.3, 0.4, 1, 1, 1.2, 0.4]),  # partly outside, and of no width
    ((1, 1, 6, 6), (1, 1, 4, 3), [0, 0, 0.9, 1, 1, 1, 0.1, 0]),  # turned around
    ((3, 4, 1, 1), (2, 7, 2, 1), [0.1, 0, 0, 0.5, 0.9, 1, 1, 0.5]),  # along the others, too
    ((1, 1, 5, 5), (1, 1, 0, 3), [0, 0, 0, 0, 1, 1, 1, 1]),
    ((1, 1, 5, 5), (1, 1, 2, 3), [0, 0, math.nan, 0, 1, 1, 1, math.inf]),
)


@pytest.mark.parametrize("value", [0.0, -2.5])
def test_place_by_place(variant: str, value: float) -> None:
    """To 1e-6: sums of eight products at most, in double."""
    for shape, out, ends in SIZES:
        x = np.random.default_rng(0).standard_normal(shape).astype(F)
        found, roi = guarded(np.full(out, np.nan, F), "end"), np.array(ends, F)
        dispatch.kernel("crop")(guarded(x, "end"), guarded(roi, "end"), found, value)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found, expected(x, roi, out, value), 0, 1e-6)


def test_what_has_no_weight_is_not_read(variant: str) -> None:
    x = np.full((1, 1, 3, 3), np.inf, F)
    x[0, 0, ::2, ::2] = [[1, 2], [3, 4]]
    found = np.empty((1, 1, 2, 2), F)
    dispatch.kernel("crop")(x, np.array([0, 0, 0, 0, 1, 1, 1, 1], F), found, 0.0)
    np.testing.assert_array_equal(found[0, 0], [[1, 2], [3, 4]])


def test_any_number_of_threads_has_the_same_bits(variant: str) -> None:
    x, roi = np.random.default_rng(1).standard_normal((1, 64, 40, 40)).astype(F), np.array([0, 0, 0.1, 0.2, 1, 1, 0.7, 0.9], F)
    found, before = [], fl.get_num_threads()
    for threads in (1, 2):
        fl.set_num_threads(threads)
        out = np.empty((1, 64, 30, 30), F)
        dispatch.kernel("crop")(x, roi, out, 0.0)
        found.append(out)
    fl.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_nothing_is_made_of_no_elements() -> None:
    with pytest.raises(ShapeError, match="x has no elements"):
        dispatch.kernel("crop")(np.zeros((1, 1, 0, 3), F), np.zeros(8, F), np.zeros((1, 1, 2, 2), F), 0.0)

"""Kernels that are products of a column and a row: found, run as two passes, and against the dense kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.functional._conv_separable import separate

from ..goldens.front_cases import arrays

# Two sums of at most 15 terms, of kernels whose factors are rounded to float32.
TOLERANCE = 4e-6


def products(label: str, o: int, height: int, width: int) -> np.ndarray:
    """Kernels (o, 1, height, width) of rank 1."""
    column, row = arrays(label, (o, 1, height, 1), (o, 1, 1, width))
    return (column.astype(np.float64) * row).astype(np.float32)


def test_products_are_found() -> None:
    weight = products("found", 5, 7, 3)
    weight[2] = 0  # of no rank at all
    weight[3] *= 1e-30
    weight[4] *= 1e18
    found = separate(weight)
    assert found is not None
    column, row = found
    assert column.shape == (5, 1, 7, 1) and row.shape == (5, 1, 1, 3) and column.dtype == row.dtype == np.float32
    for made, want in zip(column.astype(np.float64) * row, weight, strict=True):
        np.testing.assert_allclose(made, want, rtol=0, atol=4e-7 * np.abs(want).max())


def test_one_kernel_that_is_none_is_enough() -> None:
    weight = products("one", 6, 5, 5)
    weight[5, 0] += (
        3e-6 * np.linalg.norm(weight[5, 0]) * np.linalg.svd(weight[5, 0])[0][:, 1:2] @ np.linalg.svd(weight[5, 0])[2][1:2]
    )
    assert separate(weight) is None
    assert separate(weight, tolerance=1e-5) is not None
    assert separate(weight[:5]) is not None
    weight[0, 0, 0, 0] = np.nan
    assert separate(weight[:1]) is None


def test_kernels_of_one_row_are_products() -> None:
    (weight,) = arrays("row", (3, 1, 1, 4))
    column, row = separate(weight)  # type: ignore[misc]
    np.testing.assert_allclose(column * row, weight, rtol=1e-6)


def test_wrong_arguments() -> None:
    for shape in ((3, 3), (2, 2, 3, 3), (0, 1, 3, 3), (2, 1, 0, 3)):
        with pytest.raises(fl.ShapeError, match="separate: weight has shape"):
            separate(np.ones(shape))
    with pytest.raises(fl.ArgumentError, match="separate: tolerance is -1"):
        separate(np.ones((1, 1, 2, 2)), -1)
    with pytest.raises(fl.ArgumentError, match="DepthwiseConv2d: separable is 'yes': expected 'auto', True or False"):
        fl.DepthwiseConv2d(3, 3, separable="yes")


PLACES: list[dict[str, Any]] = [
    {},
    {"padding": 3, "activation": "relu"},
    {"padding": "same", "stride": (2, 1)},
    {"padding": [(3, 1), (0, 2)], "stride": 3},
    {"padding": 4, "padding_mode": "reflect", "dilation": (1, 2)},
    {"padding": 2, "padding_mode": "circular", "bias": False},
]


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize(("channels", "multiplier"), [(4, 1), (3, 2), (1, 3)])
def test_two_passes_give_what_the_dense_kernel_gives(channels: int, multiplier: int, place: dict[str, Any], variant: str) -> None:
    weight = products(f"{place}", channels * multiplier, 7, 9)
    x, bias = arrays(f"{place}{channels}", (2, channels, 15, 17), (channels * multiplier,))
    state = {"weight": weight, "bias": bias} if place.get("bias", True) else {"weight": weight}

    def made(**options: Any) -> fl.Layer:
        layer = fl.DepthwiseConv2d(channels, (7, 9), depth_multiplier=multiplier, **place, **options)
        layer.load_state_dict(state)
        return layer

    want = made(separable=False)(x)
    bound = TOLERANCE * max(1.0, float(np.abs(want).max()))
    layer, last = made(), made(layout="nhwc", separable=True)
    np.testing.assert_allclose(layer(x), want, rtol=0, atol=bound)
    np.testing.assert_array_equal(layer(x), layer(x))
    np.testing.assert_array_equal(layer(x[0]), layer(x)[0])
    got = last(np.ascontiguousarray(np.moveaxis(x, 1, -1)))
    np.testing.assert_allclose(np.moveaxis(got, -1, 1), want, rtol=0, atol=bound)
    model = fl.compile(layer, x, require_native=variant != "reference")
    np.testing.assert_allclose(model(x), want, rtol=0, atol=bound)
    assert model.summary().count("Conv") == (2 if channels > 1 else 1)
    strict = fl.compile(layer, x, precision="strict")
    np.testing.assert_array_equal(strict(x), want)
    assert strict.summary().count("Conv") == 1


def test_other_kernels_stay_dense() -> None:
    (x, weight) = arrays("dense", (1, 4, 9, 9), (4, 1, 7, 7))
    dense = fl.DepthwiseConv2d(4, 7, bias=False, separable=False)
    layers = [fl.DepthwiseConv2d(4, 7, bias=False, separable=how) for how in ("auto", True)]
    for layer in (dense, *layers):
        layer.load_state_dict({"weight": weight})
        np.testing.assert_array_equal(layer(x), dense(x))
    small = products("small", 4, 5, 5)  # a product, but as fast in one pass
    one, two = (fl.DepthwiseConv2d(4, 5, bias=False, separable=how) for how in ("auto", False))
    for layer in (one, two):
        layer.load_state_dict({"weight": small})
    np.testing.assert_array_equal(one(x), two(x))


def test_a_load_decides_anew() -> None:
    x, dense = arrays("anew", (1, 3, 9, 9), (3, 1, 7, 7))
    layer = fl.DepthwiseConv2d(3, 7, bias=False)
    never = fl.DepthwiseConv2d(3, 7, bias=False, separable=False)
    for weight in (products("anew", 3, 7, 7), dense, products("again", 3, 7, 7)):
        for one in (layer, never):
            one.load_state_dict({"weight": weight})
        np.testing.assert_allclose(layer(x), never(x), rtol=0, atol=1e-4)

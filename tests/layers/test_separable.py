"""Depthwise and separable convolutions, against one dense convolution; weights of convolutions as Keras has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.functional as F

from ..goldens.front_cases import arrays

# Sums have at most 60 terms: float32 stays well within this part of the largest result.
TOLERANCE = 4e-6


def close(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape and got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * max(1.0, float(np.abs(want).max(initial=0))))


def dense(depthwise: np.ndarray, pointwise: np.ndarray, channels: int) -> np.ndarray:
    """The weights (o, c, ...) of the one convolution that does what both do, summed in float64, output by output."""
    multiplier = depthwise.shape[0] // channels
    weight = np.zeros((pointwise.shape[0], channels, *depthwise.shape[2:]))
    for o in range(pointwise.shape[0]):
        for c in range(channels):
            for m in range(multiplier):
                between = c * multiplier + m
                weight[o, c] += pointwise[o, between].astype(np.float64) * depthwise[between, 0]
    return weight


PLACES: list[dict[str, Any]] = [
    {},
    {"padding": "same", "stride": 2},
    {"padding": 2, "dilation": 2, "padding_mode": "reflect"},
    {"padding": 1, "padding_mode": "circular", "stride": 3},
]


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("multiplier", [1, 3])
def test_separable_is_one_dense_convolution(axes: int, multiplier: int, place: dict[str, Any], variant: str) -> None:
    label = f"{axes} {multiplier} {place}"
    x, depthwise, pointwise, bias = arrays(
        label, (2, 4, *(9, 7)[:axes]), (4 * multiplier, 1, *(3, 2)[:axes]), (5, 4 * multiplier, *(1, 1)[:axes]), (5,)
    )
    function, conv = getattr(F, f"separable_conv{axes}d"), getattr(F, f"conv{axes}d")
    want = conv(x, dense(depthwise, pointwise, 4), bias, activation="relu", **place)
    got = function(x, depthwise, pointwise, bias, depth_multiplier=multiplier, activation="relu", **place)
    close(got, want)
    np.testing.assert_array_equal(
        function(x[1], depthwise, pointwise, bias, depth_multiplier=multiplier, activation="relu", **place), got[1]
    )
    layer = getattr(fl, f"SeparableConv{axes}d")(
        4, 5, (3, 2)[:axes], depth_multiplier=multiplier, activation="relu", layout="nhwc", **place
    )
    layer.load_state_dict({"depthwise.weight": depthwise, "pointwise.weight": pointwise, "pointwise.bias": bias})
    close(np.moveaxis(layer(np.ascontiguousarray(np.moveaxis(x, 1, -1))), -1, 1), want)
    model = fl.compile(layer, np.moveaxis(x, 1, -1), require_native=variant != "reference")
    close(np.moveaxis(model(np.moveaxis(x, 1, -1)), -1, 1), want)


def state(layer: Any, seed: str) -> dict[str, np.ndarray]:
    shapes = layer.tensor_shapes()
    return dict(zip(shapes, arrays(seed, *shapes.values()), strict=True))


@pytest.mark.parametrize("axes", [1, 2])
def test_depthwise_is_a_convolution_of_groups(axes: int, variant: str) -> None:
    place: dict[str, Any] = {"stride": 2, "padding": 1, "activation": "relu"}
    layer = getattr(fl, f"DepthwiseConv{axes}d")(3, 3, depth_multiplier=2, **place)
    same = getattr(fl, f"Conv{axes}d")(3, 6, 3, groups=3, **place)
    weights = state(layer, "depthwise")
    for one in (layer, same):
        one.load_state_dict(weights)
    (x,) = arrays("x", (2, 3, *(8, 5)[:axes]))
    np.testing.assert_array_equal(layer(x), same(x))
    np.testing.assert_array_equal(fl.compile(layer, x)(x), same(x))


def keras_kernel(layer: Any, kernel: str, weight: np.ndarray) -> np.ndarray:
    """Keras' array, filled number by number where its documentation says."""
    axes = weight.ndim - 2
    space = weight.shape[2:]
    if kernel == "depthwise":  # (..., c, m): output c * multiplier + m
        made = np.zeros((*space, layer.in_channels, layer.depth_multiplier), np.float32)
        for c, m in np.ndindex(made.shape[axes:]):
            made[..., c, m] = weight[c * layer.depth_multiplier + m, 0]
    else:  # (..., in / groups, out) of a convolution, (..., out, in) of a transposed one: torch's first two axes in reverse
        made = np.zeros((*space, weight.shape[1], weight.shape[0]), np.float32)
        for a, b in np.ndindex(made.shape[axes:]):
            made[..., a, b] = weight[b, a]
    return made


KERAS = {
    "conv": [fl.Conv1d(4, 6, 3, groups=2), fl.Conv2d(3, 5, (3, 2)), fl.Conv3d(2, 3, (1, 2, 3), bias=False)],
    "transposed": [fl.ConvTranspose1d(4, 6, 3), fl.ConvTranspose2d(3, 5, (3, 2), bias=False), fl.ConvTranspose3d(2, 3, 2)],
    "depthwise": [fl.DepthwiseConv1d(4, 5, depth_multiplier=3), fl.DepthwiseConv2d(3, (3, 2), depth_multiplier=2, bias=False)],
}


@pytest.mark.parametrize(("kind", "layer"), [(k, v) for k, layers in KERAS.items() for v in layers], ids=str)
def test_weights_of_keras(kind: str, layer: Any) -> None:
    weights = state(layer, kind)
    given = [keras_kernel(layer, kind, weights["weight"]), *([weights["bias"]] if "bias" in weights else [])]
    layer.load_keras(given)
    for name, array in layer.state_dict().items():
        np.testing.assert_array_equal(array, weights[name])
    with pytest.raises(fl.WeightsError, match="kernel"):
        layer.load_keras([given[0].T, *given[1:]])


def test_weights_of_keras_for_separable_layers() -> None:
    layer = fl.SeparableConv2d(3, 5, (3, 2), depth_multiplier=2)
    weights = state(layer, "separable")
    given = [
        keras_kernel(layer.depthwise, "depthwise", weights["depthwise.weight"]),
        keras_kernel(layer.pointwise, "conv", weights["pointwise.weight"]),
        weights["pointwise.bias"],
    ]
    layer.load_keras(given)
    for name, array in layer.state_dict().items():
        np.testing.assert_array_equal(array, weights[name])
    net = fl.Sequential(layer, fl.ReLU(), fl.DepthwiseConv2d(5, 3))
    net.load_keras([*given, np.ones((3, 3, 5, 1)), np.zeros(5)])
    np.testing.assert_array_equal(net.state_dict()["0.depthwise.weight"], weights["depthwise.weight"])
    with pytest.raises(fl.WeightsError, match=r"0\.depthwise_kernel \(3, 2, 3, 2\).*0\.pointwise_kernel.*0\.bias.*2\.kernel"):
        net.load_keras(given)


def test_keras_has_no_groups_in_transposed_convolutions() -> None:
    with pytest.raises(fl.UnsupportedError, match=r"ConvTranspose2d\.load_keras: Keras has no groups"):
        fl.ConvTranspose2d(4, 4, 3, groups=2).load_keras([np.ones((3, 3, 4, 2)), np.ones(4)])


X, D, P = np.ones((1, 4, 6, 6)), np.ones((8, 1, 3, 3)), np.ones((5, 8, 1, 1))
CALLS: dict[str, tuple[Any, type[Exception], str]] = {
    "rank": (lambda: F.separable_conv2d(X[0, 0], D, P, depth_multiplier=2), fl.ShapeError, "x has shape"),
    "multiplier": (lambda: F.separable_conv2d(X, D, P), fl.ShapeError, "x has 4 channels: expected a multiple of groups=8"),
    "no multiple": (lambda: F.separable_conv2d(X, D, P, depth_multiplier=3), fl.ShapeError, r"expected \(channels \* 3, 1, k"),
    "grouped": (lambda: F.separable_conv2d(X, np.ones((4, 2, 3, 3)), P), fl.ShapeError, "weight_depthwise has shape"),
    "pointwise": (lambda: F.separable_conv2d(X, D, P[:, :4], depth_multiplier=2), fl.ShapeError, r"expected \(o, 8, 1, 1\)"),
    "kernel": (lambda: F.separable_conv2d(X, D, D, depth_multiplier=2), fl.ShapeError, "weight_pointwise has shape"),
    "bias": (lambda: F.separable_conv2d(X, D, P, np.ones(8), depth_multiplier=2), fl.ShapeError, r"bias has shape \(8,\)"),
    "large": (lambda: F.separable_conv2d(X[:, :, :2], D, P, depth_multiplier=2), fl.ShapeError, "x has size 2 along h"),
    "activation": (lambda: F.separable_conv2d(X, D, P, depth_multiplier=2, activation=3), fl.DTypeError, "activation is 3"),
    "dtype": (lambda: F.separable_conv2d(X, D * 1j, P, depth_multiplier=2), fl.DTypeError, "weight_depthwise has dtype"),
}  # fmt: skip


@pytest.mark.parametrize("symbolic", [False, True], ids=["array", "symbol"])
@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_say_what_is_wrong(name: str, symbolic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    call, kind, text = CALLS[name]
    if symbolic:
        monkeypatch.setitem(globals(), "X", SYMBOL)
    if symbolic and name in ("rank", "large"):
        return  # what they take away of x, a symbol has not
    with pytest.raises(kind, match=text) as caught:
        call()
    assert str(caught.value).startswith("separable_conv2d: ")


SYMBOL: Any = fl.graph.Input("x", X.shape)


def test_wrong_layers_say_what_is_wrong() -> None:
    with pytest.raises(fl.ArgumentError, match="DepthwiseConv2d: depth_multiplier is 0: expected at least 1"):
        fl.DepthwiseConv2d(3, 3, depth_multiplier=0)
    with pytest.raises(fl.ArgumentError, match="SeparableConv1d: in_channels is 0: expected at least 1"):
        fl.SeparableConv1d(0, 3, 3)
    assert repr(fl.DepthwiseConv2d(3, 3, 2, "same", depth_multiplier=2, bias=False)) == (
        "DepthwiseConv2d(3, kernel_size=(3, 3), stride=(2, 2), padding='same', depth_multiplier=2, bias=False)"
    )

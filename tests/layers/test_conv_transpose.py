"""Convolutional layers against torch, and what torch has not: Keras' rule of sizes, layouts, pads of two sides, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.functional as F

from ..each import each
from ..goldens.conv_layer_cases import FUNCTIONS, LAYERS
from ..goldens.front_cases import FunctionCase, LayerCase, arrays
from .test_goldens import compare, prepared

GOLDEN = Path(__file__).parent.parent / "goldens" / "conv_layers.npz"


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


@each("case", LAYERS, ids=lambda case: case.label)
def test_layers_give_what_torch_gives(case: LayerCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    layer, arguments = prepared(case)
    compare(golden, case.label, layer(*arguments))
    compare(golden, case.label, layer(*arguments))  # and the second time, on packed weights


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.label)
def test_compiled_layers_give_what_torch_gives(case: LayerCase, golden: dict[str, np.ndarray]) -> None:
    layer, arguments = prepared(case)
    compare(golden, case.label, fl.compile(layer, *arguments, require_native=True)(*arguments))


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.label)
def test_functions_give_what_torch_gives(case: FunctionCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    compare(golden, case.label, getattr(F, case.name)(*arrays(case.label, *case.shapes), **case.kwargs))


def filled(layer: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    layer.load_state_dict({name: rng.standard_normal(shape) for name, shape in layer.tensor_shapes().items()})
    return layer


# kernel, stride, dilation: kernels shorter and longer than the stride, odd and even differences
KERAS_PLACES = [(3, 1, 1), (2, 1, 1), (3, 2, 1), (4, 2, 1), (2, 3, 1), (1, 4, 1), (5, 2, 1), (6, 3, 1), (3, 1, 2), (2, 1, 3)]


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(("k", "stride", "dilation"), KERAS_PLACES)
def test_named_padding_is_the_adjoint_of_the_convolution_with_it(k: int, stride: int, dilation: int, padding: str) -> None:
    """Keras' rule: <conv(u), v> = <u, conv_transpose(v)>, for u of the size that the rule gives."""
    size = 5
    reach = dilation * (k - 1) + 1
    large = size * stride if padding == "same" else (size - 1) * stride + max(reach, stride)
    u, v, w = arrays(f"{k} {stride} {dilation}", (1, 2, large, large), (1, 3, size, size), (3, 2, k, k))
    place: dict[str, Any] = {"stride": stride, "dilation": dilation, "padding": padding}
    up = F.conv_transpose2d(v, w, **place)
    assert up.shape == u.shape
    down = F.conv2d(u, w, **place)
    np.testing.assert_allclose(np.vdot(down, v), np.vdot(u, up), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(up, filled_with(fl.ConvTranspose2d(3, 2, k, bias=False, **place), w)(v))


def filled_with(layer: Any, weight: np.ndarray) -> Any:
    layer.load_state_dict({"weight": weight})
    return layer


@pytest.mark.parametrize(
    ("padding", "k", "stride", "extra", "size"),
    [("same", 3, 2, 1, 10), ("same", 4, 2, 0, 8), ("same", 4, 3, 2, 14), ("valid", 3, 2, 1, 12), ("valid", 2, 3, 0, 14)],
)
def test_named_padding_with_an_output_padding(padding: str, k: int, stride: int, extra: int, size: int) -> None:
    """(i - 1) s + k mod 2 + output padding for "same", (i - 1) s + k + output padding for "valid": a part of the full result."""
    x, w = arrays(f"{k}{stride}{extra}", (1, 2, 5), (2, 3, k))
    got = F.conv_transpose1d(x, w, stride=stride, padding=padding, output_padding=extra)
    assert got.shape == (1, 3, size)
    full = F.conv_transpose1d(x, w, stride=stride)
    before = max((full.shape[2] - size) // 2, 0)
    held = min(size, full.shape[2] - before)
    np.testing.assert_array_equal(got[:, :, :held], full[:, :, before : before + held])
    np.testing.assert_array_equal(got[:, :, held:], 0)


def test_output_size_is_an_output_padding() -> None:
    layer = filled(fl.ConvTranspose2d(2, 3, 3, stride=3, padding=1))
    (x,) = arrays("output size", (2, 2, 4, 5))
    want = filled(fl.ConvTranspose2d(2, 3, 3, stride=3, padding=1, output_padding=(2, 1)))(x)
    for size in ((12, 14), [12, 14], (2, 3, 12, 14)):
        np.testing.assert_array_equal(layer(x, size), want)
        np.testing.assert_array_equal(layer(x, output_size=size), want)
    np.testing.assert_array_equal(layer(x[0], (12, 14)), want[0])
    assert layer(x).shape == (2, 3, 10, 13)
    assert layer(x, (11, 14)).shape == (2, 3, 11, 14)
    last = filled(fl.ConvTranspose2d(2, 3, 3, stride=3, padding=1, layout="nhwc"))
    got = last(np.ascontiguousarray(np.moveaxis(x, 1, -1)), (2, 12, 14, 3))
    np.testing.assert_array_equal(np.moveaxis(got, -1, 1), want)
    model = fl.compile(lambda x: layer(x, (12, 14)), fl.graph.Input("x", ("n", 2, "h", 5)))
    np.testing.assert_array_equal(model(x), want)
    with pytest.raises(fl.ArgumentError, match=r"output_size is .*expected 7 to 9 along h"):
        layer(x[:, :, :3], (12, 14))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_layouts_ranks_and_pads_are_one_computation(axes: int, variant: str) -> None:
    x, w, b = arrays(f"{axes}", (2, 4, *(3, 4, 5)[:axes]), (4, 3, *(3, 4, 2)[:axes]), (6,))
    function = getattr(F, f"conv_transpose{axes}d")
    place: dict[str, Any] = {"stride": 2, "groups": 2, "activation": "relu"}
    want = function(x, w, b, padding=1, output_padding=1, **place)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    got = function(last, w, b, padding=1, output_padding=1, layout="nhwc", **place)
    np.testing.assert_array_equal(np.moveaxis(got, -1, 1), want)
    np.testing.assert_array_equal(function(x[1], w, b, padding=1, output_padding=1, **place), want[1])
    np.testing.assert_array_equal(function(x, w, b, padding=[(1, 0)] * axes, **place), want)


def test_compiled_with_sizes_unknown(variant: str) -> None:
    layer = filled(fl.ConvTranspose2d(4, 2, 4, stride=2, padding="same", groups=2, activation="relu"))
    model = fl.compile(layer, fl.graph.Input("x", ("n", 4, "h", "w")))
    for size in ((1, 4, 3, 5), (3, 4, 1, 2), (0, 4, 2, 2)):
        (x,) = arrays("unknown", size)
        np.testing.assert_array_equal(model(x), layer(x))


def test_an_activation_after_channels_last_is_fused_and_scales_are_not() -> None:
    """A constant of shape (c, 1, 1) is on the rows of a channels-last result, whatever its size."""
    layer = filled(fl.Conv2d(3, 4, 1, layout="nhwc"))
    (x, scale) = arrays("scale", (1, 4, 4, 3), (4, 1, 1))
    model = fl.compile(lambda x: F.multiply(layer(x), scale), x)
    np.testing.assert_allclose(model(x), layer(x) * scale, rtol=1e-6, atol=1e-6)


X, W = np.ones((1, 4, 5, 5)), np.ones((4, 2, 3, 3))
CALLS: dict[str, tuple[Any, type[Exception], str]] = {
    "rank": (lambda: F.conv_transpose2d(np.ones((5, 5)), W), fl.ShapeError, r"x has shape \(5, 5\) \(2 axes\): expected"),
    "weight": (lambda: F.conv_transpose2d(X, W[0]), fl.ShapeError, r"expected \(c, o / groups, kh, kw\)"),
    "channels": (lambda: F.conv_transpose2d(X[:, :3], W), fl.ShapeError, "weight has 4 input channels, x .* has 3"),
    "groups": (lambda: F.conv_transpose2d(X, W, groups=3), fl.ShapeError, "expected a multiple of groups=3"),
    "bias": (lambda: F.conv_transpose2d(X, W, np.ones(2), groups=2), fl.ShapeError, r"bias has shape \(2,\): expected \(4,\)"),
    "kernel": (lambda: F.conv_transpose2d(X, W[:, :, :0]), fl.ShapeError, "kernel of at least 1"),
    "cropped": (lambda: F.conv_transpose2d(X, W, padding=4), fl.ShapeError, "size 5 along h, and -1 positions are left"),
    "nothing": (lambda: F.conv_transpose1d(X[:, :, 0], W[..., 0], padding=[(3, 4)]), fl.ShapeError, "along l, and 0 positions"),
    "output padding": (lambda: F.conv_transpose2d(X, W, output_padding=1), fl.ArgumentError, "less than stride 1 or dilation 1"),
    "padding": (lambda: F.conv_transpose2d(X, W, padding="full"), fl.ArgumentError, "expected 'same', 'valid' or integers"),
    "output size": (lambda: F.conv_transpose2d(X, W, output_size=(8, 7)), fl.ArgumentError, "expected 7 to 7 along h"),
    "sizes": (lambda: F.conv_transpose2d(X, W, output_size=(7,)), fl.ArgumentError, "expected 2 sizes, or 4"),
    "size": (lambda: F.conv_transpose2d(X, W, output_size=7), fl.DTypeError, "output_size is 7 of type int: expected a sequence"),
    "size and name": (
        lambda: F.conv_transpose2d(X, W, padding="same", output_size=(5, 5)), fl.ArgumentError, "expected None with padding="
    ),
    "dtype": (lambda: F.conv_transpose2d(X, W * 1j), fl.DTypeError, "weight has dtype complex128"),
    "activation": (lambda: F.conv_transpose2d(X, W, activation="softmax"), fl.UnsupportedError, "activation 'softmax'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_say_what_is_wrong(name: str) -> None:
    call, kind, text = CALLS[name]
    with pytest.raises(kind, match=text) as caught:
        call()
    assert str(caught.value).startswith("conv_transpose")


@pytest.mark.parametrize("groups", [1, 4])
def test_a_stride_of_too_many_phases_is_refused_before_it_takes_memory(variant: str, groups: int) -> None:
    with pytest.raises(fl.LimitError, match=r"conv_transpose|no memory"):
        F.conv_transpose2d(X, np.ones((4, 2 if groups == 1 else 1, 3, 3)), stride=10**9, groups=groups)


def test_wrong_layers_say_what_is_wrong() -> None:
    with pytest.raises(fl.ArgumentError, match="ConvTranspose1d: groups is 2, in_channels 3, out_channels 4"):
        fl.ConvTranspose1d(3, 4, 3, groups=2)
    with pytest.raises(fl.ArgumentError, match="ConvTranspose2d: padding_mode is 'reflect': expected 'zeros'"):
        fl.ConvTranspose2d(3, 4, 3, padding_mode="reflect")
    with pytest.raises(fl.WeightsError, match="called without weights: weight, bias missing"):
        fl.ConvTranspose2d(3, 4, 3)(np.ones((1, 3, 4, 4)))
    assert repr(fl.ConvTranspose2d(3, 4, 3, stride=2, padding=1)) == (
        "ConvTranspose2d(3, 4, kernel_size=(3, 3), stride=(2, 2), padding=1)"
    )

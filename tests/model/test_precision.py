"""`precision="float16"` and `"bfloat16"`: what is rounded, what is not, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels.halves import rounded
from fastlayers.kernels.table import HALVES


def net() -> fl.Layer:
    rng = np.random.default_rng(0)
    made = fl.Sequential(fl.Conv1d(8, 32, 3, padding=1), fl.ReLU(), fl.Linear(20, 40), fl.GELU(), fl.Linear(40, 24))
    made.load_state_dict({name: rng.normal(size=shape) / 8 for name, shape in shapes(made).items()})
    return made


def shapes(layer: fl.Layer) -> dict[str, tuple[int, ...]]:
    return {"0.weight": (32, 8, 3), "0.bias": (32,), "2.weight": (40, 20), "2.bias": (40,), "4.weight": (24, 40), "4.bias": (24,)}


X = np.random.default_rng(1).normal(size=(2, 8, 20)).astype(np.float32)


@pytest.mark.parametrize("precision", HALVES)
def test_weights_of_products_are_rounded_and_all_others_are_not(precision: str, variant: str) -> None:
    layer, half = net(), HALVES[precision]
    model = fl.compile(layer, fl.graph.Input("x", ("n", 8, 20)), precision=precision)
    state = {name: np.array(value) for name, value in layer.state_dict().items()}
    for name in ("2.weight", "4.weight"):
        state[name] = rounded(state[name].astype(np.float32), half)
    layer.load_state_dict(state)
    want = fl.compile(layer, fl.graph.Input("x", ("n", 8, 20)))(X)
    # bfloat16: the processor may round what the weights multiply to 8 bits
    np.testing.assert_allclose(model(X), want, rtol=0, atol=1e-5 if precision == "float16" else 3e-2)
    plain = fl.compile(net(), fl.graph.Input("x", ("n", 8, 20)))(X)
    assert np.abs(model(X) - plain).max() > 1e-5, "nothing was rounded"


def pixels() -> tuple[fl.Layer, Any]:
    """A network whose 1x1 convolutions have channels last on both sides, one with a residual, and its weights."""
    rng = np.random.default_rng(0)
    layers = fl.Sequential(
        fl.Conv2d(4, 40, 3, padding=1), fl.ReLU(), fl.Conv2d(40, 33, 1, bias=False), fl.ReLU(), fl.Conv2d(33, 40, 1),
        fl.Conv2d(40, 8, 3, padding=1),
    )  # fmt: skip
    layers.load_state_dict({name: rng.normal(size=shape) / 12 for name, shape in layers.tensor_shapes().items()})

    def whole(x: Any) -> Any:
        first = layers[1](layers[0](x))
        return layers[5](fl.functional.relu(layers[4](layers[3](layers[2](first))) + first))

    return layers, whole


def test_1x1_convolutions_over_channels_that_come_last_multiply_bfloat16(variant: str, tmp_path: Path) -> None:
    """Their weights are rounded, all others are not; under float16 none is. Saved or not, of any batch: the same bits."""
    x = np.random.default_rng(1).normal(size=(3, 4, 9, 11)).astype(np.float32)
    example = fl.graph.Input("x", ("n", 4, 9, 11))
    layers, whole = pixels()
    plain = fl.compile(whole, example)(x)
    np.testing.assert_array_equal(fl.compile(whole, example, precision="float16")(x), plain)
    model = fl.compile(whole, example, precision="bfloat16")
    found = model(x)
    assert np.abs(found - plain).max() > 1e-5, "nothing was rounded"
    state = {name: np.array(value, np.float32) for name, value in layers.state_dict().items()}
    for name in ("2.weight", "4.weight"):
        state[name] = rounded(state[name], HALVES["bfloat16"])
    layers.load_state_dict(state)
    # the processor may round pixels to 8 bits too
    np.testing.assert_allclose(found, fl.compile(whole, example)(x), rtol=0, atol=2e-2 * np.abs(plain).max())
    np.testing.assert_array_equal(model(x[1:2]), found[1:2])
    for packed in (False, True):
        model.save(tmp_path / "m.safetensors", packed=packed)
        np.testing.assert_array_equal(fl.load(tmp_path / "m.safetensors")(x), found)


@pytest.mark.parametrize("precision", HALVES)
def test_a_saved_model_is_the_same_when_it_is_loaded(precision: str, tmp_path: Path) -> None:
    model = fl.compile(net(), fl.graph.Input("x", ("n", 8, 20)), precision=precision)
    want = model(X)
    for packed in (False, True):
        model.save(tmp_path / "m.safetensors", packed=packed)
        np.testing.assert_array_equal(fl.load(tmp_path / "m.safetensors")(X), want)


def test_a_weight_that_float16_cannot_hold_leaves_its_layer_alone() -> None:
    layer = fl.Linear(4, 2, bias=False)
    layer.load_state_dict({"weight": np.array([[1e5, 1, 1, 1], [1 + 2**-20, 1, 1, 1]])})
    x = np.ones((1, 4), np.float32)
    model = fl.compile(layer, fl.graph.Input("x", (1, 4)), precision="float16")
    np.testing.assert_array_equal(model(x), fl.compile(layer, fl.graph.Input("x", (1, 4)))(x))


def test_recurrent_layers_and_streams(variant: str) -> None:
    layer = fl.LSTM(6, 40, batch_first=True)
    rng = np.random.default_rng(3)
    sizes = {"weight_ih_l0": (160, 6), "weight_hh_l0": (160, 40), "bias_ih_l0": (160,), "bias_hh_l0": (160,)}
    layer.load_state_dict({name: rng.normal(size=size) / 6 for name, size in sizes.items()})
    x = rng.normal(size=(1, 12, 6)).astype(np.float32)
    for precision in HALVES:
        model = fl.compile(lambda v: layer(v)[0], fl.graph.Input("x", (1, "time", 6)), precision=precision)
        whole = model(x)
        error = np.abs(whole - fl.compile(lambda v: layer(v)[0], fl.graph.Input("x", (1, "time", 6)))(x)).max()
        assert 0 < error < 2e-2
        stream = model.stream()
        np.testing.assert_array_equal(np.concatenate([stream(x[:, :5]), stream(x[:, 5:6]), stream(x[:, 6:])], 1), whole)


def test_a_precision_that_there_is_not() -> None:
    for call in (lambda p: fl.load(b"", precision=p), lambda p: fl.compile(net(), X, precision=p)):
        with pytest.raises(fl.ArgumentError, match="expected one of 'default', 'strict', 'float16', 'bfloat16'"):
            call("int8")

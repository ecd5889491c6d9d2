"""Linear, activations and shapes as networks use them: any rank, every name, dense layers after channels-last features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from tests.each import each

f = fl.functional


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def test_linear_over_the_last_axis_of_any_rank(variant: str) -> None:
    """Keras' example: a Dense layer on an image of shape [4, 32, 32, 3]."""
    kernel, bias = numbers(3, 7), numbers(7)
    layer = fl.Linear(3, 7, activation="relu")
    layer.load_keras([kernel, bias])
    for shape in ((4, 32, 32, 3), (3,), (0, 3), (2, 1, 2, 1, 3)):
        x = numbers(*shape)
        want = np.maximum(x.astype(np.float64) @ kernel + bias, 0)
        np.testing.assert_allclose(layer(x), want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(fl.compile(layer, fl.graph.Input("x", shape))(x), want, rtol=1e-5, atol=1e-5)


@each("name", [
    "identity", "relu", "sigmoid", "tanh", "softmax", "relu6", "leaky_relu", "prelu", "elu", "selu", "gelu", "silu", "swish",
    "hardsigmoid", "hardswish", "softplus", "softsign", "mish", "log_softmax", "glu", "swiglu", "clip", "celu", "hardshrink",
    "softshrink", "tanhshrink", "threshold", "logsigmoid", "softmin", "quick_gelu", "hardtanh",
])  # fmt: skip
def test_every_activation_is_a_function_and_a_layer(name: str) -> None:
    layers = {n.lower(): n for n in fl.layers.__all__}
    assert name in f.__all__
    other = {"swish": "silu", "clip": "hardtanh"}.get(name, name.replace("_", ""))
    assert other in layers


def test_both_slopes_of_the_hard_sigmoid() -> None:
    x = np.linspace(-4, 4, 17)
    np.testing.assert_allclose(f.hardsigmoid(x), np.clip(x / 6 + 0.5, 0, 1), atol=1e-7)
    np.testing.assert_allclose(f.hardsigmoid(x, alpha=0.2), np.clip(0.2 * x + 0.5, 0, 1), atol=1e-7)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_softmax_over_any_axis(dim: int, variant: str) -> None:
    x = numbers(3, 4, 5) * 10
    e = np.exp(x.astype(np.float64) - x.max(dim, keepdims=True))
    np.testing.assert_allclose(f.softmax(x, dim), e / e.sum(dim, keepdims=True), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(f.softmin(-x, dim), f.softmax(x, dim), rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 6, 5, 3), (1, 1, 1, 4), (2, 4, 3), (2, 2, 3, 4, 5), (3, 5)])
def test_a_dense_layer_behind_channels_last_features(shape: tuple[int, ...], variant: str) -> None:
    """Keras' weights for flattened (n, h, w, c), on our (n, c, h, w): by layout, and by rows in another order."""
    last = numbers(*shape)
    kernel, bias = numbers(int(np.prod(shape[1:])), 4), numbers(4)
    want = last.reshape(shape[0], -1).astype(np.float64) @ kernel + bias
    first = np.ascontiguousarray(np.moveaxis(last, -1, 1))
    net = fl.Sequential(fl.Flatten(layout="nhwc"), fl.Linear(kernel.shape[0], 4))
    net.load_keras([kernel, bias])
    np.testing.assert_allclose(net(first), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(fl.compile(net, fl.graph.Input("x", first.shape))(first), want, rtol=1e-4, atol=1e-4)
    if len(shape) == 4:
        plain = fl.Sequential(fl.Flatten(), fl.Linear(kernel.shape[0], 4))
        plain.load_keras([kernel.reshape(*shape[1:], 4).transpose(2, 0, 1, 3).reshape(-1, 4), bias])
        np.testing.assert_allclose(plain(first), want, rtol=1e-4, atol=1e-4)


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: fl.Flatten(layout="x"), fl.ArgumentError, "Flatten: layout is 'x'"),
    (lambda: fl.Flatten(2, layout="nhwc"), fl.ArgumentError, "Flatten: layout is 'nhwc' with axes"),
    (lambda: f.celu([1.0], 0), fl.ArgumentError, "celu: alpha is 0"),
    (lambda: f.celu([1.0], -1.5), fl.ArgumentError, "celu: alpha is -1.5"),
    (lambda: fl.CELU(float("nan")), fl.ArgumentError, "celu: alpha is nan"),
    (lambda: fl.Linear(1, 1, activation=("celu", {"alpha": -2})), fl.ArgumentError, "parameter 'alpha' is -2"),
    (lambda: f.linear([1.0], [[1.0]], activation=("softplus", {"beta": 0})), fl.ArgumentError, "parameter 'beta' is 0"),
    (lambda: f.threshold([1.0], "x", 0), fl.DTypeError, "threshold: threshold is 'x'"),
    (lambda: f.softmin([1.0], 1), fl.ShapeError, "softmin: dim is 1"),
    (lambda: fl.Hardshrink("x"), fl.DTypeError, "Hardshrink"),
    (lambda: fl.Linear(3, 2).load_keras([numbers(2, 3), numbers(2)]), fl.WeightsError, "kernel"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_inplace_is_taken_and_changes_nothing() -> None:
    names = "celu elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 selu silu threshold dropout"
    for name in names.split():
        function, x = getattr(fl.functional, name), np.linspace(-4, 4, 9, dtype=np.float32)
        given = (0.5, 2.0) if name == "threshold" else ()
        want, before = function(x, *given), x.copy()
        np.testing.assert_array_equal(function(x, *given, inplace=True), want)
        np.testing.assert_array_equal(x, before)
        model = fl.compile(lambda v, f=function, g=given: f(v, *g, inplace=True), fl.graph.Input("x", (9,)))
        np.testing.assert_allclose(model(x), want, rtol=1e-6, atol=1e-6)
        with pytest.raises(fl.DTypeError, match="inplace is 'yes'"):
            function(x, *given, inplace="yes")

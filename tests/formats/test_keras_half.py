"""Keras' policies of halves: dtypes are Keras' own; weights, and what comes into a layer and out of it, are rounded as there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats.keras.layer import Context

from .test_keras_hostile import archive, functional, given, layer, sequential, tensor
from .test_keras_words import operation

X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def policy(name: str) -> dict[str, Any]:
    return {"module": "keras", "class_name": "DTypePolicy", "config": {"name": name}, "registered_name": None}


def run(*layers: Any, x: np.ndarray = X, **options: Any) -> np.ndarray:
    return fl.load(archive(sequential(*layers)), **options)(x)  # type: ignore[no-any-return]


def rounded(x: np.ndarray, name: str) -> np.ndarray:
    """In float16 the same; of bfloat16 the values, in float32."""
    if name.endswith("bfloat16"):
        bits = x.astype(np.float32).view(np.uint32)
        return ((bits + ((bits >> 16) & 1) + 0x7FFF) & 0xFFFF0000).view(np.float32)
    with np.errstate(over="ignore"):
        return x.astype(np.float16)


@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "as written"])
@pytest.mark.parametrize("name", ["float16", "mixed_float16", "bfloat16", "mixed_bfloat16"])
@pytest.mark.parametrize("spelt", [policy, str], ids=["a policy", "a name"])
def test_what_goes_in_and_out_is_rounded(name: str, spelt: Any, optimize: bool) -> None:
    got = run(layer("Rescaling", scale=1 / 3, dtype=spelt(name)), optimize=optimize)
    half = rounded(X, name)
    want = rounded(half.astype(np.float32) * np.float32(1 / 3), name)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    assert (got != X / 3).any()


@pytest.mark.parametrize("name", ["float16", "mixed_float16", "bfloat16", "mixed_bfloat16", "float32"])
@pytest.mark.parametrize("kind", ["Dense", "BatchNormalization"])
def test_weights_are_rounded_but_for_those_of_norms(kind: str, name: str) -> None:
    made = Context("file", (3, 15), None).make(layer(kind, dtype=policy(name), units=4))
    value = np.array([1 / 3, 1e-9, 3.0, 70000.0], np.float32)
    made.values = {"bias": value}
    want = value if kind == "BatchNormalization" or name == "float32" else rounded(value, name).astype(np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(made.weight("bias", 4), want)


def test_every_layer_has_a_policy_of_its_own() -> None:
    layers = [layer("Rescaling", n, scale=1 / 3, dtype=policy(d)) for n, d in (("a", "mixed_float16"), ("b", "float32"))]
    got = run(*layers)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, (X.astype(np.float16) * np.float32(1 / 3)).astype(np.float16) * np.float32(1 / 3))


def test_what_is_too_large_is_infinite_as_in_keras() -> None:
    got = run(layer("Rescaling", scale=1e4, dtype="float16"), layer("ReLU", dtype="float16"), x=np.full((1, 4), 100, np.float32))
    assert got.dtype == np.float16 and np.isposinf(got).all()


def test_an_input_in_float16() -> None:
    net = sequential(layer("ReLU", dtype="float16"))
    net["config"]["layers"][0]["config"]["dtype"] = "float16"
    model = fl.load(archive(net))
    assert model.inputs[0].dtype == model.outputs[0].dtype == np.float16
    np.testing.assert_array_equal(model(X), np.maximum(X.astype(np.float16), 0))


def test_operations_keep_float16_as_long_as_nothing_is_wider() -> None:
    half = operation("Cast", tensor("x"), name="half", config={"dtype": "float16"})
    for args, dtype in (((tensor("half"), 1.1), np.float16), ((tensor("half"), tensor("x")), np.float32)):
        net = functional(given(4), half, operation("Add", *args), outputs=("it", 0, 0))
        got = fl.load(archive(net))(X)
        other = np.float32(1.1) if dtype == np.float16 else X
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, (X.astype(np.float16).astype(np.float32) + other).astype(dtype))

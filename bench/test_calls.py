"""Cost of a call from Python when there is next to nothing to compute."""

from __future__ import annotations

from typing import Any

import numpy as np

import fastlayers as fl
from bench.cases import normal


def test_linear_10_10_layer(benchmark: Any) -> None:
    """A layer call on one row; the target is 1 us."""
    rng = np.random.default_rng(0)
    layer = fl.Linear(10, 10)
    weight, bias = normal(rng, 10, 10, fan_in=10), normal(rng, 10)
    layer.load_state_dict({"weight": weight, "bias": bias})
    x = normal(rng, 1, 10)
    y = benchmark(layer, x)
    benchmark.extra_info["variant"] = fl.kernels.current()
    np.testing.assert_allclose(y, x @ weight.T + bias, rtol=0, atol=1e-5)


def test_relu_10(benchmark: Any) -> None:
    """A stateless function on ten values: validation and the result's array, nearly alone."""
    x = normal(np.random.default_rng(0), 10)
    y = benchmark(fl.functional.relu, x)
    benchmark.extra_info["variant"] = fl.kernels.current()
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_functional_linear_10_10(benchmark: Any) -> None:
    """The same product with weights that are packed in every call."""
    rng = np.random.default_rng(0)
    weight, bias, x = normal(rng, 10, 10, fan_in=10), normal(rng, 10), normal(rng, 1, 10)
    y = benchmark(fl.functional.linear, x, weight, bias)
    benchmark.extra_info["variant"] = fl.kernels.current()
    np.testing.assert_allclose(y, x @ weight.T + bias, rtol=0, atol=1e-5)

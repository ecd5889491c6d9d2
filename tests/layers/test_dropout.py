"""Dropout: nothing in inference, the right share, mean and variance of a linear layer, draws that depend on the seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl

f = fl.functional


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def test_inference_is_the_identity() -> None:
    x = numbers(3, 4)
    got = f.dropout(x, 0.9)
    np.testing.assert_array_equal(got, x)
    assert not np.shares_memory(got, x)
    np.testing.assert_array_equal(fl.Dropout(1.0)(x), x)
    net = fl.Sequential(fl.Dropout(0.5), fl.ReLU(), fl.Dropout2d(0.5))
    model = fl.compile(net, fl.graph.Input("x", ("n", 4)), require_native=True)
    np.testing.assert_array_equal(model(x), np.maximum(x, 0))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_share_that_is_dropped(p: float) -> None:
    x = np.full((200, 500), 3, np.float32)
    got = f.dropout(x, p, True, seed=7)
    assert abs((got == 0).mean() - p) < 5 * np.sqrt(p * (1 - p) / x.size) + 1e-12
    np.testing.assert_allclose(got[got != 0], 3 / (1 - p) if p < 1 else 0, rtol=1e-6)
    np.testing.assert_array_equal(got, f.dropout(x, p, True, seed=7))
    if 0 < p < 1:
        other = f.dropout(x, p, True, seed=8)
        both = ((got == 0) & (other == 0)).mean()
        assert abs(both - p * p) < 0.01, "seeds are independent"


def test_draws_are_philoxs() -> None:
    raw = np.random.Philox(key=5).random_raw(1000) >> np.uint64(11)
    keep = raw / 2.0**53 >= 0.3
    np.testing.assert_array_equal(f.dropout(np.ones(1000), 0.3, True, seed=5) != 0, keep)


def test_noise_may_be_shared() -> None:
    got = f.dropout(np.ones((8, 16, 5, 4)), 0.5, True, seed=1, noise_shape=(8, 16, 1, 1))
    assert np.all(got == got[:, :, :1, :1]) and 0 < (got == 0).mean() < 1
    np.testing.assert_array_equal(got, fl.Dropout2d(0.5)(np.ones((8, 16, 5, 4)), seed=1))


def test_what_is_dropped_is_zero_even_if_it_is_nan() -> None:
    got = f.dropout(np.full(100, np.nan), 0.5, True, seed=1)
    assert set(np.isnan(got)) == {True, False} and np.all(got[~np.isnan(got)] == 0)


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_mean_and_variance_of_a_linear_layer(p: float, variant: str) -> None:
    """y = W (keep x) / (1 - p): mean W x, variance sum of (w x)² p / (1 - p)."""
    w, x = numbers(5, 12), numbers(3, 12)
    linear = fl.Linear(12, 5, bias=False)
    linear.load_state_dict({"weight": w})
    draws = 4000
    mean, variance = fl.MonteCarlo(fl.Sequential(fl.Dropout(p), linear), draws, seed=3)(x)
    want = (w[None].astype(np.float64) * x[:, None]) ** 2
    want_variance = want.sum(-1) * p / (1 - p)
    assert mean.dtype == variance.dtype == np.float32 and mean.shape == (3, 5)
    assert np.all(np.abs(mean - x @ w.T) < 5 * np.sqrt(want_variance / draws))
    # The fourth moment of a sum of independent terms is at most about 3 + kurtosis / terms times the variance squared.
    assert np.all(np.abs(variance - want_variance) < 5 * want_variance * np.sqrt(4 / draws) + 1e-6)


def test_draws_do_not_depend_on_the_batch_or_on_threads(threads: int) -> None:
    net = fl.Sequential(fl.Linear(6, 8), fl.Dropout(0.3), fl.ReLU(), fl.Dropout(0.3))
    net.load_state_dict({"0.weight": numbers(8, 6), "0.bias": numbers(8)})
    x = numbers(9, 6)
    estimate = fl.MonteCarlo(net, samples=20, seed=11)
    mean, variance = estimate(x)
    for part in (slice(0, 4), slice(4, 9), slice(8, 9)):
        got = estimate(x[part])
        np.testing.assert_array_equal(got[0], mean[part])
        np.testing.assert_array_equal(got[1], variance[part])
    draws = np.stack([estimate.draw(i, x) for i in range(20)]).astype(np.float64)
    np.testing.assert_allclose(mean, draws.mean(0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variance, draws.var(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(net(x), net(x), err_msg="outside it is deterministic")
    first, second = draws[0] == 0, draws[1] == 0
    assert np.any(first != second)


def test_two_layers_draw_apart() -> None:
    net = fl.Sequential(fl.Dropout(0.5), fl.Dropout(0.5))
    kept = fl.MonteCarlo(net, 1, 0).draw(0, np.ones((1, 10000))) != 0
    assert abs(kept.mean() - 0.25) < 0.03


def test_an_error_leaves_nothing_behind() -> None:
    class Broken(fl.Layer):
        def forward(self, x: Any) -> Any:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fl.MonteCarlo(Broken(), 1)(1.0)
    x = numbers(100)
    np.testing.assert_array_equal(fl.Dropout()(x), x)


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: f.dropout([1.0], 1.5), fl.ArgumentError, "dropout: p is 1.5: expected 0 to 1"),
    (lambda: f.dropout([1.0], float("nan")), fl.ArgumentError, "dropout: p is nan"),
    (lambda: f.dropout([1.0], "x"), fl.DTypeError, "dropout: p is 'x'"),
    (lambda: f.dropout([1.0], 0.5, seed=1), fl.ArgumentError, "dropout: training is False, seed 1: expected True with an int"),
    (lambda: f.dropout([1.0], 0.5, True), fl.ArgumentError, "dropout: training is True, seed None"),
    (lambda: f.dropout([1.0], 0.5, True, seed=0.5), fl.DTypeError, "dropout: seed is 0.5"),
    (lambda: f.dropout([1.0], 0.5, True, seed=1, noise_shape=(2,)), fl.ShapeError, "dropout: noise_shape"),
    (lambda: fl.Dropout(-1), fl.ArgumentError, "Dropout: p is -1"),
    (lambda: fl.MonteCarlo(lambda x: x), fl.DTypeError, "MonteCarlo: net is of type function"),
    (lambda: fl.MonteCarlo(fl.Dropout(), 0), fl.ArgumentError, "MonteCarlo: samples is 0"),
    (lambda: fl.compile(fl.MonteCarlo(fl.Dropout()), fl.graph.Input("x", (2,))), fl.UnsupportedError, "MonteCarlo: cannot be"),
    (lambda: fl.compile(lambda x: f.dropout(x, 0.5, True, seed=1), fl.graph.Input("x", (2,))), fl.UnsupportedError, "dropout: "),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()

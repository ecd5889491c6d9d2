"""Pools as layers and functions: figures of torch, both layouts, Keras' padding, bins, time with lengths and masks, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..each import each
from ..goldens.front_cases import FunctionCase, LayerCase, arrays
from ..goldens.pooling_cases import FUNCTIONS, LAYERS
from ..guard import guarded

f = fl.functional
GOLDEN = Path(__file__).parent.parent / "goldens" / "pooling_layers.npz"
# At most 64 terms a sum, numbers up to about 4; the roots of sums of powers are as good.
TOLERANCE = 4e-6


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


def last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, -3 if x.ndim < 3 else 1, -1))


@each("case", LAYERS, ids=lambda case: case.label)
def test_layers_give_what_torch_gives(case: LayerCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    (x,), want, axes = arrays(case.label, case.shape), golden[case.label], int(case.name[-2])
    got = getattr(fl, case.name)(*case.args, **case.kwargs)(x)
    np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)
    if "Max" in case.name:
        np.testing.assert_array_equal(got, want)
    channel = x.ndim - axes - 1
    turned = getattr(fl, case.name)(*case.args, **case.kwargs, layout="nhwc")(np.moveaxis(x, channel, -1))
    np.testing.assert_allclose(np.moveaxis(turned, -1, channel), want, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.label)
def test_functions_give_what_torch_gives(case: FunctionCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    got = getattr(f, case.name)(*arrays(case.label, *case.shapes), **case.kwargs)
    np.testing.assert_allclose(got, golden[case.label], rtol=TOLERANCE, atol=TOLERANCE)


def test_tensorflows_same_excludes_padding(variant: str) -> None:
    """Size 5, kernel 2, stride 2: one place of padding, after."""
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    np.testing.assert_array_equal(f.avg_pool1d(x, 2, 2, "same"), [[[1.5, 3.5, 5.0]]])
    np.testing.assert_array_equal(f.max_pool1d(-x, 2, 2, "same"), [[[-1, -3, -5]]])
    np.testing.assert_array_equal(f.avg_pool1d(x, 3, 1, "same"), [[[1.5, 2, 3, 4, 4.5]]])
    np.testing.assert_allclose(f.avg_pool1d(x, 3, 1, [(0, 2)]), [[[2, 3, 4, 3, 5 / 3]]], rtol=2e-7)


def test_nan_is_the_largest(variant: str) -> None:
    x = np.zeros((1, 20, 6, 10), np.float32)
    x[0, 7, 3, 4], x[0, 3, 0, 0] = np.nan, np.inf
    for pool in (f.max_pool2d(x, 3, 2, 1), f.adaptive_max_pool2d(x, (4, 7)), last_pool(x)):
        assert np.isnan(pool[0, 7]).any() and not np.isnan(np.delete(pool, 7, 1)).any()
        assert np.isinf(pool[0, 3]).any()
    assert np.isnan(f.lp_pool2d(x, 2, 2)[0, 7, 1, 2]) and np.isinf(f.lp_pool2d(x, 2, 2)[0, 3, 0, 0])


def last_pool(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(f.adaptive_max_pool2d(np.moveaxis(x, 1, -1), (4, 7), layout="nhwc"), -1, 1)


ODD = ((1, 1, 1, 1), (2, 15, 5, 7), (1, 16, 8, 9), (1, 17, 10, 10), (3, 33, 13, 6), (1, 3, 70, 67))


@pytest.mark.parametrize("shape", ODD)
def test_bins_of_any_size(shape: tuple[int, ...], variant: str, threads: int) -> None:
    """Against the reference, at both edges of memory."""
    x = np.random.default_rng(shape).standard_normal(shape).astype(np.float32)
    for size in ((1, 1), (3, 4), (7, 5), (11, 13)):
        for kind in ("avg", "max"):
            function = getattr(f, f"adaptive_{kind}_pool2d")
            with fl.kernels.use("reference"):
                want = function(x, size)
            for edge in ("start", "end"):
                bound = 0 if kind == "max" else TOLERANCE
                np.testing.assert_allclose(function(guarded(x, edge), size), want, rtol=bound, atol=bound)
                got = function(guarded(last(x), edge), size, layout="nhwc")
                np.testing.assert_allclose(np.moveaxis(got, -1, 1), want, rtol=bound, atol=bound)


@pytest.mark.parametrize("shape", [(3, 7, 5), (1, 1, 1), (2, 9, 64), (2, 300, 129), (4, 40, 1)])
def test_padding_never_changes_a_result(shape: tuple[int, ...], variant: str, threads: int) -> None:
    """A sequence alone gives the bits that it gives next to longer ones, whose padding holds NaN; both orders of the axes."""
    rng = np.random.default_rng(shape)
    n, t, _ = shape
    x, lengths = rng.standard_normal(shape).astype(np.float32), rng.integers(0, t, n, endpoint=True)
    valid = np.arange(t) < lengths[:, None]
    x[~valid] = np.nan
    scattered = valid & (rng.random((n, t)) < 0.6)
    for function in (f.mean_over_time, f.max_over_time):
        got = function(guarded(x, "end"), lengths)
        np.testing.assert_array_equal(function(x, mask=valid), got)
        np.testing.assert_array_equal(function(x.swapaxes(0, 1), lengths, batch_first=False), got)
        masked = function(x, None, scattered)
        np.testing.assert_array_equal(function(x, lengths, scattered), masked)
        np.testing.assert_array_equal(function(x, lengths, scattered.astype(np.float32)), masked)
        for i, length in enumerate(lengths):
            if not length:
                np.testing.assert_array_equal(got[i], 0)
                continue
            np.testing.assert_array_equal(function(x[i : i + 1, :length])[0], got[i])
            if scattered[i].any():
                alone = x[i, scattered[i]].astype(np.float64)
                want = alone.mean(0) if function is f.mean_over_time else alone.max(0)
                np.testing.assert_allclose(masked[i], want, rtol=TOLERANCE, atol=TOLERANCE)


def test_lengths_of_a_program_are_checked(variant: str) -> None:
    x, lengths = fl.graph.Input("x", (2, 5, 3)), fl.graph.Input("lengths", (2,), np.int64)
    model = fl.compile(fl.MeanOverTime(), x, lengths)
    np.testing.assert_array_equal(model(np.ones((2, 5, 3), np.float32), np.array([5, 0])), [[1, 1, 1], [0, 0, 0]])
    for wrong in ([6, 1], [-1, 0]):
        with pytest.raises(fl.ShapeError):
            model(np.ones((2, 5, 3), np.float32), np.array(wrong))


X = np.zeros((1, 3, 6, 6), np.float32)
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: f.max_pool2d(X, 0), fl.ArgumentError, "max_pool2d: kernel_size is 0: expected at least 1"),
    (lambda: f.max_pool2d(X, 2, 0), fl.ArgumentError, "max_pool2d: stride is 0"),
    (lambda: f.max_pool2d(X, (2, 2, 2)), fl.ArgumentError, "max_pool2d: kernel_size .*expected one int or 2"),
    (lambda: f.max_pool2d(X, 7), fl.ShapeError, "max_pool2d: x has size 6 along h, 6 with padding: expected at least 7"),
    (lambda: f.max_pool2d(X, 2, padding=2), fl.ArgumentError, "max_pool2d: padding is 2: expected less than the 2 positions"),
    (lambda: f.max_pool2d(X, 2, padding="full"), fl.ArgumentError, "max_pool2d: padding is 'full'"),
    (lambda: f.max_pool2d(X, 2, padding="same", ceil_mode=True), fl.ArgumentError, "max_pool2d: padding is 'same' and ceil_mode"),
    (lambda: f.max_pool2d(X, 2, return_indices=True), fl.UnsupportedError, "max_pool2d: return_indices is True"),
    (lambda: f.max_pool2d(X[0, 0], 2), fl.ShapeError, r"max_pool2d: x has shape \(6, 6\) \(2 axes\): expected \(n, c, h, w\)"),
    (lambda: f.max_pool1d(X, 2, layout="nhcw"), fl.ArgumentError, "max_pool1d: layout is 'nhcw'"),
    (lambda: f.avg_pool2d(X, 2, divisor_override=0), fl.ArgumentError, "avg_pool2d: divisor_override is 0"),
    (lambda: f.avg_pool2d(X, 2, count_include_pad="no"), fl.DTypeError, "avg_pool2d: count_include_pad is 'no'"),
    (lambda: f.avg_pool2d(X * 1j, 2), fl.DTypeError, "avg_pool2d: x has dtype complex64"),
    (lambda: f.lp_pool2d(X, 0.5, 2), fl.ArgumentError, "lp_pool2d: norm_type is 0.5: expected a finite number of at least 1"),
    (lambda: f.lp_pool2d(X, "2", 2), fl.DTypeError, "lp_pool2d: norm_type is '2'"),
    (lambda: f.adaptive_avg_pool2d(X, 0), fl.ArgumentError, "adaptive_avg_pool2d: output_size is 0"),
    (lambda: f.adaptive_avg_pool2d(X, (1, 2, 3)), fl.ArgumentError, "adaptive_avg_pool2d: output_size .* of length 3"),
    (lambda: f.adaptive_avg_pool2d(X[:, :, :0], 2), fl.ShapeError, "adaptive_avg_pool2d: x has shape .*at least one number"),
    (lambda: f.global_avg_pool(X[0, 0]), fl.ShapeError, "global_avg_pool: x has shape"),
    (lambda: f.global_max_pool(X[:, :, :0]), fl.ShapeError, "global_max_pool: x has shape"),
    (lambda: f.mean_over_time(X), fl.ShapeError, r"mean_over_time: x has shape .* expected \(n, t, c\)"),
    (
        lambda: f.mean_over_time(X[0], [7, 1, 1]),
        fl.ArgumentError,
        "mean_over_time: lengths has values from 1 to 7: expected 0 to 6",
    ),
    (lambda: f.max_over_time(X[0], [1, 1]), fl.ShapeError, r"max_over_time: lengths has shape \(2,\): expected \(3,\)"),
    (lambda: f.max_over_time(X[0], [1.0, 1, 1]), fl.DTypeError, "max_over_time: lengths has dtype float64"),
    (lambda: f.max_over_time(X[0], None, np.ones((6, 3))), fl.ShapeError, r"max_over_time: mask .*expected \(3, 6\)"),
    (lambda: fl.MaxPool2d(2, return_indices=True), fl.UnsupportedError, "MaxPool2d: return_indices is True"),
    (lambda: fl.AvgPool3d((2, 2)), fl.ArgumentError, "AvgPool3d: kernel_size"),
    (lambda: fl.LPPool1d(0, 2), fl.ArgumentError, "LPPool1d: norm_type is 0"),
    (lambda: fl.AdaptiveMaxPool1d(-1), fl.ArgumentError, "AdaptiveMaxPool1d: output_size is -1"),
    (lambda: fl.GlobalAvgPool(layout="chw"), fl.ArgumentError, "GlobalAvgPool: layout is 'chw'"),
    (lambda: fl.MeanOverTime("yes"), fl.DTypeError, "MeanOverTime: batch_first is 'yes'"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=[text[:50] for _, _, text in WRONG])
def test_wrong_arguments(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_layers_say_what_they_are() -> None:
    assert repr(fl.MaxPool2d(3, 2, 1)) == "MaxPool2d(kernel_size=3, stride=2, padding=1)"
    assert repr(fl.LPPool1d(2, 3)) == "LPPool1d(kernel_size=3, norm_type=2)"
    assert repr(fl.GlobalAvgPool()) == "GlobalAvgPool()"
    assert repr(fl.MaxOverTime(False)) == "MaxOverTime(batch_first=False)"

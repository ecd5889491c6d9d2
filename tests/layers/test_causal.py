"""Causal padding of convolutions over a sequence: no result reads what comes after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl

f = fl.functional


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("kernel", [1, 2, 4])
def test_against_a_sum_in_numpy(kernel: int, dilation: int, stride: int, variant: str) -> None:
    """y[t] = sum over j of w[j] x[t - dilation (k - 1 - j)], each with zeros before the first step; every stride-th of these."""
    x, w, b = random(2, 3, 11), random(5, 3, kernel), random(5)
    want = np.zeros((2, 5, 11))
    for t in range(11):
        for j in range(kernel):
            at = t - dilation * (kernel - 1 - j)
            if at >= 0:
                want[:, :, t] += x[:, :, at].astype(np.float64) @ w[:, :, j].T
    want = (want + b[:, None])[:, :, ::stride]
    given: dict[str, Any] = {"stride": stride, "padding": "causal", "dilation": dilation}
    layer = fl.Conv1d(3, 5, kernel, **given)
    layer.load_state_dict({"weight": w, "bias": b})
    last = fl.Conv1d(3, 5, kernel, **given, layout="nlc")
    last.load_state_dict({"weight": w, "bias": b})
    for y in (f.conv1d(x, w, b, **given), layer(x), np.moveaxis(last(np.moveaxis(x, 1, -1)), -1, 1)):
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
    model = fl.compile(layer, fl.graph.Input("x", ("n", 3, "t")))
    for steps in (11, 1, 30):
        z = random(1, 3, steps)
        np.testing.assert_array_equal(model(z), layer(z))
        assert stride > 1 or layer(z).shape == (1, 5, steps)


@pytest.mark.parametrize("kind", [fl.DepthwiseConv1d, fl.SeparableConv1d])
def test_nothing_reads_what_comes_after(kind: Any, variant: str) -> None:
    given = (4, 3) if kind is fl.DepthwiseConv1d else (4, 6, 3)
    layer = kind(*given, padding="causal", dilation=2)
    layer.load_state_dict({name: random(*shape) for name, shape in layer.tensor_shapes().items()})
    x, changed = random(1, 4, 12), random(1, 4, 12)
    x[:, :, 7:] = changed[:, :, 7:]
    y, other = layer(x), layer(np.concatenate([x[:, :, :7], random(1, 4, 5)], -1))
    np.testing.assert_array_equal(y[:, :, :7], other[:, :, :7])
    assert not np.array_equal(y[:, :, 7:], other[:, :, 7:]) and y.shape[-1] == 12


@pytest.mark.parametrize("call", [
    lambda: f.conv2d(random(1, 1, 3, 3), random(1, 1, 2, 2), padding="causal"),
    lambda: fl.Conv3d(1, 1, 2, padding="causal"),
    lambda: fl.MaxPool1d(2, padding="causal"),
    lambda: fl.ConvTranspose1d(1, 1, 2, padding="causal"),
    lambda: fl.DepthwiseConv2d(1, 2, padding="causal"),
])  # fmt: skip
def test_it_is_for_sequences(call: Any) -> None:
    with pytest.raises(fl.ArgumentError, match=r"padding is 'causal': expected 'same', 'valid' or integers"):
        call()


def test_its_word_is_told() -> None:
    with pytest.raises(fl.ArgumentError, match=r"^conv1d: padding is 'full': expected 'same', 'valid', 'causal' or integers"):
        fl.Conv1d(1, 1, 2, padding="full")

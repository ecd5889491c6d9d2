"""Random calls beside torch, where it is installed, and what they met: axes without values, states that are infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.functional._homes as functions
import fastlayers.layers.homes as layers
from tests.each import each

NOTHING: list[tuple[fl.Layer, tuple[int, ...]]] = [
    *((fl.BatchNorm2d(0, track_running_stats=tracked), (3, 0, 5, 3)) for tracked in (False, True)),
    *((norm(0, affine=affine), (3, 0, *(4,) * n)) for affine in (False, True)
      for n, norm in enumerate((fl.InstanceNorm1d, fl.InstanceNorm2d, fl.InstanceNorm3d), 1)),
    (fl.GroupNorm(2, 0), (3, 0, 5)), (fl.LocalResponseNorm(3), (3, 0, 5)), (fl.LayerNorm(0), (3, 0)),
    (fl.Conv1d(0, 3, 2), (2, 0, 5)), (fl.Conv2d(3, 0, 2), (2, 3, 5, 5)), (fl.ConvTranspose2d(0, 3, 2), (2, 0, 5, 5)),
    (fl.Linear(0, 3), (2, 0)), (fl.PReLU(1), (2, 0, 3)), (fl.AvgPool2d(2), (2, 0, 5, 5)), (fl.MaxPool1d(2), (0, 2, 5)),
    *((kind(0, 3), (4, 2, 0)) for kind in (fl.LSTM, fl.GRU, fl.RNN)),
    *((kind(0, 3), (2, 0)) for kind in (fl.LSTMCell, fl.GRUCell, fl.RNNCell)),
    (fl.Upsample(scale_factor=2.0), (2, 0, 3)), (fl.PixelShuffle(2), (0, 4, 3, 3)), (fl.Softmax(1), (2, 0, 3)),
]  # fmt: skip


def flat(value: Any) -> list[np.ndarray]:
    return [x for part in value for x in flat(part)] if isinstance(value, tuple) else [value]


@each("layer, shape", NOTHING, ids=str)
def test_axes_without_values(layer: Any, shape: tuple[int, ...], variant: str) -> None:
    """Recorded and run by the engine, which divides by such sizes, they give what the layer gives."""
    layer.load_state_dict({name: np.full(size, 0.5) for name, size in layer.tensor_shapes().items()})
    x = np.zeros(shape, np.float32)
    whole = layer(x)
    for way in (x, fl.graph.Input("x", ("n", *shape[1:]))):
        for got, want in zip(flat(fl.compile(lambda x: tuple(flat(layer(x))), way)(x)), flat(whole), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
            assert got.shape == want.shape


@pytest.mark.parametrize("batch", [(), (0,), (2,)], ids=str)
def test_signals_without_values(batch: tuple[int, ...]) -> None:
    """And the one frame whose middle is where its signal begins and ends."""
    f, none = fl.functional, np.zeros((*batch, 0), np.float32)
    np.testing.assert_array_equal(f.stft(none, 4, pad_mode="constant"), np.zeros((*batch, 3, 1, 2)))
    np.testing.assert_array_equal(f.spectrogram(none, n_fft=4, pad_mode="constant"), np.zeros((*batch, 3, 1)))
    assert f.istft(np.ones((*batch, 9, 1, 2)), 16).shape == (*batch, 0)
    with pytest.raises(fl.ShapeError, match="of size 0"):
        f.stft(none, 4, pad_mode="circular")


def test_an_infinite_cell_state(variant: str) -> None:
    """Without a peephole the gates do not see it, not even with a weight of 0."""
    layer = fl.LSTM(2, 3)
    layer.load_state_dict({name: np.full(shape, 0.5) for name, shape in layer.tensor_shapes().items()})
    _, (h, c) = layer(np.ones((1, 1, 2)), (np.zeros((1, 1, 3)), np.array([[[np.inf, 1, -np.inf]]])))
    gate = 1 / (1 + np.exp(-2))
    np.testing.assert_allclose(c[0, 0], [np.inf, gate * (1 + np.tanh(2)), -np.inf], rtol=1e-6)
    np.testing.assert_allclose(h[0, 0], [gate, gate * np.tanh(c[0, 0, 1]), -gate], rtol=1e-6)


def test_calls_beside_torch() -> None:
    torch = pytest.importorskip("torch")
    from .walk.check import TABLE, one

    ours = {name for home in (layers, functions) for names in home.HOMES.values() for name in names.split()}
    theirs = {*dir(torch), *dir(torch.nn), *dir(torch.nn.functional)}
    assert ours & theirs - set(TABLE) == {"Sequential", "gru", "lstm"}, "torch's functions take lists of weights"

    for seed in range(30):
        _, call, found = one(seed)
        assert not [words for what, words in found if what == "fault"], f"seed {seed}: {call}"

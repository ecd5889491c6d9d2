"""`FASTLAYERS_CONV`: the algorithm of convolutions that the environment asks for, wherever it can run."""

from __future__ import annotations

import pytest

import fastlayers as fl
from fastlayers.calls import conv
from fastlayers.kernels.winograd_points import tiles_of
from tests.program.graphs import normal

WORDS = {"direct": 0, "winograd2": 2, "winograd4": 4, "winograd6": 6}


@pytest.fixture(autouse=True)
def _read_again() -> object:
    conv.forced.cache_clear()
    yield
    conv.forced.cache_clear()


def kernels(**place: int) -> set[str]:
    """The kernels of a new program with a convolution of three taps that would be direct: there are few positions."""
    x, weight = normal(1, 64, 2), normal(64, 64, 3)
    model = fl.compile(lambda x: fl.functional.conv1d(x, weight, padding=1, **place), x)
    return set(model.kernel_names({"input_0": x}))


@pytest.mark.without("cuda")
def test_forced(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels() == {"conv"}
    for word, side in WORDS.items():
        monkeypatch.setenv(conv.VARIABLE, word)
        conv.forced.cache_clear()
        assert kernels() == {"winograd" if side in tiles_of((1, 1, 3), (1, 1, 1)) else "conv"}, word
        assert kernels(stride=3) == {"conv"}, f"{word}: no algorithm but the direct one has this stride"


def test_an_unknown_word_is_an_error_of_the_first_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(conv.VARIABLE, "fft")
    with pytest.raises(fl.errors.ArgumentError, match="FASTLAYERS_CONV: 'fft' is unknown: expected one of direct, winograd2"):
        kernels()

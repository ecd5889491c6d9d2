"""`FASTLAYERS_CONV`: the algorithm of convolutions that the environment asks for, wherever it can run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.calls import conv_choice as conv
from fastlayers.kernels import dispatch
from fastlayers.kernels.winograd_points import tiles_of
from tests.program.graphs import normal

WORDS = {"direct": 0, "winograd2": 2, "winograd4": 4, "winograd6": 6}


@pytest.fixture(autouse=True)
def _read_again() -> object:
    conv.forced.cache_clear()
    yield
    conv.forced.cache_clear()
    if dispatch.engine() is not None:
        from fastlayers.kernels.aot.conv import force_walk

        force_walk(None)


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


def test_a_forced_algorithm_runs_a_product_of_column_and_row_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = normal(1, 4, 20, 20), normal(4, 1, 9, 1) * normal(4, 1, 1, 9)
    for word, steps in ("", 2), ("direct", 1):
        monkeypatch.setenv(conv.VARIABLE, word)
        conv.forced.cache_clear()
        model = fl.compile(lambda x: fl.functional.conv2d(x, weight, padding=4, groups=4), x)
        assert len(model.report().steps) == steps, word


@pytest.mark.without("cuda")
def test_summaries_and_reports_say_why(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of the algorithm that runs is told: `why` and the calls come from one choice."""
    x, w, wide = normal(1, 32, 32, 32), normal(32, 32, 3, 3), normal(32, 32, 9, 9)
    given: dict[str, tuple[Any, dict[str, Any], set[str]]] = {
        r"tiles of 4, 0\.\d\d of direct time expected": (w, {"padding": 1}, {"winograd"}),
        r"tiles of [24] expected to take \d\.\d\d of its time": (w[:1], {"padding": 1}, {"conv"}),
        "no tiles for 9x9, strides 1x1": (wide, {}, {"conv"}),
        "too few channels for tiles": (w[:, :4], {"groups": 8}, {"conv"}),
        "phases of the dilation, tiles of 4": (w, {"padding": 2, "dilation": 2}, {"transpose", "copy", "winograd"}),
        "padding that is not zeros": (w, {"padding": 1, "padding_mode": "reflect"}, {"conv"}),
        "": (w[:, :, :1, :1], {}, {"conv"}),
    }
    for pattern, (weight, options, names) in given.items():
        report = fl.compile(lambda x, w=weight, o=options: fl.functional.conv2d(x, w, **o), x).report()
        (step,) = [row.step for row in report.steps if row.step.op == "Conv"]
        # Of a direct convolution, the engine says besides which way it goes.
        if "conv" in names and variant.startswith("aot/"):
            way = next(words for words in conv.WALKS.values() if step.why.endswith(words))
            pattern += f"{'; ' if pattern else ''}{re.escape(way)}"
        assert re.fullmatch(pattern, step.why) and set(step.kernels) == names, (pattern, step)
        assert f": {step.why}\n" in report.text() if pattern else ":" not in report.text().splitlines()[2]
        assert step.why in [row["why"] for row in report.dict()["steps"]]
    monkeypatch.setenv(conv.VARIABLE, "direct")
    conv.forced.cache_clear()
    model = fl.compile(lambda x: fl.functional.conv2d(x, w, padding=1), x)
    assert "conv: direct, as FASTLAYERS_CONV says" in model.summary()
    strict = fl.compile(lambda x: fl.functional.conv2d(x, w, padding=1), x, precision="strict")
    conv.forced.cache_clear()
    monkeypatch.delenv(conv.VARIABLE)
    assert "conv: sums tap by tap" in strict.summary()


@pytest.mark.without("cuda")
def test_ways_are_forced_and_told(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A way of the engine's is forced wherever it can go, and with it a direct convolution; elsewhere the fastest is taken."""
    x, weight = normal(1, 3, 40, 40), normal(6, 3, 3, 3)
    results = set()
    for name in conv.WALKS:
        monkeypatch.setenv(conv.VARIABLE, name)
        conv.forced.cache_clear()
        model = fl.compile(lambda x: fl.functional.conv2d(x, weight, padding=2, dilation=2), x)
        results.add(np.asarray(model(x)).tobytes())
        if variant.startswith("aot/"):
            told = conv.WALKS["swapped" if name == "blocks" else name]  # it has no groups to go through together
            assert f"conv: direct, as FASTLAYERS_CONV says; {told}" in model.summary(), name
    assert len(results) == 1


@pytest.mark.without("cuda")
def test_transposed_and_quantized_say_why(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, apart, whole = normal(1, 8, 32, 32), normal(8, 1, 4, 4), normal(8, 8, 4, 4)

    def said(weight: np.ndarray, groups: int) -> str:
        return fl.compile(lambda x: fl.functional.conv_transpose2d(x, weight, stride=2, groups=groups), x).summary()

    assert "phases of the strides, one channel a group" in said(apart, 8)
    assert "a product a group" in said(whole, 1)
    y = fl.functional.conv_transpose2d(x, apart, stride=2, groups=8)
    monkeypatch.setenv(conv.VARIABLE, "direct")
    conv.forced.cache_clear()
    assert "a product a group, as FASTLAYERS_CONV says" in said(apart, 8)
    np.testing.assert_array_equal(fl.functional.conv_transpose2d(x, apart, stride=2, groups=8), y)


def test_an_unknown_word_is_an_error_of_the_first_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(conv.VARIABLE, "fft")
    with pytest.raises(fl.errors.ArgumentError, match="FASTLAYERS_CONV: 'fft' is unknown: expected one of direct, winograd2"):
        kernels()

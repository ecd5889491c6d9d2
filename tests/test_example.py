"""The files that come with the package, and what frozen programs need of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import _freeze
from fastlayers._example import FILES
from fastlayers.cli import demo, vad
from fastlayers.kernels import dispatch


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_there(name: str) -> None:
    assert Path(fl.example(name)).is_file()


@pytest.mark.parametrize("name", ["silero", "../data/speech", "", 3, None])
def test_another_name_is_an_error(name: object) -> None:
    with pytest.raises(fl.ArgumentError, match=r"example: name is .*: expected one of 'silero_vad', 'speech'"):
        fl.example(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [1, 3])
def test_the_graph_answers_as_the_layers_with_the_same_weights(batch: int) -> None:
    """So the file is made again (tests/goldens/make_example.py) when the layers change."""
    net, model = demo.load_network(), fl.load(fl.example("silero_vad"), require_native=fl.kernels.current() != "reference")
    rng = np.random.default_rng(0)
    x = 0.1 * rng.standard_normal((batch, 576)).astype(np.float32)
    state = rng.standard_normal((2, batch, 128)).astype(np.float32)
    probability, new = net(x, vad.State(state[0], state[1]))
    results = model.run({"input": x, "state": state, "sr": 16000})
    np.testing.assert_allclose(results["output"][:, 0], probability, rtol=0, atol=1e-6)
    np.testing.assert_allclose(results["stateN"], np.stack([new.h, new.c]), rtol=0, atol=1e-5)


def test_a_rate_that_the_network_is_not_for_is_refused() -> None:
    model = fl.load(fl.example("silero_vad"))
    model.prepare({"input": (1, 576), "state": (2, 1, 128), "sr": ()})
    x, state = np.zeros((1, 576), np.float32), np.zeros((2, 1, 128), np.float32)
    for rate in (8000, 44100, 0, np.array([-16000])):
        with pytest.raises(fl.ShapeError, match=r"^run: input 'sr' is -?\d+: expected 16000, which this network is for"):
            model(x, state, rate)
        with pytest.raises(fl.ShapeError, match="input 'sr'"):
            model.stream(size=512, overlap=64)(np.zeros(16000, np.float32), rate)
    assert float(model(x, state, np.array([16000]))[0][0, 0]) < 0.5


def test_a_frozen_program_without_the_engine_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run many times slower, and who froze it would not see the warning."""
    monkeypatch.setattr(dispatch, "engine", lambda: None)
    monkeypatch.delenv("FASTLAYERS_ISA", raising=False)
    with pytest.warns(RuntimeWarning, match="the compiled engine is missing"):
        assert dispatch._default() in ("jit", "reference")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(fl.DeviceError, match=r"frozen program.*FASTLAYERS_ISA=reference"):
        dispatch._default()
    monkeypatch.setenv("FASTLAYERS_ISA", "reference")
    assert dispatch._default() == "reference"


def test_the_folder_of_hooks_has_a_hook() -> None:
    (folder,) = _freeze.hook_dirs()
    assert (Path(folder) / "hook-fastlayers.py").is_file()

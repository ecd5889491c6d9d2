"""Trained networks as streams: their states are found by name and fed back, as by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fastlayers as fl

from .real_models import MODELS, Real, differences, feeds_of, path_of

SILERO = [real for real in MODELS if real.name.startswith("silero")]


@pytest.mark.parametrize("real", SILERO, ids=[real.name for real in SILERO])
def test_voice_activity(real: Real) -> None:
    model = fl.load(path_of(real))
    stream = model.stream()
    sequence = "sequence" in real.name
    pairs = {"h": "hn", "c": "cn"} if sequence else {"state": "stateN"}
    assert [v.name for v in stream.inputs] == [v.name for v in model.inputs if v.name not in pairs]
    state = {n: np.zeros((1, 1, 128) if sequence else (2, 1, 128), np.float32) for n in pairs}
    rng = np.random.default_rng(0)
    for i in range(5):
        feeds: dict[str, np.ndarray] = {"input": rng.standard_normal((3 if sequence and i else 1, 576)).astype(np.float32) / 10}
        if any(v.name == "sr" for v in model.inputs):
            feeds["sr"] = np.array(16000)
        want = model.run({**feeds, **state})
        state = {before: want.pop(after) for before, after in pairs.items()}
        got = stream.run(feeds)
        assert list(got) == list(want)
        for key, value in want.items():
            np.testing.assert_array_equal(got[key], value)
        for key, value in state.items():
            np.testing.assert_array_equal(stream.state[key], value)
    # From the golden's states on, what onnxruntime gives.
    given = feeds_of(real, [v.name for v in model.inputs])
    stream.state = {name: given.pop(name) for name in pairs}
    results = stream.run(given) | {after: stream.state[before] for before, after in pairs.items()}
    assert max(differences(real, [results[v.name] for v in model.outputs])) <= real.tolerance

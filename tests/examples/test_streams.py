"""Trained networks as streams: their states are found by name and fed back, as by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fastlayers as fl

from .wheels import wheel_file

FILES = ["silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_half.onnx", "silero_vad_op18_ifless.onnx",
         "silero_vad_openvino_16k.onnx", "silero_vad_16k_sequence.onnx"]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_voice_activity(name: str) -> None:
    model = fl.load(wheel_file("silero-vad==6.2.3", f"silero_vad/data/{name}"))
    stream = model.stream()
    sequence = "sequence" in name
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

"""Voice activity detection with silero-vad's 16 kHz network, built from fastlayers' layers and streamed frame by frame.

Finds the probability of speech in each frame and nothing more; segments are made of them elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers import functional as F

from .._tuples import NamedTuple
from ..errors import UnsupportedError

__all__ = ["CONTEXT", "FRAME", "RATE", "Exported", "State", "VoiceActivity", "windows"]

RATE = 16000
FRAME = 512  # new samples a step: 32 ms
CONTEXT = 64  # samples before them that a step sees again
BINS = 129  # frequencies of the spectrum, from 0 to RATE / 2


class State(NamedTuple):
    """State between steps: the LSTM's output and cell, each (n, 128) for n recordings."""

    h: np.ndarray
    c: np.ndarray


class VoiceActivity(fl.Layer):
    """Probability of speech in a frame, given the frames before it.

    Nothing is retained between calls: the state goes in and comes out, so one network serves any number of recordings.

    >>> net = VoiceActivity()
    >>> _ = net.load_state_dict(fl.load_weights(fl.example("silero_vad")), strict=False)
    >>> state = net.initial()
    >>> for window in windows(np.zeros(1024)):
    ...     probability, state = net(window, state)
    """

    def __init__(self) -> None:
        # The Fourier basis under a window, as a bank of filters: BINS real parts, then BINS imaginary ones.
        self.stft_conv = _conv(1, 2 * BINS, 256, stride=128, padding=((0, CONTEXT),), padding_mode="reflect", bias=False)
        self.conv1 = _conv(BINS, 128, 3, padding=1, activation="relu")
        self.conv2 = _conv(128, 64, 3, stride=2, padding=1, activation="relu")
        self.conv3 = _conv(64, 64, 3, stride=2, padding=1, activation="relu")
        self.conv4 = _conv(64, 128, 3, padding=1, activation="relu")
        self.lstm_cell = fl.LSTMCell(128, 128)
        self.final_conv = _conv(128, 1, 1, activation="sigmoid")

    def initial(self, n: int = 1) -> State:
        """The state before the first frame of n recordings: zeros."""
        return State(np.zeros((n, 128), np.float32), np.zeros((n, 128), np.float32))

    def forward(self, window: np.ndarray, state: State) -> tuple[np.ndarray, State]:
        """One step of n recordings.

        Args:
            window: (n, 576) float32, full scale at ±1: the 64 samples before the frame and the 512 of the frame.
            state: what the step before returned, or `initial(n)`.

        Returns:
            the probabilities of speech (n,), and the state for the next step.
        """
        spectrum = self.stft_conv(window[:, :, None])  # (n, 4, 258): four times, channels last
        power = spectrum * spectrum
        x = np.sqrt(power[:, :, :BINS] + power[:, :, BINS:])
        x = self.conv4(self.conv3(self.conv2(self.conv1(x))))  # (n, 1, 128): the strides have left one time
        h, c = self.lstm_cell(x[:, 0], state)
        return self.final_conv(F.relu(h)[:, None])[:, 0, 0], State(h, c)


class Exported:
    """The network as silero-vad publishes it, from its ONNX file, called as `VoiceActivity` is.

    >>> net = Exported(fl.example("silero_vad"))

    Args:
        path: a model with the inputs ``input`` and ``state``, and perhaps ``sr``, and the outputs probability and new state.

    Raises:
        UnsupportedError: the model has other inputs or outputs.
        FormatError, UnsupportedError, LimitError: as `fastlayers.load`.
    """

    def __init__(self, path: str) -> None:
        self._model = fl.load(path)
        names = [spec.name for spec in self._model.inputs]
        if sorted(set(names) - {"sr"}) != ["input", "state"] or len(self._model.outputs) != 2:
            raise UnsupportedError(
                f"{path}: has the inputs {names} and {len(self._model.outputs)} outputs: expected input, state and perhaps sr, "
                "and two outputs"
            )
        self._output, self._next = (spec.name for spec in self._model.outputs)
        self._rate = {"sr": np.array(RATE, np.int64)} if "sr" in names else {}

    def initial(self) -> np.ndarray:
        """The state before the first frame: zeros."""
        return np.zeros((2, 1, 128), np.float32)

    def __call__(self, window: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One step: the probability of speech, and the state for the next one."""
        results = self._model.run({"input": window, "state": state, **self._rate})
        return results[self._output], results[self._next]


def _conv(inputs: int, outputs: int, kernel: int, **options: Any) -> fl.Conv1d:
    """Channels last: then every layer reads its input where it is."""
    return fl.Conv1d(inputs, outputs, kernel, layout="nlc", **options)


def windows(samples: np.ndarray) -> Iterator[np.ndarray]:
    """Cuts a recording (n,) into the inputs of `VoiceActivity`: (1, 576) a frame; zeros precede it and fill up its last frame."""
    padded = np.zeros((1, CONTEXT + -(-len(samples) // FRAME) * FRAME), np.float32)
    padded[0, CONTEXT : CONTEXT + len(samples)] = samples
    for start in range(0, padded.shape[1] - CONTEXT, FRAME):
        yield padded[:, start : start + CONTEXT + FRAME]

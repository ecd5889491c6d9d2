"""Voice activity detection with silero-vad's 16 kHz network, built from fastlayers' layers and streamed frame by frame.

Finds the probability of speech in each frame and nothing more; segments are made of them elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers import functional as F

__all__ = ["CONTEXT", "FRAME", "RATE", "State", "VoiceActivity", "windows"]

RATE = 16000
FRAME = 512  # new samples a step: 32 ms
CONTEXT = 64  # samples before them that a step sees again
BINS = 129  # frequencies of the spectrum, from 0 to RATE / 2


class State(NamedTuple):
    """What a step hands to the next one: the LSTM's output and cell (1, 128)."""

    h: np.ndarray
    c: np.ndarray


class VoiceActivity:
    """Probability of speech in a frame, given the frames before it.

    The network keeps nothing between calls: the state goes in and comes out, so one network serves many recordings at once.

    >>> net = VoiceActivity(fl.load_weights("silero_vad_16k.safetensors"))  # doctest: +SKIP
    >>> state = net.initial()  # doctest: +SKIP
    >>> for window in windows(samples):  # doctest: +SKIP
    ...     probability, state = net(window, state)
    """

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self._stft = fl.Conv1d(1, 2 * BINS, 256, stride=128, bias=False)  # the Fourier basis, times a window, as a filter bank
        self._conv1 = fl.Conv1d(BINS, 128, 3, padding=1, activation="relu")
        self._conv2 = fl.Conv1d(128, 64, 3, stride=2, padding=1, activation="relu")
        self._conv3 = fl.Conv1d(64, 64, 3, stride=2, padding=1, activation="relu")
        self._conv4 = fl.Conv1d(64, 128, 3, padding=1, activation="relu")
        self._lstm = fl.LSTMCell(128, 128)
        self._final = fl.Conv1d(128, 1, 1, activation="sigmoid")
        for name in ("stft_conv", "conv1", "conv2", "conv3", "conv4", "lstm_cell", "final_conv"):
            layer = getattr(self, "_" + name.removesuffix("_conv").removesuffix("_cell"))
            layer.load_state_dict({k.removeprefix(name + "."): w for k, w in weights.items() if k.startswith(name + ".")})

    def initial(self) -> State:
        """The state before the first frame: zeros."""
        return State(np.zeros((1, 128), np.float32), np.zeros((1, 128), np.float32))

    def __call__(self, window: np.ndarray, state: State) -> tuple[float, State]:
        """One step.

        Args:
            window: (576,) float32, full scale at ±1: the 64 samples before the frame and the 512 of the frame.
            state: what the step before returned, or `initial()`.

        Returns:
            the probability of speech, and the state for the next step.
        """
        x = F.pad(window[None, None], (0, CONTEXT), mode="reflect")
        spectrum = self._stft(x)  # (1, 258, 4): real parts, then imaginary parts, at four times
        spectrum *= spectrum
        x = np.sqrt(spectrum[:, :BINS] + spectrum[:, BINS:])
        x = self._conv4(self._conv3(self._conv2(self._conv1(x))))  # (1, 128, 1): the strides leave one time
        h, c = self._lstm(x[:, :, 0], state)
        return self._final(F.relu(h)[:, :, None]).item(), State(h, c)


def windows(samples: np.ndarray) -> Iterator[np.ndarray]:
    """What `VoiceActivity` wants to see of a recording (n,), frame by frame; zeros stand before it and fill up its last frame."""
    padded = np.zeros(CONTEXT + -(-len(samples) // FRAME) * FRAME, np.float32)
    padded[CONTEXT : CONTEXT + len(samples)] = samples
    for start in range(0, len(padded) - CONTEXT, FRAME):
        yield padded[start : start + CONTEXT + FRAME]

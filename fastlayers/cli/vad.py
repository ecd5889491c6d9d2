"""Voice activity detection with silero-vad's 16 kHz network, built from fastlayers' layers and streamed frame by frame.

Finds the probability of speech in each frame and nothing more; segments are made of them elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

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
        def conv(*sizes: int, **options: Any) -> fl.Conv1d:
            return fl.Conv1d(*sizes, layout="nlc", **options)

        layers = {
            # The Fourier basis under a window, as a bank of filters: BINS real parts, then BINS imaginary ones.
            "stft_conv": conv(1, 2 * BINS, 256, stride=128, padding=((0, CONTEXT),), padding_mode="reflect", bias=False),
            "conv1": conv(BINS, 128, 3, padding=1, activation="relu"),
            "conv2": conv(128, 64, 3, stride=2, padding=1, activation="relu"),
            "conv3": conv(64, 64, 3, stride=2, padding=1, activation="relu"),
            "conv4": conv(64, 128, 3, padding=1, activation="relu"),
            "lstm_cell": fl.LSTMCell(128, 128),
            "final_conv": conv(128, 1, 1, activation="sigmoid"),
        }
        for name, layer in layers.items():
            layer.load_state_dict({k.removeprefix(name + "."): w for k, w in weights.items() if k.startswith(name + ".")})
        self._stft, *self._encoder, self._lstm, self._final = layers.values()

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
        spectrum = self._stft(window[None, :, None])  # (1, 4, 258): four times, channels last
        spectrum *= spectrum
        x = np.sqrt(spectrum[..., :BINS] + spectrum[..., BINS:])
        for layer in self._encoder:
            x = layer(x)
        h, c = self._lstm(x[:, 0], state)  # the strides have left one time
        return self._final(F.relu(h)[:, None]).item(), State(h, c)


def windows(samples: np.ndarray) -> Iterator[np.ndarray]:
    """What `VoiceActivity` wants to see of a recording (n,), frame by frame; zeros stand before it and fill up its last frame."""
    padded = np.zeros(CONTEXT + -(-len(samples) // FRAME) * FRAME, np.float32)
    padded[CONTEXT : CONTEXT + len(samples)] = samples
    for start in range(0, len(padded) - CONTEXT, FRAME):
        yield padded[start : start + CONTEXT + FRAME]

"""Encoders with decoders: make_seq2seq.py runs them on torch, tests/layers/test_seq2seq.py on fastlayers. Labels are seeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .front_cases import arrays

# Tokens: 0 begins, 1 ends. All sequences of LONGEST tokens are tried.
VOCABULARY, START, END, LONGEST = 5, 0, 1, 4
SOURCE, SIZE, HIDDEN = 7, 3, 6


class Case(NamedTuple):
    """Which kind of cell, in how many layers; with attention: score = v tanh(W h + U memory)."""

    kind: str
    layers: int
    attention: bool

    @property
    def label(self) -> str:
        return f"{self.kind} {self.layers} {'attention' if self.attention else ''}"

    def x(self) -> tuple[np.ndarray, np.ndarray]:
        """Three sequences of source tokens, and their lengths."""
        rng = np.random.default_rng(len(self.label))
        return rng.integers(0, SOURCE, (3, 6)), np.array([6, 2, 4])

    def targets(self) -> np.ndarray:
        """What the decoder is given."""
        return np.array([[START, 2, 3, 4], [START, 4, 4, 2], [START, 1, 0, 3]])

    def draw(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """The tensors by name."""
        drawn = arrays(self.label, *(shapes[name] for name in sorted(shapes)))
        return dict(zip(sorted(shapes), drawn, strict=True))


CASES = (Case("GRU", 1, False), Case("LSTM", 2, False), Case("RNN", 1, False), Case("GRU", 1, True), Case("LSTM", 2, True))

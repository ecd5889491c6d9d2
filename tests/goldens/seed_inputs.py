"""The inputs and weights of the programs in make_seeds.py: for each call of a network one list of arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .store import drawn

Calls = list[list[np.ndarray]]


def _rand(*shape: int) -> Calls:
    """As ``np.random.seed(42)`` and ``np.random.rand`` give them; Keras makes float32 of them."""
    return [[np.random.RandomState(42).rand(*shape).astype(np.float32)]]


def _head() -> Calls:
    state = np.random.RandomState(42)
    query, key, values = (state.rand(4, length, 32).astype(np.float32) for length in (16, 1, 1))
    return [[query, key, values], [state.rand(4, 8, 32).astype(np.float32), key, values]]


def _tokens() -> Calls:
    state = np.random.RandomState(42)
    return [[state.randint(0, 64, 4 * 5).reshape(4, -1)], [state.randint(0, 64, 4 * 3).reshape(4, -1)]]


INPUTS: dict[str, Callable[[], Calls]] = {
    "dense": lambda: _rand(4, 32, 32, 3),
    "conv2d": lambda: _rand(4, 32, 32, 3),
    "conv2d_through_features": lambda: _rand(4, 32, 32, 3),
    "lstm": lambda: _rand(4, 3, 32),
    "lstm_sequences": lambda: _rand(4, 3, 32),
    "lstm_state": lambda: _rand(4, 3, 32),
    "lstm_sequences_state": lambda: _rand(4, 3, 32),
    "attention_head": _head,
    "attention": _tokens,
    "additive_attention": _tokens,
    "dqn": lambda: _rand(2, 84, 84, 4),
    "trpo": lambda: _rand(3, 20),
}


def weights(program: str, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """A program's weights; embeddings are made large enough that attention prefers some tokens clearly."""
    arrays = drawn(program, shapes)
    return [array * 8 if i == 0 and "attention" in program else array for i, array in enumerate(arrays)]

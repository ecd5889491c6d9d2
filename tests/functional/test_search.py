"""Greedy and beam search: against every sequence there is, alone and in batches, with ties, states and lengths."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

F = fl.functional
END = 2


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    x -= x.max(axis=-1, keepdims=True)
    return (x - np.log(np.exp(x).sum(axis=-1, keepdims=True))).astype(np.float32)


class Toy:
    """A model whose log-probabilities depend on all tokens so far, and on the sequence: its state is a number that they make."""

    def __init__(self, vocabulary: int, seed: int = 0) -> None:
        self.table = np.random.default_rng(seed).standard_normal((97, vocabulary)).astype(np.float32) * 2
        self.calls = 0

    def __call__(self, tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        (number,) = state["seen"]
        number = (number * 31 + tokens + 7) % 97
        self.calls += 1
        return log_softmax(self.table[number]), {"seen": (number,)}

    def state(self, n: int) -> Any:
        return {"seen": (np.arange(n) * 13,)}

    def every(self, n: int, start: int, longest: int, power: float) -> list[list[tuple[float, tuple[int, ...]]]]:
        """All sequences of each of the n, that end or have `longest` tokens, the best first."""
        found = []
        for j in range(n):
            scored = []
            for tokens in product(range(self.table.shape[1]), repeat=longest):
                length = tokens.index(END) + 1 if END in tokens else longest
                if any(t != END for t in tokens[length:]):
                    continue  # one of each that end early
                number, total, previous = j * 13, 0.0, start
                for token in tokens[:length]:
                    number = (number * 31 + previous + 7) % 97
                    total += float(log_softmax(self.table[number])[token])
                    previous = token
                scored.append((total / length**power, tokens))
            found.append(sorted(scored, key=lambda s: (-s[0], s[1])))
        return found


@pytest.mark.parametrize("power", [0.0, 0.7, 1.0, 2.0])
@pytest.mark.parametrize(("vocabulary", "longest"), [(3, 1), (3, 4), (4, 3), (5, 3)])
def test_wide_beams_find_the_best_of_all(vocabulary: int, longest: int, power: float) -> None:
    for seed in range(3):
        toy = Toy(vocabulary, seed)
        beams = vocabulary**longest
        found = F.beam_search(toy, toy.state(3), 1, END, longest, beams, length_penalty=power)
        for j, want in enumerate(toy.every(3, 1, longest, power)):
            np.testing.assert_allclose(found.scores[j, : len(want)], [score for score, _ in want], rtol=1e-6)
            assert np.isneginf(found.scores[j, len(want) :]).all()
            assert tuple(found.tokens[j, 0]) == want[0][1][: found.tokens.shape[2]]
            assert {tuple(t) for t in found.tokens[j, : len(want)]} == {t[: found.tokens.shape[2]] for _, t in want}
            for tokens, length in zip(found.tokens[j, : len(want)], found.lengths[j], strict=False):
                assert (tokens[:length] != END).all() and (tokens[length:] == END).all()


@pytest.mark.parametrize("beams", [1, 2, 3])
def test_scores_are_those_of_the_tokens(beams: int) -> None:
    toy = Toy(7)
    found = F.beam_search(toy, toy.state(4), 1, END, 9, beams, length_penalty=0.5)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    for j in range(4):
        for b in range(beams):
            number, total, previous, length = j * 13, 0.0, 1, min(int(found.lengths[j, b]) + 1, 9)
            for token in [*found.tokens[j, b], END][:length]:
                number = (number * 31 + previous + 7) % 97
                total += float(log_softmax(toy.table[number])[token])
                previous = token
            np.testing.assert_allclose(found.scores[j, b], total / length**0.5, rtol=1e-6)


def test_one_beam_without_penalty_is_greedy_search_unless_ending_early_is_better() -> None:
    for seed in range(20):
        toy = Toy(6, seed)
        toy.table[:, END] = -50  # never the end
        greedy = F.greedy_search(toy, toy.state(3), 1, END, 8)
        beam = F.beam_search(toy, toy.state(3), 1, END, 8, 1)
        np.testing.assert_array_equal(greedy.tokens, beam.tokens[:, 0])
        np.testing.assert_array_equal(greedy.lengths, beam.lengths[:, 0])
        np.testing.assert_allclose(greedy.scores, beam.scores[:, 0], rtol=1e-6)


def test_a_batch_is_its_sequences() -> None:
    toy = Toy(6, 5)
    together = F.beam_search(toy, toy.state(5), 1, END, 7, 3)
    greedy = F.greedy_search(toy, toy.state(5), 1, END, 7)
    for j in range(5):
        one = {"seen": (np.array([j * 13]),)}
        alone = F.beam_search(toy, one, 1, END, 7, 3)
        length = alone.tokens.shape[2]
        np.testing.assert_array_equal(together.tokens[j, :, :length], alone.tokens[0])
        assert (together.tokens[j, :, length:] == END).all()
        np.testing.assert_array_equal(together.scores[j], alone.scores[0])
        single = F.greedy_search(toy, one, 1, END, 7)
        np.testing.assert_array_equal(greedy.tokens[j, : single.tokens.shape[1]], single.tokens[0])
        assert greedy.lengths[j] == single.lengths[0] and greedy.scores[j] == single.scores[0]


def test_greedy_search_stops_at_the_end_and_at_the_limit() -> None:
    table = np.full((4, 4), -1e9, np.float32)
    for token, then in ((0, 1), (1, 3), (3, END), (END, 0)):
        table[token, then] = 0
    found = F.greedy_search(lambda t, s: (table[t], s), None, [0, END, 3], END, 10)
    assert found.tokens.tolist() == [[1, 3, 2, 2], [0, 1, 3, 2], [2, 2, 2, 2]]
    assert found.lengths.tolist() == [2, 3, 0]
    assert (found.scores == 0).all()
    cut = F.greedy_search(lambda t, s: (table[t], s), None, [0], END, 2)
    assert cut.tokens.tolist() == [[1, 3]] and cut.lengths.tolist() == [2]
    assert F.greedy_search(lambda t, s: (table[t], s), None, [0], END, 0).tokens.shape == (1, 0)
    none = F.beam_search(lambda t, s: (table[t], s), None, [0], END, 0, 2)
    assert none.tokens.shape == (1, 2, 0) and none.lengths.tolist() == [[0, 0]]


def test_ties_go_to_the_earlier_beam_and_the_smaller_token() -> None:
    even = np.log(np.full((1, 4), 0.25, np.float32))

    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        return np.repeat(even, len(tokens), axis=0), state

    assert F.greedy_search(step, None, [3], END, 3).tokens.tolist() == [[0, 0, 0]]
    found = F.beam_search(step, None, [3], END, 3, 4, length_penalty=1.0)
    assert found.tokens[0].tolist() == [[2, 2], [0, 2], [1, 2], [3, 2]]
    again = F.beam_search(step, None, [3], END, 3, 4, length_penalty=1.0)
    np.testing.assert_array_equal(found.tokens, again.tokens)


def test_a_search_ends_when_nothing_can_become_better() -> None:
    toy = Toy(6)
    toy.table[:, END] = 12
    F.beam_search(toy, toy.state(1), 1, END, 1000, 2)
    assert toy.calls <= 3


def test_states_of_any_make_follow_their_beams() -> None:
    """A state with its sequences along axis 1, in named tuples, lists and dicts: each beam sees its own tokens."""

    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        seen = np.concatenate([state["seen"][0], tokens[None]], axis=0)
        weights = np.sin(seen.sum(axis=0)[:, None] * np.arange(1, 6) + len(seen))
        return log_softmax(weights * 3), {"seen": [seen]}

    start = {"seen": [np.zeros((1, 2), np.int64)]}
    found = F.beam_search(step, start, 1, END, 5, 3, state_axis=1)
    for j in range(2):
        for b in range(3):
            seen, total = [0, 1], 0.0
            length = min(int(found.lengths[j, b]) + 1, 5)
            for token in [*found.tokens[j, b], END][:length]:
                total += float(log_softmax(np.sin(sum(seen) * np.arange(1, 6) + len(seen)) * 3)[token])
                seen.append(int(token))
            np.testing.assert_allclose(found.scores[j, b], total, rtol=1e-5)


EVEN = np.log(np.full((2, 4), 0.25))
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: F.greedy_search(lambda t, s: (EVEN, s), None, 1, END, 5), fl.ShapeError, "greedy_search: start is one token"),
    (lambda: F.greedy_search(lambda t, s: (EVEN, s), None, [[1]], END, 5), fl.ShapeError, r"start has shape \(1, 1\)"),
    (lambda: F.greedy_search(lambda t, s: (EVEN, s), None, [1.0], END, 5), fl.DTypeError, "start has dtype float64"),
    (lambda: F.greedy_search(lambda t, s: (EVEN, s), None, [1], END, 5), fl.ShapeError, r"expected \(1, more than end=2\)"),
    (lambda: F.greedy_search(lambda t, s: (EVEN, s), None, [1, 1], 4, 5), fl.ShapeError, r"expected \(2, more than end=4\)"),
    (lambda: F.greedy_search(lambda t, s: EVEN[0, 0], None, [1, 1], END, 5), fl.DTypeError, "step returned float64"),
    (lambda: F.greedy_search(lambda t, s: (EVEN + 9, s), None, [1, 1], END, 5), fl.ArgumentError,
     "expected log-probabilities, at most 0"),
    (lambda: F.beam_search(lambda t, s: (EVEN * np.nan, s), None, [1], END, 5, 2), fl.ArgumentError, "step returned nan"),
    (lambda: F.beam_search(lambda t, s: (EVEN, s), np.zeros((3, 1)), [1], END, 5, 2), fl.ShapeError, r"have \[3\] sequences"),
    (lambda: F.beam_search(lambda t, s: (EVEN, s), [np.zeros(3), np.zeros(2)], 1, END, 5, 2), fl.ShapeError, r"\[2, 3\]"),
    (lambda: F.beam_search(lambda t, s: (EVEN, s), np.zeros(3), 1, END, 5, 2, state_axis=1), fl.ShapeError, "state_axis is 1"),
    (lambda: F.beam_search(lambda t, s: (EVEN, s), None, [1], END, 5, 0), fl.ArgumentError, "beam_search: beams is 0"),
    (lambda: F.beam_search(lambda t, s: (EVEN, s), None, [1], END, -1, 1), fl.ArgumentError, "beam_search: max_length is -1"),
    (lambda: F.beam_search(lambda t, s: (EVEN, s), None, [1], -1, 5, 1), fl.ArgumentError, "beam_search: end is -1"),
    (lambda: F.beam_search(lambda t, s: (EVEN, s), None, [1], END, 5, 1, length_penalty=-1), fl.ArgumentError,
     "length_penalty is -1"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_wrong_arguments(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()

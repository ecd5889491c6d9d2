"""The choice of tokens: the definitions in full, and random numbers of seed and position alone."""

from __future__ import annotations

import numpy as np
import pytest

from fastlayers.text import _sampling
from fastlayers.text._sampling import Sampling, choose, log_probabilities, uniform


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max())
    found: np.ndarray = powers / powers.sum()
    return found


def distribution(logits: np.ndarray, seen: list[int], how: Sampling) -> np.ndarray:
    """The probabilities that are drawn from, as transformers' processors define them, one after the other."""
    x = logits.astype(np.float64)
    for i in set(seen):
        x[i] = x[i] * how.repetition_penalty if x[i] < 0 else x[i] / how.repetition_penalty
    x /= how.temperature
    if how.top_k:
        x[x < np.sort(x)[-min(how.top_k, len(x))]] = -np.inf
    if how.top_p < 1:
        order = np.argsort(x, kind="stable")  # ascending
        gone = np.cumsum(softmax(x)[order]) <= 1 - how.top_p
        gone[-1] = False
        x[order[gone]] = -np.inf
    if how.min_p:
        p = softmax(x)
        x[p < how.min_p * p.max()] = -np.inf
    return softmax(x)


def test_random_numbers_are_of_seed_and_position_alone() -> None:
    """Values that must never change: a seed that was written down gives the same text in later versions."""
    assert [uniform(0, 0), uniform(1, 0), uniform(0, 1), uniform(2**64 - 1, 10**6)] == [
        0.011546754286331562, 0.3035680343067586, 0.5023796042735054, 0.4614255439484173
    ]  # fmt: skip
    many = np.array([uniform(seed, position) for seed in range(40) for position in range(50)])
    assert many.min() >= 0 and many.max() < 1 and abs(many.mean() - 0.5) < 0.02 and len(set(many)) == 2000


@pytest.mark.parametrize(
    "how",
    [
        Sampling(1.0), Sampling(0.5), Sampling(2.0, top_k=5), Sampling(1.0, top_p=0.7), Sampling(1.5, min_p=0.2),
        Sampling(1.0, top_p=0.0),
        Sampling(1.3, 12, 0.8, 0.05, 1.4), Sampling(1.0, repetition_penalty=0.5), Sampling(1.0, top_k=1000),
    ],
    ids=str,
)  # fmt: skip
def test_tokens_have_their_probabilities(how: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every interval of [0, 1) is as long as its token is probable: numbers in its midst give the token."""
    rng = np.random.default_rng(1)
    for size, _ in [(50, 0), (40, 1)]:
        logits = (3 * rng.standard_normal(size)).astype(np.float32)
        logits[7] = logits[9]  # equal ones
        seen = [3, 3, 7, 20]
        want = distribution(logits, seen, how)
        drawn = np.zeros(size)
        points = (np.arange(4000) + 0.5) / 4000
        for point in points:
            monkeypatch.setattr(_sampling, "uniform", lambda seed, position, point=point: point)
            drawn[choose(logits, seen, how, 0)] += 1 / 4000
        np.testing.assert_allclose(drawn, want, rtol=0, atol=1 / 2000)


def test_large_vocabularies_are_sorted_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same result: as many tokens are sorted as hold the sum."""
    rng = np.random.default_rng(2)
    logits = (2 * rng.standard_normal(30000)).astype(np.float32)
    hows = [Sampling(1.0, top_p=p, seed=s) for p in (0.1, 0.5, 0.9, 0.999) for s in range(5)]
    few = [choose(logits, [], how, 5) for how in hows]
    monkeypatch.setattr(_sampling, "_SORTED", 10**6)
    assert [choose(logits, [], how, 5) for how in hows] == few


def test_the_most_probable() -> None:
    logits = np.array([1.0, 5.0, 5.0, -1.0], np.float32)
    assert choose(logits, [], Sampling(), 0) == 1 and choose(logits, [1, 1], Sampling(repetition_penalty=2.0), 0) == 2
    assert choose(-logits, [3, 0], Sampling(repetition_penalty=1.1), 0) == 3
    assert choose(logits, [], Sampling(1.0, top_k=1), 0) == 1


def test_log_probabilities() -> None:
    logits = np.random.default_rng(0).standard_normal(20).astype(np.float32)
    want = np.log(softmax(logits.astype(np.float64)))
    found, top = log_probabilities(logits, 4, 3)
    assert found == pytest.approx(want[4], abs=1e-12)
    assert list(top) == np.argsort(-want)[:3].tolist() and list(top.values()) == pytest.approx(np.sort(want)[::-1][:3], abs=1e-12)
    assert log_probabilities(logits, 4, 0)[1] == {}


def test_logits_without_probabilities_choose_the_first_of_the_largest() -> None:
    for values, want in (([1, np.nan, 3], 1), ([1, np.inf, np.inf], 1), ([-np.inf] * 3, 0)):
        logits = np.array(values, np.float32)
        for how in ((), (2,), (0, 0.5), (0, 1.0, 0.5), (0, 0.0)):
            assert choose(logits, [], Sampling(1.0, *how), 5) == want, (values, how)

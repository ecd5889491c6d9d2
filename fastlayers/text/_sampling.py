"""The choice of a token by its logits: the most probable, or a random one that seed and position alone decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tuples import NamedTuple

__all__ = ["Sampling", "choose", "log_probabilities", "uniform"]

# Of a large vocabulary, so many tokens are sorted first: nearly always they hold all that top_p keeps.
_SORTED = 4096


class Sampling(NamedTuple):
    """Settings of `choose`; see `Generator.generate`."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0


def uniform(seed: int, position: int) -> float:
    """A random number of [0, 1) that depends on its arguments alone: the first of Philox with that key and counter."""
    from numpy.random import Philox

    # numpy says of its bit generators that their streams never change.
    raw = int(Philox(counter=position, key=seed).random_raw())
    return float(raw >> 11) * 2.0**-53


def choose(logits: np.ndarray, seen: Sequence[int], how: Sampling, position: int) -> int:
    """The token at a position of a sequence: the most probable (the first of equal ones) where the temperature is 0.

    As transformers does it, in this order: tokens of `seen` are made less probable, by a factor of the logits; logits are divided
    by the temperature; the `top_k` most probable stay, with those that are equal to the last of them; of these the most probable
    whose sum reaches `top_p`; of these those that have at least `min_p` of the probability of the first. All in float64. Logits
    among which is NaN or infinity, or that are all negative infinity, choose as at a temperature of 0.
    """
    if how.repetition_penalty != 1.0 and len(seen):
        logits = logits.copy()
        at = np.unique(np.asarray(seen, np.int64))
        at = at[at < len(logits)]
        few = logits[at]
        logits[at] = np.where(few < 0, few * np.float32(how.repetition_penalty), few / np.float32(how.repetition_penalty))
    if how.temperature == 0.0 or how.top_k == 1:
        return int(logits.argmax())
    powers = logits.astype(np.float64)  # of all, or of `ids`; in place, since new memory for a vocabulary costs as much as a step
    powers /= how.temperature
    most, ids = powers.max(), None
    if not np.isfinite(most):  # there are no probabilities
        return int(logits.argmax())
    if 0 < how.top_k < len(powers):
        ids = np.flatnonzero(powers >= np.partition(powers, -how.top_k)[-how.top_k])
        powers = powers[ids]
    powers -= most
    np.exp(powers, out=powers)
    if how.top_p < 1.0:
        total = powers.sum()
        if len(powers) > 2 * _SORTED:
            some = np.flatnonzero(powers >= np.partition(powers, -_SORTED)[-_SORTED])
            if powers[some].sum() >= how.top_p * total:
                ids, powers = _of(ids, some), powers[some]
        order = np.argsort(-powers, kind="stable")
        powers = powers[order]
        before = np.cumsum(powers) - powers
        kept = before < how.top_p * total
        kept[0] = True
        ids, powers = _of(ids, order[kept]), powers[kept]
    if how.min_p > 0.0:
        some = np.flatnonzero(powers >= how.min_p * powers.max())
        ids, powers = _of(ids, some), powers[some]
    sums = np.cumsum(powers)
    found = min(int(np.searchsorted(sums, uniform(how.seed, position) * sums[-1], side="right")), len(sums) - 1)
    return found if ids is None else int(ids[found])


def _of(ids: np.ndarray | None, at: np.ndarray) -> np.ndarray:
    """The ids at positions among those that are left; None: all are."""
    return at if ids is None else np.asarray(ids[at])


def log_probabilities(logits: np.ndarray, token: int, most: int) -> tuple[float, dict[int, float]]:
    """The logarithm of a token's probability, and those of the `most` most probable tokens, by the logits as they are."""
    x = logits.astype(np.float64)
    x -= x.max()
    x -= np.log(np.exp(x).sum())
    best: Any = np.argsort(-x, kind="stable")[:most] if most else ()
    return float(x[token]), {int(i): float(x[i]) for i in best}

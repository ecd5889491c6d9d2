"""Pools of sequences and keys as kernels look them up: a tree of symbols, and a table where keys are close to each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .._tuples import NamedTuple

__all__ = ["Grams", "grams_of", "table_of"]

SPARE, LEAST = 8, 4096  # entries of a table for each key, and of any table


class Grams(NamedTuple):
    """Sequences as a tree; `reference.classical.grams` explains its arrays."""

    first: np.ndarray
    starts: np.ndarray
    symbols: np.ndarray
    nodes: np.ndarray
    columns: np.ndarray
    weight: np.ndarray


def grams_of(sequences: Sequence[Sequence[int]], columns: Iterable[int], weights: Iterable[float], words: int) -> Grams:
    """The tree of sequences of one symbol at least, from 0 to words - 1 each. Of equal ones the last counts."""
    children: list[dict[int, int]] = [{}]  # of the root, which is no node of the result, first
    ends: dict[int, tuple[int, float]] = {}
    for sequence, column, weight in zip(sequences, columns, weights, strict=True):
        at = 0
        for symbol in sequence:
            found = children[at].get(symbol)
            if found is None:
                found = children[at][symbol] = len(children)
                children.append({})
            at = found
        ends[at] = column, weight
    first = np.full(words, -1, np.int32)
    for symbol, node in children[0].items():
        first[symbol] = node - 1
    pairs = [sorted(found.items()) for found in children[1:]]
    count = len(pairs)
    starts = np.zeros(count + 1, np.int32)
    starts[1:] = np.cumsum([len(found) for found in pairs])
    edges = np.asarray([edge for found in pairs for edge in found], np.int32).reshape(-1, 2)
    placed, weight_ = np.full(count, -1, np.int32), np.zeros(count, np.float32)
    for node, (column, weight) in ends.items():
        placed[node - 1], weight_[node - 1] = column, weight
    return Grams(first, starts, edges[:, 0].copy(), edges[:, 1] - 1, placed, weight_)


def table_of(keys: np.ndarray) -> tuple[np.ndarray, int]:
    """For `places`: the table of ascending keys and its offset; an empty one where they are far from each other."""
    if len(keys):
        least, most = int(keys[0]), int(keys[-1])
        if most - least < SPARE * len(keys) + LEAST:
            table = np.full(most - least + 1, len(keys), np.int64)
            table[keys - least] = np.arange(len(keys))
            return table, least
    return np.zeros(0, np.int64), 0

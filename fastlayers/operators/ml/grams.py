"""TfIdfVectorizer: how often the sequences of a pool are in rows of integers or strings."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..._distinct import distinct
from ...kernels.grams import grams_of
from .._base import FLOAT32, Spec, View, register
from .._traits import PLAIN
from ..calls import indexable
from ..shapes import need_kind
from .labels import placed

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


def _pool(n: View) -> tuple[np.ndarray, dict[str, int] | None]:
    """The pool as integers, and the integer of each string where it is of strings."""
    integers, strings = n.get("pool_int64s"), n.get("pool_strings")
    if (integers is None) == (strings is None):
        raise n.fail("it has two pools, or none: expected pool_int64s or pool_strings")
    if strings is None:
        return np.asarray(integers, np.int64), None
    numbers: dict[str, int] = {}
    return np.asarray([numbers.setdefault(word, len(numbers)) for word in strings], np.int64), numbers


def _grams(n: View) -> list[tuple[np.ndarray, int]]:
    """For each length that is counted: the sequences (count, length) of the pool, and the number of the first of them."""
    (pool, _), starts = _pool(n), list(n.get("ngram_counts", ()))
    bounds, places, found, taken = [*starts, len(pool)], np.asarray(n.get("ngram_indexes", ()), np.int64), [], 0
    if any(a < 0 or a > b for a, b in pairwise(bounds)) or (places.size and places.min() < 0):
        raise n.fail(
            f"ngram_counts are {tuple(starts)} for a pool of {len(pool)}, or an index is negative: expected ascending counts"
        )
    for i, (a, b) in enumerate(pairwise(bounds)):
        count = (b - a) // (i + 1)
        if n.get("min_gram_length", 1) <= i + 1 <= n.get("max_gram_length", 1):
            found.append((np.asarray(pool[a : a + count * (i + 1)], np.int64).reshape(count, i + 1), taken))
        taken += count
    if len(places) < taken:
        raise n.fail(f"there are {len(places)} ngram_indexes: expected one for every sequence of the pool")
    return found


def _tfidf_infer(n: View) -> list[Spec]:
    """x (n, length) or (length,): how often each sequence of the pool is in it, with up to max_skip_count left out between."""
    need_kind(n, "iu" if _pool(n)[1] is None else "O", 0)
    if n.get("mode") not in ("TF", "IDF", "TFIDF"):
        raise n.fail(f"mode is {n.get('mode')!r}: expected 'TF', 'IDF' or 'TFIDF'")
    _grams(n)
    shape, columns = n.shape(0), max(n.get("ngram_indexes", ()), default=-1) + 1
    weights, count = n.get("weights"), len(n.get("ngram_indexes", ()))
    if weights is not None and len(weights) != count:
        raise n.fail(f"there are {len(weights)} weights: expected {count}, one for every sequence of the pool")
    if shape is not None and len(shape) > 2:
        raise n.fail(f"x has shape {shape}: expected (n, length) or (length,)")
    return [Spec(None if shape is None else (*shape[:-1], columns), FLOAT32)]


def _weights(n: View) -> np.ndarray:
    """The weight of each sequence of the pool; of TF 1."""
    given = None if n.get("mode") == "TF" else n.get("weights")
    return np.asarray(np.ones(len(n.get("ngram_indexes", ()))) if given is None else given, np.float32)


def _tfidf_run(n: View, x: np.ndarray) -> Arrays:
    numbers = _pool(n)[1]
    if numbers is not None:
        x = np.asarray([numbers.get(word, -1) for word in x.reshape(-1)], np.int64).reshape(x.shape)
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1] if x.ndim else 1).astype(np.int64)
    places, mode, weights = np.asarray(n.get("ngram_indexes", ()), np.int64), n.get("mode"), _weights(n)
    out = np.zeros((len(rows), int(places.max(initial=-1)) + 1), np.float32)
    for pool, first in _grams(n):
        length = pool.shape[1]
        for step in range(1, n.get("max_skip_count", 0) + 2 if length > 1 else 2):
            reach = (length - 1) * step + 1
            if reach > rows.shape[1] or not len(pool):
                break
            windows = np.lib.stride_tricks.sliding_window_view(rows, reach, axis=1)[..., ::step]
            both = np.concatenate([pool, windows.reshape(-1, length)])
            which = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
            number = np.full(len(both), -1)
            number[which[: len(pool)]] = first + np.arange(len(pool))
            found = number[which[len(pool) :]].reshape(windows.shape[:2])
            row, column = np.nonzero(found >= 0)
            number = found[row, column]
            if mode == "IDF":
                out[row, places[number]] = weights[number]
            else:
                np.add.at(out, (row, places[number]), weights[number])
    return (out.reshape(*x.shape[:-1], out.shape[1]),)


def _tfidf_lower(n: View, b: Any) -> Any:
    """Positions of the elements among the words of the pool, and a walk along the tree of its sequences from each."""
    columns, weights, shape = n.get("ngram_indexes", ()), _weights(n), n.sizes(0)
    if not indexable(n, 0) or (n.get("mode") == "IDF" and len(set(columns)) != len(columns)):
        return False  # of several sequences in one column the last of the row would count
    parts = _grams(n)
    words = distinct(np.concatenate([np.zeros(0, np.int64), *(pool.reshape(-1) for pool, _ in parts)]))[0]
    sequences = [row for pool, _ in parts for row in np.searchsorted(words, pool).tolist()]
    numbers = [i for pool, first in parts for i in range(first, first + len(pool))]
    tree = grams_of(sequences, [columns[i] for i in numbers], weights[numbers], len(words))
    x, out = placed(n, b, words), b.output(0)
    rows, steps = math.prod(shape[:-1]), n.get("max_skip_count", 0) + 1
    given = [b.constant(array) for array in tree]
    b.call("grams", x.view((rows, math.prod(shape[-1:]))), *given, out.view((rows, out.shape[-1])), steps, n.get("mode") == "IDF")
    return True


register("TfIdfVectorizer", _tfidf_infer, _tfidf_run, _tfidf_lower, PLAIN)

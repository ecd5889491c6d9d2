"""Biases of attention scores by the distance of key and query, which is sorted into buckets that grow with it."""

from __future__ import annotations

import math

import numpy as np

from .build import FLOAT32, INT64, Network

__all__ = ["bias", "distances"]


def buckets(count: int, farthest: int) -> np.ndarray:
    """The bucket of each distance from -farthest to farthest, key's place less query's; those beyond are in the last ones."""
    ahead = np.arange(-farthest, farthest + 1)
    half = count // 2
    exact = half // 2
    far = np.abs(ahead)
    with np.errstate(divide="ignore"):
        large = (
            np.log(far.astype(np.float32) / np.float32(exact)) / np.float32(math.log(farthest / exact)) * np.float32(half - exact)
        )
    grown = np.minimum(exact + np.maximum(large, 0).astype(np.int64), half - 1)
    return np.asarray(np.where(ahead > 0, half, 0) + np.where(far < exact, far, grown))


def distances(n: Network, ids: str, farthest: int) -> str:
    """The key's place less the query's, from -farthest to farthest, as rows of a table (t, t) from 0 on."""
    places = n.cast(n.op("AxisPositions", ids, axis=1), FLOAT32)
    apart = n.op("Sub", n.op("Unsqueeze", places, n.ints(0)), n.op("Unsqueeze", places, n.ints(1)))
    return n.cast(n.add(n.op("Clip", apart, n.number(-farthest), n.number(farthest)), n.number(farthest)), INT64)


def bias(n: Network, name: str, ids: str, heads: int, count: int, farthest: int = 128) -> str:
    """Summands of the scores (1, h, t, t): rows of a table (buckets, heads) by distance."""
    table = n.weights.take(name, count, heads)[buckets(count, farthest)]
    rows = n.op("Embedding", n.constant(table, f"{name}.distances"), distances(n, ids, farthest))
    return n.op("Unsqueeze", n.op("Transpose", rows, perm=[2, 0, 1]), n.ints(0))

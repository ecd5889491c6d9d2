"""Detectors' results as sets of rows, next to all that the other runtime gives where last bits decide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["apart_as_sets", "spread"]

SAME = 1e-3  # rows nearer than that, as shares of the largest value of each column's array, are the same row
Result = Mapping[str, np.ndarray]


def _count(result: Result) -> int:
    return len(next(iter(result.values())))


def _rows(result: Result, largest: Mapping[str, float]) -> np.ndarray:
    count = _count(result)
    flat = {name: array.reshape(count, math.prod(array.shape[1:])) for name, array in result.items()}
    parts = [array.astype(np.float64) / largest[name] for name, array in flat.items()]
    return np.concatenate(parts, axis=1)


def _nearest(rows: np.ndarray, among: np.ndarray) -> np.ndarray:
    """How far the nearest of some rows is from each."""
    if not len(rows) or not len(among):
        return np.full(len(rows), np.inf)
    return np.array([np.abs(among - row).max(1, initial=0).min() for row in rows])


def apart_as_sets(got: Result, want: Result, near: Sequence[Result], batched: bool = False) -> float:
    """How far rows are from those that they must be; `batched` are rows of several images, compared image by image.

    A row that is in `want` and in all of `near`, the results for inputs moved by last bits, has to be there; every row has to be
    in one of these; and the number of rows has to be one of theirs. Infinity where it is not, or where dtypes or sizes differ.
    """
    got = {name: np.asarray(got[name]) for name in want}
    if batched:
        if any(got[name].shape != array.shape for name, array in want.items()):
            return np.inf
        images = [
            [{name: array[i] for name, array in result.items()} for result in (got, want, *near)] for i in range(_count(want))
        ]
        return max((apart_as_sets(mine, wanted, others) for mine, wanted, *others in images), default=0.0)
    counts = {_count(result) for result in (want, *near)}
    for name, array in want.items():
        if got[name].shape[1:] != array.shape[1:] or got[name].dtype != array.dtype or len(got[name]) not in counts:
            return np.inf
    if len({len(array) for array in got.values()}) != 1:
        return np.inf
    largest = {name: max(1.0, float(np.abs(array.astype(np.float64)).max(initial=0))) for name, array in want.items()}
    mine, wanted = _rows(got, largest), _rows(want, largest)
    others = [_rows(result, largest) for result in near]
    needed = np.ones(len(wanted), bool)
    for rows in others:
        needed &= _nearest(wanted, rows) <= SAME
    missing = _nearest(wanted[needed], mine).max(initial=0)
    strange = _nearest(mine, np.concatenate([wanted, *others])).max(initial=0)
    return float(max(missing, strange))


def spread(want: Result, near: Sequence[Result], batched: bool = False) -> float:
    """How far results for inputs moved by last bits are from one another by the same measure, at most what is the same row.

    What is nearer than that says nothing against a result.
    """
    apart = [apart_as_sets(moved, want, [*near[:i], *near[i + 1 :]], batched) for i, moved in enumerate(near)]
    return min(max((a for a in apart if np.isfinite(a)), default=0.0), SAME)

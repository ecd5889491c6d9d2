"""Samples of a batch alone: where numpy says that a sample's result does not depend on the others, no bit of it may."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.ir.graph import Graph
from fastlayers.model.model import Model

from .check import Feeds, compare, outcome, same
from .meaning import meaning

__all__ = ["alone", "check_batch", "own_axis"]

CLOSE = 1e-6  # numpy's own sums may differ by rounding; what others have a part in differs by far more


def alone(feeds: Feeds, axes: Mapping[str, int | None], sample: int) -> Feeds:
    """The inputs of one sample. `axes`: which axis of each is the batch's; None if none is."""
    return {
        name: array if axes[name] is None else np.ascontiguousarray(np.take(array, [sample], axes[name]))
        for name, array in feeds.items()
    }


def own_axis(whole: Any, single: Any, count: int, sample: int) -> int | None:
    """The axis of a result along which samples are, if this one's part is what it is alone; None if there is none."""
    if not isinstance(whole, np.ndarray) or whole.ndim != single.ndim or whole.dtype != single.dtype:
        return None
    for axis in range(whole.ndim):
        if whole.shape[axis] != count or single.shape[axis] != 1 or not single.size:
            continue
        part = np.take(whole, [sample], axis)
        if part.dtype.kind == "O":
            if np.array_equal(part, single):
                return axis
            continue
        if part.shape == single.shape and np.allclose(part, single, rtol=CLOSE, atol=CLOSE, equal_nan=True):
            return axis
    return None


def check_batch(
    make: Callable[[], Model], graph: Graph, feeds: Feeds, axes: Mapping[str, int | None], names: Sequence[str]
) -> int:
    """Compares results of a batch with those of each sample alone, one model for all; returns how many were compared."""
    count = next((feeds[name].shape[axis] for name, axis in axes.items() if axis is not None), 0)
    if count < 2:
        return 0
    singles = [alone(feeds, axes, i) for i in range(count)]
    try:
        values, each = meaning(graph, feeds), [meaning(graph, single) for single in singles]
    except fl.Error:  # samples that make one whole
        return 0
    own = {name: {own_axis(values[name], each[i][name], count, i) for i in range(count)} for name in names}
    own = {name: places for name, places in own.items() if len(places) == 1 and None not in places}
    if not own:
        return 0
    model = make()
    whole = outcome(model, feeds, list(own))
    for i, single in enumerate(singles):
        part = outcome(model, single, list(own))
        if not isinstance(whole, str):
            mine = {name: np.take(array, np.array([i]), next(iter(own[name]))) for name, array in whole.items()}
            compare(same(part, mine), f"sample {i} of {count} alone")
    return len(own)

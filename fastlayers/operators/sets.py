"""Distinct elements: Unique."""

from __future__ import annotations

import numpy as np

from ._base import INT64, Spec, View, register
from ._traits import PLAIN
from .shapes import axis_of

__all__: list[str] = []


def _infer(n: View) -> list[Spec]:
    """The different elements (or slices along `axis`), their first positions, which of them each element is, how often."""
    if n.get("sorted", 1) not in (0, 1):
        raise n.fail(f"sorted is {n.get('sorted')}: expected 0 or 1")
    shape, dtype, axis = n.shape(0), n.spec(0).dtype, n.get("axis")
    vectors = [Spec((None,), INT64)] * 3
    if axis is None:
        return [Spec((None,), dtype), *vectors]
    if shape is None:
        return [Spec(None, dtype), *vectors]
    axis = axis_of(n, axis, len(shape))
    return [Spec((*shape[:axis], None, *shape[axis + 1 :]), dtype), *vectors]


def _run(n: View, x: np.ndarray) -> tuple[np.ndarray, ...]:
    axis = n.get("axis")
    if axis is not None:
        axis = axis_of(n, axis, x.ndim)
        rest = x.size // max(x.shape[axis], 1)
        if not x.shape[axis] or not rest:  # numpy refuses to compare slices of no elements
            one = min(x.shape[axis], 1)
            whole = np.zeros(x.shape[axis], np.int64)
            return np.take(x, np.arange(one), axis), whole[:one], whole, np.full(one, x.shape[axis], np.int64)
    _, first, which, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    which = which.reshape(-1)
    if not n.get("sorted", 1):
        order = np.argsort(first)  # as they come
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, which, counts = first[order], place[which], counts[order]
    found = np.take(x.reshape(-1) if axis is None else x, first, axis=0 if axis is None else axis)
    return found, first.astype(np.int64), which.astype(np.int64), counts.astype(np.int64)


register("Unique", _infer, _run, traits=PLAIN._replace(counts=True))

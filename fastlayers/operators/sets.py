"""Distinct elements: Unique."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.table import KINDS
from ._base import INT64, Spec, View, register
from ._traits import PLAIN
from .shapes import axis_of, product

__all__: list[str] = []


def _infer(n: View) -> list[Spec]:
    """The different elements (or slices along `axis`), their first positions, which of them each element is, how often."""
    if n.get("sorted", 1) not in (0, 1):
        raise n.fail(f"sorted is {n.get('sorted')}: expected 0 or 1")
    shape, dtype, axis = n.shape(0), n.spec(0).dtype, n.get("axis")
    count = Spec((None,), INT64)
    if axis is None:
        return [Spec((None,), dtype), count, Spec((None if shape is None else product(shape),), INT64), count]
    if shape is None:
        return [Spec(None, dtype), *[count] * 3]
    axis = axis_of(n, axis, len(shape))
    return [Spec((*shape[:axis], None, *shape[axis + 1 :]), dtype), count, Spec((shape[axis],), INT64), count]


def _counted(x: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """First positions, which one each is, and counts of the distinct integers of x, without sorting them; None if they are far
    apart, or none.
    """
    if x.dtype.kind not in "iu" or not x.size:
        return None
    least, most = int(x.min()), int(x.max())
    if most - least > 4 * x.size + 1024:
        return None
    at = (x - x.dtype.type(least)).astype(np.int64) if x.dtype.kind == "u" else x.astype(np.int64) - least
    counts = np.bincount(at)
    there = np.flatnonzero(counts)
    number, first = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    number[there] = np.arange(len(there))
    first[at[::-1]] = np.arange(x.size - 1, -1, -1)  # of equal ones the last that is written: the first
    return first[there], number[at], counts[there]


def _run(n: View, x: np.ndarray) -> tuple[np.ndarray, ...]:
    axis = n.get("axis")
    if axis is not None:
        axis = axis_of(n, axis, x.ndim)
        others = x.size // max(x.shape[axis], 1)
        if not x.shape[axis] or not others:  # numpy refuses to compare slices of no elements
            one = min(x.shape[axis], 1)
            whole = np.zeros(x.shape[axis], np.int64)
            return np.take(x, np.arange(one), axis), whole[:one], whole, np.full(one, x.shape[axis], np.int64)
    few = _counted(x.reshape(-1)) if axis is None or x.ndim == 1 else None
    if few is None:
        _, *rest = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    first, which, counts = rest if few is None else few
    which = which.reshape(-1)
    if not n.get("sorted", 1):
        order = np.argsort(first)  # as they come
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, which, counts = first[order], place[which], counts[order]
    found = np.take(x.reshape(-1) if axis is None else x, first, axis=0 if axis is None else axis)
    return found, first.astype(np.int64), which.astype(np.int64), counts.astype(np.int64)


def _most(n: View) -> list[Spec] | None:
    dtype, shape = n.spec(0).dtype, n.sizes(0)
    if (n.get("axis") is not None and len(shape) != 1) or dtype.name not in KINDS:
        return None
    size = math.prod(shape)
    return [Spec((size,), dtype), *[Spec((size,), INT64)] * 3]


def _lower(n: View, b: Any) -> Any:
    if b.counter is None:
        return False
    x = b.input(0)
    made = [b.output(i) if n.wants(i) else None for i in range(4)]
    return b.call("unique", x.view((x.size,)), *made, b.counter, KINDS[x.dtype.name], bool(n.get("sorted", 1)))


register("Unique", _infer, _run, _lower, PLAIN._replace(counts=_most))

"""Rows picked and replaced by number along any axes, classes as vectors, sequences reversed, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ..table import SCATTER
from .movement import check

__all__ = ["compress", "cut", "non_zero", "one_hot", "pick", "reverse_sequence", "scatter"]


def _rows(
    what: str, indices: np.ndarray, shape: Sequence[int], steps: Sequence[int], size: Sequence[int], stride: Sequence[int]
) -> np.ndarray:
    """Row that each position of the grid reads."""
    found = np.zeros(tuple(shape), np.int64)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        found += np.arange(n).reshape((-1,) + (1,) * (len(shape) - axis - 1)) * step
    tuples = indices.reshape(-1, len(size))
    if len(tuples) != found.size:
        raise ShapeError(f"{what}: {indices.size} indices: expected {found.size * len(size)}")
    rows = found.reshape(-1)
    for k, (n, by) in enumerate(zip(size, stride, strict=True)):
        check(f"{what}: index", tuples[:, k], -n, n - 1)
        rows = rows + np.where(tuples[:, k] < 0, tuples[:, k] + n, tuples[:, k]) * by
    return rows


def pick(
    x__rm: np.ndarray,
    indices: np.ndarray,
    out__pm: np.ndarray,
    shape: Sequence[int],
    x_strides: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    itemsize: int,
) -> None:
    """out[p] = x[Σ p_a x_strides_a + Σ indices[p, k] stride_k] for positions p of a grid of this shape.

    A row has `itemsize` bytes; an index below 0 counts from the end of its axis, which has `size`; ShapeError if one is out of
    range.
    """
    rows = _rows("pick", indices, shape, x_strides, size, stride)
    out__pm[...] = x__rm[rows].reshape(out__pm.shape)


_FUNCTIONS: dict[int, Any] = {
    SCATTER["add"]: np.add, SCATTER["mul"]: np.multiply, SCATTER["max"]: np.maximum, SCATTER["min"]: np.minimum,
}  # fmt: skip


def scatter(
    x__rm: np.ndarray,
    indices: np.ndarray,
    updates__pm: np.ndarray,
    out__rm: np.ndarray,
    shape: Sequence[int],
    out_strides: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    itemsize: int,
    op: int,
    source: int,
) -> None:
    """out = x, in which the row at Σ p_a out_strides_a + Σ indices[p, k] stride_k becomes updates[p], or (`op`, a number of
    table.SCATTER) itself and that together, for positions p of a grid one after the other. out may be x.
    """
    rows = _rows("scatter", indices, shape, out_strides, size, stride)
    out__rm[...] = x__rm
    with np.errstate(all="ignore"):
        if op == SCATTER["none"]:
            for row, update in zip(rows.tolist(), updates__pm.reshape(len(rows), out__rm.shape[-1]), strict=True):
                out__rm[row] = update
        else:
            _FUNCTIONS[op].at(out__rm, rows, updates__pm.reshape(len(rows), out__rm.shape[-1]))


def one_hot(indices__oi: np.ndarray, values: np.ndarray, out__oni: np.ndarray, itemsize: int) -> None:
    """out[o, n, i] = values[1] where indices[o, i] is n or n less than the number of classes, else values[0]."""
    n = out__oni.shape[1]
    at = np.where(indices__oi < 0, indices__oi + n, indices__oi)[:, None]
    out__oni[...] = np.where(at == np.arange(n)[:, None], values.reshape(-1)[1], values.reshape(-1)[0])


def reverse_sequence(x: np.ndarray, lengths: np.ndarray, out: np.ndarray, batch_first: bool, itemsize: int) -> None:
    """x (batch, time, ...), or (time, batch, ...), of which the first lengths[b] steps of each sequence are reversed;
    itemsize: bytes of a step. ShapeError if a length is not from 0 to the number of steps.
    """
    given, to = (x, out) if batch_first else (x.swapaxes(0, 1), out.swapaxes(0, 1))
    check("reverse_sequence: length", lengths, 0, given.shape[1])
    to[...] = given
    for b, length in enumerate(lengths.tolist()):
        to[b, :length] = given[b, :length][::-1]


def non_zero(x: np.ndarray, out: np.ndarray, count: np.ndarray, source: int) -> None:
    """The first elements of out become the positions of the elements of x that are not 0, [axes][count[0]].

    x has 1 to 8 axes and the dtype that `source` says (table.KINDS); out has a place for all positions along all axes.
    """
    found = np.array(np.nonzero(x), np.int64)
    count[0] = found.shape[1]
    out.reshape(-1)[: found.size] = found.reshape(-1)


def compress(x__oni: np.ndarray, condition: np.ndarray, out: np.ndarray, count: np.ndarray, itemsize: int) -> None:
    """The first elements of out become x[o, n, i] of those n of which a condition holds, [o][count[0]][i].

    Of more conditions than n the first count, those without one are left out; itemsize: bytes of an element.
    """
    found = np.compress(condition.reshape(-1)[: x__oni.shape[1]], x__oni, axis=1)
    count[0] = found.shape[1]
    out.reshape(-1)[: found.size] = found.reshape(-1)


def cut(
    x__oni: np.ndarray, starts__1: np.ndarray, ends__1: np.ndarray, out: np.ndarray, count: np.ndarray, itemsize: int
) -> None:
    """The first elements of out become x[o, n, i] of n from a start up to an end, [o][count[0]][i].

    Either counts from the end where it is below 0, and is cut off at the size; itemsize: bytes of an element.
    """
    found = x__oni[:, slice(int(starts__1[0]), int(ends__1[0]))]
    count[0] = found.shape[1]
    out.reshape(-1)[: found.size] = found.reshape(-1)

"""Padding of the three space axes: whole rows are copied, positions in the padding are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..reference.padding import padded
from ..table import PAD_MODES
from ._band import copy_row
from ._njit import emitted, kernel
from ._records import Axes
from ._threads import address, spread
from ._tile import integer
from ._vector import F32, Emit, Float, V

__all__ = ["pad"]

TASK = 1 << 15  # values of one task


@emitted
def _fill(e: Emit, y: V, n: V, value: Float) -> None:
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.splat(value), mask))


@emitted
def _number(e: Emit, x: V, y: V) -> None:
    e.store(y, e.load(x, F32))


class Plan(NamedTuple):
    """Tables of where in x a position of out is, or -1; of the last axis 0, if all are outside but x's own, which come after
    `left`. A task has `step` of the rows."""

    size: Axes
    inner: int
    to: Axes
    left: int
    places: Axes
    value: float
    rows: int
    step: int


@kernel
def _pad(p: Plan, x: int, out: int, first: int, last: int) -> None:
    right = p.left + p.size.w
    for r in range(first * p.step, min(p.rows, last * p.step)):
        plane, to = r // p.to.h, out + 4 * r * p.to.w * p.inner
        z, y = integer(p.places.d, plane % p.to.d), integer(p.places.h, r % p.to.h)
        if z < 0 or y < 0:
            _fill(to, p.to.w * p.inner, p.value)
            continue
        row = x + 4 * ((plane // p.to.d * p.size.d + z) * p.size.h + y) * p.size.w * p.inner
        if p.places.w == 0:
            _fill(to, p.left * p.inner, p.value)
            _fill(to + 4 * right * p.inner, (p.to.w - right) * p.inner, p.value)
        else:
            for side in range(2):
                for i in range(0 if side == 0 else right, p.left if side == 0 else p.to.w):
                    at = row + 4 * integer(p.places.w, i) * p.inner
                    if p.inner == 1:
                        _number(at, to + 4 * i)
                    else:
                        copy_row(at, to + 4 * i * p.inner, p.inner)
        copy_row(row, to + 4 * p.left * p.inner, p.size.w * p.inner)


@lru_cache(maxsize=64)
def _places(size: int, before: int, after: int, mode: int) -> np.ndarray:
    """Source index of every position of the padded axis, or -1."""
    return padded(np.arange(size, dtype=np.int64).reshape(1, 1, size), 0, (0, 0, 0, 0, before, after), mode, -1).reshape(-1)


def pad(x: np.ndarray, out: np.ndarray, pads: Sequence[int], mode: int, value: float) -> None:
    """Copies x (o, d, h, w, i) into the middle of `out` and fills the rest: with `value`, or from x as the mode says."""
    o, *size, inner = x.shape
    to = out.shape[1:4]
    if not out.size:
        return
    places = [_places(size[i], int(pads[2 * i]), int(pads[2 * i + 1]), mode) for i in range(3)]
    tables = [address(table) for table in places]
    if mode == PAD_MODES["zeros"]:
        tables[2] = 0
    rows = o * to[0] * to[1]
    step = max(1, TASK // (to[2] * inner))
    given = Plan(Axes(*size), inner, Axes(*to), int(pads[4]), Axes(*tables), value, rows, step), address(x), address(out)
    spread(-(-rows // step), out.size * 4.0, lambda first, last: _pad(*given, first, last))

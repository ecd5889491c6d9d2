"""Padding of the three space axes: whole rows are copied, positions in the padding are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..reference.padding import padded
from ..table import PAD_MODES
from ._band import copy_row
from ._njit import emitted, kernel
from ._threads import address, spread
from ._tile import integer
from ._vector import F32, Emit, Float, V

__all__ = ["pad"]

TASK = 1 << 15  # numbers of one task


@emitted
def _fill(e: Emit, y: V, n: V, value: Float) -> None:
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.splat(value), mask))


@emitted
def _number(e: Emit, x: V, y: V) -> None:
    e.store(y, e.load(x, F32))


@kernel
def _pad(
    x: int, out: int, size_d: int, size_h: int, size_w: int, inner: int, rows_d: int, rows_h: int, cols: int, left: int,
    places_d: int, places_h: int, places_w: int, value: float, rows: int, step: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: `step` rows of out. places: where in x a position of out is, or -1."""
    right = left + size_w
    for r in range(first * step, min(rows, last * step)):
        plane, to = r // rows_h, out + 4 * r * cols * inner
        z, y = integer(places_d, plane % rows_d), integer(places_h, r % rows_h)
        if z < 0 or y < 0:
            _fill(to, cols * inner, value)
            continue
        row = x + 4 * ((plane // rows_d * size_d + z) * size_h + y) * size_w * inner
        if places_w == 0:
            _fill(to, left * inner, value)
            _fill(to + 4 * right * inner, (cols - right) * inner, value)
        else:
            for side in range(2):
                for i in range(0 if side == 0 else right, left if side == 0 else cols):
                    at = row + 4 * integer(places_w, i) * inner
                    if inner == 1:
                        _number(at, to + 4 * i)
                    else:
                        copy_row(at, to + 4 * i * inner, inner)
        copy_row(row, to + 4 * left * inner, size_w * inner)


@lru_cache(maxsize=64)
def _places(size: int, before: int, after: int, mode: int) -> np.ndarray:
    """Where in an axis every position of the padded one is, or -1."""
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
    given = address(x), address(out), *size, inner, *to, int(pads[4]), *tables, value, rows, step
    spread(-(-rows // step), out.size * 4.0, lambda first, last: _pad(*given, first, last))

"""Padding of the three space axes: constant, reflect, replicate, circular. Bound by memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..table import PAD_MODES
from ._cuda import F32, cuda, device, kernel, sized, threads
from ._device import Array, on_device

__all__ = ["pad"]

BLOCK = threads(256)
_ZEROS, _REFLECT, _REPLICATE = PAD_MODES["zeros"], PAD_MODES["reflect"], PAD_MODES["replicate"]


@device
def _source(i: Any, n: Any, mode: Any) -> Any:
    """Index of the source of position i, 0 being the first of x; -1 if there is none."""
    if 0 <= i < n:
        return i
    if mode == _ZEROS:
        return -1
    if mode == _REPLICATE:
        return 0 if i < 0 else n - 1
    if mode == _REFLECT:
        if n == 1:
            return 0
        turn = 2 * (n - 1)
        i = i % turn
        return i if i < n else turn - i
    return i % n


class Plan(NamedTuple):
    """x of d x h x w positions of `inner` neighbours into a larger one."""

    total: int
    d: int
    h: int
    w: int
    inner: int
    out_d: int
    out_h: int
    out_w: int
    front: int
    top: int
    left: int
    mode: int
    value: float


@kernel
def pad_kernel(x: F32, out: F32, p: Plan) -> None:
    """One number of out a thread."""
    for i in range(cuda.grid(1), p.total, cuda.gridsize(1)):
        rest = i // p.inner
        k = i - rest * p.inner
        row = rest // p.out_w
        iw = _source(rest - row * p.out_w - p.left, p.w, p.mode)
        plane = row // p.out_h
        ih = _source(row - plane * p.out_h - p.top, p.h, p.mode)
        outer = plane // p.out_d
        iz = _source(plane - outer * p.out_d - p.front, p.d, p.mode)
        if iw < 0 or ih < 0 or iz < 0:
            out[i] = p.value
        else:
            out[i] = x[(((outer * p.d + iz) * p.h + ih) * p.w + iw) * p.inner + k]


@on_device
def pad(x__odhwi: Array, out__oxyzi: Array, pads: Sequence[int], mode: int, value: float) -> None:
    """Copies x (o, d, h, w, i) into the middle of `out` and fills the rest: with `value`, or from x as the mode says."""
    total = out__oxyzi.size
    if total:
        _, *sizes = x__odhwi.shape
        (d, h, w, inner), (out_d, out_h, out_w) = sizes, out__oxyzi.shape[1:4]
        given = Plan(total, d, h, w, inner, out_d, out_h, out_w, pads[0], pads[2], pads[4], mode, value)
        pad_kernel.launch(sized(total, BLOCK), BLOCK, x__odhwi.flat, out__oxyzi.flat, given)

"""Padding of the three space axes: constant, reflect, replicate, circular. Bound by memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..table import PAD_MODES
from ._cuda import F32, cuda, device, kernel, sized, threads
from ._device import Array, on_device

__all__ = ["pad"]

BLOCK = threads(256)
_ZEROS, _REFLECT, _REPLICATE = PAD_MODES["zeros"], PAD_MODES["reflect"], PAD_MODES["replicate"]


@device
def _source(i: Any, n: Any, mode: Any) -> Any:
    """Where position i, 0 at the first of x, comes from; -1 for nowhere."""
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


@kernel
def pad_kernel(
    x: F32, out: F32, total: int, d: int, h: int, w: int, inner: int, out_d: int, out_h: int, out_w: int, front: int, top: int,
    left: int, mode: int, value: float,
) -> None:  # fmt: skip
    """One number of out a thread."""
    for i in range(cuda.grid(1), total, cuda.gridsize(1)):
        rest = i // inner
        k = i - rest * inner
        row = rest // out_w
        iw = _source(rest - row * out_w - left, w, mode)
        plane = row // out_h
        ih = _source(row - plane * out_h - top, h, mode)
        outer = plane // out_d
        iz = _source(plane - outer * out_d - front, d, mode)
        if iw < 0 or ih < 0 or iz < 0:
            out[i] = value
        else:
            out[i] = x[(((outer * d + iz) * h + ih) * w + iw) * inner + k]


@on_device
def pad(x__odhwi: Array, out__odhwi: Array, pads: Sequence[int], mode: int, value: float) -> None:
    """Copies x (o, d, h, w, i) into the middle of `out` and fills the rest: with `value`, or from x as the mode says."""
    total = out__odhwi.size
    if total:
        _, *sizes = x__odhwi.shape
        given = total, *sizes, *out__odhwi.shape[1:4], pads[0], pads[2], pads[4], mode, value
        pad_kernel.launch(sized(total, BLOCK), BLOCK, x__odhwi.flat, out__odhwi.flat, *given)

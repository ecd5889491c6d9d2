"""Rotary positions. Bound by memory."""

from __future__ import annotations

from ._cuda import F32, cuda, kernel, sized, threads
from ._device import Array, on_device

__all__ = ["rotary"]

BLOCK = threads(256)


@kernel
def rotary_kernel(
    x: F32, cos: F32, sin: F32, out: F32, total: int, entries: int, outer: int, times: int, inner: int, d: int, r: int,
    interleaved: int,
) -> None:  # fmt: skip
    """One number a thread, with its partner; tables of one entry serve all."""
    for i in range(cuda.grid(1), total, cuda.gridsize(1)):
        row = i // d
        k = i - row * d
        if k >= 2 * r:
            out[i] = x[i]
        else:
            time = row // inner
            b = time // (times * outer)
            place = (b if entries > 1 else 0) * times + time % times
            second = k & 1 if interleaved != 0 else (1 if k >= r else 0)
            pair = k >> 1 if interleaved != 0 else k - second * r
            step = 1 if interleaved != 0 else r
            c, s = cos[place * r + pair], sin[place * r + pair]
            if second != 0:
                out[i] = x[i - step] * s + x[i] * c
            else:
                out[i] = x[i] * c - x[i + step] * s


@on_device
def rotary(x__botid: Array, cos__btr: Array, sin__btr: Array, out__botid: Array, interleaved: bool) -> None:
    """``out = (a cos - b sin, a sin + b cos)`` for every pair (a, b) of x, as the reference explains."""
    total = out__botid.size
    if total:
        _, outer, times, inner, d = x__botid.shape
        entries, _, r = cos__btr.shape
        given = total, entries, outer, times, inner, d, r, int(interleaved)
        rotary_kernel.launch(sized(total, BLOCK), BLOCK, x__botid.flat, cos__btr.flat, sin__btr.flat, out__botid.flat, *given)

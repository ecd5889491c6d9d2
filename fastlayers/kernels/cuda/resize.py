"""Resampling: a thread an output, or four neighbours of one; the taps of all axes at once, since a window's are in a cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..fits import fits, resized_sizes, tables_of
from ._cuda import F32, I64, Kernel, cuda, f32, kernel, load1, load4, per_function, sized, store1, store4, threads
from ._device import Array, on_device, upload

__all__ = ["Packed", "resize", "resize_pack"]

BLOCK = threads(256)
_ZERO = f32(0)


class Packed(NamedTuple):
    """For d, h and w the positions [taps][outputs] in x and their weights."""

    places: tuple[Array, ...]
    weight: tuple[Array, ...]
    taps: tuple[int, ...]
    sizes: tuple[int, ...]  # (d, h, w, i) of x, and (d, h, w) of the result


def resize_pack(axes: Sequence[Any], size: Sequence[int]) -> Packed:
    """axes: for d, h, w (index, weight), each [taps][outputs], int64 and float32 (None: one tap of weight 1), or None for an axis
    that stays; size: (d, h, w, i) of x."""
    tables_of("resize_pack", axes, size)
    tables = [(np.arange(n, dtype=np.int64)[None], None) if a is None else a for a, n in zip(axes, size[:3], strict=True)]
    weights = [np.ones(index.shape, np.float32) if weight is None else weight for index, weight in tables]
    taps = tuple(len(index) for index, _ in tables)
    places = tuple(upload(index) for index, _ in tables)
    return Packed(places, tuple(upload(weight) for weight in weights), taps, resized_sizes(axes, size))


class Plan(NamedTuple):
    """n results, of which `inner` neighbours (in fours, if those are read) share positions; sizes, and taps of each axis."""

    n: int
    inner: int
    d: int
    h: int
    w: int
    out_d: int
    out_h: int
    out_w: int
    zn: int
    yn: int
    xn: int


@per_function(samples=[(True,), (False,)])
def _resize(four: bool) -> Kernel:
    @kernel
    def resize_kernel(x: F32, out: F32, zi: I64, zw: F32, yi: I64, yw: F32, xi: I64, xw: F32, p: Plan) -> None:
        """Taps of weight 0 are not read."""
        for i in range(cuda.grid(1), p.n, cuda.gridsize(1)):
            rest = i // p.inner
            k = i - rest * p.inner
            row = rest // p.out_w
            iw = rest - row * p.out_w
            plane = row // p.out_h
            ih = row - plane * p.out_h
            outer = plane // p.out_d
            iz = plane - outer * p.out_d
            s0 = s1 = s2 = s3 = _ZERO
            for a in range(p.zn):
                wz = load1(zw, a * p.out_d + iz)
                base = (outer * p.d + load1(zi, a * p.out_d + iz)) * p.h
                for b in range(p.yn):
                    wy = wz * load1(yw, b * p.out_h + ih)
                    line = (base + load1(yi, b * p.out_h + ih)) * p.w
                    for e in range(p.xn):
                        wx = wy * load1(xw, e * p.out_w + iw)
                        if wx != _ZERO:
                            at = (line + load1(xi, e * p.out_w + iw)) * p.inner + k
                            if four:
                                v0, v1, v2, v3 = load4(x, 4 * at)
                                s0, s1, s2, s3 = s0 + v0 * wx, s1 + v1 * wx, s2 + v2 * wx, s3 + v3 * wx
                            else:
                                s0 += load1(x, at) * wx
            if four:
                store4(out, 4 * i, s0, s1, s2, s3)
            else:
                store1(out, i, s0)

    return resize_kernel


@on_device
def resize(x__odhwi: Array, packed: Packed, out__oxyzi: Array) -> None:
    """out[o, d, h, w, i] = the sum over the taps of d, h and w of their weights times x there; taps of weight 0 are left out."""
    fits("resize", packed.sizes, (x__odhwi, out__oxyzi))
    if not out__oxyzi.size:
        return
    _, *size, inner = x__odhwi.shape
    four = inner % 4 == 0 and x__odhwi.aligned and out__oxyzi.aligned
    each = 4 if four else 1
    n = out__oxyzi.size // each
    tables = [part for both in zip(packed.places, packed.weight, strict=True) for part in (both[0].flat, both[1].flat)]
    where = Plan(n, inner // each, *size, *out__oxyzi.shape[1:4], *packed.taps)
    _resize(four).launch(sized(n, BLOCK), BLOCK, x__odhwi.flat, out__oxyzi.flat, *tables, where)

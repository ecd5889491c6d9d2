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
    """For d, h and w the places [taps][outputs] in x and their weights."""

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


@per_function(samples=[(True,), (False,)])
def _resize(four: bool) -> Kernel:
    @kernel
    def resize_kernel(
        x: F32, out: F32, n: int, inner: int, d: int, h: int, w: int, out_d: int, out_h: int, out_w: int, zi: I64, zw: F32,
        zn: int, yi: I64, yw: F32, yn: int, xi: I64, xw: F32, xn: int,
    ) -> None:  # fmt: skip
        """`inner`: neighbours (in fours, if those are read) that share their places. Taps of weight 0 are not read."""
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            rest = i // inner
            k = i - rest * inner
            row = rest // out_w
            iw = rest - row * out_w
            plane = row // out_h
            ih = row - plane * out_h
            outer = plane // out_d
            iz = plane - outer * out_d
            s0 = s1 = s2 = s3 = _ZERO
            for a in range(zn):
                wz = load1(zw, a * out_d + iz)
                base = (outer * d + load1(zi, a * out_d + iz)) * h
                for b in range(yn):
                    wy = wz * load1(yw, b * out_h + ih)
                    line = (base + load1(yi, b * out_h + ih)) * w
                    for e in range(xn):
                        wx = wy * load1(xw, e * out_w + iw)
                        if wx != _ZERO:
                            at = (line + load1(xi, e * out_w + iw)) * inner + k
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
def resize(x__odhwi: Array, packed: Packed, out__odhwi: Array) -> None:
    """out[o, d, h, w, i] = the sum over the taps of d, h and w of their weights times x there; taps of weight 0 are left out."""
    fits("resize", packed.sizes, (x__odhwi, out__odhwi))
    if not out__odhwi.size:
        return
    _, *size, inner = x__odhwi.shape
    four = inner % 4 == 0 and x__odhwi.aligned and out__odhwi.aligned
    each = 4 if four else 1
    n = out__odhwi.size // each
    tables = [
        part
        for index, weight, taps in zip(packed.places, packed.weight, packed.taps, strict=True)
        for part in (index.flat, weight.flat, taps)
    ]
    _resize(four).launch(
        sized(n, BLOCK), BLOCK, x__odhwi.flat, out__odhwi.flat, n, inner // each, *size, *out__odhwi.shape[1:4], *tables
    )

"""Adaptive pooling: a thread an output. One bin for all is a reduction, which shares a bin among threads."""

from __future__ import annotations

import math

import numpy as np

from ..table import REDUCE
from ._cuda import F32, I64, Kernel, cuda, f32, kernel, load1, per_function, sized, store1, threads
from ._device import Array, on_device
from ._window import CHANNELS, SIZE, SPACE, STEP, geometry, position, three
from .reduce import reduce

__all__ = ["adaptive_pool"]

BLOCK = threads(256)
_ZERO, _LEAST, _ONES = f32(0), f32(-math.inf), (1, 1, 1)


@per_function(samples=[(True, True), (False, False)])
def _adaptive(mean: bool, last: bool) -> Kernel:
    @kernel
    def adaptive_kernel(x: F32, out: F32, g: I64, n: int) -> None:
        """Bins begin at floor(i in / out) and end at ceil((i + 1) in / out)."""
        space, size, steps, image_step, channels = three(g, SPACE), three(g, SIZE), three(g, STEP), g[STEP + 3], g[CHANNELS]
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            image, d, h, w, c = position(space, channels, i, last, False)
            z0, z1 = d * size[0] // space[0], ((d + 1) * size[0] + space[0] - 1) // space[0]
            y0, y1 = h * size[1] // space[1], ((h + 1) * size[1] + space[1] - 1) // space[1]
            x0, x1 = w * size[2] // space[2], ((w + 1) * size[2] + space[2] - 1) // space[2]
            a = _ZERO if mean else _LEAST
            for z in range(z0, z1):
                for y in range(y0, y1):
                    at = image * image_step + z * steps[0] + y * steps[1] + x0 * steps[2] + c
                    for _ in range(x0, x1):
                        v = load1(x, at)
                        if mean:
                            a += v
                        elif v > a or v != v:
                            a = v
                        at += steps[2]
            if mean:
                a = a / f32((z1 - z0) * (y1 - y0) * (x1 - x0))
            store1(out, i, a)

    return adaptive_kernel


@on_device
def adaptive_pool(x: Array, out: Array, op: int, channels_last: bool) -> None:
    """out = the mean or the largest number of each bin (op of table.REDUCE): floor(i * in / out) to ceil((i + 1) * in / out)."""
    n = out.size
    if not n:
        return
    if not x.size:
        out.fill_from(np.zeros(n, np.float32))
        return
    space, size = (a.shape[1:4] if channels_last else a.shape[2:] for a in (out, x))
    if space == _ONES:
        outer, inner = (x.shape[0], x.shape[4]) if channels_last else (n, 1)
        reduce(x.reshape(outer, math.prod(size), inner), out.reshape(outer, inner), op)
        return
    window = (_ONES, _ONES, _ONES, (0,) * 6)
    _adaptive(op == REDUCE["mean"], channels_last).launch(
        sized(n, BLOCK), BLOCK, x.flat, out.flat, geometry(x, out, window, channels_last), n
    )

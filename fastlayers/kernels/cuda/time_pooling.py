"""Mean and maximum over time: a thread a column of a sequence, neighbours next to each other."""

from __future__ import annotations

import math

from ..table import REDUCE
from ._cuda import F32, I64, U8, cuda, f32, kernel, load1, sized, store1, threads
from ._device import Array, absent, on_device
from .movement import check

__all__ = ["time_pool"]

BLOCK = threads(128)
_ZERO, _LEAST = f32(0), f32(-math.inf)


@kernel
def time_pool_kernel(
    x: F32, lengths: I64, mask: U8, out: F32, n: int, channels: int, steps: int, of_sequence: int, of_step: int, limited: int,
    masked: int, mean: int,
) -> None:  # fmt: skip
    """`of_sequence`, `of_step`: between neighbours in x."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        sequence = i // channels
        at = sequence * of_sequence + i - sequence * channels
        end = lengths[sequence] if limited else steps
        a, count = _ZERO if mean else _LEAST, 0
        for t in range(end):
            if not masked or load1(mask, sequence * steps + t) != 0:
                v = load1(x, at)
                count += 1
                if mean:
                    a += v
                elif v > a or v != v:
                    a = v
            at += of_step
        if mean:
            a = a / f32(count)
        store1(out, i, a if count > 0 else _ZERO)


@on_device
def time_pool(x: Array, lengths__n: Array | None, mask__nt: Array | None, out__nc: Array, op: int, batch_first: bool) -> None:
    """out[n] = the mean or the largest (op of table.REDUCE) of x[n, t], or x[t, n], over t < lengths[n] with mask[n, t]; 0 of
    none."""
    n, channels = out__nc.shape
    steps = x.shape[1] if batch_first else x.shape[0]
    if lengths__n is not None:
        check("time_pool: lengths: index", lengths__n, 0, steps)
    if not out__nc.size:
        return
    apart = (steps * channels, channels) if batch_first else (channels, n * channels)
    time_pool_kernel.launch(
        sized(out__nc.size, BLOCK), BLOCK, x.flat, absent("i8") if lengths__n is None else lengths__n.flat,
        absent("u1") if mask__nt is None else mask__nt.flat, out__nc.flat, out__nc.size, channels, steps, *apart,
        int(lengths__n is not None), int(mask__nt is not None), int(op == REDUCE["mean"]),
    )  # fmt: skip

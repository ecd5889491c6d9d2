"""Values of 16 bits made of 32, and the other way round, where the host can."""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from ._njit import emitted, kernel
from ._threads import address, spread
from ._vector import F32, Emit, V, has

__all__ = ["converted"]

TASK = 1 << 15  # values of one task


@emitted
def _halves(e: Emit, x: V, y: V, n: V, narrow: V) -> None:
    """y = x, 16 bits values made of 32, or the other way round."""
    half = e.vector(ir.HalfType())

    def less(i: V, mask: V | None) -> None:
        value = V(e, e.builder.fptrunc(e.load(e.at(x, i), mask=mask).v, half))
        e.store(e.at(y, i, 2), V(e, e.builder.bitcast(value.v, e.vector(ir.IntType(16)))), mask)

    def more(i: V, mask: V | None) -> None:
        value = V(e, e.builder.bitcast(e.load(e.at(x, i, 2), e.vector(ir.IntType(16)), mask).v, half))
        e.store(e.at(y, i), e.convert(value, F32, "fpext"), mask)

    e.switch(narrow, {0: lambda: e.vectors(n, more), 1: lambda: e.vectors(n, less)})


@kernel
def _half(x: int, y: int, n: int, narrow: int, first: int, last: int) -> None:
    for task in range(first, last):
        start = task * TASK
        from_, to = (4, 2) if narrow != 0 else (2, 4)
        _halves(x + from_ * start, y + to * start, min(TASK, n - start), narrow)


def converted(x: np.ndarray, out: np.ndarray, narrow: bool) -> bool:
    """out = x, one of them float16 (out, if `narrow`) and the other float32; False if the host has no instruction for it."""
    if not has("f16c", "neon", "fp-armv8"):
        return False
    given = address(x), address(out), x.size, int(narrow)
    if x.size:
        spread(-(-x.size // TASK), x.size * 4.0, lambda first, last: _half(*given, first, last))
    return True

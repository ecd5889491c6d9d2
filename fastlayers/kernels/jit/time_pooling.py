"""Mean or maximum over the valid steps of every sequence; what is masked or is after a length is never read."""

from __future__ import annotations

import math

import numpy as np

from ...errors import ShapeError
from ..table import REDUCE
from ._njit import emitted, kernel
from ._threads import address, spread
from ._tile import integer
from ._vector import F32, I8, WIDTH, Emit, Integer, V

__all__ = ["time_pool"]

CHAIN = 256  # steps that are added before they join the sum
VECTORS = 4
STRIP = 256  # channels of one task


@emitted
def _byte(e: Emit, place: V, index: V) -> Integer:
    return e.convert(e.load(e.at(place, index, 1), I8), e.i64(0).kind, "zext")


@emitted
def _pool(e: Emit, mean: V, x: V, step: V, steps: V, mask: V, count: V, y: V, cols: V) -> None:
    """y = the fold of the rows x[t] with mask[t], `count` in all; mask may be 0."""

    def columns(average: bool, first: V, part: V | None, vectors: int = 1) -> None:
        start = e.f(0.0 if average else -math.inf)
        base, lanes = e.at(x, first), range(vectors)
        total = [e.var(start) for _ in lanes]
        with e.loop(0, steps, CHAIN) as begin:
            chain = [e.var(start) for _ in lanes]
            with e.loop(begin, e.smaller(steps, begin + CHAIN)) as t:
                valid = e.var(e.i64(1))
                with e.when(mask.differs(0)):
                    valid.set(e.convert(e.load(e.at(mask, t, 1), I8), valid.get().kind, "zext"))
                with e.when(valid.get().differs(0)):
                    line = e.at(base, t * step)
                    for v, a in enumerate(chain):
                        value = e.load(e.at(line, v * WIDTH), mask=part)
                        a.set(a.get() + value if average else e.most_nan(value, a.get()))
            for s, a in zip(total, chain, strict=True):
                s.set(s.get() + a.get() if average else e.most_nan(s.get(), a.get()))
        for v, s in enumerate(total):
            value = s.get() / e.splat(e.convert(count, F32, "sitofp")) if average else s.get()
            e.store(e.at(y, first + v * WIDTH), value, part)

    def case(average: bool) -> None:
        wide = cols & -(VECTORS * WIDTH)
        with e.loop(0, wide, VECTORS * WIDTH) as first:
            columns(average, first, None, VECTORS)
        e.vectors(cols - wide, lambda first, part: columns(average, wide + first, part))

    e.switch(mean, {0: lambda: case(False), 1: lambda: case(True)})


@kernel
def _time_pool(
    mean: int, x: int, lengths: int, mask: int, out: int, steps: int, c: int, row: int, step: int, first: int, last: int
) -> None:  # fmt: skip
    """Tasks: strips of channels of a sequence; row, step: floats between sequences, and between the steps of one."""
    strips = (c + STRIP - 1) // STRIP
    for task in range(first, last):
        i, column = task // strips, task % strips * STRIP
        length = steps if lengths == 0 else integer(lengths, i)
        count = length
        if mask != 0:
            count = 0
            for t in range(length):
                if _byte(mask, i * steps + t) != 0:
                    count += 1
        cols, to = min(STRIP, c - column), out + 4 * (i * c + column)
        own = mask + i * steps if mask != 0 and count < length else 0
        if count == 0:
            length = 0
        _pool(mean if count > 0 else 1, x + 4 * (i * row + column), step, length, own, max(count, 1), to, cols)


def time_pool(
    x: np.ndarray, lengths__n: np.ndarray | None, mask__nt: np.ndarray | None, out__nc: np.ndarray, op: int, batch_first: bool
) -> None:
    """out[n] = the mean or the largest (op of table.REDUCE) of x[n, t], or x[t, n], over t < lengths[n] with mask[n, t]; 0 of
    none."""
    (n, c), steps = out__nc.shape, x.shape[1 if batch_first else 0]
    if lengths__n is not None:
        lengths__n = lengths__n.copy()  # of the caller, who may change them after they were looked at
    if lengths__n is not None and lengths__n.size and not 0 <= lengths__n.min() <= lengths__n.max() <= steps:
        raise ShapeError("time_pool: lengths: index out of range")
    given = (
        int(op == REDUCE["mean"]), *map(address, (x, lengths__n, mask__nt, out__nc)), steps, c,
        *((steps * c, c) if batch_first else (c, n * c)),
    )  # fmt: skip
    if out__nc.size:
        spread(n * -(-c // STRIP), x.size * 4.0, lambda first, last: _time_pool(*given, first, last))

"""Reductions over the middle of three axes. Bound by memory; values are read once (twice for log_sum_exp).

Where there are few sums of many values, each is cut into pieces, whose results are reduced again: else one multiprocessor would
do it all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..table import REDUCE, UNARY
from ._cuda import F32, Kernel, T, block_max, block_sum, cdiv, cuda, devices, f32, kernel, per_function, sized, threads
from ._device import Array, empty, on_device
from ._integer import ANNOTATIONS
from ._math import exp, function, log, root

__all__ = ["reduce", "running_sum"]

BLOCK = threads(256)
FEW = 16384  # columns that are too few to give each one thread
PIECE = 8192  # values of a column that is cut
MOST_BLOCKS = (1 << 31) - 1
ZERO, ONE, LEAST, MOST = f32(0), f32(1), f32(-np.inf), f32(np.inf)


_FOLDS = devices({
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "larger": lambda a, b: a if a > b or a != a else b,
    "smaller": lambda a, b: a if a < b or a != a else b,
})  # fmt: skip
_ENDS = devices({
    "same": lambda x, n: x,
    "mean": lambda x, n: x / f32(n),
    "root": lambda x, n: root(x),
    "log": lambda x, n: log(x),
})  # fmt: skip
_LARGER = _FOLDS["larger"]
_IDENTITY, _SQUARE, _ABS = (function(UNARY[name].code) for name in ("identity", "square", "abs"))
# What is done to each number, how they come together, from what, and what is done to the result.
_RULES: dict[str, tuple[Any, Any, Any, Any]] = {
    "sum": (_IDENTITY, _FOLDS["add"], ZERO, _ENDS["same"]),
    "mean": (_IDENTITY, _FOLDS["add"], ZERO, _ENDS["mean"]),
    "max": (_IDENTITY, _FOLDS["larger"], LEAST, _ENDS["same"]),
    "min": (_IDENTITY, _FOLDS["smaller"], MOST, _ENDS["same"]),
    "prod": (_IDENTITY, _FOLDS["multiply"], ONE, _ENDS["same"]),
    "sum_square": (_SQUARE, _FOLDS["add"], ZERO, _ENDS["same"]),
    "l1": (_ABS, _FOLDS["add"], ZERO, _ENDS["same"]),
    "l2": (_SQUARE, _FOLDS["add"], ZERO, _ENDS["root"]),
    "log_sum": (_IDENTITY, _FOLDS["add"], ZERO, _ENDS["log"]),
}
_NAMES = {number: name for name, number in REDUCE.items()}


@per_function(samples=[(*rule, by_block) for rule in _RULES.values() for by_block in (False, True)])
def _reduction(each: Any, fold: Any, start: Any, last: Any, by_block: bool) -> Kernel:
    if by_block:

        @kernel
        def by_block_kernel(x: F32, out: F32, n: int, inner: int, piece: int, of: int) -> None:
            """A block a column, or a piece of one: its threads alternate, then fold in shared memory, in a fixed order."""
            scratch = cuda.shared.array(BLOCK, "float32")
            column, number, me = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
            at = column // inner * n * inner + column % inner
            value = start
            for i in range(number * piece + me, min(n, (number + 1) * piece), BLOCK):
                value = fold(value, each(x[at + i * inner], ZERO, ZERO))
            scratch[me] = value
            cuda.syncthreads()
            half = BLOCK >> 1
            while half > 0:
                if me < half:
                    scratch[me] = fold(scratch[me], scratch[me + half])
                cuda.syncthreads()
                half >>= 1
            if me == 0:
                out[column * cuda.gridDim.y + number] = last(scratch[0], of)

        return by_block_kernel

    @kernel
    def by_thread_kernel(x: F32, out: F32, columns: int, n: int, inner: int) -> None:
        """A thread a column, neighbours next to each other."""
        for column in range(cuda.grid(1), columns, cuda.gridsize(1)):
            at = column // inner * n * inner + column % inner
            value = start
            for i in range(n):
                value = fold(value, each(x[at + i * inner], ZERO, ZERO))
            out[column] = last(value, n)

    return by_thread_kernel


@kernel
def log_sum_exp_kernel(x: F32, out: F32, columns: int, n: int, inner: int) -> None:
    """A block a column: read twice. The largest number is taken out before; infinite or NaN, it is the result."""
    scratch = cuda.shared.array(32, "float32")
    for column in range(cuda.blockIdx.x, columns, cuda.gridDim.x):
        at = column // inner * n * inner + column % inner
        largest = LEAST
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            largest = _LARGER(x[at + i * inner], largest)
        largest = block_max(largest, scratch)
        total = ZERO
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            total += exp(x[at + i * inner] - largest)
        total = block_sum(total, scratch)
        if cuda.threadIdx.x == 0:
            out[column] = largest + log(total) if LEAST < largest < MOST else largest


@on_device
def reduce(x__oni: Array, out__oi: Array, op: int) -> None:
    """out[o, i] = op over n of x[o, n, i], op a number of table.REDUCE."""
    columns = out__oi.size
    if not columns:
        return
    _, n, inner = x__oni.shape
    if _NAMES[op] == "log_sum_exp":
        log_sum_exp_kernel.launch(min(columns, MOST_BLOCKS), BLOCK, x__oni.flat, out__oi.flat, columns, n, inner)
        return
    each, fold, start, last = _RULES[_NAMES[op]]
    if (inner > 1 and (columns >= FEW or n < 64)) or columns > MOST_BLOCKS:
        _reduction(each, fold, start, last, False).launch(
            sized(columns, BLOCK), BLOCK, x__oni.flat, out__oi.flat, columns, n, inner
        )
        return
    pieces = cdiv(n, PIECE) if columns < 512 and n >= 2 * PIECE else 1
    if pieces > 1 and pieces <= 65535:
        some = empty((columns, pieces))
        first = _reduction(each, fold, start, _ENDS["same"], True)
        first.launch((columns, pieces), BLOCK, x__oni.flat, some.flat, n, inner, PIECE, n)
        _reduction(_IDENTITY, fold, start, last, True).launch((columns, 1), BLOCK, some.flat, out__oi.flat, pieces, 1, pieces, n)
        return
    _reduction(each, fold, start, last, True).launch((columns, 1), BLOCK, x__oni.flat, out__oi.flat, n, inner, max(n, 1), n)


@per_function(samples=[(kind,) for kind in ("F32", "I32", "I64")])
def _running(kind: str) -> Kernel:
    zero: Any = {"F32": f32(0), "I32": np.int32(0), "I64": np.int64(0)}[kind]

    @kernel(T=kind)
    def running_kernel(x: T, out: T, columns: int, n: int, inner: int, exclusive: int, reverse: int) -> None:
        """A thread a column: the order of additions is the contract's, one after the other."""
        for column in range(cuda.grid(1), columns, cuda.gridsize(1)):
            first = column // inner * n * inner + column % inner
            step = -inner if reverse != 0 else inner
            at = first + (n - 1) * inner if reverse != 0 else first
            total = zero if exclusive != 0 else x[at]
            before = total
            for i in range(n):
                if i > 0:
                    if exclusive != 0:
                        total += before
                    else:
                        total += x[at]
                before = x[at]
                out[at] = total
                at += step

    return running_kernel


@on_device
def running_sum(x__oni: Array, out__oni: Array, source: int, exclusive: bool, reverse: bool) -> None:
    """out[o, n, i] = x[o, 0, i] + ... + x[o, n, i], as the reference explains."""
    if x__oni.size:
        outer, n, inner = x__oni.shape
        columns = outer * inner
        given = columns, n, inner, int(exclusive), int(reverse)
        _running(ANNOTATIONS[source]).launch(cdiv(columns, 32), 32, x__oni.flat, out__oni.flat, *given)

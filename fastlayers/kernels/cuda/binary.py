"""Arithmetic, comparisons and choices with broadcasting. Bound by memory: four values an access where operands allow it."""

from __future__ import annotations

from typing import Any

from ..table import BINARY, KINDS, UNARY, Activation
from . import _integer
from ._axes import broadcast, table
from ._cuda import F32, I64, U8, Kernel, cuda, devices, f32, kernel, load4, per_function, sized, store4, threads
from ._device import Array, on_device
from ._math import function, power

__all__ = ["binary", "compare", "integer", "where"]

BLOCK = threads(256)
ZERO = f32(0)


_ARITHMETIC = devices({
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: power(a, b),
    "minimum": lambda a, b: a if a < b or a != a else b,
    "maximum": lambda a, b: a if a > b or a != a else b,
    "prelu": lambda a, b: a if a >= ZERO else a * b,
    "squared_difference": lambda a, b: (a - b) * (a - b),
})  # fmt: skip
FUNCTIONS = {number: _ARITHMETIC[name] for name, number in BINARY.items()}
_IDENTITY, _RELU = function(UNARY["identity"].code), function(UNARY["relu"].code)


@per_function(samples=[*((f, _IDENTITY) for f in FUNCTIONS.values()), (_ARITHMETIC["add"], _RELU)])
def _binary(f: Any, g: Any) -> Kernel:
    @kernel
    def binary_kernel(a: F32, b: F32, out: F32, n: int, axes: I64, rank: int, p: float, q: float) -> None:
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            rest, ia, ib = i, 0, 0
            for axis in range(rank - 1, -1, -1):
                size = axes[axis]
                row = rest // size
                at = rest - row * size
                ia += at * axes[rank + axis]
                ib += at * axes[2 * rank + axis]
                rest = row
            out[i] = g(f(a[ia], b[ib]), p, q)

    return binary_kernel


@per_function(samples=[(_ARITHMETIC["add"], _IDENTITY), (_ARITHMETIC["multiply"], _RELU)])
def _binary4(f: Any, g: Any) -> Kernel:
    @kernel
    def binary4_kernel(
        a: F32, b: F32, out: F32, n: int, inner: int, a_step: int, b_step: int, axes: I64, rank: int, p: float, q: float
    ) -> None:
        """Quads: `inner` of them are in the last axis, in which an operand is contiguous (step 1) or the same (0)."""
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            column, ia, ib = i, 0, 0
            if rank > 0:
                rest = i // inner
                column = i - rest * inner
                for axis in range(rank - 1, -1, -1):
                    size = axes[axis]
                    row = rest // size
                    at = rest - row * size
                    ia += at * axes[rank + axis]
                    ib += at * axes[2 * rank + axis]
                    rest = row
            if a_step > 0:
                a0, a1, a2, a3 = load4(a, ia + 4 * column)
            else:
                a0 = a[ia]
                a1, a2, a3 = a0, a0, a0
            if b_step > 0:
                b0, b1, b2, b3 = load4(b, ib + 4 * column)
            else:
                b0 = b[ib]
                b1, b2, b3 = b0, b0, b0
            store4(out, 4 * i, g(f(a0, b0), p, q), g(f(a1, b1), p, q), g(f(a2, b2), p, q), g(f(a3, b3), p, q))

    return binary4_kernel


@on_device
def binary(a: Array, b: Array, out: Array, op: int, activation: Activation) -> None:
    """out = f(a, b), f a number of table.BINARY, then the activation; a and b broadcast. out may be one that has its shape."""
    n = out.size
    if not n:
        return
    axes = broadcast(out.shape, a, b)
    f, g = FUNCTIONS[op], function(activation.code)
    if _quads(axes, a, b, out):
        (inner, a_step, b_step), outer = axes[-1], axes[:-1]
        _binary4(f, g).launch(
            sized(n // 4, BLOCK), BLOCK, a.flat, b.flat, out.flat, n // 4, inner // 4, a_step, b_step,
            table(tuple(map(tuple, outer))).flat, len(outer), activation.a, activation.b,
        )  # fmt: skip
        return
    _binary(f, g).launch(
        sized(n, BLOCK),
        BLOCK,
        a.flat,
        b.flat,
        out.flat,
        n,
        table(tuple(map(tuple, axes))).flat,
        len(axes),
        activation.a,
        activation.b,
    )


def _quads(axes: list[list[int]], *arrays: Array) -> bool:
    """Can four neighbours be read at once?"""
    if not axes or axes[-1][0] % 4 or not all(x.aligned for x in arrays):
        return False
    for k, step in enumerate(axes[-1][1:], 1):
        if step not in (0, 1) or (step == 1 and any(axis[k] % 4 for axis in axes[:-1])):
            return False
    return True


@on_device
def compare(a: Array, b: Array, out: Array, op: int) -> None:
    """out = a ? b as booleans, the comparison a number of table.COMPARE; a and b broadcast."""
    _integer.run(a, b, out, _integer.COMPARISONS[op], KINDS["float32"])


@kernel
def where_kernel(condition: U8, a: F32, b: F32, out: F32, n: int, axes: I64, rank: int) -> None:
    """One number a thread."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        rest, ic, ia, ib = i, 0, 0, 0
        for axis in range(rank - 1, -1, -1):
            size = axes[axis]
            row = rest // size
            at = rest - row * size
            ic += at * axes[rank + axis]
            ia += at * axes[2 * rank + axis]
            ib += at * axes[3 * rank + axis]
            rest = row
        out[i] = a[ia] if condition[ic] != 0 else b[ib]


@on_device
def where(condition: Array, a: Array, b: Array, out: Array) -> None:
    """out = a where the condition (booleans) holds, else b; all three broadcast. out may be a or b if that has its shape."""
    n = out.size
    if n:
        axes = broadcast(out.shape, condition, a, b)
        where_kernel.launch(
            sized(n, BLOCK), BLOCK, condition.flat, a.flat, b.flat, out.flat, n, table(tuple(map(tuple, axes))).flat, len(axes)
        )


@on_device
def integer(a: Array, b: Array, out: Array, op: int, source: int) -> None:
    """out = f(a, b), f a number of table.INTEGER; a and b broadcast and are booleans, int32 or int64 (`source`)."""
    _integer.run(a, b, out, _integer.FUNCTIONS[op], source)

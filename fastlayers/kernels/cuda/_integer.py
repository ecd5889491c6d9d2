"""Elementwise kernels with broadcasting on booleans and integers, and comparisons of any values: masks, positions, lengths."""

from __future__ import annotations

from typing import Any

from ..table import COMPARE, INTEGER, KINDS
from ._axes import broadcast, table
from ._cuda import I64, Kernel, S, T, cuda, devices, kernel, per_function, sized, threads
from ._device import Array

__all__ = ["ANNOTATIONS", "COMPARISONS", "FUNCTIONS", "run"]

BLOCK = threads(256)
# What a kernel's arrays are, by the number of their dtype.
ANNOTATIONS = {KINDS["bool"]: "U8", KINDS["int32"]: "I32", KINDS["int64"]: "I64", KINDS["float32"]: "F32"}


_FUNCTIONS = devices({
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "minimum": lambda a, b: a if a < b else b,
    "maximum": lambda a, b: a if a > b else b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "equal": lambda a, b: 1 if a == b else 0,
    "not_equal": lambda a, b: 1 if a != b else 0,
    "less": lambda a, b: 1 if a < b else 0,
    "less_equal": lambda a, b: 1 if a <= b else 0,
    "greater": lambda a, b: 1 if a > b else 0,
    "greater_equal": lambda a, b: 1 if a >= b else 0,
})  # fmt: skip
FUNCTIONS = {number: _FUNCTIONS[name] for name, number in INTEGER.items()}
COMPARISONS = {number: _FUNCTIONS[name] for name, number in COMPARE.items()}
_SAMPLES = (
    ("add", "I32", "I32"), ("multiply", "I64", "I64"), ("xor", "U8", "U8"), ("less", "I64", "U8"), ("less", "F32", "U8"),
    ("equal", "F32", "U8"),
)  # fmt: skip


@per_function(samples=[(_FUNCTIONS[name], *kinds) for name, *kinds in _SAMPLES])
def _integer(f: Any, source: str, target: str) -> Kernel:
    @kernel(T=source, S=target)
    def integer_kernel(a: T, b: T, out: S, n: int, axes: I64, rank: int) -> None:
        """One number a thread."""
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            rest, ia, ib = i, 0, 0
            for axis in range(rank - 1, -1, -1):
                size = axes[axis]
                row = rest // size
                at = rest - row * size
                ia += at * axes[rank + axis]
                ib += at * axes[2 * rank + axis]
                rest = row
            out[i] = f(a[ia], b[ib])

    return integer_kernel


def run(a: Array, b: Array, out: Array, f: Any, source: int) -> None:
    """out = f(a, b) for arrays of the dtype `source`, a number of table.KINDS."""
    n = out.size
    if n:
        axes = broadcast(out.shape, a, b)
        kind, target = ANNOTATIONS[source], "U8" if out.dtype.kind == "b" else ANNOTATIONS[source]
        _integer(f, kind, target).launch(
            sized(n, BLOCK), BLOCK, a.flat, b.flat, out.flat, n, table(tuple(map(tuple, axes))).flat, len(axes)
        )

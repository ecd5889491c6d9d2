"""Kernels on booleans and integers with broadcasting: masks, positions, lengths. Small next to what they steer."""

from __future__ import annotations

from typing import Any

from ..table import INTEGER, KINDS
from ._axes import broadcast, table
from ._cuda import I64, Kernel, S, T, cuda, device, kernel, per_function, sized, threads
from ._device import Array

__all__ = ["ANNOTATIONS", "run"]

BLOCK = threads(256)
# What a kernel's arrays are, by the number of their dtype.
ANNOTATIONS = {KINDS["bool"]: "U8", KINDS["int32"]: "I32", KINDS["int64"]: "I64", KINDS["float32"]: "F32"}


@device
def _add(a: Any, b: Any) -> Any:
    return a + b


@device
def _subtract(a: Any, b: Any) -> Any:
    return a - b


@device
def _multiply(a: Any, b: Any) -> Any:
    return a * b


@device
def _minimum(a: Any, b: Any) -> Any:
    return a if a < b else b


@device
def _maximum(a: Any, b: Any) -> Any:
    return a if a > b else b


@device
def _and(a: Any, b: Any) -> Any:
    return a & b


@device
def _or(a: Any, b: Any) -> Any:
    return a | b


@device
def _xor(a: Any, b: Any) -> Any:
    return a ^ b


@device
def _equal(a: Any, b: Any) -> Any:
    return 1 if a == b else 0


@device
def _not_equal(a: Any, b: Any) -> Any:
    return 1 if a != b else 0


@device
def _less(a: Any, b: Any) -> Any:
    return 1 if a < b else 0


@device
def _less_equal(a: Any, b: Any) -> Any:
    return 1 if a <= b else 0


@device
def _greater(a: Any, b: Any) -> Any:
    return 1 if a > b else 0


@device
def _greater_equal(a: Any, b: Any) -> Any:
    return 1 if a >= b else 0


FUNCTIONS: dict[int, Any] = {number: globals()[f"_{name}"] for name, number in INTEGER.items()}


@per_function(samples=[(_add, "I32", "I32"), (_multiply, "I64", "I64"), (_xor, "U8", "U8"), (_less, "I64", "U8")])
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


def run(a: Array, b: Array, out: Array, op: int, source: int) -> None:
    """out = f(a, b), f a number of table.INTEGER."""
    n = out.size
    if n:
        axes = broadcast(out.shape, a, b)
        kind, target = ANNOTATIONS[source], "U8" if out.dtype.kind == "b" else ANNOTATIONS[source]
        _integer(FUNCTIONS[op], kind, target).launch(
            sized(n, BLOCK), BLOCK, a.flat, b.flat, out.flat, n, table(tuple(map(tuple, axes))).flat, len(axes)
        )

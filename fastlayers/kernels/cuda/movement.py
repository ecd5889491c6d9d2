"""Copies between any strides, rows picked by number, and casts. Bound by memory.

A copy whose result is along another axis than its source goes through tiles in shared memory, so that both sides are read and
written in whole lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ..table import KINDS
from ._axes import merged, table
from ._cuda import I64, SIMULATED, U8, Kernel, S, T, cdiv, cuda, kernel, per_function, sized, threads
from ._device import Array, empty, on_device

__all__ = ["cast", "check", "copy", "embedding", "gather"]

BLOCK = threads(256)
TILE, TILE_AND_BANK = 32, 33  # a number more a row, or a column would be in one bank
LINES = 1 if SIMULATED else 8  # of a tile that a block's threads walk at once
ITEMS = {1: "U8", 2: "U16", 4: "U32", 8: "U64"}


@per_function(samples=[(size,) for size in ITEMS])
def _copy(itemsize: int) -> Kernel:
    @kernel(T=ITEMS[itemsize])
    def copy_kernel(x: T, out: T, n: int, x_start: int, out_start: int, axes: I64, rank: int) -> None:
        """One item a thread: neighbours along the last axis."""
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            rest, ix, io = i, x_start, out_start
            for axis in range(rank - 1, -1, -1):
                size = axes[axis]
                row = rest // size
                at = rest - row * size
                ix += at * axes[rank + axis]
                io += at * axes[2 * rank + axis]
                rest = row
            out[io] = x[ix]

    return copy_kernel


@per_function(samples=[(size,) for size in ITEMS])
def _turn(itemsize: int) -> Kernel:
    kind: Any = getattr(np, f"uint{8 * itemsize}")

    @kernel(T=ITEMS[itemsize])
    def turn_kernel(
        x: T, out: T, rows: int, columns: int, x_start: int, x_column: int, out_start: int, out_row: int, axes: I64, rank: int
    ) -> None:
        """x's neighbours are along rows, out's along columns: a tile of both, for each entry of the other axes."""
        tile = cuda.shared.array((TILE, TILE_AND_BANK), kind)
        rest, ix, io = cuda.blockIdx.y, x_start, out_start
        for axis in range(rank - 1, -1, -1):
            size = axes[axis]
            row = rest // size
            at = rest - row * size
            ix += at * axes[rank + axis]
            io += at * axes[2 * rank + axis]
            rest = row
        across = (columns + TILE - 1) // TILE
        r0, c0 = cuda.blockIdx.x // across * TILE, cuda.blockIdx.x % across * TILE
        r = r0 + cuda.threadIdx.x
        for k in range(cuda.threadIdx.y, TILE, LINES):
            if r < rows and c0 + k < columns:
                tile[k, cuda.threadIdx.x] = x[ix + r + (c0 + k) * x_column]
        cuda.syncthreads()
        c = c0 + cuda.threadIdx.x
        for k in range(cuda.threadIdx.y, TILE, LINES):
            if c < columns and r0 + k < rows:
                out[io + c + (r0 + k) * out_row] = tile[cuda.threadIdx.x, k]

    return turn_kernel


def strided(
    x: Array,
    out: Array,
    shape: Sequence[int],
    x_start: int,
    x_strides: Sequence[int],
    out_start: int,
    out_strides: Sequence[int],
    itemsize: int,
) -> None:
    """out[out_start + Σ i out_strides] = x[x_start + Σ i x_strides] for all i < shape; all count items."""
    axes = merged(shape, x_strides, out_strides)
    axes.sort(key=lambda axis: -abs(axis[2]))  # neighbours of out are neighbours of threads
    axes = merged([a[0] for a in axes], [a[1] for a in axes], [a[2] for a in axes])
    source, target = x.items(f"u{itemsize}"), out.items(f"u{itemsize}")
    by_row = next((i for i, axis in enumerate(axes) if axis[1] == 1), None)
    if by_row is not None and by_row < len(axes) - 1 and axes[-1][2] == 1 and min(axes[by_row][0], axes[-1][0]) >= 8:
        rows, columns = axes[by_row], axes[-1]
        others = [axis for i, axis in enumerate(axes[:-1]) if i != by_row]
        entries = int(np.prod([axis[0] for axis in others], dtype=np.int64))
        if entries <= 65535:
            grid = cdiv(rows[0], TILE) * cdiv(columns[0], TILE), entries
            _turn(itemsize).launch(
                grid, (TILE, LINES), source, target, rows[0], columns[0], x_start, columns[1], out_start, rows[2],
                table(tuple(map(tuple, others))).flat, len(others),
            )  # fmt: skip
            return
    n = int(np.prod([axis[0] for axis in axes], dtype=np.int64))
    given = n, x_start, out_start, table(tuple(map(tuple, axes))).flat, len(axes)
    _copy(itemsize).launch(sized(n, BLOCK), BLOCK, source, target, *given)


@on_device(partial=True)
def copy(
    x: Array,
    out: Array,
    shape: Sequence[int],
    x_offset: int,
    x_strides: Sequence[int],
    out_offset: int,
    out_strides: Sequence[int],
    itemsize: int,
) -> None:
    """out[out_offset + Σ i out_strides] = x[x_offset + Σ i x_strides] for all i < shape; offsets and strides count items."""
    if 0 not in shape:
        strided(x, out, shape, x_offset, x_strides, out_offset, out_strides, itemsize)


# ---- rows by number --------------------------------------------------------------------------------------------------


@kernel(T="I64")
def check_kernel(indices: T, n: int, least: int, most: int, wrong: I64) -> None:
    """wrong[0] becomes 1 + the place of an index that is out of range."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        if indices[i] < least or indices[i] > most:
            wrong[0] = i + 1


@per_function(samples=[(size,) for size in ITEMS])
def _gather(itemsize: int) -> Kernel:
    @kernel(T=ITEMS[itemsize])
    def gather_kernel(x: T, indices: I64, out: T, total: int, n: int, m: int, inner: int) -> None:
        """One item a thread: neighbours of a row together."""
        for i in range(cuda.grid(1), total, cuda.gridsize(1)):
            row = i // inner
            outer = row // m
            index = indices[row - outer * m]
            if index < 0:
                index += n
            out[i] = x[(outer * n + index) * inner + i - row * inner]

    return gather_kernel


def check(name: str, indices: Array, least: int, most: int) -> None:
    """Raises if an index is out of range. Waits for the GPU, since the answer is wanted here."""
    if not indices.size:
        return
    wrong = empty((1,), np.int64)
    wrong.fill_from(np.zeros(1, np.int64))
    check_kernel.launch(sized(indices.size, BLOCK), BLOCK, indices.flat, indices.size, least, most, wrong.flat)
    place = int(wrong.numpy()[0])
    if place:
        value = indices.view((1,), start=8 * (place - 1)).numpy()[0]
        raise ShapeError(f"{name} {value} is out of range: expected {least} to {most}")


@on_device
def gather(x__oni: Array, indices__m: Array, out__omi: Array, itemsize: int) -> None:
    """out[o, j] = x[o, indices[j]]; an index below 0 counts from the end, ShapeError if one is out of range."""
    _, n, inner = x__oni.shape
    check("gather: index", indices__m, -n, n - 1)
    total = out__omi.size
    if total:
        kind = f"u{itemsize}"
        given = total, n, indices__m.size, inner
        _gather(itemsize).launch(sized(total, BLOCK), BLOCK, x__oni.items(kind), indices__m.flat, out__omi.items(kind), *given)


@on_device
def embedding(weight__vd: Array, ids__m: Array, out__md: Array) -> None:
    """out[j] = weight[ids[j]]; ShapeError if an id is out of range, and one below 0 is."""
    n, inner = weight__vd.shape
    check("embedding: id", ids__m, 0, n - 1)
    total = out__md.size
    if total:
        _gather(4).launch(
            sized(total, BLOCK), BLOCK, weight__vd.items("u4"), ids__m.flat, out__md.items("u4"), total, n, ids__m.size, inner
        )


# ---- casts -----------------------------------------------------------------------------------------------------------

NAMES = {number: name for name, number in KINDS.items()}
ANNOTATIONS = {"float32": "F32", "float64": "F64", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16", "int32": "I32",
               "int64": "I64", "bool": "U8", "float16": "F16", "uint32": "U32", "uint64": "U64"}  # fmt: skip
_SAMPLES = (("float64", "float32"), ("float32", "int64"), ("int64", "float32"), ("uint8", "float32"), ("int64", "bool"),
            ("float16", "int8"), ("float64", "uint16"), ("float32", "int32"))  # fmt: skip


@per_function(samples=_SAMPLES)
def _cast(source: str, target: str) -> Kernel:
    number: Any = getattr(np, "uint8" if target == "bool" else target)
    if target == "bool":

        @kernel(S=ANNOTATIONS[source])
        def truth_kernel(x: S, out: U8, n: int) -> None:
            """One number a thread."""
            for i in range(cuda.grid(1), n, cuda.gridsize(1)):
                out[i] = 1 if x[i] != 0 else 0

        return truth_kernel

    if source.startswith("float") and not target.startswith("float"):
        # Beyond an integer's range is its end, of int32 at least (what is left of that wraps around), and NaN is the lower one:
        # the GPU has other rules, and for float16 it even rounds to nearest.
        whole: Any = np.int64 if target in ("int64", "uint32", "uint64") else np.int32
        number_of: Any = np.float64 if source == "float64" else np.float32
        least, most = whole(np.iinfo(whole).min), whole(np.iinfo(whole).max)
        LOW, HIGH = number_of(least), -number_of(least)
        UPPER = HIGH if target == "uint64" else number_of(0)  # what its upper half begins with

        @kernel(S=ANNOTATIONS[source], T=ANNOTATIONS[target])
        def whole_kernel(x: S, out: T, n: int) -> None:
            """One number a thread."""
            for i in range(cuda.grid(1), n, cuda.gridsize(1)):
                v, w = number_of(x[i]), least
                if v >= HIGH:
                    w = most
                    if UPPER > 0:
                        w = whole(v - UPPER) ^ least if v < UPPER + UPPER else whole(-1)
                elif v >= LOW:
                    w = whole(v)
                out[i] = number(w)

        return whole_kernel

    @kernel(S=ANNOTATIONS[source], T=ANNOTATIONS[target])
    def cast_kernel(x: S, out: T, n: int) -> None:
        """One number a thread."""
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            out[i] = number(x[i])

    return cast_kernel


@on_device
def cast(x: Array, out: Array, source: int, target: int) -> None:
    """out = x as another dtype, both codes of table.KINDS, which the arrays are of."""
    if x.size:
        _cast(NAMES[source], NAMES[target]).launch(sized(x.size, BLOCK), BLOCK, x.flat, out.flat, x.size)

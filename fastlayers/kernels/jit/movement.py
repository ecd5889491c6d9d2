"""Copies between any strides. Columns are what is closest in out, rows what is closest in x: where the two differ, tiles are
transposed. Gathered rows and casts are numpy's, whose loops are as good where nothing is copied twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from ..reference import movement as _reference
from ..table import KINDS
from ._njit import call, emitted, kernel
from ._threads import address, spread
from ._tile import integer, swap
from ._vector import F32, I8, I32, I64, WIDTH, Emit, V

__all__ = ["cast", "copy", "embedding", "gather"]

TASK = 1 << 17  # bytes of one task
UNIT = 32  # pieces of a block begin at multiples of this many rows or columns
LINE = 128  # bytes of a line from which it is worth a call
_ITEMS = {1: I8, 2: ir.IntType(16), 4: I32, 8: I64}


@emitted
def _bytes(e: Emit, x: V, y: V, n: V) -> None:
    """y = x, n bytes that do not overlap."""
    pointer = I8.as_pointer()
    kinds = [pointer, pointer, I64]
    function = e.builder.module.declare_intrinsic("llvm.memcpy", kinds)
    places = (e.builder.inttoptr(place.v, pointer) for place in (y, x))
    e.builder.call(function, [*places, n.v, ir.Constant(ir.IntType(1), 0)])


@emitted
def _items(e: Emit, item: V, x: V, x_step: V, y: V, y_step: V, n: V) -> None:
    """y[i y_step] = x[i x_step] for n items of `item` bytes; steps in bytes."""

    def case(size: int) -> None:
        with e.loop(0, n) as i:
            e.store(y + i * y_step, e.load(x + i * x_step, _ITEMS[size]))

    e.switch(item, {size: partial(case, size) for size in _ITEMS})


@emitted
def _paired(e: Emit, x: V, x_col: V, y: V, n: V) -> None:
    """y[2 i + j] = x[i + j x_col] for n rows of two floats."""
    whole = n & -WIDTH
    with e.loop(0, whole, WIDTH) as i:
        a, b = e.load(e.at(x, i)), e.load(e.at(x, i + x_col))
        for half in range(2):
            order = [lane // 2 + half * WIDTH // 2 + lane % 2 * WIDTH for lane in range(WIDTH)]
            e.store(e.at(y, i * 2 + half * WIDTH), e.lanes(a, order, b))
    with e.loop(whole, n) as i:
        e.store(e.at(y, i * 2), e.load(e.at(x, i), F32))
        e.store(e.at(y, i * 2 + 1), e.load(e.at(x, i + x_col), F32))


@emitted
def _halved(e: Emit, x: V, y: V, n: V) -> None:
    """y[i] = x[2 i] for n floats."""
    whole = e.select(n > 0, n - 1, n) & -WIDTH  # after the last number that is read may be nothing
    with e.loop(0, whole, WIDTH) as i:
        e.store(e.at(y, i), e.strided(e.at(x, i * 2), 2))
    with e.loop(whole, n) as i:
        e.store(e.at(y, i), e.load(e.at(x, i * 2), F32))


class Plan(NamedTuple):
    """Blocks of rows x cols items, steps in items; sizes: [outer][size, x, out step]. A task has a `group` of blocks, or one of
    the pieces of a block."""

    swap: int
    item: int
    rows: int
    x_row: int
    out_row: int
    cols: int
    x_col: int
    out_col: int
    outer: int
    sizes: int
    group: int
    pieces: int
    blocks: int


@kernel
def _move(p: Plan, x: int, out: int, first: int, last: int) -> None:
    for task in range(first, last):
        r0, r1, c0, c1 = 0, p.rows, 0, p.cols
        begin, end = task * p.group, min(p.blocks, (task + 1) * p.group)
        if p.pieces > 1:
            begin, piece = task // p.pieces, task % p.pieces
            end = begin + 1
            units = (max(p.rows, p.cols) + UNIT - 1) // UNIT
            start, stop = units * piece // p.pieces * UNIT, units * (piece + 1) // p.pieces * UNIT
            if p.rows >= p.cols:
                r0, r1 = start, min(p.rows, stop)
            else:
                c0, c1 = start, min(p.cols, stop)
        for number in range(begin, end):
            rest, from_, to = number, r0 * p.x_row + c0 * p.x_col, r0 * p.out_row + c0 * p.out_col
            for axis in range(p.outer - 1, -1, -1):
                at = rest % integer(p.sizes, 3 * axis)
                rest //= integer(p.sizes, 3 * axis)
                from_ += at * integer(p.sizes, 3 * axis + 1)
                to += at * integer(p.sizes, 3 * axis + 2)
            from_, to = x + from_ * p.item, out + to * p.item
            m, n = r1 - r0, c1 - c0
            if p.item == 4 and p.x_row == 1 and p.out_col == 1 and n == 2 and p.out_row == 2:
                _paired(from_, p.x_col, to, m)
            elif p.item == 4 and p.x_row == 1 and p.out_col == 1 and n > 2 and m > 2:
                call(p.swap, from_, p.x_col, to, p.out_row, n, m)
            elif n < m and n < 8:  # short lines: along the rows
                for c in range(n):
                    _items(
                        p.item, from_ + c * p.x_col * p.item, p.x_row * p.item, to + c * p.out_col * p.item, p.out_row * p.item, m
                    )
            else:
                for r in range(m):
                    line, target = from_ + r * p.x_row * p.item, to + r * p.out_row * p.item
                    if p.x_col == 1 and p.out_col == 1 and n * p.item >= LINE:
                        _bytes(line, target, n * p.item)
                    elif p.x_col == 2 and p.out_col == 1 and p.item == 4:
                        _halved(line, target, n)
                    else:
                        _items(p.item, line, p.x_col * p.item, target, p.out_col * p.item, n)


def _ordered(axes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Axes (size, step in x, step in out) by falling steps of out, neighbours that are one merged."""
    merged: list[tuple[int, int, int]] = []
    for size, from_, to in sorted(axes, key=lambda axis: -axis[2]):
        if merged and merged[-1][1] == from_ * size and merged[-1][2] == to * size:
            merged[-1] = merged[-1][0] * size, from_, to
        else:
            merged.append((size, from_, to))
    return merged


def copy(
    x: np.ndarray,
    out: np.ndarray,
    shape: Sequence[int],
    x_offset: int,
    x_strides: Sequence[int],
    out_offset: int,
    out_strides: Sequence[int],
    itemsize: int,
) -> None:
    """out[out_offset + Σ i out_strides] = x[x_offset + Σ i x_strides] for all i < shape; offsets and strides count items."""
    if itemsize not in _ITEMS:
        _reference.copy(x, out, shape, x_offset, x_strides, out_offset, out_strides, itemsize)
        return
    if 0 in shape:
        return
    axes = []
    for size, from_, to in zip(shape, x_strides, out_strides, strict=True):
        if to < 0:  # from the other end
            x_offset, out_offset = x_offset + (size - 1) * from_, out_offset + (size - 1) * to
            from_, to = -from_, -to
        if size > 1:
            axes.append((size, from_, to))
    axes = _ordered(axes)
    cols = axes.pop() if axes else (1, 1, 1)
    row = len(axes) - 1
    if cols[1] != 1 and cols[2] == 1:
        row = next((i for i, axis in enumerate(axes) if axis[1] == 1), row)
    rows = axes.pop(row) if axes else (1, 1, 1)
    block = rows[0] * cols[0]
    blocks = math.prod(axis[0] for axis in axes)
    pieces = -(-block * itemsize // TASK)
    group = max(1, TASK // (block * itemsize))
    sizes = np.array(axes, np.int64)
    plan = Plan(swap.address, itemsize, *rows, *cols, len(axes), address(sizes), group, pieces, blocks)
    given = plan, address(x) + x_offset * itemsize, address(out) + out_offset * itemsize
    tasks = blocks * pieces if pieces > 1 else -(-blocks // group)
    spread(tasks, 1.0 * block * blocks * itemsize, lambda first, last: _move(*given, first, last))


def gather(x__oni: np.ndarray, indices__m: np.ndarray, out__omi: np.ndarray, itemsize: int) -> None:
    """out[o, j] = x[o, indices[j]]; an index below 0 counts from the end, ShapeError if one is out of range."""
    n = x__oni.shape[1]
    least = _checked("gather: index", indices__m, -n, n - 1)
    indices = np.where(indices__m < 0, indices__m + n, indices__m) if least < 0 else indices__m
    if out__omi.size:
        np.take(x__oni, indices, 1, out__omi, "clip")


def embedding(weight__vd: np.ndarray, ids__m: np.ndarray, out__md: np.ndarray) -> None:
    """out[j] = weight[ids[j]]; ShapeError if an id is out of range, and one below 0 is."""
    _checked("embedding: id", ids__m, 0, weight__vd.shape[0] - 1)
    if out__md.size:
        np.take(weight__vd, ids__m, 0, out__md, "clip")


def _checked(name: str, indices: np.ndarray, least: int, most: int) -> int:
    """The least index."""
    if not indices.size:
        return 0
    low = int(indices.min())
    if low < least or indices.max() > most:
        _reference.check(name, indices, least, most)
    return low


def cast(x: np.ndarray, out: np.ndarray, source: int, target: int) -> None:
    """out = x as another dtype, both codes of table.KINDS, which the arrays are of."""
    if {source, target} == {KINDS["float16"], KINDS["float32"]}:
        from ._half import converted  # compiled for those that need it alone

        if converted(x, out, target == KINDS["float16"]):
            return
    with np.errstate(all="ignore"):
        np.copyto(out, x, casting="unsafe")

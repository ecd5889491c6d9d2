"""Chooses the tile of a product and the number of blocks of a sum, and launches it. Choices are by shapes alone and change no
result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..table import UNARY, Activation
from ._cuda import cdiv, processors, sized
from ._device import Array, absent, empty, upload
from ._places import Places, spell
from ._tile import (
    ACROSS,
    BIAS,
    BLOCK,
    LARGE,
    MEDIUM,
    MOST_WARPS,
    NARROW,
    PARTED,
    RESIDUAL,
    SHORT,
    SMALL,
    WIDE,
    Product,
    Tile,
    add_parts_kernel,
    few_rows_kernel,
    tile_kernel,
)  # fmt: skip
from .activation import unary

__all__ = ["FEW", "Layout", "Plan", "few_rows", "finish", "matrix", "multiply"]

# Multiply-adds that a processor does in a nanosecond, and the part that a tile reaches with many blocks and with one: inferred
# from instructions and registers, not from times.
_PEAK = 200.0
_TILES = {LARGE: (0.7, 0.35), MEDIUM: (0.55, 0.28), NARROW: (0.5, 0.25), SHORT: (0.4, 0.2), SMALL: (0.3, 0.1)}
_BYTES = 2000.0  # that all together move in a nanosecond
_LAUNCH = 3000.0  # nanoseconds of another kernel
_ADD_BLOCK = 256
FEW = 4  # rows up to which reading right is all that counts


class Layout(NamedTuple):
    """Arguments of a launch next to its positions: the values that `Product` explains."""

    columns: int
    stored: int  # columns of right
    line: int  # between lines of right
    groups: int = 1
    x_group: int = 0
    w_group: int = 0
    out_group: int = 0
    bias_group: int = 0
    out_column: int = 1  # between neighbours of a row of out
    across: bool = False  # neighbours in out are rows
    wide: bool = False  # four of them may be read and written at once


@lru_cache(1024)
def choose(rows: int, columns: int, terms: int, count: int, may_part: bool) -> tuple[Tile, int]:
    """The tile, and the chains that a block computes, of `count` products of a shape."""
    chains = max(cdiv(terms, BLOCK), 1)
    best: tuple[float, Tile, int] | None = None
    for tile, (most, alone) in _TILES.items():
        share = chains
        while True:
            parts = cdiv(chains, share)
            blocks = cdiv(rows, tile.rows) * cdiv(columns, tile.columns) * count * parts
            each = cdiv(blocks, processors())
            work = each * tile.rows * tile.columns * min(terms, share * BLOCK) / (_PEAK * min(most, alone * each))
            if parts > 1:
                work += _LAUNCH + 8.0 * rows * columns * count * chains / _BYTES
            if best is None or work < best[0]:
                best = work, tile, share
            if share == 1 or not may_part:
                break
            share = cdiv(share, 2)
    assert best is not None
    return best[1], best[2]


class Plan(NamedTuple):
    """Operands of a product on the GPU: its positions and, for what is gathered, the table of its terms."""

    phases: int
    rows: int  # of the largest phase
    terms: int
    places: Array
    table: Array | None


def plan(places: Sequence[Places], table: np.ndarray | None = None) -> Plan:
    """Copies positions and table to the GPU. Callers keep the plan, for each stream: `stream_pointer()`."""
    rows, terms = max(p.rows for p in places), max(p.terms for p in places)
    numbers = upload(np.array(spell(places), np.int64))
    return Plan(len(places), rows, terms, numbers, None if table is None else upload(table))


@lru_cache(512)
def matrix(rows: int, terms: int, columns: int, stream: int) -> Plan:
    """The plan of a matrix: a line of pixels of one tap."""
    ones, line = (1, 1, 1), max(rows, 1)
    x, out = (0, 0, 0, terms), (0, 0, 0, columns)
    return plan((Places(rows, line, line, line, terms, 0, 0, ones, (0, 0, 0), ones, (1, 1, line), ones, x, 0, out),))


_IDENTITY, _RELU, _CLIP = (UNARY[name].code for name in ("identity", "relu", "clip"))


def bounds(activation: Activation) -> tuple[float, float] | None:
    """Bounds to which an activation clamps its results, if it does nothing else."""
    if activation.code == _IDENTITY:
        return -math.inf, math.inf
    if activation.code == _RELU:
        return 0.0, math.inf
    return (activation.a, activation.b) if activation.code == _CLIP else None


def finish(out: Array, activation: Activation) -> None:
    """The activations that the product leaves to another kernel: their code times 64 sums a thread would be large and slow."""
    if bounds(activation) is None:
        unary(out, out, activation)


def multiply(
    left: str, right: str, x: Any, plan: Plan, w: Any, bias: Array | None, residual: Array | None, out: Array, layout: Layout,
    activation: Activation,
) -> None:  # fmt: skip
    """Launches a product; x and w are flat."""
    rows, terms = plan.rows, plan.terms
    tile, share = choose(rows, layout.columns, terms, layout.groups * plan.phases, plan.phases == 1)
    parts = cdiv(max(cdiv(terms, BLOCK), 1), share)
    low, high = bounds(activation) or (-math.inf, math.inf)
    flags = (BIAS if bias is not None else 0) | (RESIDUAL if residual is not None else 0)
    more = (ACROSS if layout.across else 0) | (PARTED if parts > 1 else 0) | (WIDE if layout.wide else 0)
    given = (absent() if bias is None else bias.flat, absent() if residual is None else residual.flat)
    to = out if parts == 1 else empty((cdiv(terms, BLOCK), out.size))
    row_tiles, table = cdiv(rows, tile.rows), absent("i8") if plan.table is None else plan.table.flat
    blocks = cdiv(layout.columns, tile.columns) * row_tiles * layout.groups * plan.phases * parts
    cut = Product(
        flags | more, layout.columns, layout.stored, layout.line, layout.groups, plan.phases, row_tiles, share, out.size,
        layout.x_group, layout.w_group, layout.out_group, layout.bias_group, layout.out_column, low, high,
    )  # fmt: skip
    tile_kernel(tile, left, right).launch(blocks, tile.threads, x, table, plan.places.flat, w, *given, to.flat, cut)
    if parts > 1:
        add_parts_kernel.launch(
            sized(out.size, _ADD_BLOCK), _ADD_BLOCK, to.flat, *given, out.flat, flags, out.size, to.shape[0], layout.out_column,
            layout.columns * layout.groups, low, high,
        )  # fmt: skip
    finish(out, activation)


def few_rows(
    x: Array, w: Any, bias: Array | None, residual: Array | None, out: Array, rows: int, terms: int, columns: int, stored: int,
    activation: Activation,
) -> None:  # fmt: skip
    """A product of up to four rows with right [terms][stored]."""
    low, high = bounds(activation) or (-math.inf, math.inf)
    flags = (BIAS if bias is not None else 0) | (RESIDUAL if residual is not None else 0)
    warps = min(max(cdiv(terms, BLOCK), 1), MOST_WARPS)
    few_rows_kernel(1 if rows == 1 else 2 if rows == 2 else 4).launch(
        cdiv(columns, 32), 32 * warps, x.flat, w, absent() if bias is None else bias.flat,
        absent() if residual is None else residual.flat, out.flat, flags, rows, terms, columns, stored, low, high,
    )  # fmt: skip
    finish(out, activation)

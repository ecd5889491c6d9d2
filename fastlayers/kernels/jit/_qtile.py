"""The packed product of bytes, uint8 by int8 with exact sums in int32: tiles of rows and panels of 16 columns, as vectors.

Terms are quads of bytes: a row has them in runs, a panel is [quads][16][4]. Hosts that multiply quads (VNNI) do; others multiply
byte by byte. Sums of channels that have one weight a tap, vectors of channels, are here too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from llvmlite import ir

from ..table import KINDS
from ._njit import emitted, inner
from ._records import Int, Real, Rows
from ._tile import PANEL, integer
from ._vector import F32, I8, I32, I64, WIDTH, Emit, Integer, V, has

__all__ = ["Finish", "quad_rows", "tap_channels"]

NV = PANEL // WIDTH
HEIGHTS = (8, 4, 2, 1) if WIDTH == 16 else (4, 2, 1)  # rows of a tile
PANELS = 3 if WIDTH == 16 else 1  # panels that are walked at once
_DOTS = WIDTH == 16 and has("avx512vnni")
_TARGETS = ("int32", "float32", "uint8", "int8")


def _dot(e: Emit, total: V, x: V, w: V) -> V:
    """total + the products of four bytes in every lane, those of x unsigned."""
    if _DOTS:
        return e.call("llvm.x86.avx512.vpdpbusd.512", total.kind, total, x, w)
    for byte in range(4):
        a = (x << (24 - 8 * byte)).logical_shift(24)
        total = total + a * ((w << (24 - 8 * byte)) >> 24)
    return total


def _finish(e: Emit, target: str, total: V, column: V, factor: V, shift: V, scale: V, value: V, to: V, mask: V | None) -> None:
    if target == "int32":
        e.store(to, total, mask)
        return
    y = e.convert(total, F32, "sitofp") * (e.load(e.at(factor, column)) * scale)
    if target == "float32":
        with e.builder.if_else(shift.differs(0).v) as (then, otherwise):
            with then:
                e.store(to, e.sum(y, e.load(e.at(shift, column))), mask)
            with otherwise:
                e.store(to, y, mask)
        return
    low, high = (0, 255) if target == "uint8" else (-128, 127)
    least, most = (e.splat(e.convert(e.constant(I64, end) - value, F32, "sitofp")) for end in (low, high))
    steps = e.nearest(y)
    steps = e.least(most, e.most(least, steps))
    steps = e.select(y.equals(y), steps, least)
    whole = e.convert(steps, I32, "fptosi") + e.splat(e.convert(value, I32, "trunc"))
    e.store(to, e.convert(whole, I8, "trunc"), mask)


class Finish(NamedTuple):
    """What follows a sum: a constant a column, and its way to the kind `target`, of `item` bytes; factor, scale, shift and value
    as `qconv` has them."""

    constant: Int
    factor: Int
    shift: Int
    scale: Real
    value: Int
    target: Int
    item: Int


@emitted
def _tile(e: Emit, size: V, left: Rows, b: V, stride: V, cols: V, zero: V, sums: V, end: Finish, out: V, line: V) -> None:
    """Rows by panels of b with stride `stride` bytes. size: 16 panels + rows; sums: of the rows' bytes, where `zero` is not 0."""
    ints = e.vector(I32)

    def case(height: int, panels: int) -> None:
        row = [e.load(e.at(left.at, i, 8), I64) for i in range(height)]
        total = [[e.var(e.constant(ints, 0)) for _ in range(panels * NV)] for _ in range(height)]
        place = e.var(b)
        with e.loop(0, left.count) as r:
            start, count = (e.load(e.at(left.runs, r * 2 + part, 8), I64) for part in range(2))
            with e.loop(0, count) as k:
                at = place.get()
                terms = [e.load(at + stride * p + 4 * WIDTH * v, ints) for p in range(panels) for v in range(NV)]
                for i in range(height):
                    x = e.splat(e.load(row[i] + start + k * 4, I32))
                    for j, term in enumerate(terms):
                        total[i][j].set(_dot(e, total[i][j].get(), x, term))
                place.set(at + 4 * PANEL)
        factor_of = e.splat(end.scale)

        def finish(name: str) -> None:
            bytes_ = 1 if name in ("uint8", "int8") else 4
            for j in range(panels * NV):
                column = e.i64(j * WIDTH)
                mask = e.mask(cols - column)
                fixed = e.load(e.at(end.constant, column), ints)
                for i in range(height):
                    whole = e.var(total[i][j].get() + fixed)
                    with e.when(zero.differs(0)):
                        many = e.splat(e.load(e.at(sums, i), I32))
                        whole.set(whole.get() - many * e.load(e.at(zero, column), ints))
                    to = out + line * i + bytes_ * WIDTH * j
                    _finish(e, name, whole.get(), column, end.factor, end.shift, factor_of, end.value, to, mask)

        e.switch(end.target, {KINDS[name]: partial(finish, name) for name in _TARGETS})

    cases: dict[int, Callable[[], None]] = {
        16 * panels + height: partial(case, height, panels) for panels in sorted({1, PANELS}) for height in HEIGHTS
    }
    e.switch(size, cases)


@emitted
def _quad_sum(e: Emit, place: V) -> Integer:
    """The sum of four bytes."""
    x = e.load(place, I32)
    x = (x & 0x00FF00FF) + (x.logical_shift(8) & 0x00FF00FF)
    return e.convert((x & 0xFFFF) + x.logical_shift(16), I64, "zext")


@emitted
def _put(e: Emit, place: V, index: V, value: V) -> None:
    e.store(e.at(place, index), e.convert(value, I32, "trunc"))


@inner
def quad_rows(left: Rows, m: int, quads: int, b: int, n: int, zero: int, sums: int, end: Finish, out: int, line: int) -> None:
    """n columns of out, lines with stride `line` bytes, for m rows, whose runs are pairs of offset in bytes, quads.

    Args:
        zero: 0, or what the sums of a row's bytes are multiplied by, which is taken away. sums: room for m values.
    """
    if zero != 0:
        for i in range(m):
            total = 0
            for r in range(left.count):
                for k in range(integer(left.runs, 2 * r + 1)):
                    total += _quad_sum(integer(left.at, i) + integer(left.runs, 2 * r) + 4 * k)
            _put(sums, i, total)
    stride, whole, j = 4 * PANEL * quads, n // PANEL, 0
    while j * PANEL < n:
        p = PANELS if whole - j >= PANELS else 1
        at, i = j * PANEL, 0
        while i < m:
            height = HEIGHTS[0]
            while height > m - i:
                height //= 2
            here = Finish(
                end.constant + 4 * at, end.factor + 4 * at if end.factor != 0 else 0, end.shift + 4 * at if end.shift != 0 else 0,
                end.scale, end.value, end.target, end.item,
            )  # fmt: skip
            _tile(
                16 * p + height, Rows(left.at + 8 * i, left.runs, left.count), b + stride * j, stride, n - at,
                zero + 4 * at if zero != 0 else 0, sums + 4 * i, here, out + line * i + end.item * at, line,
            )  # fmt: skip
            i += height
        j += p


@emitted
def tap_channels(e: Emit, x: V, taps: V, count: V, weights: V, wide: V, channels: V, end: Finish, out: V) -> None:
    """One pixel of a kernel with one weight a tap and channel: taps: their positions, in bytes; weights: int16 [taps][wide]."""
    factor_of, short = e.splat(end.scale), ir.IntType(16)

    def case(name: str) -> None:
        def body(i: V, mask: V | None) -> None:
            total = e.var(e.load(e.at(end.constant, i), e.vector(I32)))
            with e.loop(0, count) as t:
                byte = e.load(x + e.load(e.at(taps, t, 8), I64) + i, e.vector(I8), mask)
                factor_here = e.load(e.at(weights, t * wide + i, 2), e.vector(short))
                total.set(total.get() + e.convert(byte, I32, "zext") * e.convert(factor_here, I32, "sext"))
            _finish(e, name, total.get(), i, end.factor, end.shift, factor_of, end.value, out + end.item * i, mask)

        e.vectors(channels, body)

    e.switch(end.target, {KINDS[name]: partial(case, name) for name in _TARGETS})

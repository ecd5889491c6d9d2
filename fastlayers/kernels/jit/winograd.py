"""Winograd convolution F(m x m, 3 x 3), m = 2 or 4, on channels-last data: see `aot/winograd.pyx` and `aot/csrc/winograd.h`.
Other kernels, groups and strides are computed directly.

A task takes a block of tiles: their inputs, padded, are transformed to V [tile][point][channel], a panel of channels at a time;
each of the (m + 2)^2 points is a product with its own weights; and the sums [tile][point][output], some columns at a time, are
transformed back. Slices of depth are their own images, `depth` of them a volume.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..fits import fits_tile, fits_winograd
from ..table import PAD_MODES, Activation
from ..winograd_points import weights_axis
from ._band import even, fill
from ._njit import call, emitted, inner, kernel
from ._records import NOTHING, Act, Image, Panels, Place, Rows, Span, Sums
from ._threads import address, scratch, spread
from ._tile import PANEL, RELU, block, pack_all, panels_of, put_integer, swap, table, zero
from ._unary import apply, spell
from ._vector import WIDTH, Emit, V
from .conv import Packed as Direct
from .conv import conv, conv_pack
from .gemm import padded_bias

__all__ = ["winograd", "winograd_pack"]

A, B = 2 / 3, 3 / 2  # the points of m = 4 next to 0 and infinity: a, -a, b, -b, with a b = 1
BUDGET = 1 << 17  # values of V and of the sums that a block may have, if that makes LEAST tiles: a second-level cache holds them
LEAST, MOST = 32, 128  # tiles of a block: fewer do not repay reading all weights
ALONE = 64  # up to so many tiles are one block, whose channels and columns are the tasks
TASKS = 8  # blocks wanted where there are more tiles, for as many threads
WIDE = 64  # columns of the sums
_ONES = 1, 1, 1


class Packed(NamedTuple):
    """Transformed weights in panels, WIDE columns after the other, (pieces * points, size), and the bias in whole panels."""

    weights: np.ndarray
    bias: np.ndarray | None
    tile: int
    c: int
    o: int
    kernel: tuple[int, ...] = (1, 3, 3)
    stride: tuple[int, ...] = _ONES
    dilation: tuple[int, ...] = _ONES

    @property
    def sizes(self) -> tuple[int, int]:
        """Channels of x and of the result."""
        return self.c, self.o


def winograd_pack(
    weight__oidhw: np.ndarray, bias__o: np.ndarray | None, tile: int, groups: int, stride: Sequence[int] = _ONES
) -> Packed | Direct:
    """Weights (o, i / groups, kd, kh, kw) of a convolution for tiles of `tile` outputs along each axis that has taps."""
    fits_tile((weight__oidhw, bias__o), tile, groups, stride)
    if groups != 1 or weight__oidhw.shape[2:] != (1, 3, 3) or tuple(stride) != _ONES:
        return conv_pack(weight__oidhw, bias__o, tuple(stride), _ONES, groups)
    o, c = weight__oidhw.shape[:2]
    axis = weights_axis(tile + 2, 3)
    points = np.einsum("pi,ocij,qj->pqoc", axis, weight__oidhw[:, :, 0].astype(np.float64), axis).astype(np.float32)
    width = min(panels_of(o), WIDE)
    wide = np.zeros((len(axis) ** 2, -(-o // width) * width if o else 0, c), np.float32)
    wide[:, :o] = points.reshape(len(wide), o, c)
    # In the order in which they are read
    pieces = wide.reshape(len(wide), wide.shape[1] // max(width, 1), width, c).swapaxes(0, 1)
    weights = pack_all(pieces.reshape(math.prod(pieces.shape[:2]), width, c))
    return Packed(weights, padded_bias(bias__o), tile, c, o)


def _in_axis(e: Emit, m: int, d: list[V]) -> list[V]:
    if m == 2:
        return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[3] - d[1]]
    both = -97 / 36  # -(a^2 + b^2)
    p, q = e.fma(d[2], -B * B, d[4]), e.fma(d[1], -B * B, d[3])
    r, s = e.fma(d[2], -A * A, d[4]), e.fma(d[1], -A * A, d[3])
    return [
        e.fma(d[2], both, d[0] + d[4]), e.fma(q, A, p), e.fma(q, -A, p), e.fma(s, B, r), e.fma(s, -B, r),
        e.fma(d[3], both, d[1] + d[5]),
    ]  # fmt: skip


def _out_axis(e: Emit, m: int, s: list[V]) -> list[V]:
    if m == 2:
        return [s[0] + (s[1] + s[2]), (s[1] - s[2]) + s[3]]
    p, q, r, t = s[1] + s[2], s[1] - s[2], s[3] + s[4], s[3] - s[4]
    return [e.fma(p, B, e.fma(r, A, s[0])), q + t, e.fma(p, A, r * B), e.fma(q, A * A, e.fma(t, B * B, s[5]))]


def _of_tiles(e: Emit, m: V, case: Callable[[int], Callable[[], None]]) -> None:
    e.switch(m, {size: case(size) for size in (2, 4)})


# Both axes go in groups of rows or columns whose sums share terms: what is between the axes then stays in registers, and what is
# loaded twice costs less than storing that would.


@emitted
def _transform(e: Emit, m: V, x: V, line: V, pixel: V, v: V, point: V) -> None:
    """A panel of channels of one tile: v[point] of the (m + 2)^2 pixels from x on, in rows with stride `line`."""

    def case(size: int) -> Callable[[], None]:
        n = size + 2

        def emit() -> None:
            with e.loop(0, PANEL, WIDTH) as i:
                for first in range(n // 2 + 1):  # columns 0; 1, 2; 3, 4; 5
                    together = sorted({max(2 * first - 1, 0), min(2 * first, n - 1)})
                    half = [
                        _in_axis(e, size, [e.load(e.at(x, line * row + pixel * column + i)) for column in range(n)])
                        for row in range(n)
                    ]
                    for column in together:
                        for row, value in enumerate(_in_axis(e, size, [half[row][column] for row in range(n)])):
                            e.store(e.at(v, point * (row * n + column) + i), value)

        return emit

    _of_tiles(e, m, case)


@emitted
def _back(e: Emit, m: V, sums: V, point: V, count: V, bias: V, residual: V, relu: V, y: Place) -> None:
    """`count` channels of one tile: the first of its outputs."""

    def case(size: int) -> Callable[[], None]:
        n = size + 2

        def body(i: V, mask: V | None) -> None:
            added = e.var(e.f(0.0))
            with e.when(bias.differs(0)):
                added.set(e.load(e.at(bias, i), mask=mask))
            for first in range(2):  # rows 0, 2; 1, 3
                half = [
                    _out_axis(e, size, [e.load(e.at(sums, point * (row * n + column) + i)) for row in range(n)])
                    for column in range(n)
                ]
                for row in range(first, size, 2):
                    with e.when(y.rows > row):
                        for column, value in enumerate(_out_axis(e, size, [half[k][row] for k in range(n)])):
                            with e.when(y.cols > column):
                                place = y.line * row + y.pixel * column + i
                                total = e.var(value + added.get())
                                with e.when(residual.differs(0)):
                                    total.set(total.get() + e.load(e.at(residual, place), mask=mask))
                                with e.when(relu.differs(0)):
                                    total.set(e.most(0.0, total.get()))
                                e.store(e.at(y.at, place), total.get(), mask)

        def emit() -> None:
            if WIDTH == 16:  # where masks cost nothing
                with e.loop(0, count, WIDTH) as i:
                    body(i, e.mask(count - i))
            else:
                e.vectors(count, body)

        return emit

    _of_tiles(e, m, case)


class Plan(NamedTuple):
    """A convolution in blocks of images x rows x cols tiles, their columns some at a time; `size`: floats of a point's weights,
    v_tile, m_tile: of a tile of V and of the sums, `point`: of a point of V."""

    transform: int
    columns: int
    fill: int
    swap: int
    block: int
    apply: int
    x_last: int
    out_last: int
    images: int
    depth: int
    c: int
    h: int
    w: int
    o: int
    oh: int
    ow: int
    top: int
    left: int
    m: int
    weights: int
    size: int
    bias: int
    act: Act
    some_images: int
    some_rows: int
    some_cols: int
    width: int
    point: int
    v_tile: int
    m_tile: int


class Tiles(NamedTuple):
    """images x rows x cols tiles, the first of image `first`, its outputs at (top, left)."""

    first: int
    images: int
    top: int
    rows: int
    left: int
    cols: int


@inner
def transform(p: Plan, t: Tiles, x: int, c0: int, v: int, part: int) -> None:
    """V of some tiles, a panel of channels from c0 on."""
    high, wide, channels = t.rows * p.m + 2, t.cols * p.m + 2, min(16, p.c - c0)
    zero(part + 4 * high * wide * channels, 16)  # a panel of fewer channels reads on
    v += 4 * c0
    for image in range(t.first, t.first + t.images):
        channel = image // p.depth * p.c + (0 if p.x_last != 0 else c0)
        at = x + 4 * channel * p.depth * p.h * p.w + (4 * c0 if p.x_last != 0 else 0)
        call(
            p.fill, p.swap, Image(at, p.x_last, p.c, channels, p.depth, p.h, p.w), Span(image % p.depth, 1, 1),
            Span(t.top - p.top, 1, high), Span(t.left - p.left, 1, wide), part,
        )  # fmt: skip
        for r in range(t.rows):
            for u in range(t.cols):
                _transform(p.m, part + 4 * (r * wide + u) * p.m * channels, wide * channels, channels, v, p.point)
                v += 4 * p.v_tile


@inner
def columns(p: Plan, t: Tiles, out: int, residual: int, j0: int, v: int, sums: int, part: int) -> None:
    """Outputs of some tiles out of V, `width` columns from j0 on.

    sums: [tile][point][column]; part: the outputs of a panel of columns, which are transposed if they are channels-first. A
    residual is there before.
    """
    n, tiles = min(p.width, p.o - j0), t.images * t.rows * t.cols
    own = table()
    points = (p.m + 2) * (p.m + 2)
    lines, piece = own + 16, p.weights + 4 * (j0 // p.width) * points * p.size
    for i in range(tiles):
        put_integer(lines, i, v + 4 * i * p.v_tile)
    for q in range(points):
        k0 = 0
        while True:  # once even without channels: sums are zeros
            klen = min(256, p.c - k0)
            put_integer(own, 0, q * p.point + k0)
            put_integer(own, 1, klen)
            panels = Panels(piece + 4 * (q * p.size + p.width * k0), 16, 16 * klen)
            to = Sums(sums + 4 * q * p.width, p.m_tile, 1 if k0 > 0 else 0)
            call(p.block, Rows(lines, own, 1), tiles, panels, to, (n + 15) // 16 * 16, NOTHING, p.apply)
            k0 += klen
            if k0 >= p.c:
                break
    high, wide, c0 = min(t.rows * p.m, p.oh - t.top), min(t.cols * p.m, p.ow - t.left), 0
    pieces, length = (1, high * wide) if wide == p.ow else (high, wide)
    while c0 < n:
        count = n if p.out_last != 0 else min(16, n - c0)
        s, b_at = sums + 4 * c0, p.bias + 4 * (j0 + c0) if p.bias != 0 else 0
        for image in range(t.first, t.first + t.images):
            if p.out_last != 0:
                at = 4 * (((image * p.oh + t.top) * p.ow + t.left) * p.o + j0)
                y, extra, line, pixel, lanes = out + at, residual + at if residual != 0 else 0, p.ow * p.o, p.o, n
            else:
                at = 4 * ((((image // p.depth * p.o + j0 + c0) * p.depth + image % p.depth) * p.oh + t.top) * p.ow + t.left)
                y, extra, line, pixel, lanes = part, part if residual != 0 else 0, wide * 16, 16, 16
                if residual != 0:
                    for r in range(pieces):
                        extra_at = residual + at + 4 * r * p.ow
                        call(p.swap, extra_at, p.depth * p.oh * p.ow, part + 64 * r * length, 16, count, length)
            relu = 1 if p.act.code == RELU else 0
            for r in range(t.rows):
                for u in range(t.cols):
                    place = 4 * p.m * (r * line + u * pixel)
                    to_tile = Place(y + place, line, pixel, high - r * p.m, wide - u * p.m)
                    _back(p.m, s, p.width, lanes, b_at, extra + place if extra != 0 else 0, relu, to_tile)
                    s += 4 * p.m_tile
            if p.act.code > RELU:
                together = 1 if p.out_last != 0 and n < p.o else wide  # pixels that are next to each other
                for r in range(high):
                    for u in range(0, wide, together):
                        place = y + 4 * (r * line + u * pixel)
                        call(p.apply, p.act, place, place, together * lanes)
            if p.out_last == 0:
                for r in range(pieces):
                    call(p.swap, part + 64 * r * length, 16, out + at + 4 * r * p.ow, p.depth * p.oh * p.ow, length, count)
        c0 += count


@kernel
def _blocks(p: Plan, x: int, out: int, residual: int, stage: int, v: int, sums: int, part: int, first: int, last: int) -> None:
    """Tasks: blocks of some_images x some_rows x some_cols tiles (stage 0); if there is one block, panels of its channels, which
    make V (stage 1), or `width` columns of its outputs (stage 2)."""
    down, across = (p.oh + p.m - 1) // p.m, (p.ow + p.m - 1) // p.m
    row_blocks, col_blocks = (down + p.some_rows - 1) // p.some_rows, (across + p.some_cols - 1) // p.some_cols
    for task in range(first, last):
        number = task if stage == 0 else 0
        left_at, number = number % col_blocks * p.some_cols, number // col_blocks
        top_at, image = number % row_blocks * p.some_rows, number // row_blocks * p.some_images
        rows, cols = min(p.some_rows, down - top_at), min(p.some_cols, across - left_at)
        tiles = Tiles(image, min(p.some_images, p.images - image), top_at * p.m, rows, left_at * p.m, cols)
        begin = task * 16 if stage == 1 else 0
        for c0 in range(begin, min(p.c, begin + 16) if stage == 1 else p.c if stage == 0 else 0, 16):
            call(p.transform, p, tiles, x, c0, v, part)
        begin = task * p.width if stage == 2 else 0
        for j0 in range(begin, min(p.o, begin + p.width) if stage == 2 else p.o if stage == 0 else 0, p.width):
            call(p.columns, p, tiles, out, residual, j0, v, sums, part)


def _apart(floats: int) -> int:
    """At least so many floats: a stride of tiles that is a multiple of 1 KB would put them into the same cache sets."""
    return floats + (PANEL if floats % 256 == 0 else 0)


def winograd(
    x: np.ndarray,
    packed: Packed | Direct,
    out: np.ndarray,
    pads: Sequence[int],
    x_last: bool,
    out_last: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """out = activation(x * weight + bias + residual), a cross-correlation with zeros around the slices of x."""
    fits_winograd(packed, (x, out, residual), x_last | out_last << 1, pads)
    if isinstance(packed, Direct):
        conv(x, packed, out, pads, PAD_MODES["zeros"], x_last, out_last, residual, activation)
        return
    if not out.size:
        return
    m, c, o, points = packed.tile, packed.c, packed.o, (packed.tile + 2) ** 2
    depth = out.shape[1 if out_last else 2]
    images = len(out) * depth
    h, w = x.shape[2:4] if x_last else x.shape[3:]
    oh, ow = out.shape[2:4] if out_last else out.shape[3:]
    down, across = -(-oh // m), -(-ow // m)
    tiles, width = images * down * across, min(panels_of(o), WIDE)
    alone = tiles <= ALONE
    if alone:
        most = ALONE
    else:
        most = BUDGET // (points * (panels_of(c) + width))
        most = min(max(min(most, -(-tiles // TASKS)), LEAST), MOST)
    some_images, some_rows, some_cols = 1, 1, even(across, most)
    if some_cols == across:
        some_rows = even(down, max(1, most // across))
        if some_rows == down:
            some_images = even(images, max(1, most // (down * across)))
    v_tile, m_tile, block_tiles = _apart(points * panels_of(c)), _apart(points * width), some_images * some_rows * some_cols
    inputs, outputs = (some_rows * m + 2) * (some_cols * m + 2), 0 if out_last else some_rows * some_cols * m * m
    sizes = block_tiles * v_tile, block_tiles * m_tile, PANEL * (max(inputs, outputs) + 1)
    plan = Plan(
        transform.address, columns.address, fill.address, swap.address, block.address, apply.address, int(x_last), int(out_last),
        images, depth, c, h, w, o, oh, ow, pads[2], pads[4], m, address(packed.weights), packed.weights.shape[1],
        address(packed.bias), spell(activation), some_images, some_rows, some_cols, width, panels_of(c), v_tile, m_tile,
    )  # fmt: skip
    given = plan, address(x), address(out), address(residual)
    shared = scratch(sizes[0] if alone else 0)

    def stage(number: int, first: int, last: int) -> None:
        own = scratch(sum(sizes))
        at = address(own)
        _blocks(*given, number, address(shared) if alone else at, at + 4 * sizes[0], at + 4 * sum(sizes[:2]), first, last)

    work = 1.0 * tiles * points * (c * o + 8 * (c + o))
    if alone:
        spread(-(-c // PANEL), work, lambda first, last: stage(1, first, last))
        spread(-(-o // width), work, lambda first, last: stage(2, first, last))
    else:
        blocks = -(-images // some_images) * -(-down // some_rows) * -(-across // some_cols)
        spread(blocks, work, lambda first, last: stage(0, first, last))

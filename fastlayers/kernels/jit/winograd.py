"""Winograd convolution F(m x m, 3 x 3), m = 2 or 4, on channels-last data: see `aot/winograd.pyx` and `aot/csrc/winograd.h`.

Images are padded first. A task then takes a block of tiles: their inputs are transformed to V [point][tile][channel], each of the
(m + 2)^2 points is a product with its own weights, and the sums [point][tile][output] are transformed back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..table import Activation
from ._band import fill
from ._njit import call, emitted, kernel
from ._threads import address, scratch, spread
from ._tile import RELU, block, pack_all, panels_of, product, swap
from ._unary import apply, spell
from ._vector import Emit, V
from .gemm import padded_bias

__all__ = ["winograd", "winograd_pack"]

A, B = 2 / 3, 3 / 2  # the points of m = 4 beside 0 and infinity: a, -a, b, -b, with a b = 1
BLOCK = 1 << 18  # numbers of V or of the sums in a block, about: they stay in a second-level cache
FEWEST, MOST = 8, 64  # tiles of a block


class Packed(NamedTuple):
    """Transformed weights in panels, (points, size), and the bias in whole panels."""

    weights: np.ndarray
    bias: np.ndarray | None
    tile: int
    c: int
    o: int


def _axis(tile: int) -> np.ndarray:
    """One axis of the transform of weights, (tile + 2, 3): powers of the points, divided as interpolation asks, and multiplied
    with what the
    transform of the sums leaves out.
    """
    if tile == 2:
        return np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    rows = [[1.0, 0.0, 0.0]]
    for p, q in ((A, B), (B, A)):
        scale = p / (2 * p * p * (p * p - q * q))
        rows += [[scale, scale * p, scale * p * p], [scale, -scale * p, scale * p * p]]
    return np.array([*rows, [0.0, 0.0, 1.0]])


def winograd_pack(weight__oidhw: np.ndarray, bias__o: np.ndarray | None, tile: int) -> Packed:
    """Weights (o, i, 1, 3, 3) of a convolution for tiles of tile x tile outputs, 2 or 4."""
    o, c = weight__oidhw.shape[:2]
    axis = _axis(tile)
    points = np.einsum("pi,ocij,qj->pqoc", axis, weight__oidhw[:, :, 0].astype(np.float64), axis).astype(np.float32)
    weights = pack_all(points.reshape((tile + 2) ** 2, o, c))
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


@emitted
def _transform(e: Emit, m: V, x: V, line: V, c: V, v: V, point: V) -> None:
    """One tile: v[point][channels] of the (m + 2)^2 pixels from x on, whose rows are `line` floats apart."""

    def case(size: int) -> Callable[[], None]:
        n = size + 2

        def body(i: V, mask: V | None) -> None:
            half = [
                _in_axis(e, size, [e.load(e.at(x, line * row + c * column + i), mask=mask) for column in range(n)])
                for row in range(n)
            ]
            for column in range(n):
                for row, value in enumerate(_in_axis(e, size, [half[row][column] for row in range(n)])):
                    e.store(e.at(v, point * (row * n + column) + i), value, mask)

        return lambda: e.vectors(c, body)

    _of_tiles(e, m, case)


@emitted
def _back(e: Emit, m: V, sums: V, point: V, o: V, bias: V, residual: V, relu: V, y: V, line: V, rows: V, cols: V) -> None:
    """One tile: the first rows x cols of its outputs, y's pixels of o floats in rows `line` floats apart."""

    def case(size: int) -> Callable[[], None]:
        n = size + 2

        def body(i: V, mask: V | None) -> None:
            added = e.var(e.f(0.0))
            with e.when(bias.differs(0)):
                added.set(e.load(e.at(bias, i), mask=mask))
            half = [
                _out_axis(e, size, [e.load(e.at(sums, point * (row * n + column) + i)) for row in range(n)])
                for column in range(n)
            ]
            for row in range(size):
                with e.when(rows > row):
                    for column, value in enumerate(_out_axis(e, size, [half[k][row] for k in range(n)])):
                        with e.when(cols > column):
                            place = line * row + o * column + i
                            total = e.var(value + added.get())
                            with e.when(residual.differs(0)):
                                total.set(total.get() + e.load(e.at(residual, place), mask=mask))
                            with e.when(relu.differs(0)):
                                total.set(e.most(0.0, total.get()))
                            e.store(e.at(y, place), total.get(), mask)

        return lambda: e.vectors(o, body)

    _of_tiles(e, m, case)


@kernel
def _pad(
    fill: int, swap: int, x: int, last: int, c: int, h: int, w: int, top: int, left: int, rows: int, cols: int, to: int,
    first: int,
    end: int,
) -> None:  # fmt: skip
    """Tasks: images."""
    for image in range(first, end):
        at = to + 4 * image * rows * cols * c
        call(fill, swap, x + 4 * image * c * h * w, last, c, c, 1, h, w, 0, 1, 1, -top, 1, rows, -left, 1, cols, at)


@kernel
def _swap_all(swap: int, x: int, y: int, rows: int, cols: int, first: int, last: int) -> None:
    for image in range(first, last):
        at = 4 * image * rows * cols
        call(swap, x + at, cols, y + at, rows, rows, cols)


@kernel
def _blocks(
    product: int, block: int, apply: int, m: int, x: int, c: int, rows: int, cols: int, down: int, across: int, images: int,
    weights: int,
    size: int, bias: int, o: int, residual: int, y: int, oh: int, ow: int, code: int, a: float, b: float, tiles: int,
    scratch: int,
    first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: `tiles` tiles, counted over all images, `down` x `across` in each; x has rows x cols pixels."""
    points = (m + 2) * (m + 2)
    wide = (o + 15) // 16 * 16
    sums = scratch + 4 * points * tiles * c
    total = images * down * across
    for task in range(first, last):
        t0 = task * tiles
        count = min(tiles, total - t0)
        for t in range(count):
            image, rest = (t0 + t) // (down * across), (t0 + t) % (down * across)
            at = (image * rows + rest // across * m) * cols + rest % across * m
            _transform(m, x + 4 * at * c, cols * c, c, scratch + 4 * t * c, tiles * c)
        for point in range(points):
            call(
                product, block, apply, scratch + 4 * point * tiles * c, c, count, c, weights + 4 * point * size, o, 0, o,
                sums + 4 * point * tiles * wide, wide, 0, 0, 0, 0, 0.0, 0.0,
            )  # fmt: skip
        for t in range(count):
            image, rest = (t0 + t) // (down * across), (t0 + t) % (down * across)
            top, left = rest // across * m, rest % across * m
            high, broad = min(m, oh - top), min(m, ow - left)
            at = 4 * ((image * oh + top) * ow + left) * o
            _back(
                m, sums + 4 * t * wide, tiles * wide, o, bias, residual + at if residual != 0 else 0, 1 if code == RELU else 0,
                y + at,
                ow * o, high, broad,
            )  # fmt: skip
            if code > RELU:
                for r in range(high):
                    call(apply, code, a, b, y + at + 4 * r * ow * o, y + at + 4 * r * ow * o, broad * o)


def winograd(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    pads: Sequence[int],
    x_last: bool,
    out_last: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """out = activation(x * weight + bias + residual), a cross-correlation with zeros around x."""
    if not out.size:
        return
    m, c, o, images = packed.tile, packed.c, packed.o, len(out)
    h, w = x.shape[2:4] if x_last else x.shape[3:]
    oh, ow = out.shape[2:4] if out_last else out.shape[3:]
    down, across = -(-oh // m), -(-ow // m)
    rows, cols = down * m + 2, across * m + 2
    image = scratch(images * rows * cols * c)
    padding = fill.address, swap.address, address(x), int(x_last), c, h, w, pads[2], pads[4], rows, cols, address(image)
    spread(images, 4.0 * image.size, lambda first, last: _pad(*padding, first, last))
    y, added = out, residual
    if not out_last:
        y = scratch(out.size)
        if residual is not None:
            added = scratch(out.size)
            turn = swap.address, address(residual), address(added), o, oh * ow
            spread(images, 4.0 * out.size, lambda first, last: _swap_all(*turn, first, last))
    points = (m + 2) ** 2
    tiles = min(MOST, max(FEWEST, BLOCK // (points * max(c, panels_of(o)))))
    tiles = min(tiles, max(FEWEST, images * down * across))
    given = (
        product.address, block.address, apply.address, m, address(image), c, rows, cols, down, across, images,
        address(packed.weights),
        packed.weights.shape[1], address(packed.bias), o, address(added), address(y), oh, ow, *spell(activation), tiles,
    )  # fmt: skip

    def run(first: int, last: int) -> None:
        own = scratch(points * tiles * (c + panels_of(o)))
        _blocks(*given, address(own), first, last)

    spread(-(-images * down * across // tiles), 1.0 * images * down * across * points * c * o, run)
    if not out_last:
        back = swap.address, address(y), address(out), oh * ow, o
        spread(images, 4.0 * out.size, lambda first, last: _swap_all(*back, first, last))

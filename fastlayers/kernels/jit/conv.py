"""Convolution in 1 to 3 dimensions over the packed matrix product, without an im2col matrix: see `aot/conv.pyx`.

A pixel's taps are a few runs of floats in padded channels-last rows,
so an output pixel is a row of the product. A task pads (and, for
channels-first data, transposes) the input rows that it needs into scratch; data that need neither are read in place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..fits import fits, fits_taps, window_of
from ..halves import rounded
from ..reference.padding import padded
from ..table import PAD_MODES, Activation
from ._band import draw, even, fill, plan_runs, runs_size, sums
from ._njit import call, kernel
from ._records import Act, Columns, End, Image, Space, Span
from ._swapped import STRIP, Swapped, swapped
from ._threads import address, scratch, spread
from ._tile import block, pack_all, panels_of, put_integer, swap
from ._unary import apply, spell

__all__ = ["conv", "conv_half_pack", "conv_pack"]

PIXELS, COLS = 256, 256  # pixels and columns of one task: its sums stay in a second-level cache
DRAWN = 1 << 18  # floats of a channels-first image that are prefetched before they are written; less is there
FEW = 128  # pixels: below, panels that are not whole cost more than transposing
TASKS = 8  # with fewer, columns are cut more finely, so that all threads get some
NARROW = 128  # columns at least: two groups of panels, the first of which draws the second toward the cache


class Packed(NamedTuple):
    """Weights of every group in panels, K in the order (kd, kh, kw, channel), and the bias in whole panels a group, or None."""

    weights: np.ndarray  # (groups, size)
    bias: np.ndarray | None
    rows: tuple[np.ndarray, np.ndarray | None] | None  # weights (o, k) and bias (o,), if roles may be swapped
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    ig: int
    og: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Channels of x and of the result."""
        return self.groups * self.ig, self.groups * self.og


def group_bias(bias: np.ndarray | None, groups: int) -> np.ndarray | None:
    """The bias of each group with zeros up to whole panels."""
    if bias is None:
        return None
    og = len(bias) // max(groups, 1)
    wide = np.zeros((groups, panels_of(og)), np.float32)
    wide[:, :og] = bias.reshape(groups, og)
    return wide


def conv_pack(
    weight__oidhw: np.ndarray, bias__o: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """Weights (o, i / groups, kd, kh, kw) of a convolution with its stride, dilation and groups."""
    fits_taps("conv_pack", (weight__oidhw, bias__o), stride, dilation, groups)
    o, ig, *taps = weight__oidhw.shape
    og = o // max(groups, 1)
    k = ig * math.prod(taps)
    rows = weight__oidhw.transpose(0, 2, 3, 4, 1).reshape(groups, og, k)
    few = ig <= 8 and k < 2 * (ig + og) and stride[2] <= 2 and k > 0
    may_swap = few or (0 < k == ig and tuple(stride) == (1, 1, 1))
    swap = (rows.reshape(o, k).copy(), None if bias__o is None else bias__o.copy()) if may_swap else None
    return Packed(pack_all(rows), group_bias(bias__o, groups), swap, tuple(taps), tuple(stride), tuple(dilation), groups, ig, og)


def conv_half_pack(
    weight__oidhw: np.ndarray, bias__o: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int, half: int
) -> Packed:
    """`conv_pack` with weights of the values that are stored in 16 bits; `half` is one of `table.HALVES`."""
    return conv_pack(rounded(weight__oidhw, half), bias__o, stride, dilation, groups)


class Plan(NamedTuple):
    """A convolution cut into tasks of rows x cols pixels and `width` columns; `table`: the runs of a pixel's taps."""

    fill: int
    swap: int
    sums: int
    block: int
    apply: int
    x_last: int
    out_last: int
    in_place: int
    groups: int
    ig: int
    og: int
    k: int
    space: Space
    table: int
    weights: int
    b_size: int  # floats of a group's
    bias: int
    rows: int
    cols: int
    width: int
    at_sums: int  # of scratch, in floats
    at_residual: int
    act: Act


@kernel
def _conv(p: Plan, x: int, out: int, residual: int, scratch: int, first: int, last: int) -> None:
    s = p.space
    channels, out_channels = p.groups * p.ig, p.groups * p.og
    volume, out_volume = s.d * s.h * s.w, s.od * s.oh * s.ow
    row_tasks, col_tasks, width_tasks = (
        (s.oh + p.rows - 1) // p.rows,
        (s.ow + p.cols - 1) // p.cols,
        (p.og + p.width - 1) // p.width,
    )
    pixel_rows = scratch
    for task in range(first, last):
        rest, j0 = task // width_tasks, task % width_tasks * p.width
        n = min(p.width, p.og - j0)
        rest, x0 = rest // col_tasks, rest % col_tasks * p.cols
        rest, y0 = rest // row_tasks, rest % row_tasks * p.rows
        rest, z0 = rest // s.od, rest % s.od
        image, group = rest // p.groups, rest % p.groups
        high, wide = min(p.rows, s.oh - y0), min(p.cols, s.ow - x0)
        base = x + 4 * (image * volume * channels + group * p.ig * (1 if p.x_last != 0 else volume))
        if p.in_place != 0:
            line, pixel = s.w * channels, channels
            base += 4 * ((z0 * s.sd * s.h + y0 * s.sh) * line + x0 * s.sw * pixel)
        else:
            in_rows, in_cols = (high - 1) * s.sh + (s.kh - 1) * s.dh + 1, (p.cols - 1) * s.sw + (s.kw - 1) * s.dw + 1
            to = scratch + 4 * 512
            in_band = (p.rows - 1) * s.sh + (s.kh - 1) * s.dh + 1 if s.kd > 1 else in_rows
            call(
                p.fill, p.swap, Image(base, p.x_last, channels, p.ig, s.d, s.h, s.w), Span(z0 * s.sd - s.bd, s.dd, s.kd),
                Span(y0 * s.sh - s.bh, 1, in_band), Span(x0 * s.sw - s.bw, 1, in_cols), to,
            )  # fmt: skip
            base, line, pixel = to, in_cols * p.ig, p.ig
        m = 0
        for r in range(high):
            for c in range(wide):
                put_integer(pixel_rows, m, base + 4 * (r * s.sh * line + c * s.sw * pixel))
                m += 1
        p0 = (z0 * s.oh + y0) * s.ow + x0
        channel = group * p.og + j0
        if p.out_last != 0:
            place = (image * out_volume + p0) * out_channels + channel
            c_at, ldc, ldr = out + 4 * place, out_channels, out_channels
            extra = residual + 4 * place if residual != 0 else 0
        else:
            place = (image * out_channels + channel) * out_volume + p0
            ldc = (n + 15) // 16 * 16
            c_at, ldr, extra = scratch + 4 * p.at_sums, ldc, 0
            if residual != 0:
                extra = scratch + 4 * p.at_residual
                call(p.swap, residual + 4 * place, out_volume, extra, ldr, n, m)
            if out_channels * out_volume >= DRAWN:  # while the sums are made: the transposition touches one page per channel
                draw(out + 4 * place, out_volume, n, m)
        bias = p.bias + 4 * (group * ((p.og + 15) // 16 * 16) + j0) if p.bias != 0 else 0
        columns = Columns(p.weights + 4 * group * p.b_size, p.og, j0, n)
        end = End(bias, extra, ldr, p.act)
        call(p.sums, p.block, p.apply, pixel_rows, m, p.table, p.k, columns, c_at, ldc, end)
        if p.out_last == 0:
            call(p.swap, c_at, ldc, out + 4 * place, out_volume, m, n)


def conv(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    pads: Sequence[int],
    mode: int,
    x_last: bool,
    out_last: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """Convolution with its epilogue. See README.md for the shapes."""
    fits("conv", packed.sizes, (x, out, residual), x_last | out_last << 1, window_of(packed, pads))
    if not out.size:
        return
    if mode != PAD_MODES["zeros"] and any(pads):
        x, pads = np.ascontiguousarray(padded(x, 1 if x_last else 2, pads, mode)), (0,) * 6
    size, to = x.shape[1:4] if x_last else x.shape[2:], out.shape[1:4] if out_last else out.shape[2:]
    if not x_last and not out_last and packed.rows is not None and math.prod(to) >= FEW:
        dense = packed.ig == math.prod(packed.kernel) * packed.ig and not any(pads)
        if dense or (packed.kernel != (1, 1, 1) and to[2] >= 0.85 * panels_of(to[2])):
            _swapped(x, packed, out, size, to, pads[::2], dense, residual, activation)
            return
    # Where the layouts are one, nothing is transposed.
    x_last = x_last or packed.groups * packed.ig == 1 or math.prod(size) == 1
    out_last = out_last or packed.groups * packed.og == 1 or math.prod(to) == 1
    execute(x, packed, out, size, to, pads[::2], x_last, out_last, x_last and not any(pads), residual, activation)


def _swapped(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    size: Sequence[int],
    to: Sequence[int],
    before: Sequence[int],
    dense: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """Channels-first data with pixels as the panels of the product: see `_swapped.swapped`."""
    assert packed.rows is not None
    groups, ig, og, kernel, stride, dilation = (
        packed.groups, packed.ig, packed.og, packed.kernel, packed.stride, packed.dilation
    )  # fmt: skip
    k = math.prod(kernel) * ig
    if dense:
        size = to = (1, 1, math.prod(to))
    cols = even(to[2], 4 * PIXELS)
    if cols < to[2]:
        cols = panels_of(cols)
    rows = even(to[1], max(1, 4 * PIXELS // cols))
    in_rows, in_cols = (
        (n - 1) * s + (f - 1) * t + 1 for n, s, f, t in zip((rows, cols), stride[1:], kernel[1:], dilation[1:], strict=True)
    )
    tasks = out.shape[0] * groups * to[0] * -(-to[1] // rows) * -(-to[2] // cols)
    width = min(2 * COLS, even(og, max(64, og * tasks // TASKS)))
    room = 2 * (width + k) + 16 + STRIP * k + (0 if dense else ig * kernel[0] * in_rows * (in_cols + stride[2]))
    weights, bias = packed.rows
    space = Space(*size, *to, *kernel, *stride, *dilation, *before)
    plan = Swapped(
        block.address, apply.address, address(weights), address(bias), groups, ig, og, k, int(dense), space, rows, cols, width,
        spell(activation),
    )  # fmt: skip
    given = plan, address(x), address(out), address(residual)

    def run(first: int, last: int) -> None:
        own = scratch(room)
        swapped(*given, address(own), first, last)

    spread(tasks * -(-og // width), 1.0 * out.size * k, run)


def execute(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    size: Sequence[int],
    to: Sequence[int],
    before: Sequence[int],
    x_last: bool,
    out_last: bool,
    in_place: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """The convolution with zeros around x, which begin `before` its first pixel, or after it if that is negative.

    `size` and `to` are the space axes of x and out; `in_place`: nothing outside x is read, and x is channels-last.
    """
    groups, ig, og, kernel, stride, dilation = (
        packed.groups, packed.ig, packed.og, packed.kernel, packed.stride, packed.dilation
    )  # fmt: skip
    cols = even(to[2], PIXELS)
    rows = even(to[1], max(1, PIXELS // cols)) if cols == to[2] else 1
    in_rows, in_cols = (
        (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip((rows, cols), stride[1:], kernel[1:], dilation[1:], strict=True)
    )
    if in_place:
        channels = groups * ig
        steps = dilation[0] * size[1] * size[2] * channels, dilation[1] * size[2] * channels, dilation[2] * channels
        band = 0
    else:
        steps = in_rows * in_cols * ig, dilation[1] * in_cols * ig, dilation[2] * ig
        band = kernel[0] * in_rows * in_cols * ig
    k = math.prod(kernel) * ig
    table = np.empty(runs_size(math.prod(kernel), k), np.int64)
    plan_runs(address(table), *kernel, *steps, ig)
    tasks = out.shape[0] * groups * to[0] * -(-to[1] // rows) * -(-to[2] // cols)
    width = min(COLS, panels_of(even(og, max(NARROW, og * tasks // TASKS)))) if og else 1
    tasks *= -(-og // width)
    at_sums = 512 + -(-band // 16) * 16
    room = PIXELS * panels_of(width)
    space = Space(*size, *to, *kernel, *stride, *dilation, *before)
    plan = Plan(
        fill.address, swap.address, sums.address, block.address, apply.address, int(x_last), int(out_last), int(in_place),
        groups, ig, og, k, space, address(table), address(packed.weights), packed.weights.shape[1], address(packed.bias), rows,
        cols, width, at_sums, at_sums + room, spell(activation),
    )  # fmt: skip
    given = plan, address(x), address(out), address(residual)

    def run(first: int, last: int) -> None:
        own = scratch(at_sums + 2 * room)
        _conv(*given, address(own), first, last)

    spread(tasks, 1.0 * out.size * k, run)

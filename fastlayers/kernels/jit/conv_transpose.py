"""Transposed convolution: an ordinary convolution with stride 1 for each phase of the stride, as `aot/conv_transpose.pyx`
explains. A task makes all phases of a tile of outputs out of inputs that it brought into scratch once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..fits import fits, fits_taps
from ..table import PAD_MODES, Activation
from ._band import copy_row, draw, even, fill, plan_runs, runs_size, sums
from ._njit import call, kernel
from ._records import Act, Axes, Columns, End, Image, Span
from ._threads import address, scratch, spread
from ._tile import PANEL, block, integer, pack_all, panels_of, put_integer, swap
from ._unary import apply, spell
from .activation import unary
from .conv import COLS, DRAWN, NARROW, PIXELS, TASKS, group_bias
from .conv import Packed as Convolution
from .depthwise import Packed as Filters
from .depthwise import depthwise, depthwise_pack

__all__ = ["conv_transpose", "conv_transpose_pack"]

SUMS = 1 << 16  # the sums of one phase of rows: they stay in a second-level cache
FEW = 8  # outputs of a phase in a row: fewer make products of their own too short
PLANS = 16  # shapes of calls whose plans are retained


class Axis(NamedTuple):
    """Output p of the full result takes `counts[p % stride]` inputs from p // stride + firsts[p % stride], stride `step`."""

    stride: int
    step: int
    counts: tuple[int, ...]
    firsts: tuple[int, ...]

    def first(self, place: int) -> int:
        """The first input of an output."""
        return place // self.stride + self.firsts[place % self.stride]

    def reach(self, before: int, places: int) -> tuple[int, int]:
        """The first input that `places` outputs after `before` cropped ones read, and how many inputs they span."""
        inputs = [(self.first(p), self.counts[p % self.stride]) for p in range(before, before + places)]
        low = min((i for i, n in inputs if n), default=0)
        return low, max((i + (n - 1) * self.step for i, n in inputs if n), default=0) - low + 1


class Cut(NamedTuple):
    """Phases cut into tasks of `rows` x `cols` outputs of every phase along h and w, `width` columns of the product.

    table: count and first input of each phase along d, then for each product the address of its weights, its terms, where it
    begins in the band, and the address of its runs. y_low, x_low, high, wide: the first inputs of a band, and its size for one
    output; margin: outputs in front of the first wanted one in a row of sums.
    """

    fill: int
    swap: int
    sums: int
    block: int
    apply: int
    bias: int
    table: int
    groups: int
    ig: int
    og: int
    columns: int
    merged: int
    x_last: int
    out_last: int
    direct: int
    size: Axes
    to: Axes
    bd: int  # outputs that are cropped in front along d
    stride: Axes
    d_step: int
    y_low: int
    x_low: int
    high: int
    wide: int
    rows: int
    cols: int
    width: int
    margin: int
    pitch: int
    at_input: int  # of scratch, in floats
    at_sums: int


class Plan(NamedTuple):
    """Plan of all calls of the same shapes: the record of the compiled function, the tables that it points to, scratch."""

    cut: Cut
    tables: tuple[np.ndarray, ...]
    tasks: int
    work: float
    room: int


class Packed(NamedTuple):
    """Weights in panels, (groups, size), of every triple of phases; where all phases along w read the same inputs, and are fewer
    panels together, they are made at once (`merged`): their channels are next to each other in a product."""

    weights: tuple[np.ndarray, ...]
    bias: np.ndarray | None
    axes: tuple[Axis, ...]
    merged: bool
    groups: int
    ig: int
    og: int
    columns: int  # of a product
    filters: tuple[Filters | Convolution | None, ...]  # instead of weights if each channel has its own; None: no tap's phase
    plans: dict[object, Plan]

    @property
    def sizes(self) -> tuple[int, int]:
        """Channels of x and of the result."""
        return self.groups * self.ig, self.groups * self.og


def conv_transpose_pack(
    weight__ipdhw: np.ndarray, bias__o: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """Weights (c, o / groups, kd, kh, kw) of a transposed convolution with its stride, dilation and groups."""
    known = (groups * weight__ipdhw.shape[1],) if weight__ipdhw.ndim > 1 else (0,)
    fits_taps("conv_transpose_pack", (weight__ipdhw, bias__o), stride, dilation, groups, known)
    c, og, *kernel = weight__ipdhw.shape
    ig = c // max(groups, 1)
    whole = weight__ipdhw.reshape(groups, ig, og, *kernel)
    # The taps of a phase; those that read earlier inputs first: the last ones.
    taps = [
        [[t for t in reversed(range(k)) if t * d % s == r] for r in range(s)]
        for k, s, d in zip(kernel, stride, dilation, strict=True)
    ]
    axes = [
        Axis(s, d // math.gcd(s, d), tuple(map(len, of)), tuple(-(t[0] * d // s) if t else 0 for t in of))
        for s, d, of in zip(stride, dilation, taps, strict=True)
    ]
    alone = groups > 1 and ig == og == 1  # a filter a channel
    same = len(set(zip(axes[2].counts, axes[2].firsts, strict=True))) == 1
    merged = not alone and same and panels_of(stride[2] * og) < stride[2] * panels_of(og)
    columns = og * (stride[2] if merged else 1)
    weights, filters = [], []
    for rd, rh, rw in itertools.product(*map(range, stride[:2]), range(1 if merged else stride[2])):
        less = whole[:, :, :, taps[0][rd]][:, :, :, :, taps[1][rh]]
        if alone:
            part = less[..., taps[2][rw]].reshape(groups, 1, *map(len, (taps[0][rd], taps[1][rh], taps[2][rw])))
            filters.append(depthwise_pack(part, bias__o, (1, 1, 1), [a.step for a in axes], groups) if part.size else None)
            continue
        phases = np.stack([less[..., of] for of in (taps[2] if merged else [taps[2][rw]])], 1)  # (g, phase, c, o, kd, kh, kw)
        k = math.prod(phases.shape[4:]) * ig
        weights.append(pack_all(phases.transpose(0, 1, 3, 4, 5, 6, 2).reshape(groups, columns, k)))
    bias = np.zeros(c, np.float32) if alone and bias__o is None else bias__o
    if bias is not None:
        bias = bias.copy() if alone else group_bias(np.tile(bias.reshape(groups, og), columns // max(og, 1)).reshape(-1), groups)
    return Packed(tuple(weights), bias, tuple(axes), merged, groups, ig, og, columns, tuple(filters), {})


@kernel
def _tiles(p: Cut, act: Act, x: int, out: int, scratch: int, first: int, last: int) -> None:
    channels, out_channels, along = p.groups * p.ig, p.groups * p.og, 1 if p.merged != 0 else p.stride.w
    volume, out_volume = p.size.d * p.size.h * p.size.w, p.to.d * p.to.h * p.to.w
    down, across, panels = (
        (p.to.h + p.stride.h - 1) // p.stride.h,
        (p.to.w + p.stride.w - 1) // p.stride.w,
        (p.columns + 15) // 16 * 16,
    )
    row_tasks, col_tasks, width_tasks = (
        (down + p.rows - 1) // p.rows,
        (across + p.cols - 1) // p.cols,
        (p.columns + p.width - 1) // p.width,
    )
    pixel_rows, band, results = scratch, scratch + 4 * p.at_input, scratch + 4 * p.at_sums
    line = p.wide * p.ig
    for task in range(first, last):
        rest, j0 = task // width_tasks, task % width_tasks * p.width
        n = min(p.width, p.columns - j0)
        taken = min(n, p.og)
        rest, uw = rest // col_tasks, rest % col_tasks * p.cols
        rest, uh = rest // row_tasks, rest % row_tasks * p.rows
        rest, oz = rest // p.to.d, rest % p.to.d
        image, group = rest // p.groups, rest % p.groups
        phase, z0 = (oz + p.bd) % p.stride.d, (oz + p.bd) // p.stride.d
        planes = integer(p.table, 2 * phase)
        count = min(p.cols, across - uw) + (1 if p.margin > 0 else 0)
        image_at = x + 4 * (image * volume * channels + group * p.ig * (1 if p.x_last != 0 else volume))
        band_rows = (p.rows if planes > 1 else min(p.rows, down - uh)) + p.high - 1
        call(
            p.fill, p.swap, Image(image_at, p.x_last, channels, p.ig, p.size.d, p.size.h, p.size.w),
            Span(z0 + integer(p.table, 2 * phase + 1), p.d_step, planes), Span(uh + p.y_low, 1, band_rows),
            Span(uw + p.x_low, 1, p.wide), band,
        )  # fmt: skip
        pixels = min(p.cols * p.stride.w, p.to.w - uw * p.stride.w)
        for place in range(p.stride.h):
            lines = min(p.rows, (p.to.h - uh * p.stride.h - place + p.stride.h - 1) // p.stride.h)
            if lines <= 0:
                break
            at = (oz * p.to.h + uh * p.stride.h + place) * p.to.w + uw * p.stride.w
            if p.out_last != 0:
                to, to_line = out + 4 * ((image * out_volume + at) * out_channels + group * p.og + j0), out_channels
            else:
                to, to_line = out + 4 * ((image * out_channels + group * p.og + j0) * out_volume + at), 1
                for r in range(lines if out_channels * out_volume >= DRAWN else 0):
                    draw(to + 4 * r * p.stride.h * p.to.w, out_volume, taken, pixels)
            for v in range(along):
                part = 2 * p.stride.d + 4 * ((phase * p.stride.h + place) * along + v)
                weights, k, runs = integer(p.table, part), integer(p.table, part + 1), integer(p.table, part + 3)
                base = band + 4 * integer(p.table, part + 2)
                m = 0
                for r in range(lines):
                    for c in range(count):
                        put_integer(pixel_rows, m, base + 4 * (r * line + c * p.ig))
                        m += 1
                bias_at = p.bias + 4 * (group * panels + j0) if p.bias != 0 else 0
                end = End(bias_at, 0, 0, act)
                columns = Columns(weights + 4 * group * panels * k, p.columns, j0, n)
                if p.direct != 0:
                    for r in range(lines):
                        rows_at, count_of = pixel_rows + 8 * r * count, (pixels - v + p.stride.w - 1) // p.stride.w
                        sums_at = to + 4 * (r * p.stride.h * p.to.w + v) * out_channels
                        call(
                            p.sums, p.block, p.apply, rows_at, count_of, runs, k, columns, sums_at, p.stride.w * out_channels, end
                        )
                else:
                    sums_at = results + 4 * v * p.pitch
                    call(p.sums, p.block, p.apply, pixel_rows, m, runs, k, columns, sums_at, p.stride.w * p.pitch, end)
            if p.direct != 0:
                continue
            for r in range(lines):
                done, place_at = (
                    results + 4 * (r * count * p.stride.w + p.margin) * p.pitch,
                    to + 4 * r * p.stride.h * p.to.w * to_line,
                )
                if p.out_last == 0:
                    call(p.swap, done, p.pitch, place_at, out_volume, pixels, taken)
                elif p.pitch == out_channels and taken == out_channels:
                    copy_row(done, place_at, pixels * p.pitch)
                else:
                    for i in range(pixels):
                        copy_row(done + 4 * i * p.pitch, place_at + 4 * i * out_channels, taken)


def _plan(
    packed: Packed, images: int, size: Sequence[int], to: Sequence[int], before: Sequence[int], x_last: bool, out_last: bool
) -> Plan:
    groups, ig, og, columns, axes, merged = packed.groups, packed.ig, packed.og, packed.columns, packed.axes, packed.merged
    strides = [axis.stride for axis in axes]
    down, across = (-(-n // s) for n, s in zip(to[1:], strides[1:], strict=True))
    margin = before[2] % strides[2] if merged else 0
    pitch = og if merged else panels_of(min(og, COLS))
    most = min(max(SUMS // (strides[2] * pitch), PANEL), PIXELS)
    cols = even(across, most)
    rows = even(down, max(1, most // cols))
    tasks = images * groups * to[0] * -(-down // rows) * -(-across // cols)
    width = columns if merged else min(COLS, panels_of(even(columns, max(NARROW, columns * tasks // TASKS))))
    along = 1 if merged else strides[2]
    (y_low, high), (x_low, wide) = axes[1].reach(before[1], strides[1]), axes[2].reach(before[2], along)
    count = cols + (1 if margin else 0)
    wide += count - 1
    if wide * ig % 1024 == 0:  # rows a multiple of 4 KB apart fall into the same cache sets
        wide += 1
    line = wide * ig
    plane = (rows + high - 1) * line
    table = [n for pair in zip(axes[0].counts, axes[0].firsts, strict=True) for n in pair]
    runs: dict[tuple[int, ...], np.ndarray] = {}
    for rd, h, v in itertools.product(range(strides[0]), range(strides[1]), range(along)):
        places = rd, (h + before[1]) % strides[1], (v + before[2]) % strides[2]
        counts = tuple(axis.counts[r] for axis, r in zip(axes, places, strict=True))
        k = math.prod(counts) * ig
        if counts not in runs:
            runs[counts] = np.empty(runs_size(math.prod(counts), k), np.int64)
            plan_runs(address(runs[counts]), *counts, plane, axes[1].step * line, axes[2].step * ig, ig)
        at = (axes[1].first(h + before[1]) - y_low) * line + (axes[2].first(v + before[2]) - x_low) * ig if k else 0
        weights = packed.weights[(places[0] * strides[1] + places[1]) * along + (0 if merged else places[2])]
        table += [address(weights), k, at, address(runs[counts])]
    numbers = np.array(table, np.int64)
    at_input = 2 * panels_of(rows * count)
    at_sums = at_input + panels_of(max(axes[0].counts) * plane)
    direct = out_last and not merged and cols >= FEW
    cut = Cut(
        fill.address, swap.address, sums.address, block.address, apply.address, address(packed.bias), address(numbers), groups,
        ig, og, columns, int(merged), int(x_last), int(out_last), int(direct), Axes(*size), Axes(*to), before[0], Axes(*strides),
        axes[0].step,
        y_low, x_low, high, wide, rows, cols, width, margin, pitch, at_input, at_sums,
    )  # fmt: skip
    taps = math.prod(sum(axis.counts) for axis in axes) / math.prod(strides)
    work = images * math.prod(to) * groups * og * (taps * ig + 15)
    room = at_sums + (0 if direct else rows * count * strides[2] * pitch)
    return Plan(cut, (numbers, *runs.values()), tasks * -(-columns // width), work, room)


def conv_transpose(
    x: np.ndarray, packed: Packed, out: np.ndarray, pads: Sequence[int], x_last: bool, out_last: bool, activation: Activation
) -> None:
    """Transposed convolution with its epilogue. See README.md for the shapes."""
    fits("conv_transpose", packed.sizes, (x, out), x_last | out_last << 1)
    if not out.size:
        return
    if packed.filters:
        _channels(x, packed, out, pads, x_last, out_last, activation)
        return
    key = x.shape, out.shape, tuple(pads), x_last, out_last
    plan = packed.plans.get(key)
    if plan is None:
        size, to = x.shape[1:4] if x_last else x.shape[2:], out.shape[1:4] if out_last else out.shape[2:]
        if len(packed.plans) >= PLANS:
            packed.plans.clear()
        plan = packed.plans[key] = _plan(packed, len(out), size, to, pads[::2], x_last, out_last)
    given = plan.cut, spell(activation), address(x), address(out)

    def run(first: int, last: int) -> None:
        own = scratch(plan.room)
        _tiles(*given, address(own), first, last)

    spread(plan.tasks, plan.work, run)


def _channels(
    x: np.ndarray, packed: Packed, out: np.ndarray, pads: Sequence[int], x_last: bool, out_last: bool, activation: Activation
) -> None:
    """A filter a channel: a depthwise convolution for each phase."""
    to, steps = out.shape[1:4] if out_last else out.shape[2:], [axis.stride for axis in packed.axes]
    if x_last != out_last:
        x = np.ascontiguousarray(np.moveaxis(x, -1, 1) if x_last else np.moveaxis(x, 1, -1))
    size = x.shape[1:4] if out_last else x.shape[2:]
    for filters, places in zip(packed.filters, itertools.product(*map(range, steps)), strict=True):
        starts = [-((r - b) // s) for r, b, s in zip(places, pads[::2], steps, strict=True)]
        begins = [q * s + r - b for q, s, r, b in zip(starts, steps, places, pads[::2], strict=True)]
        count = tuple(len(range(b, n, s)) for b, n, s in zip(begins, to, steps, strict=True))
        if 0 in count:
            continue
        axes = tuple(slice(b, None, s) for b, s in zip(begins, steps, strict=True))
        shape = (len(out), *count, out.shape[4]) if out_last else (*out.shape[:2], *count)
        part = out if shape == out.shape else np.empty(shape, np.float32)
        firsts = [axis.firsts[r] for axis, r in zip(packed.axes, places, strict=True)]
        if filters is None:
            assert packed.bias is not None
            part[...] = packed.bias if out_last else packed.bias[:, None, None, None]
            unary(part, part, activation)
        else:
            reach = (d * (k - 1) + n for k, d, n in zip(filters.kernel, filters.dilation, count, strict=True))
            around = tuple(
                n for q, f, end, have in zip(starts, firsts, reach, size, strict=True) for n in (-(q + f), q + f + end - have)
            )
            depthwise(x, filters, part, around, PAD_MODES["zeros"], out_last, None, activation)
        if part is not out:
            out[(slice(None), *axes) if out_last else (slice(None), slice(None), *axes)] = part

"""Depthwise convolution: channels are lanes in channels-last data, neighbouring outputs in channels-first data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..fits import fits, fits_taps, window_of
from ..reference.padding import padded
from ..table import PAD_MODES, Activation
from . import conv as _conv
from ._band import copy_row, fill
from ._depthwise import BANDS, copy_end, pixels, repeat, row_bands, row_first
from ._njit import call, kernel
from ._records import Act, Filter, Image, Space, Span, Taps
from ._threads import address, scratch, spread
from ._tile import BLOCK, RELU, integer, put_integer, table, zero
from ._unary import apply, spell
from ._vector import WIDTH

__all__ = ["depthwise", "depthwise_pack"]

TOGETHER_BELOW = 128  # columns of channels-first rows that are computed as one


class Packed(NamedTuple):
    """One filter a channel: weights (taps, channels) and their transposition, the bias or zeros."""

    last: np.ndarray
    first: np.ndarray
    bias: np.ndarray
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    channels: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Channels of x and of the result."""
        return self.channels, len(self.first)


def depthwise_pack(
    weight__o1dhw: np.ndarray, bias__o: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], channels: int
) -> Packed | _conv.Packed:
    """Packs weight (channels * multiplier, 1, kd, kh, kw); output channel c * multiplier + m reads input channel c."""
    fits_taps("depthwise_pack", (weight__o1dhw, bias__o), stride, dilation, channels)
    o, _, *taps = weight__o1dhw.shape
    if math.prod(taps) > BLOCK:  # so many taps are summed in blocks
        return _conv.conv_pack(weight__o1dhw, bias__o, stride, dilation, channels)
    first = weight__o1dhw.reshape(o, math.prod(taps)).copy()
    bias = np.zeros(o, np.float32) if bias__o is None else bias__o.copy()
    return Packed(np.ascontiguousarray(first.T), first, bias, tuple(taps), tuple(stride), tuple(dilation), channels)


class Plan(NamedTuple):
    """A depthwise convolution; of channels-first data (others have 0) what fills, in_rows x in_cols padded inputs of a plane,
    and how many floats may be read after them."""

    fill: int
    apply: int
    filter: Filter
    channels: int
    out_channels: int
    space: Space
    act: Act
    in_rows: int
    in_cols: int
    behind: int


@kernel
def _first(p: Plan, x: int, out: int, residual: int, scratch: int, first: int, last: int) -> None:
    """Tasks: planes of channels-first outputs; those of their inputs are padded in scratch."""
    s = p.space
    taps, size = s.kd * s.kh * s.kw, p.in_rows * p.in_cols
    flat = scratch + 4 * (s.kd * size + p.behind)
    bound = 0.0 if p.act.code == RELU else -np.inf
    alone = s.d == 1 and s.kd == 1 and s.bd == 0 and s.od == 1
    zero(scratch, s.kd * size + p.behind)  # the border stays so; what is after must be no denormals, which take long
    usual = (s.kh == 3 and s.kw == 3) or s.kh == 5 or s.kh == 7
    bands = usual and s.kd == 1 and s.sw == 1 and s.sh == s.dh and s.oh >= BANDS
    # The columns that are between short rows are computed too, where vectors would not be full otherwise; nothing reads them.
    vectors, together = ((s.oh - 1) * p.in_cols + s.ow + WIDTH - 1) // WIDTH, (s.ow + WIDTH - 1) // WIDTH * s.oh
    if s.sh > 1 or s.sw > 1 or s.ow >= TOGETHER_BELOW or (bands and 3 * vectors > 2 * together):
        vectors = 0
    done = -1
    for plane in range(first, last):
        c = plane % p.out_channels
        source = plane // p.out_channels * p.channels + c * p.channels // p.out_channels
        for oz in range(s.od):
            if alone:
                if source != done:
                    left, right = max(0, -s.bw), min(s.w, p.in_cols - s.bw)
                    for row in range(max(0, -s.bh), min(s.h, p.in_rows - s.bh)):
                        at_x = x + 4 * ((source * s.h + row) * s.w + left)
                        copy_row(at_x, scratch + 4 * ((row + s.bh) * p.in_cols + s.bw + left), max(0, right - left))
                    done = source
            else:
                call(
                    p.fill, 0, Image(x + 4 * source * s.d * s.h * s.w, 1, 1, 1, s.d, s.h, s.w),
                    Span(oz * s.sd - s.bd, s.dd, s.kd), Span(-s.bh, 1, p.in_rows), Span(-s.bw, 1, p.in_cols), scratch,
                )  # fmt: skip
            at = 4 * (plane * s.od + oz) * s.oh * s.ow
            own = Filter(p.filter.weight + 4 * c * taps, p.filter.bias + 4 * c)
            to, extra = out + at, residual + at if residual != 0 else 0
            around = Taps(s.kd, s.kh, s.kw, size, s.dh * p.in_cols, s.dw)
            if vectors > 0:
                n = (s.oh - 1) * p.in_cols + s.ow
                row_first(scratch, own, 0, flat, n, 1, around, -np.inf)
                for oy in range(s.oh):
                    row = 4 * oy * s.ow
                    copy_end(flat + 4 * oy * p.in_cols, extra + row if extra != 0 else 0, to + row, s.ow, bound)
            elif bands:
                row_bands(scratch, own, extra, to, s.oh, s.ow, around, bound)
            else:
                for oy in range(s.oh):
                    row = 4 * oy * s.ow
                    from_, more = scratch + 4 * oy * s.sh * p.in_cols, extra + row if extra != 0 else 0
                    row_first(from_, own, more, to + row, s.ow, s.sw, around, bound)
            if p.act.code > RELU:
                call(p.apply, p.act, to, to, s.oh * s.ow)


@kernel
def _last(p: Plan, x: int, out: int, residual: int, zeros: int, first: int, last: int) -> None:
    """Tasks: rows of channels-last images, read where they are. zeros: a row of them, read where a tap is in the padding."""
    s, c = p.space, p.out_channels
    lines, taps = table(), table()
    bound = 0.0 if p.act.code == RELU else -np.inf
    beside = s.kw if s.dw == 1 else 1
    begin, room = min(max(0, (s.bw + s.sw - 1) // s.sw), s.ow), s.w + s.bw - (s.kw - 1) * s.dw - 1
    end = max(begin, min(s.ow, room // s.sw + 1 if room >= 0 else 0))  # from `begin` to here, no tap is next to the row
    for task in range(first, last):
        rest, oy = task // s.oh, task % s.oh
        image, oz = rest // s.od, rest % s.od
        for z in range(s.kd):
            zi = oz * s.sd - s.bd + z * s.dd
            for r in range(s.kh):
                yi = oy * s.sh - s.bh + r * s.dh
                inside = zi >= 0 and zi < s.d and yi >= 0 and yi < s.h
                put_integer(lines, z * s.kh + r, x + 4 * ((image * s.d + zi) * s.h + yi) * s.w * c if inside else zeros)
        at = 4 * task * s.ow * c
        ox = 0
        while ox < s.ow:
            count = end - begin if ox == begin and begin < end else 1
            for u in range(s.kw):
                xi = ox * s.sw - s.bw + u * s.dw
                for r in range(s.kd * s.kh):
                    put_integer(taps, r * s.kw + u, integer(lines, r) + 4 * xi * c if xi >= 0 and xi < s.w else zeros)
            place = at + 4 * ox * c
            more = residual + place if residual != 0 else 0
            near = beside if count > 1 else 1
            pixels(taps, s.kd * s.kh * s.kw, near, s.sw * c, p.filter, more, out + place, c, count, bound)
            ox += count
        if p.act.code > RELU:
            call(p.apply, p.act, out + at, out + at, s.ow * c)


@kernel
def _repeat(x: int, y: int, times: int, first: int, last: int) -> None:
    """Tasks: values, each of which is written `times` times."""
    repeat(x + 4 * first, y + 4 * first * times, last - first, times)


def depthwise(
    x: np.ndarray,
    packed: Packed | _conv.Packed,
    out: np.ndarray,
    pads: Sequence[int],
    mode: int,
    channels_last: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """As `conv`, with one layout for x, out and residual."""
    fits("depthwise", packed.sizes, (x, out, residual), int(channels_last), window_of(packed, pads))
    if isinstance(packed, _conv.Packed):
        _conv.conv(x, packed, out, pads, mode, channels_last, channels_last, residual, activation)
        return
    if not out.size:
        return
    if mode != PAD_MODES["zeros"] and any(pads):
        x, pads = np.ascontiguousarray(padded(x, 1 if channels_last else 2, pads, mode)), (0,) * 6
    size, to = (x.shape[1:4], out.shape[1:4]) if channels_last else (x.shape[2:], out.shape[2:])
    kernel, stride, dilation, c = packed.kernel, packed.stride, packed.dilation, packed.channels
    space = Space(*size, *to, *kernel, *stride, *dilation, *pads[::2])
    work = 2.0 * out.size * math.prod(kernel)
    if channels_last:
        times = out.shape[4] // c
        if times > 1:
            given, x = x, scratch(x.size * times)
            spread(given.size, 1.0 * x.size, lambda first, last: _repeat(address(given), address(x), times, first, last))
        zeros = np.zeros(max(1, size[2]) * c * times, np.float32)
        filter = Filter(address(packed.last), address(packed.bias))
        rows = Plan(0, apply.address, filter, c * times, c * times, space, spell(activation), 0, 0, 0)

        def run(first: int, last: int) -> None:
            _last(rows, address(x), address(out), address(residual), address(zeros), first, last)

        spread(math.prod(out.shape[:3]), work, run)
        return
    in_rows, in_cols = (
        (n - 1) * s + (k - 1) * t + 1 for n, s, k, t in zip(to[1:], stride[1:], kernel[1:], dilation[1:], strict=True)
    )
    behind = WIDTH * (stride[2] + 1)  # floats that may be read after the last row
    room = kernel[0] * in_rows * in_cols
    filter = Filter(address(packed.first), address(packed.bias))
    planes = Plan(
        fill.address, apply.address, filter, c, out.shape[1], space, spell(activation), in_rows, in_cols, behind
    )  # fmt: skip

    def run_first(first: int, last: int) -> None:
        own = scratch(room + behind + (to[1] * in_cols if stride[1] == stride[2] == 1 else 0) + 2 * WIDTH)
        _first(planes, address(x), address(out), address(residual), address(own), first, last)

    spread(out.shape[0] * out.shape[1], work, run_first)

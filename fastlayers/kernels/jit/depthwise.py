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
    if math.prod(taps) > BLOCK:  # whose sums come in blocks
        return _conv.conv_pack(weight__o1dhw, bias__o, stride, dilation, channels)
    first = weight__o1dhw.reshape(o, math.prod(taps)).copy()
    bias = np.zeros(o, np.float32) if bias__o is None else bias__o.copy()
    return Packed(np.ascontiguousarray(first.T), first, bias, tuple(taps), tuple(stride), tuple(dilation), channels)


@kernel
def _first(
    fill: int, apply: int, x: int, out: int, residual: int, weight: int, bias: int, channels: int, out_channels: int, d: int,
    h: int, w: int,
    od: int, oh: int,
    ow: int, kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, dd: int, dh: int, dw: int, bd: int, bh: int, bw: int,
    code: int, a: float,
    bb: float, in_rows: int, behind: int, in_cols: int, scratch: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: planes of channels-first outputs; those of their inputs are padded in scratch."""
    taps, size = kd * kh * kw, in_rows * in_cols
    flat = scratch + 4 * (kd * size + behind)
    bound = 0.0 if code == RELU else -np.inf
    alone = d == 1 and kd == 1 and bd == 0 and od == 1
    zero(scratch, kd * size + behind)  # the border stays so; what is after must be no denormal numbers, which take long
    usual = (kh == 3 and kw == 3) or kh == 5 or kh == 7
    bands = usual and kd == 1 and sw == 1 and sh == dh and oh >= BANDS
    # The columns that are between short rows are computed too, where vectors would not be full otherwise; nobody reads them.
    vectors, together = ((oh - 1) * in_cols + ow + WIDTH - 1) // WIDTH, (ow + WIDTH - 1) // WIDTH * oh
    if sh > 1 or sw > 1 or ow >= TOGETHER_BELOW or (bands and 3 * vectors > 2 * together):
        vectors = 0
    done = -1
    for plane in range(first, last):
        c = plane % out_channels
        source = plane // out_channels * channels + c * channels // out_channels
        for oz in range(od):
            if alone:
                if source != done:
                    left, right = max(0, -bw), min(w, in_cols - bw)
                    for row in range(max(0, -bh), min(h, in_rows - bh)):
                        at_x = x + 4 * ((source * h + row) * w + left)
                        copy_row(at_x, scratch + 4 * ((row + bh) * in_cols + bw + left), max(0, right - left))
                    done = source
            else:
                call(
                    fill, 0, x + 4 * source * d * h * w, 1, 1, 1, d, h, w, oz * sd - bd, dd, kd, -bh, 1, in_rows, -bw, 1, in_cols,
                    scratch,
                )  # fmt: skip
            at = 4 * (plane * od + oz) * oh * ow
            filter_at, bias_at, to, extra = weight + 4 * c * taps, bias + 4 * c, out + at, residual + at if residual != 0 else 0
            line = dh * in_cols
            if vectors > 0:
                n = (oh - 1) * in_cols + ow
                row_first(scratch, filter_at, bias_at, 0, flat, n, 1, kd, kh, kw, size, line, dw, -np.inf)
                for oy in range(oh):
                    row = 4 * oy * ow
                    copy_end(flat + 4 * oy * in_cols, extra + row if extra != 0 else 0, to + row, ow, bound)
            elif bands:
                row_bands(scratch, filter_at, bias_at, extra, to, oh, ow, line, kh, kw, dw, bound)
            else:
                for oy in range(oh):
                    row = 4 * oy * ow
                    row_first(
                        scratch + 4 * oy * sh * in_cols, filter_at, bias_at, extra + row if extra != 0 else 0, to + row, ow, sw,
                        kd, kh, kw, size, line, dw, bound,
                    )  # fmt: skip
            if code > RELU:
                call(apply, code, a, bb, to, to, oh * ow)


@kernel
def _last(
    apply: int, x: int, out: int, residual: int, weight: int, bias: int, c: int, d: int, h: int, w: int, od: int, oh: int,
    ow: int, kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, dd: int, dh: int, dw: int, bd: int, bh: int, bw: int,
    code: int, a: float, bb: float, zeros: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: rows of channels-last images, read where they are. zeros: a row of them, read where a tap is in the padding."""
    lines, taps = table(), table()
    bound = 0.0 if code == RELU else -np.inf
    beside = kw if dw == 1 else 1
    begin, room = min(max(0, (bw + sw - 1) // sw), ow), w + bw - (kw - 1) * dw - 1
    end = max(begin, min(ow, room // sw + 1 if room >= 0 else 0))  # from `begin` to here, no tap is next to the row
    for task in range(first, last):
        rest, oy = task // oh, task % oh
        image, oz = rest // od, rest % od
        for z in range(kd):
            zi = oz * sd - bd + z * dd
            for r in range(kh):
                yi = oy * sh - bh + r * dh
                inside = zi >= 0 and zi < d and yi >= 0 and yi < h
                put_integer(lines, z * kh + r, x + 4 * ((image * d + zi) * h + yi) * w * c if inside else zeros)
        at = 4 * task * ow * c
        ox = 0
        while ox < ow:
            count = end - begin if ox == begin and begin < end else 1
            for u in range(kw):
                xi = ox * sw - bw + u * dw
                for r in range(kd * kh):
                    put_integer(taps, r * kw + u, integer(lines, r) + 4 * xi * c if xi >= 0 and xi < w else zeros)
            place = at + 4 * ox * c
            pixels(
                taps, kd * kh * kw, beside if count > 1 else 1, sw * c, weight, bias, residual + place if residual != 0 else 0,
                out + place, c, count, bound,
            )  # fmt: skip
            ox += count
        if code > RELU:
            call(apply, code, a, bb, out + at, out + at, ow * c)


@kernel
def _repeat(x: int, y: int, times: int, first: int, last: int) -> None:
    """Tasks: numbers, each of which is written `times` times."""
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
    places = address(out), address(residual)
    sizes = *size, *to, *kernel, *stride, *dilation, *pads[::2], *spell(activation)
    work = 2.0 * out.size * math.prod(kernel)
    if channels_last:
        times = out.shape[4] // c
        if times > 1:
            given, x = x, scratch(x.size * times)
            spread(given.size, 1.0 * x.size, lambda first, last: _repeat(address(given), address(x), times, first, last))
        zeros = np.zeros(max(1, size[2]) * c * times, np.float32)
        weights = address(packed.last), address(packed.bias), c * times

        def run(first: int, last: int) -> None:
            _last(apply.address, address(x), *places, *weights, *sizes, address(zeros), first, last)

        spread(math.prod(out.shape[:3]), work, run)
        return
    in_rows, in_cols = (
        (n - 1) * s + (k - 1) * t + 1 for n, s, k, t in zip(to[1:], stride[1:], kernel[1:], dilation[1:], strict=True)
    )
    behind = WIDTH * (stride[2] + 1)  # floats that may be read after the last row
    room = kernel[0] * in_rows * in_cols

    def run_first(first: int, last: int) -> None:
        own = scratch(room + behind + (to[1] * in_cols if stride[1] == stride[2] == 1 else 0) + 2 * WIDTH)
        _first(
            fill.address, apply.address, address(x), *places, address(packed.first), address(packed.bias), c, out.shape[1],
            *sizes, in_rows, behind, in_cols, address(own), first, last,
        )  # fmt: skip

    spread(out.shape[0] * out.shape[1], work, run_first)

"""Depthwise convolution: channels are lanes in channels-last data, neighbouring outputs in channels-first data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..reference.padding import padded
from ..table import PAD_MODES, Activation
from . import conv as _conv
from ._band import copy_row, fill
from ._njit import call, emitted, kernel
from ._threads import address, scratch, spread
from ._tile import BLOCK, zero
from ._unary import apply, spell
from ._vector import REGISTERS, WIDTH, Emit, V

__all__ = ["depthwise", "depthwise_pack"]

TOGETHER = 4  # outputs that share a weight's load
TOGETHER_BELOW = 128  # columns of channels-first rows that are computed as one
KNOWN = ((3, 3), (5, 5), (7, 7))  # windows that are written out
KEPT = 9  # weights that stay in registers beside the sums of channels-last outputs
ROWS = 8  # rows of one task of channels-last data


class Packed(NamedTuple):
    """One filter a channel: weights (taps, channels) and their transposition, the bias or zeros."""

    last: np.ndarray
    first: np.ndarray
    bias: np.ndarray
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    channels: int
    several: _conv.Packed | None  # of more than one filter a channel, for channels-last data


def depthwise_pack(
    weight__o1dhw: np.ndarray, bias__o: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], channels: int
) -> Packed | _conv.Packed:
    """Packs weight (channels * multiplier, 1, kd, kh, kw); output channel c * multiplier + m reads input channel c."""
    o, _, *taps = weight__o1dhw.shape
    if math.prod(taps) > BLOCK:  # whose sums come in blocks
        return _conv.conv_pack(weight__o1dhw, bias__o, stride, dilation, channels)
    several = None if o == channels else _conv.conv_pack(weight__o1dhw, bias__o, stride, dilation, channels)
    first = weight__o1dhw.reshape(o, math.prod(taps)).copy()
    bias = np.zeros(o, np.float32) if bias__o is None else bias__o.copy()
    return Packed(np.ascontiguousarray(first.T), first, bias, tuple(taps), tuple(stride), tuple(dilation), channels, several)


def _each_tap(
    e: Emit, known: tuple[int, int] | None, sizes: tuple[V, V, V], steps: tuple[V, V, V], take: Callable[[V, int | None], None]
) -> None:
    """Calls take(offset, number of the tap) for every tap in order: known ones are written out, else a loop, with None."""
    if known is None:
        with e.loop(0, sizes[0]) as z, e.loop(0, sizes[1]) as r, e.loop(0, sizes[2]) as t:
            take(z * steps[0] + r * steps[1] + t * steps[2], None)
    else:
        for i, j in itertools.product(range(known[0]), range(known[1])):
            take(steps[1] * i + steps[2] * j, i * known[1] + j)


def _shape(e: Emit, kd: V, kh: V, kw: V) -> V:
    """The number of a window for `switch`: that of one of KNOWN, or 0."""
    number = e.i64(0)
    for high, wide in KNOWN:
        number = e.select(kd.equals(1) & kh.equals(high) & kw.equals(wide), e.i64(high * 16 + wide), number)
    return number


@emitted
def _row_last(
    e: Emit, x: V, weight: V, bias: V, residual: V, y: V, c: V, count: V, pixel: V, kd: V, kh: V, kw: V, plane: V, line: V, tap: V
) -> None:
    """A row of outputs, their pixels `pixel` floats apart."""

    def case(known: tuple[int, int] | None) -> Callable[[], None]:
        def lanes(i: V, mask: V | None) -> None:
            kept: list[V] = []
            if known is not None and known[0] * known[1] <= KEPT:
                kept = [e.load(e.at(weight, c * t + i), mask=mask) for t in range(known[0] * known[1])]

            def outputs(first: V, number: int) -> None:
                sums = [e.var(e.f(0.0)) for _ in range(number)]
                w_at = e.var(e.at(weight, i))

                def take(offset: V, tap_number: int | None) -> None:
                    if kept and tap_number is not None:
                        w = kept[tap_number]
                    else:
                        w = e.load(w_at.get(), mask=mask)
                        w_at.set(e.at(w_at.get(), c))
                    at = e.at(x, offset + first * pixel + i)
                    for p in range(number):
                        sums[p].set(e.fma(w, e.load(e.at(at, pixel * p), mask=mask), sums[p].get()))

                _each_tap(e, known, (kd, kh, kw), (plane, line, tap), take)
                b = e.load(e.at(bias, i), mask=mask)
                for p in range(number):
                    place = (first + p) * c + i
                    sums[p].set(sums[p].get() + b)
                    with e.when(residual.differs(0)):
                        sums[p].set(sums[p].get() + e.load(e.at(residual, place), mask=mask))
                    e.store(e.at(y, place), sums[p].get(), mask)

            whole = count & -TOGETHER
            with e.loop(0, whole, TOGETHER) as first:
                outputs(first, TOGETHER)
            with e.loop(whole, count) as first:
                outputs(first, 1)

        return lambda: e.vectors(c, lanes)

    cases = {high * 16 + wide: case((high, wide)) for high, wide in KNOWN}
    e.switch(_shape(e, kd, kh, kw), {0: case(None), **cases})


@emitted
def _row_first(
    e: Emit, x: V, weight: V, bias: V, residual: V, y: V, count: V, stride: V, kd: V, kh: V, kw: V, plane: V, line: V, tap: V
) -> None:
    """A row of outputs of one channel; x goes on behind what it reads."""

    def case(step: int, known: tuple[int, int] | None) -> Callable[[], None]:
        def emit() -> None:
            few = known is not None and known[0] * known[1] <= REGISTERS - 6
            kept = [e.broadcast(e.at(weight, t)) for t in range(known[0] * known[1])] if known is not None and few else []
            b = e.broadcast(bias)

            def body(i: V, mask: V | None) -> None:
                total = e.var(e.f(0.0))
                w_at = e.var(weight)

                def take(offset: V, tap_number: int | None) -> None:
                    if tap_number is not None:
                        w = kept[tap_number] if kept else e.broadcast(e.at(weight, tap_number))
                    else:
                        w = e.broadcast(w_at.get())
                        w_at.set(e.at(w_at.get(), 1))
                    at = e.at(x, offset + i * stride)
                    total.set(e.fma(w, e.strided(at, step if step < 3 else stride), total.get()))

                _each_tap(e, known, (kd, kh, kw), (plane, line, tap), take)
                total.set(total.get() + b)
                with e.when(residual.differs(0)):
                    total.set(total.get() + e.load(e.at(residual, i), mask=mask))
                e.store(e.at(y, i), total.get(), mask)

            e.vectors(count, body)

        return emit

    shape = _shape(e, kd, kh, kw)
    number = e.select(stride > 2, e.i64(3), e.select(stride.equals(2), shape * 4 + 2, shape * 4 + 1))
    cases = {step: case(step, None) for step in (1, 2, 3)}
    cases |= {(high * 16 + wide) * 4 + step: case(step, (high, wide)) for high, wide in KNOWN for step in (1, 2)}
    e.switch(number, cases)


@emitted
def _copy_add(e: Emit, x: V, residual: V, y: V, n: V) -> None:
    """y = x + residual, which may be none."""

    def body(i: V, mask: V | None) -> None:
        value = e.var(e.load(e.at(x, i), mask=mask))
        with e.when(residual.differs(0)):
            value.set(value.get() + e.load(e.at(residual, i), mask=mask))
        e.store(e.at(y, i), value.get(), mask)

    e.vectors(n, body)


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
    alone = d == 1 and kd == 1 and bd == 0 and od == 1
    if alone:
        zero(scratch, size)  # the border stays so
    # The columns that lie between rows are computed too, where vectors would not be full otherwise; nobody reads them.
    together = sh == 1 and sw == 1 and ow < TOGETHER_BELOW and oh > 1
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
            filter_at, bias_at = weight + 4 * c * taps, bias + 4 * c
            if together:
                n = (oh - 1) * in_cols + ow
                _row_first(scratch, filter_at, bias_at, 0, flat, n, 1, kd, kh, kw, size, dh * in_cols, dw)
                for oy in range(oh):
                    row = at + 4 * oy * ow
                    _copy_add(flat + 4 * oy * in_cols, residual + row if residual != 0 else 0, out + row, ow)
            else:
                for oy in range(oh):
                    row = at + 4 * oy * ow
                    _row_first(
                        scratch + 4 * oy * sh * in_cols, filter_at, bias_at, residual + row if residual != 0 else 0, out + row,
                        ow, sw,
                        kd, kh, kw, size, dh * in_cols, dw,
                    )  # fmt: skip
            if code != 0:
                call(apply, code, a, bb, out + at, out + at, oh * ow)


@kernel
def _last(
    fill: int, apply: int, x: int, out: int, residual: int, weight: int, bias: int, c: int, d: int, h: int, w: int, od: int,
    oh: int,
    ow: int, kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, dd: int, dh: int, dw: int, bd: int, bh: int, bw: int,
    code: int, a: float,
    bb: float, in_rows: int, in_cols: int, scratch: int, in_place: int, rows: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: `rows` rows of channels-last images."""
    row_tasks = (oh + rows - 1) // rows
    for task in range(first, last):
        rest, y0 = task // row_tasks, task % row_tasks * rows
        image, oz = rest // od, rest % od
        high = min(rows, oh - y0)
        base = x + 4 * image * d * h * w * c
        if in_place != 0:
            base += 4 * (oz * sd * h + y0 * sh) * w * c
            plane, line = dd * h * w * c, w * c
        else:
            call(fill, 0, base, 1, c, c, d, h, w, oz * sd - bd, dd, kd, y0 * sh - bh, 1, in_rows, -bw, 1, in_cols, scratch)
            base, plane, line = scratch, in_rows * in_cols * c, in_cols * c
        at = 4 * ((image * od + oz) * oh + y0) * ow * c
        for oy in range(high):
            row = at + 4 * oy * ow * c
            _row_last(
                base + 4 * oy * sh * line, weight, bias, residual + row if residual != 0 else 0, out + row, c, ow, sw * c, kd,
                kh, kw,
                plane, dh * line, dw * c,
            )  # fmt: skip
            if code != 0:
                call(apply, code, a, bb, out + row, out + row, ow * c)


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
    if isinstance(packed, Packed) and packed.several is not None and channels_last:
        packed = packed.several
    if isinstance(packed, _conv.Packed):
        _conv.conv(x, packed, out, pads, mode, channels_last, channels_last, residual, activation)
        return
    if not out.size:
        return
    if mode != PAD_MODES["zeros"] and any(pads):
        x, pads = np.ascontiguousarray(padded(x, 1 if channels_last else 2, pads, mode)), (0,) * 6
    size, to = (x.shape[1:4], out.shape[1:4]) if channels_last else (x.shape[2:], out.shape[2:])
    kernel, stride, dilation, c = packed.kernel, packed.stride, packed.dilation, packed.channels
    rows = min(ROWS, to[1]) if channels_last else to[1]
    in_rows, in_cols = (
        (n - 1) * s + (k - 1) * t + 1 for n, s, k, t in zip((rows, to[2]), stride[1:], kernel[1:], dilation[1:], strict=True)
    )
    behind = WIDTH * (stride[2] + 1)  # floats that may be read behind the last row
    places = fill.address, apply.address, address(x), address(out), address(residual)
    sizes = *size, *to, *kernel, *stride, *dilation, *pads[::2], *spell(activation), in_rows
    work = 2.0 * out.size * math.prod(kernel)
    room = kernel[0] * in_rows * in_cols
    if channels_last:
        in_place = not any(pads)

        def run(first: int, last: int) -> None:
            own = scratch(0 if in_place else room * c)
            _last(
                *places, address(packed.last), address(packed.bias), c, *sizes, in_cols, address(own), int(in_place), rows,
                first, last
            )  # fmt: skip

        spread(x.shape[0] * to[0] * -(-to[1] // rows), work, run)
        return

    def run_first(first: int, last: int) -> None:
        own = scratch(room + behind + (to[1] * in_cols if stride[1] == stride[2] == 1 else 0) + 2 * WIDTH)
        _first(
            *places, address(packed.first), address(packed.bias), c, out.shape[1], *sizes, behind, in_cols, address(own), first,
            last
        )  # fmt: skip

    spread(out.shape[0] * out.shape[1], work, run_first)

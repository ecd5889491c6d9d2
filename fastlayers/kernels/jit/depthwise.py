"""Depthwise convolution: channels are lanes in channels-last data, neighbouring outputs in channels-first data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..reference.padding import padded
from ..table import PAD_MODES, Activation
from . import conv as _conv
from ._band import fill
from ._njit import call, emitted, kernel
from ._threads import address, scratch, spread
from ._unary import apply, spell
from ._vector import WIDTH, Emit, V

__all__ = ["depthwise", "depthwise_pack"]

TOGETHER = 4  # outputs that share a weight's load
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


def depthwise_pack(
    weight__o1dhw: np.ndarray, bias__o: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], channels: int
) -> Packed | _conv.Packed:
    """Packs weight (channels * multiplier, 1, kd, kh, kw); output channel c * multiplier + m reads input channel c."""
    o, _, *taps = weight__o1dhw.shape
    if o != channels or math.prod(taps) > 256:
        return _conv.conv_pack(weight__o1dhw, bias__o, stride, dilation, channels)
    first = weight__o1dhw.reshape(o, math.prod(taps)).copy()
    bias = np.zeros(o, np.float32) if bias__o is None else bias__o.copy()
    return Packed(np.ascontiguousarray(first.T), first, bias, tuple(taps), tuple(stride), tuple(dilation), channels)


@emitted
def _row_last(
    e: Emit, x: V, weight: V, bias: V, residual: V, y: V, c: V, count: V, pixel: V, kd: V, kh: V, kw: V, plane: V, line: V, tap: V
) -> None:
    """A row of outputs, their pixels `pixel` floats apart."""

    def lanes(i: V, mask: V | None) -> None:
        def outputs(first: V, number: int) -> None:
            sums = [e.var(e.f(0.0)) for _ in range(number)]
            w_at = e.var(e.at(weight, i))
            with e.loop(0, kd) as z, e.loop(0, kh) as r, e.loop(0, kw) as t:
                w = e.load(w_at.get(), mask=mask)
                w_at.set(e.at(w_at.get(), c))
                at = e.at(x, z * plane + r * line + t * tap + first * pixel + i)
                for p in range(number):
                    sums[p].set(e.fma(w, e.load(e.at(at, pixel * p), mask=mask), sums[p].get()))
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

    e.vectors(c, lanes)


@emitted
def _row_first(
    e: Emit, x: V, weight: V, bias: V, residual: V, y: V, count: V, stride: V, kd: V, kh: V, kw: V, plane: V, line: V, tap: V
) -> None:
    """A row of outputs of one channel; x goes on behind what it reads."""

    def case(step: int) -> Callable[[], None]:
        def body(i: V, mask: V | None) -> None:
            total = e.var(e.f(0.0))
            w_at = e.var(weight)
            with e.loop(0, kd) as z, e.loop(0, kh) as r, e.loop(0, kw) as t:
                at = e.at(x, z * plane + r * line + t * tap + i * stride)
                total.set(e.fma(e.broadcast(w_at.get()), e.strided(at, step if step < 3 else stride), total.get()))
                w_at.set(e.at(w_at.get(), 1))
            total.set(total.get() + e.broadcast(bias))
            with e.when(residual.differs(0)):
                total.set(total.get() + e.load(e.at(residual, i), mask=mask))
            e.store(e.at(y, i), total.get(), mask)

        return lambda: e.vectors(count, body)

    e.switch(e.select(stride > 2, e.i64(3), stride), {step: case(step) for step in (1, 2, 3)})


@kernel
def _first(
    fill: int, apply: int, x: int, out: int, residual: int, weight: int, bias: int, channels: int, d: int, h: int, w: int,
    od: int, oh: int,
    ow: int, kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, dd: int, dh: int, dw: int, bd: int, bh: int, bw: int,
    code: int, a: float,
    bb: float, in_rows: int, in_cols: int, scratch: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: planes of channels-first images, padded in scratch."""
    taps = kd * kh * kw
    for plane in range(first, last):
        c = plane % channels
        for oz in range(od):
            call(
                fill, 0, x + 4 * plane * d * h * w, 1, 1, 1, d, h, w, oz * sd - bd, dd, kd, -bh, 1, in_rows, -bw, 1, in_cols,
                scratch
            )  # fmt: skip
            at = 4 * (plane * od + oz) * oh * ow
            for oy in range(oh):
                _row_first(
                    scratch + 4 * oy * sh * in_cols, weight + 4 * c * taps, bias + 4 * c,
                    residual + at + 4 * oy * ow if residual != 0 else 0, out + at + 4 * oy * ow, ow, sw, kd, kh, kw,
                    in_rows * in_cols,
                    dh * in_cols, dw,
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
    given = (
        fill.address, apply.address, address(x), address(out), address(residual),
        address(packed.last if channels_last else packed.first),
        address(packed.bias), c, *size, *to, *kernel, *stride, *dilation, *pads[::2], *spell(activation), in_rows, in_cols,
    )  # fmt: skip
    work = 2.0 * out.size * math.prod(kernel)
    room = kernel[0] * in_rows * in_cols
    if channels_last:
        in_place = not any(pads)

        def run(first: int, last: int) -> None:
            own = scratch(0 if in_place else room * c)
            _last(*given, address(own), int(in_place), rows, first, last)

        spread(x.shape[0] * to[0] * -(-to[1] // rows), work, run)
        return

    def run_first(first: int, last: int) -> None:
        own = scratch(room + WIDTH * (stride[2] + 1) + WIDTH)
        _first(*given, address(own), first, last)

    spread(x.shape[0] * c, work, run_first)

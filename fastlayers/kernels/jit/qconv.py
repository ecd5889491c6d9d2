"""Convolutions and products of bytes over the packed product of `_qtile`.

A pixel's taps are runs of bytes in padded, channels-last data, channels in whole quads. int8 inputs are brought there as x + 128,
uint8 weights are packed as w - 128, and the zero points move along. Padding holds x's zero point; what zero points add to sums is
known before they are made, but for the sums of a row's bytes. Kernels with one channel a group, and as many groups as channels,
multiply taps with vectors of channels instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..fits import fits, fits_taps, window_of
from ..table import KINDS
from ._njit import call, emitted, kernel
from ._qtile import Finish, quad_rows, tap_channels
from ._records import Axes, Rows
from ._threads import address, spread
from ._tile import PANEL, panels_of, put_integer
from ._vector import I8, I32, Emit, V

__all__ = ["qconv", "qconv_pack"]

ROWS = 64  # pixels of one task
INT8 = KINDS["int8"]


class Packed(NamedTuple):
    """Weights in panels [groups][panels][quads][16][4], or int16 [taps][whole panels of channels], zero points taken away; the
    rest has [groups][whole panels] values."""

    panels: np.ndarray
    sums: np.ndarray
    bias: np.ndarray
    zero: np.ndarray | None
    factor: np.ndarray | None
    shift: np.ndarray | None
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    ig: int
    og: int
    deep: bool

    @property
    def sizes(self) -> tuple[int, int]:
        """Channels of x and of the result."""
        o = self.groups * self.og
        return o if self.deep else self.groups * self.ig, o


def _wide(values: np.ndarray | None, dtype: type, groups: int) -> np.ndarray | None:
    """Values of every channel, up to whole panels."""
    if values is None:
        return None
    each = len(values) // groups
    wide: np.ndarray = np.zeros((groups, panels_of(each)), dtype)
    wide[:, :each] = values.reshape(groups, each)
    return wide


def qconv_pack(
    weight__oidhw: np.ndarray,
    zero__o: np.ndarray | None,
    factor__o: np.ndarray | None,
    bias__o: np.ndarray | None,
    shift__o: np.ndarray | None,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Packed:
    """Weights (o, i / groups, kd, kh, kw), int8 or uint8, with their zero points of the same dtype or None, the factors of their
    sums, biases, and what is added to float results; as the reference has them."""
    fits_taps("qconv_pack", (weight__oidhw, zero__o, factor__o, bias__o, shift__o), stride, dilation, groups)
    o, ig, *kernel = weight__oidhw.shape
    og, flip = o // groups, 128 if weight__oidhw.dtype == np.uint8 else 0
    wide = weight__oidhw.transpose(0, 2, 3, 4, 1).astype(np.int32) - flip
    zero = np.full(o, -flip, np.int32) if zero__o is None else zero__o.astype(np.int32) - flip
    taps = int(np.prod(kernel))
    deep = ig == 1 and og == 1 and groups > 1
    if deep:
        wide, zero = wide - zero.reshape(-1, 1, 1, 1, 1), np.zeros(0, np.int32)
        groups, og = 1, o
    if deep:
        parts = np.zeros((taps, panels_of(o)), np.int16)
        parts[:, :o] = wide.reshape(o, taps).T
    else:
        parts = _panels(wide, groups, og, taps, ig)
    bias = np.zeros(o, np.int32) if bias__o is None else bias__o
    rest = (_wide(v, t, groups) for v, t in ((wide.sum((1, 2, 3, 4)), np.int64), (bias, np.int64)))
    sums, biases = (v for v in rest if v is not None)
    return Packed(
        parts, sums, biases, _wide(zero, np.int32, groups) if zero.any() else None, _wide(factor__o, np.float32, groups),
        _wide(shift__o, np.float32, groups), tuple(kernel), tuple(stride), tuple(dilation), groups, ig, og, deep,
    )  # fmt: skip


def _panels(wide: np.ndarray, groups: int, og: int, taps: int, ig: int) -> np.ndarray:
    """Weights (o, taps, i) in panels, which begin at a line of the cache."""
    quads = -(-ig // 4)
    ordered = np.zeros((groups, panels_of(og), taps, quads * 4), np.int8)
    ordered[:, :og, :, :ig] = wide.reshape(groups, og, taps, ig)
    parts = ordered.reshape(groups, panels_of(og) // PANEL, PANEL, taps * quads, 4).transpose(0, 1, 3, 2, 4)
    panels: np.ndarray = np.empty(parts.size + 64, np.int8)
    panels = panels[-address(panels) % 64 :][: parts.size].reshape(parts.shape)
    panels[...] = parts
    return panels


@emitted
def _bytes(e: Emit, x: V, y: V, n: V, flip: V) -> None:
    """y = x with some bits flipped, n bytes."""
    kind, other = e.vector(I8), e.splat(e.convert(flip, I8, "trunc"))
    e.vectors(n, lambda i, mask: e.store(y + i, e.load(x + i, kind, mask) ^ other, mask))


@emitted
def _quads(e: Emit, x: V, x_step: V, y: V, y_step: V, n: V, flip: V, keep: V, fill: V) -> None:
    """Four bytes of n positions each, some bits flipped; those that `keep` leaves out are `fill`'s."""
    turned, kept, filled = (e.convert(bits, I32, "trunc") for bits in (flip * 0x01010101, keep, fill))
    with e.loop(0, n) as i:
        e.store(y + i * y_step, ((e.load(x + i * x_step, I32) ^ turned) & kept) | filled)


@emitted
def _byte(e: Emit, x: V, y: V, flip: V) -> None:
    e.store(y, e.load(x, I8) ^ e.convert(flip, I8, "trunc"))


class Frame(NamedTuple):
    """Images of planes x h x w pixels into padded ones, before which are so many positions, whose groups have `room` bytes.
    flip: bits that are flipped, point: what fills up."""

    planes: int
    h: int
    w: int
    groups: int
    ig: int
    room: int
    flip: int
    point: int
    before: Axes
    to: Axes


class Pixels(NamedTuple):
    """Pixels of the result, and bytes from one to the next in the padded input, whose images have so many."""

    to: Axes
    step: Axes
    image: int


class Deep(NamedTuple):
    """Kernels with one channel a group: `ntaps` taps, their positions in bytes."""

    pixels: Pixels
    channels: int
    taps: int
    ntaps: int
    weights: int
    wide: int
    end: Finish


class Plan(NamedTuple):
    """The product of n images with panels; `group`: bytes of a group in a pixel."""

    quad_rows: int
    n: int
    pixels: Pixels
    group: int
    groups: int
    runs: int
    nruns: int
    quads: int
    panels: int
    og: int
    wide: int
    zero: int
    end: Finish


@kernel
def _lay(p: Frame, x: int, to: int, first: int, last: int) -> None:
    """Tasks: rows of images."""
    for row in range(first, last):
        y, plane = row % p.h, row // p.h
        z, image = plane % p.planes, plane // p.planes
        from_ = x + row * p.w * p.groups * p.ig
        at = to + (((image * p.to.d + z + p.before.d) * p.to.h + y + p.before.h) * p.to.w + p.before.w) * p.groups * p.room
        if p.room == p.ig:
            _bytes(from_, at, p.w * p.groups * p.ig, p.flip)
        else:
            # All quads but the very last one of a row may read what is after their channels.
            places, rest = p.w * p.groups, p.ig % 4
            for c in range(0, p.ig, 4):
                left = min(4, p.ig - c)
                keep, fill = (1 << 8 * left) - 1, 0x01010101 * p.point & ~((1 << 8 * left) - 1)
                _quads(from_ + c, p.ig, at + c, p.room, places - (1 if left < 4 else 0), p.flip, keep, fill)
            for i in range(places - 1, places):
                for c in range(p.ig - rest, p.ig):
                    _byte(from_ + i * p.ig + c, at + i * p.room + c, p.flip)


@kernel
def _deep(p: Deep, x: int, out: int, first: int, last: int) -> None:
    """Tasks: rows of pixels."""
    s = p.pixels
    for row in range(first, last):
        place = row % s.to.h * s.step.h + row // s.to.h % s.to.d * s.step.d + row // (s.to.h * s.to.d) * s.image
        for i in range(s.to.w):
            to = out + (row * s.to.w + i) * p.channels * p.end.item
            tap_channels(x + place + i * s.step.w, p.taps, p.ntaps, p.weights, p.wide, p.channels, p.end, to)


@kernel
def _qconv(p: Plan, x: int, out: int, own: int, sums: int, first: int, last: int) -> None:
    """Tasks: ROWS pixels, all groups."""
    s, end = p.pixels, p.end
    pixels = p.n * s.to.d * s.to.h * s.to.w
    line = p.groups * p.og * end.item
    for task in range(first, last):
        begin = task * ROWS
        count = min(ROWS, pixels - begin)
        for g in range(p.groups):
            for i in range(count):
                pixel = begin + i
                row, of_image = pixel // s.to.w, pixel // (s.to.w * s.to.h * s.to.d)
                place = pixel % s.to.w * s.step.w + row % s.to.h * s.step.h + row // s.to.h % s.to.d * s.step.d
                put_integer(own, i, x + of_image * s.image + place + g * p.group)
            at = 4 * g * p.wide
            here = Finish(
                end.constant + at, end.factor + at if end.factor != 0 else 0, end.shift + at if end.shift != 0 else 0, end.scale,
                end.value, end.target, end.item,
            )  # fmt: skip
            call(
                p.quad_rows, Rows(own, p.runs, p.nruns), count, p.quads, p.panels + g * p.wide * p.quads * 4, p.og,
                p.zero + at if p.zero != 0 else 0, sums, here, out + begin * line + g * p.og * end.item, line,
            )  # fmt: skip


def qconv(
    x: np.ndarray,
    packed: Packed,
    x_zero: np.ndarray | None,
    x_scale: np.ndarray | None,
    out: np.ndarray,
    pads: Sequence[int],
    x_last: bool,
    out_last: bool,
    source: int,
    target: int,
    value: int,
) -> None:
    """out = the convolution of (x - x_zero) with the weights, + bias, of the kind `target`; arguments as the reference's."""
    fits("qconv", packed.sizes, (x, x_zero, x_scale, out), x_last | out_last << 1, window_of(packed, pads))
    if not out.size:
        return
    given = x if x_last else np.ascontiguousarray(np.moveaxis(x, 1, 4))
    n, d, h, w, _ = given.shape
    result = out if out_last else np.empty((n, *out.shape[2:], out.shape[1]), out.dtype)
    groups, ig, og = packed.groups, packed.ig, packed.og
    flip = 128 if source == INT8 else 0
    point = flip if x_zero is None else (int(x_zero.reshape(-1)[0]) + flip) & 255
    room, wide = og if packed.deep else -(-ig // 4) * 4, panels_of(og)
    ig = og if packed.deep else ig
    size = [s + int(pads[2 * i]) + int(pads[2 * i + 1]) for i, s in enumerate((d, h, w))]
    if flip or room != ig or any(pads):
        padded = np.full((n, *size, groups * room), point, np.uint8)
        before = Axes(int(pads[0]), int(pads[2]), int(pads[4]))
        frame = Frame(d, h, w, groups, ig, room, flip, point, before, Axes(*size))
        lay = frame, address(given), address(padded)
        spread(n * d * h, 1.0 * given.size, lambda first, last: _lay(*lay, first, last))
        given = padded
    pixel = groups * room
    steps = size[1] * size[2] * pixel, size[2] * pixel, pixel
    taps = [
        sum(t * dilation * step for t, dilation, step in zip(tap, packed.dilation, steps, strict=True))
        for tap in np.ndindex(*packed.kernel)
    ]
    each = room // 4
    if groups == 1 and not packed.deep and packed.dilation[2] == 1 and packed.kernel[2] > 1:  # neighbours are one run
        taps, each = taps[:: packed.kernel[2]], each * packed.kernel[2]
    quads = 1 if packed.deep else packed.panels.shape[2]
    constant = packed.bias - point * packed.sums
    if packed.zero is not None:
        constant = constant + point * quads * 4 * packed.zero.astype(np.int64)  # what fills up quads is x's zero point too
    constant = constant.astype(np.int32)
    if packed.factor is None:
        target = KINDS["int32"]
    item = out.dtype.itemsize
    space = result.shape[1:4]
    strides = Axes(*(s * step for s, step in zip(packed.stride, steps, strict=True)))
    places = Pixels(Axes(*space), strides, size[0] * steps[0])
    end = Finish(
        address(constant), address(packed.factor), address(packed.shift),
        1.0 if x_scale is None else float(x_scale.reshape(-1)[0]), int(value), target, item,
    )  # fmt: skip
    pixels = n * int(np.prod(space))
    if packed.deep:
        table = np.array(taps, np.int64)
        each_row = Deep(places, og, address(table), len(table), address(packed.panels), wide, end)
        work = 4.0 * result.size * len(table)
        spread(n * space[0] * space[1], work, lambda first, last: _deep(each_row, address(given), address(result), first, last))
    else:
        runs = np.array([(tap, each) for tap in taps], np.int64).reshape(-1, 2)
        plan = Plan(
            quad_rows.address, n, places, room, groups, address(runs), len(runs), quads, address(packed.panels), og, wide,
            address(packed.zero), end,
        )  # fmt: skip
        work = 1.0 * pixels * groups * og * quads
        spread(-(-pixels // ROWS), work, lambda first, last: _blocks(plan, given, result, first, last))
    if not out_last:
        out[...] = np.moveaxis(result, 4, 1)


def _blocks(plan: Plan, x: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    own, sums = np.empty(ROWS, np.int64), np.empty(ROWS, np.int32)
    _qconv(plan, address(x), address(out), address(own), address(sums), first, last)

"""Conversions to quantized values and back, tables of bytes, sums and products of quantized arrays, pools of bytes.

Rounding is to the nearest, half to even; NaN becomes the least number. Every step is rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ..quantized_add import factors
from ..reference import quantize as _reference
from ..table import BINARY, KINDS, REDUCE
from ._mix import number
from ._njit import emitted, kernel
from ._records import Axes, Int, Real, Steps
from ._threads import address, spread
from ._tile import integer
from ._vector import F32, I8, I32, Emit, Float, V
from .pooling import places, tables

__all__ = ["dequantize", "dynamic_quantize", "lookup", "qbinary", "qpool", "quantize"]

TASK = 1 << 14  # values of one task
I16 = ir.IntType(16)
_WHOLE = {"uint8": (I8, "zext", 0, 255), "int8": (I8, "sext", -128, 127), "uint16": (I16, "zext", 0, 65535),
          "int16": (I16, "sext", -32768, 32767)}  # fmt: skip
_ADD, _MULTIPLY = BINARY["add"], BINARY["multiply"]


def _steps(e: Emit, y: V, zero: V, kind: str) -> V:
    """round(y) + zero, cut off, as values of the dtype; zero in 32 bits, but no larger than such values."""
    element, _, low, high = _WHOLE[kind]
    least, most = (e.convert(e.constant(zero.kind, end) - zero, F32, "sitofp") for end in (low, high))
    value = e.least(most, e.most(least, e.nearest(y)))
    value = e.select(y.equals(y), value, least)
    return e.convert(e.convert(value, I32, "fptosi") + zero, element, "trunc")


def _read(e: Emit, place: V, i: V, mask: V | None, kind: str) -> V:
    """Values of a kind in 32 bits."""
    if kind == "int32":
        return e.load(e.at(place, i), e.vector(I32), mask)
    element, how = _WHOLE[kind][:2]
    return e.convert(e.load(e.at(place, i, element.width // 8), e.vector(element), mask), I32, how)


def _size(kind: str) -> int:
    return 4 if kind == "int32" else int(_WHOLE[kind][0].width) // 8


def _both(e: Emit, each: V, body: Callable[[bool], None]) -> None:
    """body for channels whose number is that of the column, or for one channel."""
    e.switch(each, {0: lambda: body(False), 1: lambda: body(True)})


def _channel(e: Emit, place: V, kind: Any, own: bool, i: V, mask: V | None) -> V:
    return e.load(e.at(place, i), e.vector(kind), mask, e.constant(e.vector(kind), 1)) if own else e.splat(e.load(place, kind))


@emitted
def _quantize(e: Emit, x: V, step: V, zero: V, each: V, y: V, n: V, target: V) -> None:
    def case(kind: str, own: bool) -> None:
        def body(i: V, mask: V | None) -> None:
            value = e.load(e.at(x, i), mask=mask) / _channel(e, step, F32, own, i, mask)
            e.store(e.at(y, i, _size(kind)), _steps(e, value, _channel(e, zero, I32, own, i, mask), kind), mask)

        e.vectors(n, body)

    _both(e, each, lambda own: e.switch(target, {KINDS[kind]: partial(case, kind, own) for kind in _WHOLE}))


@emitted
def _dequantize(e: Emit, x: V, step: V, zero: V, each: V, y: V, n: V, source: V) -> None:
    def case(kind: str, own: bool) -> None:
        def body(i: V, mask: V | None) -> None:
            whole = _read(e, x, i, mask, kind) - _channel(e, zero, I32, own, i, mask)
            e.store(e.at(y, i), e.convert(whole, F32, "sitofp") * _channel(e, step, F32, own, i, mask), mask)

        e.vectors(n, body)

    _both(e, each, lambda own: e.switch(source, {KINDS[kind]: partial(case, kind, own) for kind in (*_WHOLE, "int32")}))


class Conversion(NamedTuple):
    """Rows of `cols` values of `channels` channels in turns or, if `each`, with a channel a column; `back`: from values of the
    kind. Rows are cut into pieces."""

    back: int
    kind: int
    step: int
    zero: int
    x_item: int
    out_item: int
    channels: int
    cols: int
    each: int
    pieces: int


@kernel
def _convert(p: Conversion, x: int, out: int, first: int, last: int) -> None:
    """Tasks: pieces of rows."""
    for task in range(first, last):
        row, start = task // p.pieces, task % p.pieces * TASK
        n, c = min(TASK, p.cols - start), 4 * (start if p.each != 0 else row % p.channels)
        at = row * p.cols + start
        if p.back != 0:
            _dequantize(x + at * p.x_item, p.step + c, p.zero + c, p.each, out + at * p.out_item, n, p.kind)
        else:
            _quantize(x + at * p.x_item, p.step + c, p.zero + c, p.each, out + at * p.out_item, n, p.kind)


def _run(back: int, x: np.ndarray, step: np.ndarray, zero: np.ndarray, out: np.ndarray, kind: int) -> None:
    o, c, inner = x.shape
    if not x.size:
        return
    rows, cols, each = (o, c, 1) if inner == 1 else (o * c, inner, 0)
    pieces = -(-cols // TASK)
    plan = Conversion(back, kind, address(step), address(zero), x.itemsize, out.itemsize, c, cols, each, pieces)
    given = plan, address(x), address(out)
    spread(rows * pieces, x.size * 4.0, lambda first, last: _convert(*given, first, last))


def quantize(x__oci: np.ndarray, step__c: np.ndarray, zero__c: np.ndarray, out__oci: np.ndarray, target: int) -> None:
    """out = round(x / step) + zero, cut off to what the kind `target` (uint8, int8, uint16 or int16) holds; zero is int32."""
    _run(0, x__oci, step__c, zero__c, out__oci, target)


def dequantize(x__oci: np.ndarray, step__c: np.ndarray, zero__c: np.ndarray, out__oci: np.ndarray, source: int) -> None:
    """out = (x - zero) * step, x of the kind `source`, 8 or 16 bits or int32, zero int32; the difference wraps around."""
    _run(1, x__oci, step__c, zero__c, out__oci, source)


def dynamic_quantize(x: np.ndarray, out: np.ndarray, step: np.ndarray, zero: np.ndarray) -> None:
    """out, step, zero = x in uint8 by its own range, 0 among it; a step of 1 if all are 0. NaN does not count in the range."""
    low, high = np.fmin.reduce(x, axis=None, initial=0), np.fmax.reduce(x, axis=None, initial=0)
    with np.errstate(all="ignore"):
        step[...] = np.float32(1) if low == high else np.float32(high - low) / np.float32(255)
        _reference.quantize(
            np.full((1, 1, 1), 0 - low, np.float32), step.reshape(-1)[:1], np.zeros(1, np.int32), zero.reshape(1, 1, 1),
            KINDS["uint8"],
        )  # fmt: skip
    own = zero.reshape(-1)[:1].astype(np.int32)
    quantize(x.reshape(1, 1, -1), step.reshape(-1)[:1], own, out.reshape(1, 1, -1), KINDS["uint8"])


@emitted
def _look(e: Emit, x: V, table: V, y: V, n: V) -> None:
    def one(i: V) -> None:
        at = e.convert(e.load(x + i, I8), i.kind, "zext")
        e.store(y + i, e.load(table + at, I8))

    whole = n & -8
    with e.loop(0, whole, 8) as i:
        for step in range(8):
            one(i + step)
    with e.loop(whole, n) as i:
        one(i)


@kernel
def _lookup(x: int, table: int, out: int, n: int, first: int, last: int) -> None:
    start = first * TASK
    _look(x + start, table, out + start, min(n, last * TASK) - start)


def lookup(x: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """out = table[x], bytes by bytes: those of int8 are taken as uint8's."""
    given = address(x), address(table), address(out), x.size
    if x.size:
        spread(-(-x.size // TASK), x.size * 2.0, lambda first, last: _lookup(*given, first, last))


class Scales(NamedTuple):
    """Zero points and scales of a, b and the result; of sums, the scales are `quantized_add.factors`, and zeros are 0."""

    a_zero: Real
    b_zero: Real
    zero: Int
    a: Real
    b: Real
    out: Real


@emitted
def _qbinary(e: Emit, op: V, kind: V, a: V, b: V, b_step: V, y: V, n: V, by: Scales) -> None:
    za, zb, sa, sb, s = (e.splat(number) for number in (by.a_zero, by.b_zero, by.a, by.b, by.out))
    zeros = e.splat(e.convert(by.zero, I32, "trunc"))

    def case(name: str, multiply: bool, own: bool) -> None:
        def body(i: V, mask: V | None) -> None:
            p = e.convert(_read(e, a, i, mask, name), F32, "sitofp") - za
            if own:
                q = e.convert(_read(e, b, i, mask, name), F32, "sitofp") - zb
            else:
                one = e.convert(e.load(b, I8), I32, _WHOLE[name][1])
                q = e.splat(e.convert(one, F32, "sitofp")) - zb
            value = p * q * s if multiply else e.fma(p, sa, e.fma(q, sb, s))
            e.store(y + i, _steps(e, value, zeros, name), mask)

        e.vectors(n, body)

    names = ("uint8", "int8")
    cases: dict[int, Callable[[], None]] = {
        4 * KINDS[name] + 2 * multiply + own: partial(case, name, bool(multiply), bool(own))
        for name in names
        for multiply in range(2)
        for own in range(2)
    }
    e.switch(kind * 4 + e.select(op.equals(_MULTIPLY), e.i64(2), e.i64(0)) + b_step, cases)


class Step(NamedTuple):
    """Strides along the axes o, m and i."""

    o: int
    m: int
    i: int


class Both(NamedTuple):
    """`m` rows of `cols` values for each of the first axis, cut into pieces; steps of b."""

    op: int
    kind: int
    m: int
    cols: int
    step: Step
    pieces: int
    by: Scales


@kernel
def _qbinary_rows(p: Both, a: int, b: int, out: int, first: int, last: int) -> None:
    """Tasks: pieces of rows."""
    for task in range(first, last):
        row, start = task // p.pieces, task % p.pieces * TASK
        at, other = row * p.cols + start, row // p.m * p.step.o + row % p.m * p.step.m + start * p.step.i
        n = min(TASK, p.cols - start)
        _qbinary(p.op, p.kind, a + at, b + other, p.step.i, out + at, n, p.by)


def qbinary(a__omi: np.ndarray, b__omi: np.ndarray, out__omi: np.ndarray, op: int, options: Sequence[Any]) -> None:
    """out = round(((a - a_zero) a_scale + (b - b_zero) b_scale) / scale) + zero for BINARY's add, and for its multiply
    round((a - a_zero) (b - b_zero) * scale) + zero; arguments as the reference's."""
    kind, a_zero, b_zero, zero, a_scale, b_scale, scale = options
    if op != BINARY["multiply"]:
        (a_scale, b_scale, scale), a_zero, b_zero, zero = factors(options), 0, 0, 0
    (o, m, i), sizes = out__omi.shape, b__omi.shape
    if not out__omi.size:
        return
    if a__omi.shape == sizes:
        o, m, i, sizes = 1, 1, out__omi.size, (1, 1, out__omi.size)
    steps = [step if size > 1 else 0 for size, step in zip(sizes, (sizes[1] * sizes[2], sizes[2], 1), strict=True)]
    pieces = -(-i // TASK)
    by = Scales(float(a_zero), float(b_zero), int(zero), float(a_scale), float(b_scale), float(scale))
    given = Both(op, kind, m, i, Step(*steps), pieces, by), address(a__omi), address(b__omi), address(out__omi)
    spread(o * m * pieces, out__omi.size * 8.0, lambda first, last: _qbinary_rows(*given, first, last))


@emitted
def _qpixel(
    e: Emit, mean: V, source: V, x: V, c: V, z: Steps, down: Steps, along: Steps, x_zero: V, by: Float, zero: V, y: V
) -> None:
    def case(name: str, average: bool) -> None:
        low = 0 if average else _WHOLE[name][2]

        def body(i: V, mask: V | None) -> None:
            total = e.var(e.constant(e.vector(I32), low))
            with e.loop(0, z.count) as d, e.loop(0, down.count) as r, e.loop(0, along.count) as p:
                value = _read(e, x + d * z.step + r * down.step + p * along.step, i, mask, name)
                total.set(total.get() + value if average else e.select(value > total.get(), value, total.get()))
            if not average:
                e.store(y + i, e.convert(total.get(), I8, "trunc"), mask)
                return
            taken = e.splat(e.convert(x_zero * z.count * down.count * along.count, I32, "trunc"))
            value = e.convert(total.get() - taken, F32, "sitofp") * e.splat(by)
            e.store(y + i, _steps(e, value, e.splat(e.convert(zero, I32, "trunc")), name), mask)

        e.vectors(c, body)

    cases: dict[int, Callable[[], None]] = {
        2 * KINDS[name] + average: partial(case, name, bool(average)) for name in ("uint8", "int8") for average in range(2)
    }
    e.switch(source * 2 + mean, cases)


class Pool(NamedTuple):
    """Windows of images. windows: first tap and count of the taps in the image, along each axis; `apart`: positions from a tap to
    the next; by: a factor a pixel of an image, for means."""

    mean: int
    source: int
    size: Axes
    c: int
    to: Axes
    windows: Axes
    apart: Axes
    x_zero: int
    by: int
    zero: int


@kernel
def _qpool(p: Pool, x: int, out: int, first: int, last: int) -> None:
    """Tasks: rows of pixels."""
    for row in range(first, last):
        oy, oz, image = row % p.to.h, row // p.to.h % p.to.d, row // (p.to.h * p.to.d)
        z, y = integer(p.windows.d, 2 * oz), integer(p.windows.h, 2 * oy)
        deep = Steps(integer(p.windows.d, 2 * oz + 1), p.apart.d * p.size.h * p.size.w * p.c)
        down = Steps(integer(p.windows.h, 2 * oy + 1), p.apart.h * p.size.w * p.c)
        line = x + ((image * p.size.d + z) * p.size.h + y) * p.size.w * p.c
        for ox in range(p.to.w):
            at, to = line + integer(p.windows.w, 2 * ox) * p.c, out + (row * p.to.w + ox) * p.c
            along = Steps(integer(p.windows.w, 2 * ox + 1), p.apart.w * p.c)
            factor = number(p.by, (oz * p.to.h + oy) * p.to.w + ox) if p.mean != 0 else np.float32(0)
            _qpixel(p.mean, p.source, at, p.c, deep, down, along, p.x_zero, factor, p.zero, to)


def qpool(
    x: np.ndarray,
    out: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    op: int,
    source: int,
    options: Sequence[Any],
) -> None:
    """Windows of x (n, d, h, w, c) of the kind `source`: their largest values, or their means as quantized values; arguments as
    the reference's."""
    x_zero, x_scale, scale, zero, include_pad = options
    size, to = x.shape[1:4], out.shape[1:4]
    if not out.size:
        return
    ints = tuple(tuple(map(int, sizes)) for sizes in (size, to, kernel, stride, dilation, pads))
    windows = tables(*ints, False, 1.0)[1]
    mean = op == REDUCE["mean"]
    by = np.zeros(0, np.float32)
    if mean:
        counts = [
            places(n, o, k, s, t, -before if include_pad else 0, n + after if include_pad else n, before)
            for n, o, k, s, t, before, after in zip(*ints[:5], pads[::2], pads[1::2], strict=True)
        ]
        with np.errstate(all="ignore"):
            by = np.float32(x_scale) / (np.float32(scale) * (counts[0][:, None, None] * counts[1][:, None] * counts[2]))
    plan = Pool(
        int(mean), source, Axes(*size), x.shape[4], Axes(*to), Axes(*map(address, windows)), Axes(*dilation), int(x_zero),
        address(by), int(zero),
    )  # fmt: skip
    given = plan, address(x), address(out)
    work = 1.0 * out.size * int(np.prod(kernel))
    spread(len(x) * to[0] * to[1], work, lambda first, last: _qpool(*given, first, last))

"""Pools over boxes of images: a thread an output, in single precision."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...errors import ShapeError
from ..table import REDUCE
from ._cuda import F32, I32, I64, cuda, device, f32, kernel, load1, sized, store1, threads
from ._device import Array, empty, on_device
from ._math import ceil, floor
from .movement import check

__all__ = ["roi_align", "roi_pool"]

BLOCK = threads(128)
_ZERO, _ONE, _HALF, _LEAST, _FAR = f32(0), f32(1), f32(0.5), f32(-math.inf), f32(1e9)


@kernel
def image_kernel(boxes: F32, count: int, images: int, wrong: I32) -> None:
    """wrong[0] becomes 1 if a box is of no image."""
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        image = boxes[5 * i]
        if not (image >= _ZERO and image < f32(images) and image == floor(image)):
            wrong[0] = 1


@device
def _limited(v: Any) -> Any:
    if v != v:
        return -_FAR
    v = v if v > -_FAR else -_FAR
    return v if v < _FAR else _FAR


@device
def _nearest(v: Any) -> Any:
    """The nearest whole number, halves away from zero."""
    v = _limited(v)
    size = v if v >= _ZERO else -v
    whole = floor(size)
    rounded = int(whole) + (1 if size - whole >= _HALF else 0)
    return rounded if v >= _ZERO else -rounded


@device
def _bin(begin: Any, end: Any, i: Any, count: Any, size: Any) -> Any:
    each = f32(max(end - begin + 1, 1)) / f32(count)
    first, last = int(floor(f32(i) * each)) + begin, int(ceil(f32(i + 1) * each)) + begin
    return min(max(first, 0), size), min(max(last, 0), size)


@device
def _place(i: Any, channels: Any, high: Any, wide: Any, last: Any) -> Any:
    """Box, channel, row and column of an output."""
    if last:
        i, c = i // channels, i % channels
        i, column = i // wide, i % wide
        return i // high, c, i % high, column
    i, column = i // wide, i % wide
    i, row = i // high, i % high
    return i // channels, i % channels, row, column


@kernel
def roi_pool_kernel(
    x: F32, boxes: F32, out: F32, n: int, channels: int, h: int, w: int, high: int, wide: int, last: int, scale: float
) -> None:
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        box, c, row, column = _place(i, channels, high, wide, last)
        x1, y1 = _nearest(boxes[5 * box + 1] * scale), _nearest(boxes[5 * box + 2] * scale)
        x2, y2 = _nearest(boxes[5 * box + 3] * scale), _nearest(boxes[5 * box + 4] * scale)
        top, bottom = _bin(y1, y2, row, high, h)
        left, right = _bin(x1, x2, column, wide, w)
        begin = int(boxes[5 * box]) * channels * h * w + (c if last else c * h * w)
        step = channels if last else 1
        a = _LEAST
        for y in range(top, bottom):
            for p in range(left, right):
                v = load1(x, begin + (y * w + p) * step)
                if v > a or v != v:
                    a = v
        store1(out, i, a if bottom > top and right > left else _ZERO)


@on_device
def roi_pool(x: Array, boxes__k5: Array, out: Array, scale: float, channels_last: bool) -> None:
    """out[k] = the largest number of each bin of box k, rounded to pixels; 0 of an empty bin. boxes: (image, x1, y1, x2, y2)."""
    count = boxes__k5.shape[0]
    if count:
        wrong = empty((1,), np.int32)
        wrong.fill_from(np.zeros(1, np.int32))
        image_kernel.launch(sized(count, BLOCK), BLOCK, boxes__k5.flat, count, x.shape[0], wrong.flat)
        if wrong.numpy()[0]:
            raise ShapeError("roi_pool: boxes: index out of range")
    n = out.size
    if n:
        h, w, channels = x.shape[1:] if channels_last else (*x.shape[2:], x.shape[1])
        high, wide = out.shape[1:3] if channels_last else out.shape[2:]
        given = n, channels, h, w, high, wide, int(channels_last), scale
        roi_pool_kernel.launch(sized(n, BLOCK), BLOCK, x.flat, boxes__k5.flat, out.flat, *given)


@device
def _between(v: Any, n: Any) -> Any:
    """The pixel below a place that is not before -1, the one above, and how far it is on the way."""
    v = v if v > _ZERO else _ZERO
    i = int(v)
    if i >= n - 1:
        return n - 1, n - 1, _ZERO
    return i, i + 1, v - f32(i)


@device
def _corner(x: Any, at: Any, weight: Any) -> Any:
    return load1(x, at) * weight if weight != _ZERO else _ZERO


class Align(NamedTuple):
    """high x wide bins of each box, n values in all; offset, least, samples and mean as `roi_align` has them."""

    n: int
    channels: int
    h: int
    w: int
    high: int
    wide: int
    last: int
    samples: int
    mean: int
    scale: float
    offset: float
    least: float


@kernel
def roi_align_kernel(x: F32, boxes: F32, images: I64, out: F32, of: Align) -> None:
    """The mean of a bin's samples, or the largest of all corners of samples, each times its weight."""
    for i in range(cuda.grid(1), of.n, cuda.gridsize(1)):
        box, c, row, column = _place(i, of.channels, of.high, of.wide, of.last)
        x1, y1 = _limited(boxes[4 * box] * of.scale - of.offset), _limited(boxes[4 * box + 1] * of.scale - of.offset)
        x2, y2 = _limited(boxes[4 * box + 2] * of.scale - of.offset), _limited(boxes[4 * box + 3] * of.scale - of.offset)
        height, width = y2 - y1, x2 - x1
        height, width = height if height > of.least else of.least, width if width > of.least else of.least
        height, width = height / f32(of.high), width / f32(of.wide)
        ny = of.samples if of.samples > 0 else max(int(ceil(height)), 0)
        nx = of.samples if of.samples > 0 else max(int(ceil(width)), 0)
        step = of.channels if of.last else 1
        begin = images[box] * of.channels * of.h * of.w + (c if of.last else c * of.h * of.w)
        a = _ZERO if of.mean else _LEAST
        for sample in range(ny * nx):
            sy, sx = sample // nx, sample % nx
            y = y1 + f32(row) * height + (f32(sy) + _HALF) * height / f32(ny)
            p = x1 + f32(column) * width + (f32(sx) + _HALF) * width / f32(nx)
            v0 = v1 = v2 = v3 = _ZERO
            if y >= -_ONE and y <= f32(of.h) and p >= -_ONE and p <= f32(of.w) and of.h * of.w > 0:
                t0, t1, fy = _between(y, of.h)
                l0, l1, fx = _between(p, of.w)
                v0 = _corner(x, begin + (t0 * of.w + l0) * step, (_ONE - fy) * (_ONE - fx))
                v1 = _corner(x, begin + (t0 * of.w + l1) * step, (_ONE - fy) * fx)
                v2 = _corner(x, begin + (t1 * of.w + l0) * step, fy * (_ONE - fx))
                v3 = _corner(x, begin + (t1 * of.w + l1) * step, fy * fx)
            if of.mean:
                a += v0 + v1 + v2 + v3
            else:
                v0 = v0 if v0 > v1 or v0 != v0 else v1
                v2 = v2 if v2 > v3 or v2 != v2 else v3
                v0 = v0 if v0 > v2 or v0 != v0 else v2
                a = v0 if v0 > a or v0 != v0 else a
        if of.mean:
            a = a / f32(ny * nx)
        store1(out, i, a if ny * nx > 0 else _ZERO)


@on_device
def roi_align(
    x: Array, boxes__k4: Array, images__k: Array, out: Array, scale: float, offset: float, least: float, samples: int, op: int,
    channels_last: bool,
) -> None:  # fmt: skip
    """out[k] = the mean or the largest (op of table.REDUCE) of bilinear samples of each bin of box k, (x1, y1, x2, y2) * scale -
    offset, at least `least` long; samples along a bin, or 0 for one per pixel."""
    check("roi_align: images: index", images__k, 0, x.shape[0] - 1)
    n = out.size
    if n:
        h, w, channels = x.shape[1:] if channels_last else (*x.shape[2:], x.shape[1])
        high, wide = out.shape[1:3] if channels_last else out.shape[2:]
        where = Align(
            n, channels, h, w, high, wide, int(channels_last), samples, int(op == REDUCE["mean"]), scale, offset, least
        )  # fmt: skip
        roi_align_kernel.launch(sized(n, BLOCK), BLOCK, x.flat, boxes__k4.flat, images__k.flat, out.flat, where)

"""Pools over boxes of images: quantized bins with their largest number, and averages or largest of bilinear samples.

Bilinear samples on a grid are products of weights along the rows and along the columns, as is which of them are in the image: an
average is a sum over rows and columns whose weights are added up once for all channels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...errors import ShapeError
from ..table import REDUCE
from ._bins import Edges, Part, bins
from ._mix import mix, number, put_number
from ._njit import call, emitted, inner, kernel
from ._threads import address, scratch, spread
from ._tile import integer, put_integer
from ._vector import F64, Double, Emit, V

__all__ = ["roi_align", "roi_pool"]

FAR = 1e9  # where coordinates end, so that they fit integers


def _limited(v: np.ndarray) -> np.ndarray:
    """Coordinates that fit an integer; NaN is far outside."""
    return np.where(v == v, np.clip(v, -FAR, FAR), -FAR)


def _edges(first: np.ndarray, last: np.ndarray, scale: float, count: int, size: int) -> np.ndarray:
    """(boxes, count, 2): first and end of every quantized bin of an axis."""
    with np.errstate(invalid="ignore", over="ignore"):
        both = _limited((np.stack([first, last]) * np.float32(scale)).astype(np.float64))
    start, end = np.copysign(np.floor(np.abs(both) + 0.5), both).astype(np.int64)
    each = np.maximum(end - start + 1, 1).astype(np.float32) / np.float32(count)
    i = np.arange(count + 1, dtype=np.float32) * each[:, None]
    low, high = np.floor(i[:, :-1]).astype(np.int64), np.ceil(i[:, 1:]).astype(np.int64)
    return np.stack([low + start[:, None], high + start[:, None]], 2).clip(0, size)


class Pool(NamedTuple):
    """rows x columns bins of each box, whose edges are in tables. c: channels of a position; channels: planes of an image."""

    bins: int
    c: int
    channels: int
    h: int
    w: int
    rows: int
    columns: int
    edges_y: int
    edges_x: int


@kernel
def _roi_pool(p: Pool, x: int, images: int, out: int, own: int, line: int, first: int, last: int) -> None:
    """Tasks: boxes. own: room for the bins of an axis, and z's one."""
    put_integer(own, 0, 0)
    put_integer(own, 1, 1)
    for k in range(first, last):
        left = integer(p.edges_x, 2 * k * p.columns)
        for i in range(2 * p.columns):  # only the columns under the box are folded
            put_integer(own, 2 + i, integer(p.edges_x, 2 * k * p.columns + i) - left)
        cols = integer(own, 1 + 2 * p.columns)
        for plane in range(p.channels):
            at = ((integer(images, k) * p.channels + plane) * p.h * p.w + left) * p.c
            to = out + 4 * (k * p.channels + plane) * p.rows * p.columns * p.c
            part = Part(x + 4 * at, p.h * p.w * p.c, p.w * p.c, cols, p.c)
            edges = Edges(own, p.edges_y + 16 * k * p.rows, own + 16, p.rows, p.columns)
            call(p.bins, 0, part, edges, line, to, 0, p.rows)


def roi_pool(x: np.ndarray, boxes__k5: np.ndarray, out: np.ndarray, scale: float, channels_last: bool) -> None:
    """out[k] = the largest number of each bin of box k, rounded to pixels; 0 of an empty bin. boxes: (image, x1, y1, x2, y2)."""
    images = boxes__k5[:, 0].copy()  # of the caller, who may change them after they were looked at
    if not np.all((images >= 0) & (images < len(x)) & (images == np.floor(images))):
        raise ShapeError("roi_pool: boxes: index out of range")
    space = 1 if channels_last else 2
    h, w = x.shape[space : space + 2]
    rows, columns = out.shape[space : space + 2]
    if not out.size or not h * w:
        out[...] = 0
        return
    c, channels = (x.shape[3], 1) if channels_last else (1, x.shape[1])
    numbers = images.astype(np.int64)
    edges_y = _edges(boxes__k5[:, 2], boxes__k5[:, 4], scale, rows, h)
    edges_x = _edges(boxes__k5[:, 1], boxes__k5[:, 3], scale, columns, w)

    plan = Pool(bins.address, c, channels, h, w, rows, columns, address(edges_y), address(edges_x))

    def run(first: int, last: int) -> None:
        own, line = np.empty(2 + 2 * columns, np.int64), scratch(w * c)
        _roi_pool(plan, address(x), address(numbers), address(out), address(own), address(line), first, last)

    spread(len(out), 100.0 * out.size, run)


@emitted
def _double(e: Emit, place: V, index: V) -> Double:
    return e.load(e.at(place, index, 8), F64)


@emitted
def _put_double(e: Emit, place: V, index: V, value: Double) -> None:
    e.store(e.at(place, index, 8), value)


@inner
def inside(grid: int, bin: int, each: int, size: int, ends: int) -> None:
    """Writes the first and the end of the samples of a bin that may be in the image: a huge box has no more of them than that.
    grid: start and step of all samples."""
    start, step = _double(grid, 0), _double(grid, 1)
    first, last = bin * each, (bin + 1) * each
    if step > 0:
        first = max(first, int(max(min(math.floor((-1 - start) / step) - 1, FAR), -FAR)))
        last = min(last, int(max(min(math.ceil((size - start) / step) + 1, FAR), -FAR)))
    put_integer(ends, 0, first)
    put_integer(ends, 1, last)


@inner
def sample(grid: int, i: int, size: int, low: int, weight: int) -> None:
    """Writes the position below sample i of an axis, or -1 if it is outside, and the weight of the one above."""
    at = _double(grid, 0) + (i + 0.5) * _double(grid, 1)
    if at >= -1 and at <= size:
        at = max(at, 0.0)
        whole = int(at)
        edge = whole >= size - 1
        put_integer(low, 0, size - 1 if edge else whole)
        _put_double(weight, 0, 0.0 if edge else at - whole)
    else:
        put_integer(low, 0, -1)


@inner
def gathered(
    inside: int, sample: int, grid: int, bins: int, each: int, size: int, own: int, counts: int, at: int, weight: int
) -> None:
    """Of every bin of an axis how many positions its samples are at, `size` positions for them, and their weights in the mean.
    own: room for 4 + size values."""
    sums = own + 32
    for bin in range(bins):
        call(inside, grid, bin, each, size, own)
        for i in range(size):
            _put_double(sums, i, 0.0)
        for i in range(integer(own, 0), integer(own, 1)):
            call(sample, grid, i, size, own + 16, own + 24)
            low, part = integer(own, 2), _double(own, 3)
            if low >= 0:
                _put_double(sums, low, _double(sums, low) + (1 - part))
                if part != 0:
                    _put_double(sums, low + 1, _double(sums, low + 1) + part)
        count = 0
        for i in range(size):
            total = _double(sums, i)
            if total != 0:
                put_integer(at, bin * size + count, i)
                put_number(weight, bin * size + count, total / each)
                count += 1
        put_integer(counts, bin, count)


class Align(NamedTuple):
    """rows x columns bins of each box. grids: start and step of every box's rows and columns; eaches: how many samples a bin has
    in both; images: which one each box is in."""

    mix: int
    gathered: int
    inside: int
    sample: int
    images: int
    grids: int
    eaches: int
    last_axis: int
    channels: int
    h: int
    w: int
    rows: int
    columns: int


@kernel
def _mean(p: Align, x: int, out: int, own: int, weights: int, first: int, last: int) -> None:
    """Tasks: boxes. own: room for 4 + max(h, w), (rows + columns) counts, rows * h + columns * w positions, h * w addresses."""
    counts_y = own + 8 * (4 + max(p.h, p.w))
    counts_x, at_y = counts_y + 8 * p.rows, counts_y + 8 * (p.rows + p.columns)
    at_x = at_y + 8 * p.rows * p.h
    lines = at_x + 8 * p.columns * p.w
    weights_y, weights_x = weights + 4 * p.h * p.w, weights + 4 * (p.h * p.w + p.rows * p.h)
    for k in range(first, last):
        grid, ny, nx = p.grids + 32 * k, integer(p.eaches, 2 * k), integer(p.eaches, 2 * k + 1)
        call(p.gathered, p.inside, p.sample, grid, p.rows, ny, p.h, own, counts_y, at_y, weights_y)
        call(p.gathered, p.inside, p.sample, grid + 16, p.columns, nx, p.w, own, counts_x, at_x, weights_x)
        image = x + 4 * integer(p.images, k) * p.channels * p.h * p.w
        for i in range(p.rows):
            for j in range(p.columns):
                count = 0
                for a in range(integer(counts_y, i)):
                    for b in range(integer(counts_x, j)):
                        place = integer(at_y, i * p.h + a) * p.w + integer(at_x, j * p.w + b)
                        put_integer(lines, count, image + 4 * place * (p.channels if p.last_axis != 0 else 1))
                        put_number(weights, count, number(weights_y, i * p.h + a) * number(weights_x, j * p.w + b))
                        count += 1
                if p.last_axis != 0:
                    call(p.mix, lines, weights, count, out + 4 * ((k * p.rows + i) * p.columns + j) * p.channels, p.channels)
                else:
                    for c in range(p.channels):
                        total = np.float32(0)
                        for t in range(count):
                            total += number(weights, t) * number(integer(lines, t), c * p.h * p.w)
                        put_number(out, ((k * p.channels + c) * p.rows + i) * p.columns + j, total)


@kernel
def _largest(p: Align, x: int, out: int, own: int, first: int, last: int) -> None:
    """Tasks: boxes, as in `_mean`: the largest of the weighted corners of all samples; a sample outside has corners of 0."""
    of, bin, pixel = (1, p.channels, p.channels) if p.last_axis != 0 else (p.rows * p.columns, 1, 1)
    channel = 1 if p.last_axis != 0 else p.h * p.w
    for k in range(first, last):
        grid, ny, nx = p.grids + 32 * k, integer(p.eaches, 2 * k), integer(p.eaches, 2 * k + 1)
        image = x + 4 * integer(p.images, k) * p.channels * p.h * p.w
        for i in range(p.rows):
            for j in range(p.columns):
                to, fresh = out + 4 * (k * p.rows * p.columns * p.channels + (i * p.columns + j) * bin), True
                call(p.inside, grid, i, ny, p.h, own)
                call(p.inside, grid + 16, j, nx, p.w, own + 16)
                y0, y1, x0, x1 = integer(own, 0), integer(own, 1), integer(own, 2), integer(own, 3)
                if y1 - y0 < ny or x1 - x0 < nx or ny * nx == 0:
                    fresh = False
                    for c in range(p.channels):
                        put_number(to, c * of, 0.0)
                for a in range(y0, y1):
                    for b in range(x0, x1):
                        call(p.sample, grid, a, p.h, own + 32, own + 40)
                        call(p.sample, grid + 16, b, p.w, own + 48, own + 56)
                        low_y, low_x = integer(own, 4), integer(own, 6)
                        there = low_y >= 0 and low_x >= 0
                        fy, fx = (_double(own, 5), _double(own, 7)) if there else (0.0, 0.0)
                        for corner in range(4):
                            up, right = corner // 2, corner % 2
                            factor = np.float32((fy if up else 1 - fy) * (fx if right else 1 - fx)) if there else np.float32(0)
                            at = image + 4 * ((low_y + up) * p.w + low_x + right) * pixel
                            for c in range(p.channels):
                                v = factor * number(at, c * channel) if factor != 0 else np.float32(0)
                                if (fresh and corner == 0) or v > number(to, c * of) or v != v:
                                    put_number(to, c * of, v)
                            fresh = False


def roi_align(
    x: np.ndarray,
    boxes__k4: np.ndarray,
    images__k: np.ndarray,
    out: np.ndarray,
    scale: float,
    offset: float,
    least: float,
    samples: int,
    op: int,
    channels_last: bool,
) -> None:
    """out[k] = the mean or the largest (op of table.REDUCE) of bilinear samples of each bin of box k, (x1, y1, x2, y2) * scale -
    offset, at least `least` long; samples along a bin, or 0 for one per pixel."""
    images__k = images__k.copy()  # of the caller, who may change them after they were looked at
    if images__k.size and not 0 <= images__k.min() <= images__k.max() < len(x):
        raise ShapeError("roi_align: images: index out of range")
    space = 1 if channels_last else 2
    (h, w), channels = x.shape[space : space + 2], x.shape[3 if channels_last else 1]
    rows, columns = out.shape[space : space + 2]
    if not out.size or not h * w:
        out[...] = 0
        return
    with np.errstate(all="ignore"):
        ends = _limited(boxes__k4.astype(np.float64) * scale - offset)[:, [1, 0, 3, 2]].reshape(-1, 2, 2)
        length = np.maximum(ends[:, 1] - ends[:, 0], least) / (rows, columns)
        # In this order, which the lengths are not in.
        eaches = (
            np.maximum(np.ceil(length), 0).astype(np.int64, "C") if samples <= 0 else np.full(length.shape, samples, np.int64)
        )
        grids = np.stack([ends[:, 0], length / np.maximum(eaches, 1)], 2)
    mean = op == REDUCE["mean"]
    plan = Align(
        mix.address if mean else 0, gathered.address if mean else 0, inside.address, sample.address, address(images__k),
        address(grids), address(eaches), int(channels_last), channels, h, w, rows, columns,
    )  # fmt: skip

    def run(first: int, last: int) -> None:
        own = np.empty(8 + max(h, w) + rows * (h + 1) + columns * (w + 1) + h * w, np.int64)
        if mean:
            weights = scratch(h * w + rows * h + columns * w)
            _mean(plan, address(x), address(out), address(own), address(weights), first, last)
        else:
            _largest(plan, address(x), address(out), address(own), first, last)

    spread(len(out), 100.0 * out.size, run)

"""Pools over boxes of images in numpy: box by box, bin by bin, sample by sample."""

from __future__ import annotations

import math

import numpy as np

from ...errors import ShapeError
from ..resize_tables import Axis, Rule, onnx_taps
from ..table import REDUCE
from .resize import along

__all__ = ["crop", "roi_align", "roi_pool"]


def roi_pool(x: np.ndarray, boxes__k5: np.ndarray, out: np.ndarray, scale: float, channels_last: bool) -> None:
    """out[k] = the largest number of each bin of box k, rounded to pixels; 0 of an empty bin. boxes: (image, x1, y1, x2, y2)."""
    if channels_last:
        x, out = np.moveaxis(x, -1, 1), np.moveaxis(out, -1, 1)
    images = boxes__k5[:, 0]
    if not np.all((images >= 0) & (images < len(x)) & (images == np.floor(images))):
        raise ShapeError("roi_pool: boxes: index out of range")
    for k, box in enumerate(boxes__k5):
        with np.errstate(invalid="ignore", over="ignore"):
            x1, y1, x2, y2 = (_rounded(v) for v in box[1:] * np.float32(scale))
        rows, columns = _bins(y1, y2, out.shape[2], x.shape[2]), _bins(x1, x2, out.shape[3], x.shape[3])
        for i, (y0, y_end) in enumerate(rows):
            for j, (x0, x_end) in enumerate(columns):
                taken = x[int(box[0]), :, y0:y_end, x0:x_end]
                out[k, :, i, j] = taken.max((1, 2)) if taken.shape[1] * taken.shape[2] else 0


def _limited(v: float) -> float:
    return max(min(v, 1e9), -1e9) if v == v else -1e9


def _rounded(v: float) -> int:
    """The nearest whole number, halves away from zero."""
    v = _limited(float(v))
    return int(math.copysign(math.floor(abs(v) + 0.5), v))


def _bins(start: int, end: int, count: int, size: int) -> list[tuple[int, int]]:
    each = np.float32(max(end - start + 1, 1)) / np.float32(count)
    return [
        (
            min(max(math.floor(np.float32(i) * each) + start, 0), size),
            min(max(math.ceil(np.float32(i + 1) * each) + start, 0), size),
        )
        for i in range(count)
    ]


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
    if channels_last:
        x, out = np.moveaxis(x, -1, 1), np.moveaxis(out, -1, 1)
    if images__k.size and not 0 <= images__k.min() <= images__k.max() < len(x):
        raise ShapeError("roi_align: images: index out of range")
    ph, pw = out.shape[2:]
    f32 = np.float32  # as everybody has it: how many samples there are would differ
    for k, box in enumerate(boxes__k4):
        with np.errstate(over="ignore", invalid="ignore"):
            x1, y1, x2, y2 = (f32(_limited(float(v))) for v in box.astype(f32) * f32(scale) - f32(offset))
        height, width = max(y2 - y1, f32(least)) / f32(ph), max(x2 - x1, f32(least)) / f32(pw)
        ny, nx = (samples if samples > 0 else max(math.ceil(v), 0) for v in (height, width))
        for i in range(ph):
            for j in range(pw):
                corners = [
                    _corners(x[images__k[k]], y, x_)
                    for y in _near(y1, height, ny, i, x.shape[2])
                    for x_ in _near(x1, width, nx, j, x.shape[3])
                ]
                if not corners or not x.shape[1]:
                    out[k, :, i, j] = 0
                elif op == REDUCE["mean"]:
                    out[k, :, i, j] = np.sum(corners, (0, 1)) / (ny * nx)
                else:
                    largest = np.max(corners, (0, 1))
                    out[k, :, i, j] = largest if len(corners) == ny * nx else np.maximum(largest, 0)


def _near(start: np.float32, length: np.float32, samples: int, bin_: int, size: int) -> list[float]:
    """The samples of a bin that may be in the image: a huge box has no more of them than that."""
    if not samples:
        return []
    step, first, last = float(length) / samples, 0, samples
    if step > 0:
        before = bin_ * samples
        first = max(first, math.floor((-1 - float(start)) / step) - 1 - before)
        last = min(last, math.ceil((size - float(start)) / step) + 1 - before)
    begin, half = start + np.float32(bin_) * length, np.float32(0.5)
    return [float(begin + (np.float32(i) + half) * length / np.float32(samples)) for i in range(first, last)]


def _corners(plane: np.ndarray, y: float, x: float) -> np.ndarray:
    """The four neighbours of a place, each times its weight, (4, c); zeros outside."""
    (h, w), zero = plane.shape[1:], np.zeros(len(plane))
    if not (-1 <= y <= h and -1 <= x <= w) or not h * w:
        return np.zeros((4, len(plane)))
    y, x = max(y, 0), max(x, 0)
    (y0, y1, fy), (x0, x1, fx) = (
        (int(v), int(v) + 1, v - int(v)) if v < n - 1 else (n - 1, n - 1, 0.0) for v, n in ((y, h), (x, w))
    )
    parts = ((y0, x0, (1 - fy) * (1 - fx)), (y0, x1, (1 - fy) * fx), (y1, x0, fy * (1 - fx)), (y1, x1, fy * fx))
    return np.array([plane[:, a, b].astype(np.float64) * weight if weight else zero for a, b, weight in parts])


def crop(x__nchw: np.ndarray, roi__8: np.ndarray, out__axyz: np.ndarray, value: float) -> None:
    """out = x along each axis from the part roi[axis] of it to the part roi[4 + axis], by the two elements around each place;
    `value` where a place is outside of x.
    """
    y, places = x__nchw.astype(np.float64), []
    for k, (size, out) in enumerate(zip(x__nchw.shape, out__axyz.shape, strict=True)):
        ends = float(roi__8[k]), float(roi__8[4 + k])
        table, outside = onnx_taps(Axis(size, out, 1.0, *ends), Rule("linear", "tf_crop_and_resize"))
        y = along(y, table, k)
        places.append(outside)
    with np.errstate(over="ignore"):
        out__axyz[...] = y
    for k, outside in enumerate(places):
        out__axyz.swapaxes(0, k)[outside] = value

"""DeformConv: a convolution each of whose taps reads the image beside its place, by offsets that are given."""

from __future__ import annotations

import math

import numpy as np

from ._base import Spec, View, register
from ._shapes import need_kind, same_dtype
from ._window import Window, conv_size, window
from .unary import wide

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


def _window(n: View) -> tuple[tuple[int, ...], Window] | None:
    """Sizes of the weights and the window, if the weights' shape is known."""
    w = n.shape(1)
    if w is None or any(not isinstance(d, int) for d in w):
        return None
    kernel = tuple(n.get("kernel_shape") or w[2:])
    if len(w) != 4 or kernel != tuple(w[2:]):
        raise n.fail(f"the weights have shape {w}, kernel_shape is {kernel}: expected (o, c, kh, kw), and the last two of them")
    return w, window(n, kernel, None)  # type: ignore[return-value]


def _infer(n: View) -> list[Spec]:
    """x (n, c, h, w), weights (o, c / group, kh, kw), offsets (n, offset_group * kh * kw * 2, oh, ow), bias, mask."""
    need_kind(n, "f")
    same_dtype(n)
    x, offset, dtype, found = n.shape(0), n.shape(2), n.spec(0).dtype, _window(n)
    if (x is not None and len(x) != 4) or (offset is not None and len(offset) != 4):
        raise n.fail(f"x has shape {x}, the offsets {offset}: expected four axes each; others are not supported")
    if x is None or found is None:
        return [Spec((None,) * 4, dtype)]
    w, place = found
    group, parts = n.get("group", 1), n.get("offset_group", 1)
    if group < 1 or parts < 1 or w[0] % group or (isinstance(x[1], int) and (x[1] != w[1] * group or x[1] % parts)):
        raise n.fail(f"x has shape {x}, the weights {w}, group={group}, offset_group={parts}: expected {w[1]} * group channels")
    space = conv_size(n, x[2:], place)
    taps = math.prod(w[2:]) * parts
    for i, rows in ((2, 2 * taps), (4, taps)):
        have = n.shape(i) if n.has(i) else None
        want = (x[0], rows, *space)
        if have is not None and (
            len(have) != 4 or any(a != b for a, b in zip(have, want, strict=True) if isinstance(a, int) and isinstance(b, int))
        ):
            raise n.fail(f"input {i} has shape {have}: expected {want}")
    bias = n.shape(3) if n.has(3) else None
    if bias is not None and (len(bias) != 1 or (isinstance(bias[0], int) and bias[0] != w[0])):
        raise n.fail(f"the bias has shape {bias}: expected {(w[0],)}")
    return [Spec((x[0], w[0], *space), dtype)]


def _taps(image: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What lies at the places (y, x), each (taps, oh, ow), of an image (c, h, w), between its pixels; zeros are around it."""
    _, height, width = image.shape
    pixels = image.reshape(len(image), -1)
    total: np.ndarray = np.zeros((len(image), *y.shape), image.dtype)
    y0, x0 = np.floor(y), np.floor(x)
    ty, tx = y - y0, x - x0
    for yi, ys in ((y0, 1 - ty), (y0 + 1, ty)):
        for xi, xs in ((x0, 1 - tx), (x0 + 1, tx)):
            inside = (yi >= 0) & (yi < height) & (xi >= 0) & (xi < width)
            at = np.where(inside, yi * width + xi, 0).astype(np.int64)
            total += np.where(inside, np.take(pixels, at, axis=1), 0) * (ys * xs).astype(image.dtype)
    return total


def _run(
    n: View, x: np.ndarray, w: np.ndarray, offset: np.ndarray, bias: np.ndarray | None = None, mask: np.ndarray | None = None
) -> Arrays:
    (spec,), (_, place) = _infer(n), _window(n)  # type: ignore[misc]
    shape: tuple[int, ...] = spec.shape  # type: ignore[assignment]
    group, parts, (kh, kw), (oh, ow) = n.get("group", 1), n.get("offset_group", 1), w.shape[2:], shape[2:]
    out = np.zeros(shape, wide(x).dtype)
    if not math.prod(shape):
        return (out.astype(x.dtype),)
    assert place.pads is not None
    # Of every tap the place in float64: offsets may be far from 0, and half a pixel must not be lost.
    rows = np.arange(oh)[None, :] * place.stride[0] - place.pads[0][0] + np.arange(kh)[:, None] * place.dilation[0]
    columns = np.arange(ow)[None, :] * place.stride[1] - place.pads[1][0] + np.arange(kw)[:, None] * place.dilation[1]
    rows, columns = rows[:, None, :, None], columns[None, :, None, :]
    weights = wide(w).reshape(group, w.shape[0] // group, -1)
    for image, given, made, share in zip(
        wide(x), wide(offset).astype(np.float64), out, [None] * len(x) if mask is None else wide(mask), strict=True
    ):
        places = given.reshape(parts, kh, kw, 2, oh, ow)
        taken = []
        for part, channels in enumerate(np.split(image, parts)):
            y = (rows + places[part, :, :, 0]).reshape(kh * kw, oh, ow)
            found = _taps(channels, y, (columns + places[part, :, :, 1]).reshape(kh * kw, oh, ow))
            if share is not None:
                found = found * share.reshape(parts, kh * kw, oh, ow)[part]
            taken.append(found)
        matrix = np.concatenate(taken).reshape(group, -1, oh * ow)
        made[...] = (weights @ matrix).reshape(made.shape)
        if bias is not None:
            made += wide(bias)[:, None, None]
    return (out.astype(x.dtype, copy=False),)


register("DeformConv", _infer, _run)

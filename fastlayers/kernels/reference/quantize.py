"""Conversions to quantized values and back, tables of bytes, sums and products of quantized arrays, pools of bytes.

Rounding is to the nearest, half to even; NaN becomes the least number. Every step is rounded to float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..quantized_add import factors, fused
from ..table import BINARY, KINDS, REDUCE

__all__ = ["dequantize", "dynamic_quantize", "lookup", "qbinary", "qpool", "quantize"]

_DTYPES = {code: np.dtype(name) for name, code in KINDS.items()}
_FLOAT32 = np.dtype(np.float32).type


def _steps(y: np.ndarray, zero: Any, dtype: np.dtype[Any]) -> np.ndarray:
    info = np.iinfo(dtype)
    steps = np.clip(np.rint(y).astype(np.float64) + zero, info.min, info.max)
    return np.where(steps == steps, steps, info.min).astype(dtype)


def quantize(x__oci: np.ndarray, step__c: np.ndarray, zero__c: np.ndarray, out__oci: np.ndarray, target: int) -> None:
    """out = round(x / step) + zero, cut off to what the kind `target` (uint8, int8, uint16 or int16) holds; zero is int32."""
    with np.errstate(all="ignore"):
        out__oci[...] = _steps(x__oci / step__c[:, None], zero__c[:, None], _DTYPES[target])


def dequantize(x__oci: np.ndarray, step__c: np.ndarray, zero__c: np.ndarray, out__oci: np.ndarray, source: int) -> None:
    """out = (x - zero) * step, x of the kind `source`, 8 or 16 bits or int32, zero int32; the difference wraps around."""
    out__oci[...] = (x__oci.astype(np.int32) - zero__c[:, None]).astype(np.float32) * step__c[:, None]


def dynamic_quantize(x: np.ndarray, out: np.ndarray, step: np.ndarray, zero: np.ndarray) -> None:
    """out, step, zero = x in uint8 by its own range, 0 among it; a step of 1 if all are 0. NaN does not count in the range."""
    low, high = np.fmin.reduce(x, axis=None, initial=0), np.fmax.reduce(x, axis=None, initial=0)
    with np.errstate(all="ignore"):
        step[...] = _FLOAT32(1) if low == high else _FLOAT32(high - low) / _FLOAT32(255)
        one = step.reshape(-1)[:1]
        zero[...] = _steps(_FLOAT32(0 - low) / one, 0, np.dtype(np.uint8)).reshape(zero.shape)
        out[...] = _steps(x / one[0], float(zero.reshape(-1)[0]), np.dtype(np.uint8))


def lookup(x: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """out = table[x], bytes by bytes: those of int8 are taken as uint8's."""
    out.reshape(-1).view(np.uint8)[...] = table.view(np.uint8)[x.reshape(-1).view(np.uint8)]


def qbinary(a__omi: np.ndarray, b__omi: np.ndarray, out__omi: np.ndarray, op: int, options: Sequence[Any]) -> None:
    """out = round(((a - a_zero) a_scale + (b - b_zero) b_scale) / scale) + zero for BINARY's add, formed as `quantized_add` says,
    and for its multiply round((a - a_zero) (b - b_zero) * scale) + zero. options: kind, a_zero, b_zero, zero, a_scale, b_scale,
    scale. Axes of b may be 1.
    """
    _, a_zero, b_zero, zero, _, _, scale = options
    a, b = a__omi.astype(np.float32), b__omi.astype(np.float32)
    with np.errstate(all="ignore"):
        if op == BINARY["multiply"]:
            y = (a - _FLOAT32(a_zero)) * (b - _FLOAT32(b_zero)) * _FLOAT32(scale)
        else:
            p, q, r = factors(options)
            y, zero = fused(a, p, fused(b, q, r)), 0
        out__omi[...] = _steps(y, zero, out__omi.dtype)


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
    """Windows of x (n, d, h, w, c) of the kind `source`: their largest values (REDUCE's max; the least of the kind where a
    window is in the padding), or round(sum of (x - x_zero) * (x_scale / (scale * count))) + zero (REDUCE's mean). options:
    x_zero, x_scale, scale, zero, and whether padding counts.
    """
    x_zero, x_scale, scale, zero, include_pad = options
    mean = op == REDUCE["mean"]
    least = np.iinfo(_DTYPES[source]).min
    over = [
        max((o - 1) * s + d * (k - 1) + 1 - size - pads[2 * i] - pads[2 * i + 1], 0)
        for i, (o, s, d, k, size) in enumerate(zip(out.shape[1:4], stride, dilation, kernel, x.shape[1:4], strict=True))
    ]
    around = [(pads[2 * i], pads[2 * i + 1] + over[i]) for i in range(3)]
    wide = np.pad(x.astype(np.float64) - (x_zero if mean else 0), ((0, 0), *around, (0, 0)), constant_values=0 if mean else least)
    kind = np.pad(np.ones(x.shape[1:4]), [(pads[2 * i], pads[2 * i + 1]) for i in range(3)], constant_values=float(include_pad))
    kind = np.pad(kind, [(0, o) for o in over])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]

    def slide(array: np.ndarray, first: int) -> Any:
        lead: tuple[Any, ...] = (slice(None),) * first
        cut = tuple(slice(None, (o - 1) * s + 1 if o else 0, s) for o, s in zip(out.shape[1:4], stride, strict=True))
        views: Any = np.lib.stride_tricks.sliding_window_view(array, reach, (first, first + 1, first + 2))
        views = views[lead + cut]
        end: tuple[Any, ...] = (..., *(slice(None, None, d) for d in dilation))
        return views[end]

    views = slide(wide, 1)
    if not mean:
        out[...] = views.max((-3, -2, -1))
        return
    with np.errstate(all="ignore"):
        by = _FLOAT32(x_scale) / (_FLOAT32(scale) * slide(kind, 0).sum((-3, -2, -1)).astype(np.float32))
        out[...] = _steps(views.sum((-3, -2, -1)).astype(np.float32) * by[None, ..., None], zero, out.dtype)

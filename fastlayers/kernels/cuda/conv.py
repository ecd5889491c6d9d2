"""Convolutions as products of gathered pixels: rows are pixels of the result, terms (kd, kh, kw, channel), columns channels.

A table, made once for each size, says where each term is from a pixel's first tap on; zeros around x are not read. Other
paddings are written out first, as are zeros around kernels of more taps than a word has bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..fits import fits, fits_taps, window_of
from ..halves import rounded
from ..table import PAD_MODES, Activation
from ._cuda import stream_pointer
from ._device import Array, empty, on_device, upload
from ._places import INVALID, SHIFT, Places
from ._product import FEW, Layout, Plan, few_rows, matrix, multiply, plan
from ._window import sizes_of
from .gemm import columns_of
from .padding import pad

__all__ = ["Packed", "conv", "conv_half_pack", "conv_pack"]

Ints = tuple[int, ...]
MOST_TAPS = INVALID - 1
STAGE = 16  # terms of a table are whole stages of any tile
_ZEROS, _NONE = PAD_MODES["zeros"], (0,) * 6


class Packed(NamedTuple):
    """Weights [group][kd, kh, kw, channel][column, rounded up] and bias (o,) or None, with what the kernel is told.

    A transposed convolution's are [group][residue][kd, kh, kw, channel][column, rounded up], taps in reverse.
    """

    weight: Array
    bias: Array | None
    kernel: Ints
    stride: Ints
    dilation: Ints
    groups: int
    channels: int  # of x, in a group
    columns: int  # of a group

    @property
    def sizes(self) -> tuple[int, int]:
        """Channels of x and of the result."""
        return self.groups * self.channels, self.groups * self.columns


def conv_pack(weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int) -> Packed:
    """Packs weight (o, c / groups, kd, kh, kw) and bias (o,) or None; stride and dilation are (d, h, w)."""
    fits_taps("conv_pack", (weight, bias), stride, dilation, groups)
    return columns_packed(weight, bias, stride, dilation, groups)


def conv_half_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int, half: int
) -> Packed:
    """`conv_pack` with weights of the values that are stored in 16 bits; `half` is one of `table.HALVES`."""
    return conv_pack(rounded(weight, half), bias, stride, dilation, groups)


def columns_packed(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """`conv_pack` of weights that fit."""
    o, c, *kernel = weight.shape
    groups, columns = max(groups, 1), o // max(groups, 1)
    terms_first = (
        weight.reshape(groups, columns, c, *kernel).transpose(0, 3, 4, 5, 2, 1).reshape(groups, c * math.prod(kernel), columns)
    )
    packed = upload(np.stack([columns_of(w) for w in terms_first]))
    given = None if bias is None else upload(bias)
    return Packed(packed, given, tuple(kernel), tuple(stride), tuple(dilation), groups, c, columns)


def steps(sizes: Sequence[int], channels: int, last: bool) -> tuple[Ints, int]:
    """Between neighbours along (n, d, h, w) in memory, and between channels."""
    d, h, w = sizes
    if last:
        return (d * h * w * channels, h * w * channels, w * channels, channels), 1
    return (channels * d * h * w, h * w, w, 1), d * h * w


def table_of(taps: Sequence[int], apart: Sequence[int], x_steps: Ints, channels: int, channel: int, numbered: bool) -> np.ndarray:
    """Table of the terms' offsets from tap 0, with their taps' indices, or 0 where every tap is in x; `apart`: taps, along d,
    h, w."""
    along = [np.arange(n, dtype=np.int64) * a * s for n, a, s in zip(taps, apart, x_steps[1:], strict=True)]
    places = (along[0][:, None, None] + along[1][:, None] + along[2]).reshape(-1, 1) + np.arange(
        channels, dtype=np.int64
    ) * channel
    if numbered:
        places += np.arange(len(places), dtype=np.int64)[:, None] << SHIFT
    found = np.full(max(-(-places.size // STAGE), 1) * STAGE, INVALID << SHIFT, np.int64)
    found[: places.size] = places.reshape(-1)
    return found


@lru_cache(256)
def _plan(
    x: Ints, out: Ints, pads: Ints, kernel: Ints, stride: Ints, dilation: Ints, groups: int, x_last: bool, out_last: bool,
    stream: int,
) -> Plan:  # fmt: skip
    """x and out: n, c, d, h, w."""
    (n, c, *size), (_, o, *space) = x, out
    x_steps, channel = steps(size, c, x_last)
    out_steps, _ = steps(space, o, out_last)
    numbered = any(pads)
    table = table_of(kernel, dilation, x_steps, c // groups, channel, numbered)
    image, plane, line = math.prod(space), space[1] * space[2], space[2]
    before = (-pads[0], -pads[2], -pads[4])
    taps = kernel if numbered else (1, 1, 1)
    terms = c // groups * math.prod(kernel)
    return plan(
        (Places(n * image, image, plane, line, terms, 0, 0, stride, before, dilation, tuple(size), taps, x_steps, 0, out_steps),),
        table,
    )


def padded(x: Array, pads: Sequence[int], mode: int, last: bool) -> Array:
    """x with its padding written out."""
    n, c, *space = sizes_of(x, last)
    larger = tuple(s + a + b for s, a, b in zip(space, pads[::2], pads[1::2], strict=True))
    out = empty((n, *larger, c) if last else (n, c, *larger))
    source = x if last else x.reshape(n * c, *space, 1)
    pad(source, out if last else out.reshape(n * c, *larger, 1), pads, mode, 0.0)
    return out


def aligned(*arrays: Array | None) -> bool:
    """Whether fours of all that are there may be read."""
    return all(a is None or a.aligned for a in arrays)


@on_device
def conv(
    x: Array, packed: Packed, out: Array, pads: Sequence[int], mode: int, x_last: bool, out_last: bool, residual: Array | None,
    activation: Activation,
) -> None:  # fmt: skip
    """out = activation(x * weight + bias + residual), a cross-correlation as in every framework."""
    fits("conv", packed.sizes, (x, out, residual), x_last | out_last << 1, window_of(packed, pads))
    convolved(x, packed, out, pads, mode, x_last, out_last, residual, activation)


def convolved(
    x: Array, packed: Packed, out: Array, pads: Sequence[int], mode: int, x_last: bool, out_last: bool, residual: Array | None,
    activation: Activation,
) -> None:  # fmt: skip
    """`conv` of arrays that fit."""
    if not out.size:
        return
    if any(pads) and x.size and (mode != _ZEROS or math.prod(packed.kernel) > MOST_TAPS):
        x, pads = padded(x, pads, mode, x_last), _NONE
    (n, c, *size), (_, o, *space) = sizes_of(x, x_last), sizes_of(out, out_last)
    groups, columns, stored = packed.groups, packed.columns, packed.weight.shape[2]
    image, pixels = math.prod(space), math.prod(size)
    pointwise = packed.kernel == packed.stride == (1, 1, 1) and groups == 1 and not any(pads)
    wide = (o if out_last or image == 1 else image) % 4 == 0 and (groups == 1 or columns % 4 == 0) and aligned(out, residual)
    w = packed.weight.flat
    if pointwise and (x_last or pixels == 1) and (out_last or image == 1):  # a matrix as it is
        if n * image <= FEW:
            few_rows(x, w, packed.bias, residual, out, n * image, c, o, stored, activation)
            return
        left = "rows4" if c % 4 == 0 and x.aligned else "rows"
        where, layout = matrix(n * image, c, o, stream_pointer()), Layout(o, stored, stored, wide=wide)
        multiply(left, "columns4", x.flat, where, w, packed.bias, residual, out, layout, activation)
        return
    where = _plan(
        sizes_of(x, x_last), sizes_of(out, out_last), tuple(pads), packed.kernel, packed.stride, packed.dilation, groups, x_last,
        out_last, stream_pointer(),
    )  # fmt: skip
    channels = packed.channels
    left = "gather4" if x_last and channels % 4 == 0 and x.aligned else "gather"
    column = 1 if out_last else image
    layout = Layout(
        columns, stored, stored, groups, channels * (1 if x_last else pixels), packed.weight.shape[1] * stored, columns * column,
        columns, column, not out_last and image > 1, wide,  # of one pixel an image, channels are neighbours
    )  # fmt: skip
    multiply(left, "columns4", x.flat, where, w, packed.bias, residual, out, layout, activation)

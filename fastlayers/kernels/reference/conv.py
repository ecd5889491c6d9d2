"""Convolution over three space axes, or any other number, one matrix product a tap, in float64 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..._tuples import NamedTuple
from ..fits import fits, fits_taps, window_of
from ..halves import rounded
from ..table import Activation
from .activation import unary
from .padding import padded

__all__ = ["Packed", "conv", "conv_half_pack", "conv_pack", "convolved", "taps_first"]


class Packed(NamedTuple):
    """Weights as `conv` reads them, in float64."""

    weight: np.ndarray  # (*kernel, groups, o / groups, c / groups)
    bias: np.ndarray  # (o,)
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """Channels of x and of the result."""
        groups, o, c = self.weight.shape[-3:]
        return groups * c, groups * o

    @property
    def kernel(self) -> tuple[int, ...]:
        """Taps along each axis."""
        return self.weight.shape[:-3]


def conv_pack(weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int) -> Packed:
    """Packs weight (o, c / groups, kd, kh, kw) and bias (o,) or None; stride and dilation are (d, h, w)."""
    fits_taps("conv_pack", (weight, bias), stride, dilation, groups)
    return taps_first(weight, bias, stride, dilation, groups)


def conv_half_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int, half: int
) -> Packed:
    """`conv_pack` with weights rounded to what is stored in 16 bits; `half` is one of `table.HALVES`."""
    return conv_pack(rounded(weight, half), bias, stride, dilation, groups)


def taps_first(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """`conv_pack` of weights that fit, of any number of axes."""
    o, c, *kernel = weight.shape
    taps = np.moveaxis(weight.reshape(groups, o // max(groups, 1), c, *kernel), (0, 1, 2), (-3, -2, -1))
    return Packed(
        taps.astype(np.float64), np.zeros(o) if bias is None else bias.astype(np.float64), tuple(stride), tuple(dilation)
    )


def conv(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    pads: Sequence[int],
    mode: int,
    x_last: bool,
    out_last: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """out = activation(x * weight + bias + residual), a cross-correlation as in every framework.

    Args:
        x: (n, c, d, h, w), or (n, d, h, w, c) if x_last; out and residual likewise if out_last.
        packed: what `conv_pack` returned.
        pads: (d before, d after, h before, h after, w before, w after), all >= 0; mode: a number of `PAD_MODES`.
    """
    fits("conv", packed.sizes, (x, out, residual), x_last | out_last << 1, window_of(packed, pads))
    convolved(x, packed, out, pads, mode, x_last, out_last, residual, activation)


def convolved(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    pads: Sequence[int],
    mode: int,
    x_last: bool,
    out_last: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """`conv` of arrays that fit, of any number of axes and any real dtype; pads below 0 leave out what is at an end of x."""
    y = out
    if x_last:
        x = np.moveaxis(x, -1, 1)
    if out_last:
        y = np.moveaxis(y, -1, 1)
        residual = None if residual is None else np.moveaxis(residual, -1, 1)
    groups, o, c = packed.weight.shape[-3:]
    n, space = y.shape[0], y.shape[2:]
    starts = [max(-before, 0) for before in pads[::2]]
    source = padded(x.astype(np.float64), 2, [max(p, 0) for p in pads], mode)
    # Infinities and NaN are data here: their products must not warn.
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.zeros((n, groups, o, math.prod(space)))
        for tap in np.ndindex(*packed.kernel):
            where = (slice(None), slice(None), *map(_positions, tap, space, packed.stride, packed.dilation, starts))
            total += packed.weight[tap] @ source[where].reshape(n, groups, c, total.shape[3])
        total = total.reshape(y.shape) + packed.bias.reshape(-1, *(1,) * len(space))
        y[...] = total if residual is None else total + residual
    unary(out, out, activation)


def _positions(tap: int, size: int, stride: int, dilation: int, first: int) -> slice:
    """The padded positions along one axis that a tap reads for `size` outputs."""
    start = first + tap * dilation
    return slice(start, start + size * stride, stride)

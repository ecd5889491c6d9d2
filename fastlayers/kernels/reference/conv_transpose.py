"""Transposed convolution over three space axes, or any other number: inputs are spread over what they reach, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..fits import fits, fits_taps
from ..table import Activation
from .activation import unary
from .conv import Packed

__all__ = ["conv_transpose", "conv_transpose_pack", "transposed", "transposed_taps"]


def conv_transpose_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """Packs weight (c, o / groups, kd, kh, kw) and bias (o,) or None; stride and dilation are (d, h, w)."""
    known = (groups * weight.shape[1],) if weight.ndim > 1 else (0,)
    fits_taps("conv_transpose_pack", (weight, bias), stride, dilation, groups, known)
    return transposed_taps(weight, bias, stride, dilation, groups)


def transposed_taps(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """`conv_transpose_pack` of weights that fit, of any number of axes."""
    c, o, *kernel = weight.shape
    taps = np.moveaxis(weight.reshape(groups, c // max(groups, 1), o, *kernel), (0, 2, 1), (-3, -2, -1))
    return Packed(
        taps.astype(np.float64), np.zeros(o * groups) if bias is None else bias.astype(np.float64), tuple(stride), tuple(dilation)
    )


def conv_transpose(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    pads: Sequence[int],
    x_last: bool,
    out_last: bool,
    activation: Activation,
) -> None:
    """out = activation(transposed convolution of x + bias), the gradient of a cross-correlation as in every framework.

    Input i reaches output ``i * stride + tap * dilation - before`` along each axis, if there is one.

    Args:
        x: (n, c, d, h, w), or (n, d, h, w, c) if x_last.
        out: likewise, if out_last. Its size alone says how many positions are wanted; those that nothing reaches hold the bias.
        packed: what `conv_transpose_pack` returned.
        pads: (d before, d after, h before, h after, w before, w after): what is left out at either end, or, below 0, put there.
    """
    fits("conv_transpose", packed.sizes, (x, out), x_last | out_last << 1)
    transposed(x, packed, out, pads, x_last, out_last)
    unary(out, out, activation)


def transposed(x: np.ndarray, packed: Packed, out: np.ndarray, pads: Sequence[int], x_last: bool, out_last: bool) -> None:
    """`conv_transpose` of arrays that fit, of any number of axes and any real dtype, without an activation."""
    x = np.moveaxis(x, -1, 1) if x_last else x
    y = np.moveaxis(out, -1, 1) if out_last else out
    groups, o, c = packed.weight.shape[-3:]
    n, space = y.shape[0], y.shape[2:]
    source = x.astype(np.float64).reshape(n, groups, c, *x.shape[2:])
    # Infinities and NaN are data here: their products must not warn.
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.zeros((n, groups, o, *space))
        for tap in np.ndindex(*packed.kernel):
            places = [
                _places(t * dilation - before, stride, size, wanted)
                for t, dilation, before, stride, size, wanted in zip(
                    tap, packed.dilation, pads[::2], packed.stride, x.shape[2:], space, strict=True
                )
            ]
            whole = (slice(None),) * 3
            inputs = source[whole + tuple(i for i, _ in places)]
            size = inputs.shape[3:]
            sums = packed.weight[tap] @ inputs.reshape(n, groups, c, math.prod(size))
            total[whole + tuple(to for _, to in places)] += sums.reshape(n, groups, o, *size)
        y[...] = total.reshape(y.shape) + packed.bias.reshape(-1, *(1,) * len(space))


def _places(first: int, stride: int, size: int, wanted: int) -> tuple[slice, slice]:
    """The inputs i along an axis whose output, first + i * stride, is one of those that are wanted; and these outputs."""
    start = max(0, -(first // stride))
    stop = max(start, min(size, -((first - wanted) // stride)))
    begin = start * stride + first
    return slice(start, stop), slice(begin, begin + (stop - start) * stride, stride)

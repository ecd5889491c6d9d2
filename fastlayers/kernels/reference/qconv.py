"""Convolutions and products of quantized values. Sums are exact; see `operators.quantized.parameters` for the rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from ..fits import fits, fits_taps, window_of
from ..table import KINDS

__all__ = ["qconv", "qconv_pack", "rounded"]

_DTYPES = {code: np.dtype(name) for name, code in KINDS.items()}


class Packed(NamedTuple):
    """Weights (o, i, d, h, w) as float64, their zero points taken away; the rest a number per channel, or None."""

    weight: np.ndarray
    factor: np.ndarray | None
    bias: np.ndarray | None
    shift: np.ndarray | None
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Channels of x and of the result."""
        return self.weight.shape[1] * self.groups, self.weight.shape[0]

    @property
    def kernel(self) -> tuple[int, ...]:
        """Taps along d, h and w."""
        return self.weight.shape[2:]


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
    sums (float32; None where the result is int32), biases (int32) or None, what is added to float results (float32) or None.
    """
    fits_taps("qconv_pack", (weight__oidhw, zero__o, factor__o, bias__o, shift__o), stride, dilation, groups)
    weight = weight__oidhw.astype(np.float64)
    if zero__o is not None:
        weight -= zero__o.astype(np.float64).reshape(-1, 1, 1, 1, 1)
    factor, bias, shift = (None if a is None else a.copy() for a in (factor__o, bias__o, shift__o))
    return Packed(weight, factor, bias, shift, tuple(stride), tuple(dilation), groups)


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
    """out = the convolution of (x - x_zero) with the weights, + bias, of the kind `target`: int32; float32(sum) * factor *
    x_scale, + shift; or, for uint8 and int8, round(float32(sum) * factor * x_scale) + value, cut off. x is of the kind `source`,
    (n, c, d, h, w), or (n, d, h, w, c) if x_last, and out likewise; x_zero has one element of x's dtype, x_scale one float32;
    None are 0 and 1.
    """
    fits("qconv", packed.sizes, (x, x_zero, x_scale, out), x_last | out_last << 1, window_of(packed, pads))
    if not out.size:
        return
    wide = (x if not x_last else np.moveaxis(x, -1, 1)).astype(np.float64)
    if x_zero is not None:
        wide = wide - float(x_zero.reshape(-1)[0])
    wide = np.pad(wide, ((0, 0), (0, 0), *((pads[2 * i], pads[2 * i + 1]) for i in range(3))))
    reach = [d * (k - 1) + 1 for d, k in zip(packed.dilation, packed.weight.shape[2:], strict=True)]
    views: Any = np.lib.stride_tricks.sliding_window_view(wide, reach, (2, 3, 4))
    s, d = packed.stride, packed.dilation
    views = views[:, :, :: s[0], :: s[1], :: s[2], :: d[0], :: d[1], :: d[2]]
    each = packed.weight.shape[1]
    parts = [
        np.tensordot(views[:, g * each : (g + 1) * each], weight, ([1, 5, 6, 7], [1, 2, 3, 4]))
        for g, weight in enumerate(np.split(packed.weight, packed.groups))
    ]
    total = np.concatenate(parts, -1)
    if packed.bias is not None:
        total = total + packed.bias
    y = _finished(total.astype(np.int64).astype(np.int32), packed, x_scale, target, value)
    out[...] = y if out_last else np.moveaxis(y, -1, 1)


def _finished(total: np.ndarray, packed: Packed, x_scale: np.ndarray | None, target: int, value: int) -> np.ndarray:
    """Sums with their channels last, as `target`."""
    if packed.factor is None:
        return total
    by = packed.factor if x_scale is None else packed.factor * x_scale.reshape(-1)[0]
    return rounded(total, by, packed.shift, target, value)


def rounded(total: np.ndarray, by: Any, shift: np.ndarray | None, target: int, value: int) -> np.ndarray:
    """Sums as the kind `target`: themselves; times `by`, + shift; or that rounded, + value, cut off."""
    dtype = _DTYPES[target]
    if dtype == np.int32:
        return total
    y = total.astype(np.float32) * by
    if dtype == np.float32:
        return np.asarray(y if shift is None else y + shift)
    info = np.iinfo(dtype)
    steps = np.clip(np.rint(y), info.min - value, info.max - value)
    return (np.where(steps == steps, steps, info.min - value) + value).astype(dtype)

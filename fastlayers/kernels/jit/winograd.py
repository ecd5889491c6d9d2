"""Winograd convolution's result, computed by the direct convolution: one kernel instead of three, and more exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..fits import fits_tile, fits_winograd
from ..table import PAD_MODES, Activation
from .conv import Packed, conv, conv_pack

__all__ = ["winograd", "winograd_pack"]

_ONES = 1, 1, 1


def winograd_pack(
    weight__oidhw: np.ndarray, bias__o: np.ndarray | None, tile: int, groups: int, stride: Sequence[int] = _ONES
) -> Packed:
    """Weights (o, i / groups, kd, kh, kw) of a convolution; the side of the output tiles makes no difference here."""
    fits_tile((weight__oidhw, bias__o), tile, groups, stride)
    return conv_pack(weight__oidhw, bias__o, tuple(stride), _ONES, groups)


def winograd(
    x: np.ndarray, packed: Packed, out: np.ndarray, pads: Sequence[int], x_last: bool, out_last: bool,
    residual: np.ndarray | None, activation: Activation,
) -> None:  # fmt: skip
    """out = activation(x * weight + bias + residual), a cross-correlation with zeros around x."""
    fits_winograd(packed, (x, out, residual), x_last | out_last << 1, pads)
    conv(x, packed, out, pads, PAD_MODES["zeros"], x_last, out_last, residual, activation)

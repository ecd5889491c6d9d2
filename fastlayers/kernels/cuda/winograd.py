"""Winograd convolution's answer, by the direct convolution: one kernel instead of three, and more exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..fits import fits_tile, fits_winograd
from ..table import PAD_MODES, Activation
from ._device import Array, on_device
from .conv import Packed, columns_packed, convolved

__all__ = ["winograd", "winograd_pack"]


def winograd_pack(
    weight: np.ndarray, bias: np.ndarray | None, tile: int, groups: int, stride: Sequence[int] = (1, 1, 1)
) -> Packed:
    """Packs weight (o, c / groups, kd, kh, kw) and bias (o,) or None; the outputs' tile makes no difference here."""
    fits_tile((weight, bias), tile, groups, stride)
    return columns_packed(weight, bias, stride, (1, 1, 1), groups)


@on_device
def winograd(
    x: Array, packed: Packed, out: Array, pads: Sequence[int], x_last: bool, out_last: bool, residual: Array | None,
    activation: Activation,
) -> None:  # fmt: skip
    """out = activation(x * weight + bias + residual), a cross-correlation with zeros around x."""
    fits_winograd(packed, (x, out, residual), x_last | out_last << 1, pads)
    convolved(x, packed, out, pads, PAD_MODES["zeros"], x_last, out_last, residual, activation)

"""Winograd convolution's answer, by the direct convolution: one kernel instead of three, and more exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..fits import fits, fits_tile, whole_slices, window_of
from ..table import PAD_MODES, Activation
from ._device import Array, on_device
from .conv import Packed, columns_packed, convolved

__all__ = ["winograd", "winograd_pack"]


def winograd_pack(weight: np.ndarray, bias: np.ndarray | None, tile: int) -> Packed:
    """Packs weight (o, c, 1, 3, 3) and bias (o,) or None; the outputs' tile, 2 or 4, makes no difference here."""
    fits_tile((weight, bias), tile)
    return columns_packed(weight, bias, (1, 1, 1), (1, 1, 1), 1)


@on_device
def winograd(
    x: Array, packed: Packed, out: Array, pads: Sequence[int], x_last: bool, out_last: bool, residual: Array | None,
    activation: Activation,
) -> None:  # fmt: skip
    """out = activation(x * weight + bias + residual), a cross-correlation with zeros around x."""
    whole_slices("winograd", pads)
    fits("winograd", packed.sizes, (x, out, residual), x_last | out_last << 1, window_of(packed, pads))
    convolved(x, packed, out, pads, PAD_MODES["zeros"], x_last, out_last, residual, activation)

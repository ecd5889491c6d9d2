"""Winograd convolution's answer, by the direct convolution: one kernel instead of three, and more exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..table import PAD_MODES, Activation
from ._device import Array, on_device
from .conv import Packed, conv, conv_pack

__all__ = ["winograd", "winograd_pack"]


def winograd_pack(weight: np.ndarray, bias: np.ndarray | None, tile: int) -> Packed:
    """Packs weight (o, c, 1, 3, 3) and bias (o,) or None; the outputs' tile, 2 or 4, makes no difference here."""
    return conv_pack(weight, bias, (1, 1, 1), (1, 1, 1), 1)


@on_device
def winograd(
    x: Array, packed: Packed, out: Array, pads: Sequence[int], x_last: bool, out_last: bool, residual: Array | None,
    activation: Activation,
) -> None:  # fmt: skip
    """out = activation(x * weight + bias + residual), a cross-correlation with zeros around x."""
    conv(x, packed, out, pads, PAD_MODES["zeros"], x_last, out_last, residual, activation)

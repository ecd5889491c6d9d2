"""Winograd's convolution, which the direct one stands in for: its answer is the same but for rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..table import PAD_MODES, Activation
from .conv import Packed, conv, conv_pack

__all__ = ["winograd", "winograd_pack"]


def winograd_pack(weight__oidhw: np.ndarray, bias__o: np.ndarray | None, tile: int) -> Packed:
    """Packs weight (o, c, 1, 3, 3) and bias (o,) or None; the outputs' tile, 2 or 4, makes no difference here."""
    return conv_pack(weight__oidhw, bias__o, (1, 1, 1), (1, 1, 1), 1)


def winograd(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    pads: Sequence[int],
    x_last: bool,
    out_last: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """out = activation(x * weight + bias + residual), a cross-correlation with zeros around x."""
    conv(x, packed, out, pads, PAD_MODES["zeros"], x_last, out_last, residual, activation)

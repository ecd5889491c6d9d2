"""Depthwise convolution: a convolution with as many groups as channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..table import Activation
from .conv import Packed, conv, conv_pack

__all__ = ["depthwise", "depthwise_pack"]


def depthwise_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], channels: int
) -> Packed:
    """Packs weight (channels * multiplier, 1, kd, kh, kw); output channel c * multiplier + m reads input channel c."""
    return conv_pack(weight, bias, stride, dilation, channels)


def depthwise(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    pads: Sequence[int],
    mode: int,
    channels_last: bool,
    residual: np.ndarray | None,
    activation: Activation,
) -> None:
    """As `conv`, with one layout for x, out and residual."""
    conv(x, packed, out, pads, mode, channels_last, channels_last, residual, activation)

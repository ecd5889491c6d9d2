"""Depthwise convolution: a convolution with as many groups as channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .conv import Packed, conv_pack
from .conv import conv as depthwise

__all__ = ["depthwise", "depthwise_pack"]


def depthwise_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], channels: int
) -> Packed:
    """Packs weight (channels * multiplier, 1, kd, kh, kw); output channel c * multiplier + m reads input channel c."""
    return conv_pack(weight, bias, stride, dilation, channels)

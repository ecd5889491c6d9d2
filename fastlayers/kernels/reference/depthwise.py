"""Depthwise convolution: a convolution with as many groups as channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..fits import fits, fits_taps, window_of
from ..table import Activation
from .conv import Packed, convolved, taps_first

__all__ = ["depthwise", "depthwise_pack"]


def depthwise_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], channels: int
) -> Packed:
    """Packs weight (channels * multiplier, 1, kd, kh, kw); output channel c * multiplier + m reads input channel c."""
    fits_taps("depthwise_pack", (weight, bias), stride, dilation, channels)
    return taps_first(weight, bias, stride, dilation, channels)


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
    fits("depthwise", packed.sizes, (x, out, residual), int(channels_last), window_of(packed, pads))
    convolved(x, packed, out, pads, mode, channels_last, channels_last, residual, activation)

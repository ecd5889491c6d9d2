"""Winograd convolution's answer, which is the direct convolution's: zeros around."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..fits import fits_tile, fits_winograd
from ..table import PAD_MODES, Activation
from .conv import Packed, convolved, taps_first

__all__ = ["winograd", "winograd_pack"]


def winograd_pack(
    weight: np.ndarray, bias: np.ndarray | None, tile: int, groups: int, stride: Sequence[int] = (1, 1, 1)
) -> Packed:
    """Packs weight (o, c / groups, kd, kh, kw) and bias (o,) or None, of a kernel, stride and tile of `winograd_points.tiles_of`.

    The tile makes no difference here.
    """
    fits_tile((weight, bias), tile, groups, stride)
    return taps_first(weight, bias, stride, (1, 1, 1), groups)


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
    """out = activation(x * weight + bias + residual), a cross-correlation with zeros around x.

    Args:
        x: (n, c, d, h, w), or (n, d, h, w, c) if x_last.
        packed: what `winograd_pack` returned.
        out, residual: (n, o, d, h, w), or (n, d, h, w, o) if out_last.
        pads: two for each of d, h and w, all >= 0; none for d if it has one tap, and for d alone of a kernel (kd, 1, 1).
    """
    fits_winograd(packed, (x, out, residual), x_last | out_last << 1, pads)
    convolved(x, packed, out, pads, PAD_MODES["zeros"], x_last, out_last, residual, activation)

"""Convolution: its kernel calls, of the algorithm that `conv_choice` chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.table import Activation
from .conv_choice import Convolution, chosen
from .conv_dilated import run_dilated
from .geometry import five
from .machine import Machine

__all__ = ["call"]


def call(
    m: Machine, c: Convolution, x: Any, weight: np.ndarray, bias: np.ndarray | None, out: Any, residual: Any, act: Activation,
    floats: Callable[[], np.ndarray] | None = None,
) -> None:  # fmt: skip
    """The kernel calls of a convolution; x, out and residual may be without a batch. `floats` makes the weights when they are
    packed, where `weight` has them otherwise than as float32.
    """
    window, groups, mode, x_last, out_last, _, _, half = c
    axes = len(window.kernel)
    x, out = m.view(x, five(x.shape, x_last, axes)), m.view(out, five(out.shape, out_last, axes))
    if residual is not None:
        residual = m.view(residual, out.shape)
    taps, stride, dilation, pads = three = window.in_three()
    shape = (*weight.shape[:2], *taps)
    name, tile, found, _ = chosen(c, three, x.shape, shape, out.shape, residual is not None)

    def made() -> np.ndarray:
        return (weight if floats is None else floats()).reshape(shape)

    if name == "depthwise":
        packed = m.pack("depthwise_pack", lambda: (made(), bias, stride, dilation, x.shape[-1 if x_last else 1]))
        m.call("depthwise", x, packed, out, pads, mode, x_last, residual, act)
        return
    if name == "winograd":
        packed = m.pack("winograd_pack", lambda: (made(), bias, tile, groups, stride), tile)
        m.call("winograd", x, packed, out, pads, x_last, out_last, residual, act)
        return
    if found is not None:
        packed = m.pack("winograd_pack", lambda: (made(), bias, found.tile, groups, (1, 1, 1)), found.tile)
        run_dilated(m, found, packed, x, out, x_last, out_last, act)
        return
    more = (half,) if name == "conv_half" else ()
    packed = m.pack(f"{name}_pack", lambda: (made(), bias, stride, dilation, groups, *more))
    m.call("conv", x, packed, out, pads, mode, x_last, out_last, residual, act)

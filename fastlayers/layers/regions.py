"""Layers that pool boxes of images, with torchvision's names and arguments. They have no weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..functional import roi_align, roi_pool
from ..functional._conv_rules import channels_last
from ..functional._regions import samples_of
from ..ir.checks import flag, integers, number
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["RoIAlign", "RoIPool"]


class RoIPool(Layer):
    """`functional.roi_pool`: the largest value in each quantized bin of a box.

    Args:
        output_size: bins along h and w; an int, or one per axis.
        spatial_scale: what coordinates of boxes are multiplied by.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(self, output_size: int | Sequence[int], spatial_scale: float = 1.0, *, layout: str = "nchw") -> None:
        self.output_size = integers("RoIPool", "output_size", output_size, 2, 1)
        self.spatial_scale, self.layout = number("RoIPool", "spatial_scale", spatial_scale), layout
        channels_last("RoIPool", layout, 2)

    def __call__(self, x: Tensor, boxes: Tensor) -> np.ndarray:
        """Pools boxes ``(k, 5)`` of x; returns float32."""
        return roi_pool(x, boxes, self.output_size, self.spatial_scale, layout=self.layout)

    def _arguments(self) -> str:
        return f"output_size={self.output_size}, spatial_scale={self.spatial_scale}"


class RoIAlign(Layer):
    """`functional.roi_align`: means of bilinear samples of the bins of boxes.

    Args:
        output_size: bins along h and w; an int, or one per axis.
        spatial_scale: what coordinates of boxes are multiplied by.
        sampling_ratio: samples along each axis of a bin, at most 128; 0 or less: one per pixel, rounded up.
        aligned: whether coordinates are half a pixel less.
        mode: ``"avg"`` or ``"max"``.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(
        self,
        output_size: int | Sequence[int],
        spatial_scale: float = 1.0,
        sampling_ratio: int = -1,
        aligned: bool = False,
        *,
        mode: str = "avg",
        layout: str = "nchw",
    ) -> None:
        self.output_size = integers("RoIAlign", "output_size", output_size, 2, 1)
        self.spatial_scale = number("RoIAlign", "spatial_scale", spatial_scale)
        self.sampling_ratio = samples_of("RoIAlign", sampling_ratio)
        self.aligned, self.mode, self.layout = flag("RoIAlign", "aligned", aligned), mode, layout
        channels_last("RoIAlign", layout, 2)

    def __call__(self, x: Tensor, boxes: Tensor) -> np.ndarray:
        """Samples boxes ``(k, 5)`` of x; returns float32."""
        fixed = (self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)
        return roi_align(x, boxes, *fixed, mode=self.mode, layout=self.layout)

    def _arguments(self) -> str:
        return f"output_size={self.output_size}, spatial_scale={self.spatial_scale}, sampling_ratio={self.sampling_ratio}"

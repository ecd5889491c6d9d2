"""Layers that change the sizes of maps. They have no weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import shown
from ..errors import ArgumentError
from ..functional import interpolate, pixel_shuffle, pixel_unshuffle
from ..functional._conv_rules import channels_last
from ..functional._resampling import MODES
from ..ir.checks import integer
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["PixelShuffle", "PixelUnshuffle", "Upsample"]


class Upsample(Layer):
    """`functional.interpolate` with its arguments fixed.

    Args:
        size: sizes of the result along space, an int or one per axis; or None, with `scale_factor`.
        scale_factor: sizes are multiplied by it and rounded down; or None, with `size`.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"``, ``"trilinear"``, ...
        align_corners: for linear and cubic modes, whether the first and last pixels of x and of the result coincide.
        recompute_scale_factor: whether positions follow the ratio of sizes in place of `scale_factor`.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    >>> import fastlayers as fl
    >>> fl.Upsample(scale_factor=2)([[[1.0, 3.0]]])
    array([[[1., 1., 3., 3.]]], dtype=float32)
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        *,
        layout: str = "nchw",
    ) -> None:
        if not isinstance(mode, str) or mode not in MODES:
            raise ArgumentError(f"Upsample: mode is {shown(mode)}: expected one of {', '.join(map(repr, MODES))}")
        if (size is None) == (scale_factor is None):
            raise ArgumentError(
                f"Upsample: size is {size!r}, scale_factor {scale_factor!r}: expected one of them, the other None"
            )
        self._fixed: dict[str, Any] = {
            "size": size,
            "scale_factor": scale_factor,
            "mode": mode,
            "align_corners": align_corners,
            "recompute_scale_factor": recompute_scale_factor,
            "layout": layout,
        }

    def __call__(self, x: Tensor) -> np.ndarray:
        """Resamples x; returns float32."""
        return interpolate(x, **self._fixed)

    def _arguments(self) -> str:
        return ", ".join(f"{k}={v!r}" for k, v in self._fixed.items() if v is not None and (k, v) != ("layout", "nchw"))


class PixelShuffle(Layer):
    """`functional.pixel_shuffle`: makes blocks of pixels of channels.

    Args:
        upscale_factor: how many pixels an edge of a block has.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(self, upscale_factor: int, *, layout: str = "nchw") -> None:
        self.upscale_factor, self.layout = integer("PixelShuffle", "upscale_factor", upscale_factor, 1), layout
        channels_last("PixelShuffle", layout, 2)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Shuffles x, with or without a batch; returns float32."""
        return pixel_shuffle(x, self.upscale_factor, layout=self.layout)

    def _arguments(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Layer):
    """`functional.pixel_unshuffle`: makes channels of blocks of pixels.

    Args:
        downscale_factor: how many pixels an edge of a block has.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(self, downscale_factor: int, *, layout: str = "nchw") -> None:
        self.downscale_factor, self.layout = integer("PixelUnshuffle", "downscale_factor", downscale_factor, 1), layout
        channels_last("PixelUnshuffle", layout, 2)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Unshuffles x, with or without a batch; returns float32."""
        return pixel_unshuffle(x, self.downscale_factor, layout=self.layout)

    def _arguments(self) -> str:
        return f"downscale_factor={self.downscale_factor}"

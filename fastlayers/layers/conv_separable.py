"""Separable convolution layers: depthwise, then pointwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.checks import integer
from ._base import Layer
from .conv import Conv1d, Conv2d, DepthwiseConv1d, DepthwiseConv2d

if TYPE_CHECKING:
    from ..functional._types import Padding, Tensor

__all__ = ["SeparableConv1d", "SeparableConv2d"]


class _SeparableConv(Layer):
    """The base of the classes."""

    _parts: tuple[Any, Any]  # classes of the depthwise and of the pointwise part

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        depth_multiplier: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        layout: str = "nchw",
        activation: Any = None,
    ) -> None:
        name = type(self).__name__
        channels = integer(name, "in_channels", in_channels, 1)
        multiplier = integer(name, "depth_multiplier", depth_multiplier, 1)
        depthwise, pointwise = self._parts
        self.depthwise = depthwise(
            channels, kernel_size, stride, padding, dilation, multiplier, False, padding_mode, layout=layout
        )
        self.pointwise = pointwise(channels * multiplier, out_channels, 1, bias=bias, layout=layout, activation=activation)

    def forward(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x, with or without a batch; returns float32, laid out as x."""
        y: np.ndarray = self.pointwise(self.depthwise(x))
        return y

    def _keras(self) -> dict[str, tuple[int, ...]]:
        first, second = self.depthwise._keras(), self.pointwise._keras()
        return {"depthwise_kernel": first["kernel"], "pointwise_kernel": second.pop("kernel"), **second}

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        first = self.depthwise._from_keras({"kernel": given.pop("depthwise_kernel")})
        second = self.pointwise._from_keras({"kernel": given.pop("pointwise_kernel"), **given})
        return {"depthwise.weight": first["weight"], **{f"pointwise.{name}": array for name, array in second.items()}}


class SeparableConv1d(_SeparableConv):
    """Every channel of a sequence convolved alone, then all mixed; see `SeparableConv2d` for the arguments, `Conv1d` for padding.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.SeparableConv1d(2, 4, 3, padding="same")
    >>> layer.load_keras([np.ones((3, 2, 1)), np.ones((1, 2, 4)), np.zeros(4)])
    Loaded(missing_keys=[], unexpected_keys=[])
    >>> layer(np.ones((1, 2, 10))).shape
    (1, 4, 10)
    """

    _parts = (DepthwiseConv1d, Conv1d)


class SeparableConv2d(_SeparableConv):
    """Every channel of a plane convolved alone, then all mixed: ``act((x * depthwise) pointwiseᵀ + bias)``, as in Keras.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        out_channels: channels of the result.
        kernel_size: of the depthwise part; an int, or one per axis.
        stride: of the depthwise part; an int, or one per axis.
        padding: of the depthwise part: an int, one per axis, a pair (before, after) an axis, ``"valid"``, or ``"same"`` by
            TensorFlow's rule.
        dilation: of the depthwise part; an int, or one per axis.
        depth_multiplier: channels between the parts an input channel.
        bias: whether there is a bias, which belongs to the pointwise part, as does the activation.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.

    Tensors: ``depthwise.weight`` (in_channels * depth_multiplier, 1, kh, kw), ``pointwise.weight`` (out_channels, in_channels *
    depth_multiplier, 1, 1) and ``pointwise.bias`` (out_channels,). Keras' SeparableConv2D: depthwise_kernel (kh, kw, in_channels,
    depth_multiplier), pointwise_kernel (1, 1, in_channels * depth_multiplier, out_channels), bias.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.SeparableConv2d(3, 4, 3, stride=2, padding="same", layout="nhwc", activation="relu")
    >>> layer.load_keras([np.ones((3, 3, 3, 1)), np.ones((1, 1, 3, 4)), np.zeros(4)])
    Loaded(missing_keys=[], unexpected_keys=[])
    >>> layer(np.ones((1, 8, 8, 3))).shape
    (1, 4, 4, 4)
    """

    _parts = (DepthwiseConv2d, Conv2d)

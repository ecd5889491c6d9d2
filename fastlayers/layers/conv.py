"""Convolution layers over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..calls.conv_separable import factors
from ..calls.machine import Machine
from ..errors import ArgumentError
from ..functional import conv1d, conv2d, conv3d, squeeze, unsqueeze
from ..functional._activation_names import IDENTITY
from ..functional._conv import attributes, run_conv
from ..functional._conv_rules import Place, conv_shape, settled, window
from ..graph.record import cast, record
from ..graph.symbol import Symbol
from ..ir.checks import integer
from ..ir.graph import Node
from ._eager import Eager
from ._windows import Windowed

if TYPE_CHECKING:
    from ..functional._types import Padding, Tensor

__all__ = ["Conv1d", "Conv2d", "Conv3d", "DepthwiseConv1d", "DepthwiseConv2d"]


class _Conv(Windowed):
    """The base of the three classes; each says over how many axes it goes."""

    _defaults: ClassVar[dict[str, Any]] = {"padding": 0, "dilation": 1, "groups": 1, "padding_mode": "zeros", "layout": "nchw"}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        layout: str = "nchw",
        activation: Any = None,
    ) -> None:
        place = window(
            self._sizes(in_channels, out_channels, kernel_size), self._axes, stride, padding, dilation, groups, padding_mode,
            layout, causal=True,
        )  # fmt: skip
        self._place = settled(place, self.kernel_size)
        given = {
            "stride": stride, "padding": padding, "dilation": dilation, "groups": groups,
            "padding_mode": padding_mode, "layout": layout,
        }  # fmt: skip
        self._begin(bias, activation, given)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x, with or without a batch; returns float32, laid out as x."""
        if isinstance(x, Symbol):
            tensors = self._tensors()
            return self._record(x, tensors["weight"], tensors.get("bias"))
        return self._apply(self._packed(), x)

    def _shape(self, x: tuple[int, ...]) -> Any:
        return conv_shape(self._place, x, self._weight_shape, None, None)

    def _run(self, m: Machine, shape: tuple[int, ...], x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        return run_conv(self._place, shape, x, weight, bias, None, self._activation_code, m)

    def _attributes(self) -> dict[str, Any]:
        return attributes(self._place, self._activation_code)


class Conv1d(_Conv):
    """Convolution over a sequence, ``(n, c, l)``; see `Conv2d` for the arguments.

    `padding` may also be ``"causal"``, as in Keras: no result reads what comes after it.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.Conv1d(2, 4, 3, padding=1)
    >>> _ = layer.load_state_dict({"weight": np.ones((4, 2, 3)), "bias": np.zeros(4)})
    >>> layer(np.ones((1, 2, 10))).shape
    (1, 4, 10)
    """

    _axes = 1
    _function = staticmethod(conv1d)


class Conv2d(_Conv):
    """Convolution over a plane: ``act(x * weight + bias)``, a cross-correlation as in every framework.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        out_channels: channels of the result.
        kernel_size: an int, or one per axis.
        stride: an int, or one per axis.
        padding: an int, one per axis, a pair (before, after) an axis, ``"valid"``, or ``"same"`` by TensorFlow's rule.
        dilation: the distance between the taps of the kernel; an int, or one per axis.
        groups: number of groups of channels, each with separate weights.
        bias: whether there is a bias.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.

    A call chooses its algorithm as a compiled model with ``precision="default"`` does, Winograd's among them, and gives the same
    bits. For sums formed tap by tap, compile the layer with ``precision="strict"``.

    Tensors: ``weight`` (out_channels, in_channels / groups, kh, kw), in both layouts, and ``bias`` (out_channels,). Keras'
    Conv2D: kernel (kh, kw, in_channels / groups, out_channels), bias; its DepthwiseConv2D is `DepthwiseConv2d`.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.Conv2d(3, 4, 3, stride=2, padding=1, activation="relu")
    >>> _ = layer.load_state_dict({"weight": np.ones((4, 3, 3, 3)), "bias": np.zeros(4)})
    >>> layer(np.ones((1, 3, 8, 8))).shape
    (1, 4, 4, 4)
    """

    _axes = 2
    _function = staticmethod(conv2d)


class Conv3d(_Conv):
    """Convolution over a volume, ``(n, c, d, h, w)``; see `Conv2d` for the arguments.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.Conv3d(1, 2, 3, bias=False)
    >>> _ = layer.load_state_dict({"weight": np.ones((2, 1, 3, 3, 3))})
    >>> layer(np.ones((1, 1, 3, 3, 3))).shape
    (1, 2, 1, 1, 1)
    """

    _axes = 3
    _function = staticmethod(conv3d)


class _DepthwiseConv(_Conv):
    """The base of depthwise classes: a convolution with as many groups as channels, under Keras' name and weights."""

    _defaults: ClassVar[dict[str, Any]] = {
        "padding": 0, "dilation": 1, "depth_multiplier": 1, "padding_mode": "zeros", "layout": "nchw"
    }  # fmt: skip

    def __init__(
        self,
        in_channels: int,
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
        self.depth_multiplier = integer(name, "depth_multiplier", depth_multiplier, 1)
        super().__init__(
            channels, channels * self.depth_multiplier, kernel_size, stride, padding, dilation, channels, bias, padding_mode,
            layout=layout, activation=activation,
        )  # fmt: skip

    def _arguments(self) -> str:
        return f"{self.in_channels}, {self._rest({**self._given, 'depth_multiplier': self.depth_multiplier})}"

    def _keras(self) -> dict[str, tuple[int, ...]]:
        kernel: dict[str, tuple[int, ...]] = {"kernel": (*self.kernel_size, self.in_channels, self.depth_multiplier)}
        return {**kernel, "bias": (self.out_channels,)} if "bias" in self._shapes else kernel

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given["weight"] = np.moveaxis(given.pop("kernel"), (-2, -1), (0, 1)).reshape(self._weight_shape)
        return given


class DepthwiseConv1d(_DepthwiseConv):
    """Every channel of a sequence convolved alone, ``(n, c, l)``; see `DepthwiseConv2d` for the arguments, `Conv1d` for padding.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.DepthwiseConv1d(2, 3, depth_multiplier=2)
    >>> _ = layer.load_state_dict({"weight": np.ones((4, 1, 3)), "bias": np.zeros(4)})
    >>> layer(np.ones((1, 2, 10))).shape
    (1, 4, 8)
    """

    _axes = 1
    _function = staticmethod(conv1d)


class DepthwiseConv2d(_DepthwiseConv):
    """Every channel of a plane convolved alone: output channel ``c * depth_multiplier + m`` is ``act(x[c] * weight + bias)``.

    It is `Conv2d` with ``groups=in_channels`` under Keras' name: made for Keras' arguments and weights.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        kernel_size: an int, or one per axis.
        stride: an int, or one per axis.
        padding: an int, one per axis, a pair (before, after) an axis, ``"valid"``, or ``"same"`` by TensorFlow's rule.
        dilation: the distance between the taps of the kernel; an int, or one per axis.
        depth_multiplier: output channels an input channel.
        bias: whether there is a bias.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.
        separable: whether kernels that are all products of a column and a row (see `functional._conv_separable`) run as two
            passes: ``"auto"`` where that is faster, which it is from 7x7 on; True wherever they are; False never.

    Tensors: ``weight`` (in_channels * depth_multiplier, 1, kh, kw), in both layouts, and ``bias`` of as many channels. Keras'
    DepthwiseConv2D: kernel (kh, kw, in_channels, depth_multiplier), bias.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.DepthwiseConv2d(3, 3, stride=2, padding="same", layout="nhwc")
    >>> layer.load_keras([np.ones((3, 3, 3, 1)), np.zeros(3)])
    Loaded(missing_keys=[], unexpected_keys=[])
    >>> layer(np.ones((1, 8, 8, 3))).shape
    (1, 4, 4, 3)
    """

    _axes = 2
    _function = staticmethod(conv2d)

    def __init__(
        self,
        in_channels: int,
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
        separable: bool | str = "auto",
    ) -> None:
        if not (separable == "auto" or isinstance(separable, bool)):
            raise ArgumentError(f"DepthwiseConv2d: separable is {separable!r}: expected 'auto', True or False")
        super().__init__(
            in_channels, kernel_size, stride, padding, dilation, depth_multiplier, bias, padding_mode,
            layout=layout, activation=activation,
        )  # fmt: skip
        self._separable = separable

    def _attributes(self) -> dict[str, Any]:
        return {**super()._attributes(), **({"direct": True} if self._separable is False else {})}

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        found = factors(tensors["weight"]) if self._separable is True else None
        if found is None:
            return super()._pack(tensors)
        column, row = self._passes()
        bias = {"bias": tensors["bias"]} if "bias" in tensors else {}
        nodes = [
            Node("Conv", ("x0", "column", None), ("between",), {**attributes(column, IDENTITY), "direct": True}),
            Node(
                "Conv", ("between", "row", *(bias or (None,))), ("y",), {**attributes(row, self._activation_code), "direct": True}
            ),
        ]
        return Eager(nodes, {"column": found[0], "row": found[1], **bias}, self._axes + 2), None

    def _passes(self) -> tuple[Place, Place]:
        """The places of the column and the row of every kernel."""
        column, row = (_only(self._place, axis) for axis in (0, 1))
        return column, row._replace(groups=self.out_channels)

    def _record(self, x: Symbol, weight: np.ndarray, bias: np.ndarray | None, **more: Any) -> np.ndarray:
        found = factors(weight) if self._separable is True else None
        if found is not None:
            column, row = self._passes()
            between = self._along(x, column, found[0], None, None, None)
            return self._along(between, row, found[1], bias, self._activation_code, more.get("residual"))
        if self._separable == "auto":
            return super()._record(x, weight, bias, **more)
        # No function says that a convolution is to stay one.
        conv_shape(self._place, x.shape, self._weight_shape, None, None)
        alone = x.ndim == self._axes + 1
        given: Any = unsqueeze(x, 0) if alone else x
        result: np.ndarray = record("Conv", cast(given, np.float32), weight, bias, **self._attributes())
        return squeeze(result, 0) if alone else result

    def _along(self, x: Any, place: Place, weight: np.ndarray, bias: Any, activation: Any, residual: Any) -> np.ndarray:
        """One of the two passes on a symbolic value."""
        padding: Any = "same" if place.padding is None else place.padding
        layout = "nhwc" if place.last else "nchw"
        return conv2d(
            x, weight, bias, place.stride, padding, place.dilation, place.groups, padding_mode=place.mode,
            layout=layout, activation=activation, residual=residual,
        )  # fmt: skip


def _only(place: Place, axis: int) -> Place:
    """The window of the pass along one of two axes, of kernels that are products of a column and a row."""

    def only(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(value if i == axis else 1 for i, value in enumerate(values))

    padding = None if place.padding is None else tuple(p if i == axis else (0, 0) for i, p in enumerate(place.padding))
    return place._replace(stride=only(place.stride), dilation=only(place.dilation), padding=padding)

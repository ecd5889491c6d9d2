"""Transposed convolution layers over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, UnsupportedError, refuses_shortage
from ..functional import conv_transpose1d, conv_transpose2d, conv_transpose3d
from ..functional._activation_names import resolve
from ..functional._conv_transpose import pack_transposed, plan_transposed, run_transposed
from ..functional._conv_transpose_rules import Plan, transposed
from ..graph.arrays import as_float32
from ..graph.symbol import Symbol
from ..ir.checks import integer, integers
from ._base import WithWeight
from ._text import arguments

if TYPE_CHECKING:
    from ..functional._types import Padding, Tensor

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

# Input shapes whose plans a layer keeps; with more than these, it starts again.
_PLANS = 64


class _ConvTranspose(WithWeight):
    """What the three classes share; each says over how many axes it goes."""

    _axes = 0
    _function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        output_padding: int | Sequence[int] | None = None,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        *,
        layout: str = "nchw",
        activation: Any = None,
    ) -> None:
        name = type(self).__name__
        self.in_channels = integer(name, "in_channels", in_channels, 0)
        self.out_channels = integer(name, "out_channels", out_channels, 0)
        self.kernel_size = integers(name, "kernel_size", kernel_size, self._axes, 1)
        if padding_mode != "zeros":
            raise ArgumentError(f"{name}: padding_mode is {padding_mode!r}: expected 'zeros'")
        self._name = f"conv_transpose{self._axes}d"
        self._place = transposed(self._name, self._axes, stride, padding, output_padding, groups, dilation, layout)
        if self.in_channels % groups or self.out_channels % groups:
            raise ArgumentError(
                f"{name}: groups is {groups}, in_channels {in_channels}, out_channels {out_channels}: "
                "expected multiples of groups"
            )
        self._activation_code = resolve(name, activation)
        self._given = {
            "stride": stride, "padding": padding, "output_padding": output_padding, "groups": groups, "dilation": dilation,
            "layout": layout,
        }  # fmt: skip
        self._weight_shape = (self.in_channels, self.out_channels // groups, *self.kernel_size)
        shapes: dict[str, tuple[int, ...]] = {"weight": self._weight_shape}
        self._shapes = {**shapes, "bias": (self.out_channels,)} if bias else shapes
        self._plans: dict[Any, Plan] = {}

    def __call__(self, x: Tensor, output_size: Sequence[int] | None = None) -> np.ndarray:
        """Applies the layer.

        Args:
            x: with or without a batch, laid out as the layer says.
            output_size: sizes of the result's space, or its whole shape, instead of the layer's output padding; or None.

        Returns:
            float32, laid out as x.
        """
        if isinstance(x, Symbol):
            tensors = self._tensors()
            result: np.ndarray = type(self)._function(
                x,
                tensors["weight"],
                tensors.get("bias"),
                **self._given,
                activation=self._activation_code,
                output_size=output_size,
            )
            return result
        kernel, packed = self._packed()
        x = as_float32(x, self._name, "x")
        plan = (output_size is None and self._plans.get(x.shape)) or self._plan(x.shape, output_size)
        return run_transposed(kernel, x, packed, plan, self._activation_code)

    @refuses_shortage("preparing a layer")
    def _plan(self, shape: tuple[int, ...], output_size: Sequence[int] | None) -> Plan:
        plan = plan_transposed(self._place, shape, self._weight_shape, None, output_size)
        if output_size is None:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[shape] = plan
        return plan

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        return pack_transposed(self._place, tensors["weight"], tensors.get("bias")), None

    def _keras(self) -> dict[str, tuple[int, ...]]:
        if self._place.groups > 1:
            raise UnsupportedError(f"{type(self).__name__}.load_keras: Keras has no groups here: use load_state_dict")
        kernel: dict[str, tuple[int, ...]] = {"kernel": (*self.kernel_size, self.out_channels, self.in_channels)}
        return {**kernel, "bias": (self.out_channels,)} if "bias" in self._shapes else kernel

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given["weight"] = np.moveaxis(given.pop("kernel"), (-1, -2), (0, 1))
        return given

    def _arguments(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self._place.stride}"
        defaults = {"padding": 0, "output_padding": None, "groups": 1, "dilation": 1, "layout": "nchw"}
        text += "".join(f", {name}={self._given[name]!r}" for name, default in defaults.items() if self._given[name] != default)
        return text + ("" if "bias" in self._shapes else ", bias=False") + arguments(self._activation_code)


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution over a sequence, ``(n, c, l)``; see `ConvTranspose2d` for the arguments.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.ConvTranspose1d(2, 4, 8, stride=4, padding=2)
    >>> _ = layer.load_state_dict({"weight": np.ones((2, 4, 8)), "bias": np.zeros(4)})
    >>> layer(np.ones((1, 2, 10))).shape
    (1, 4, 40)
    """

    _axes = 1
    _function = staticmethod(conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution over a plane: ``act(y + bias)``, input i adding ``x[i] * weight`` to y from ``i * stride`` on.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        out_channels: channels of the result.
        kernel_size: an int, or one per axis.
        stride: an int, or one per axis.
        padding: what is left out at the ends of the result: an int, one per axis, a pair (before, after) an axis; or ``"valid"``
            or ``"same"``, by Keras' rule: sizes are then ``(size - 1) * stride + max(k, stride)``, or ``size * stride``.
        output_padding: how much longer the result is at its end; an int, or one per axis. None is 0, or, if padding is a name,
            what Keras makes of it.
        groups: number of groups of channels, each with separate weights.
        bias: whether there is a bias.
        dilation: the distance between the taps of the kernel; an int, or one per axis.
        padding_mode: ``"zeros"``, as in torch.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.

    Tensors: ``weight`` (in_channels, out_channels / groups, kh, kw), in both layouts, and ``bias`` (out_channels,). Keras'
    Conv2DTranspose: kernel (kh, kw, out_channels, in_channels), bias.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.ConvTranspose2d(3, 4, 3, stride=2, padding=1)
    >>> _ = layer.load_state_dict({"weight": np.ones((3, 4, 3, 3)), "bias": np.zeros(4)})
    >>> x = np.ones((1, 3, 8, 8))
    >>> layer(x).shape, layer(x, output_size=(16, 16)).shape
    ((1, 4, 15, 15), (1, 4, 16, 16))
    """

    _axes = 2
    _function = staticmethod(conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution over a volume, ``(n, c, d, h, w)``; see `ConvTranspose2d` for the arguments.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.ConvTranspose3d(1, 2, 2, stride=2, bias=False)
    >>> _ = layer.load_state_dict({"weight": np.ones((1, 2, 2, 2, 2))})
    >>> layer(np.ones((1, 1, 3, 3, 3))).shape
    (1, 2, 6, 6, 6)
    """

    _axes = 3
    _function = staticmethod(conv_transpose3d)

"""Transposed convolution layers over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..calls.machine import Machine
from ..errors import ArgumentError, UnsupportedError
from ..functional import conv_transpose1d, conv_transpose2d, conv_transpose3d
from ..functional._conv_transpose import attributes, run_transposed
from ..functional._conv_transpose_rules import transposed, transposed_shape
from ..graph.arrays import as_float32
from ..graph.symbol import Symbol
from ._windows import Windowed

if TYPE_CHECKING:
    from ..functional._types import Padding, Tensor

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvTranspose(Windowed):
    """The base of the three classes; each says over how many axes it goes."""

    _operator = "ConvTranspose"
    _defaults: ClassVar[dict[str, Any]] = {
        "padding": 0, "output_padding": None, "groups": 1, "dilation": 1, "layout": "nchw"
    }  # fmt: skip

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
        name = self._sizes(in_channels, out_channels, kernel_size)
        if padding_mode != "zeros":
            raise ArgumentError(f"{type(self).__name__}: padding_mode is {padding_mode!r}: expected 'zeros'")
        self._place = transposed(name, self._axes, stride, padding, output_padding, groups, dilation, layout)
        given = {
            "stride": stride, "padding": padding, "output_padding": output_padding, "groups": groups, "dilation": dilation,
            "layout": layout,
        }  # fmt: skip
        self._begin(bias, activation, given)

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
            return self._record(x, tensors["weight"], tensors.get("bias"), output_size=output_size)
        made = self._packed()
        if output_size is None:
            return self._apply(made, x)
        x = as_float32(x, self._name, "x")
        found: Any = self._once(made, x, self._shape(x.shape, output_size))
        return found  # type: ignore[no-any-return]

    def _shape(self, x: tuple[int, ...], output_size: Any = None) -> Any:
        return transposed_shape(self._place, x, self._weight_shape, None, output_size)

    def _run(self, m: Machine, shape: tuple[int, ...], x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        return run_transposed(self._place, shape, x, weight, bias, self._activation_code, m)

    def _attributes(self) -> dict[str, Any]:
        return attributes(self._place, self.kernel_size, self._activation_code)

    def _keras(self) -> dict[str, tuple[int, ...]]:
        if self._place.groups > 1:
            raise UnsupportedError(f"{type(self).__name__}.load_keras: Keras has no groups here: use load_state_dict")
        return super()._keras()


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

"""Convolution over one, two and three axes of space (a cross-correlation, as in every framework)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.ir import Shape
from ..graph.ops import op
from ..kernels import _dispatch
from ..kernels.table import Activation
from ._activation import normal_activation, resolve
from ._arrays import as_float32, empty, optional_float32
from ._geometry import Plan, Window, conv_plan, conv_shape, depthwise_channels, window

if TYPE_CHECKING:
    from ._types import Padding, Tensor

__all__ = ["conv1d", "conv2d", "conv3d"]


def _rule(name: str, axes: int) -> Callable[..., Shape]:
    """The shape rule of a convolution over `axes` axes."""

    def rule(x: Shape, weight: Shape, bias: Shape | None, residual: Shape | None, activation: Any, **place: Any) -> Shape:
        resolve(name, activation)
        return conv_shape(window(name, axes, **place), x, weight, bias, residual)

    return rule


def _normal(attributes: dict[str, Any]) -> None:
    """Makes sequences tuples and the activation plain data."""
    normal_activation(attributes)
    for name in ("stride", "padding", "dilation"):
        value = attributes[name]
        if isinstance(value, (tuple, list)):
            attributes[name] = tuple(tuple(v) if isinstance(v, (tuple, list)) else v for v in value)


def _conv(place: Window, x: Any, weight: Any, bias: Any, residual: Any, activation: Any) -> np.ndarray:
    name = place.op
    act = resolve(name, activation)
    x, weight = as_float32(x, name, "x"), as_float32(weight, name, "weight")
    bias, residual = optional_float32(bias, name, "bias"), optional_float32(residual, name, "residual")
    plan = plan_conv(place, x.shape, weight.shape, bias, residual)
    kernel, packed = pack_conv(place, depthwise_channels(place, x.shape), weight, bias)
    return run_conv(kernel, x, packed, plan, residual, act)


def plan_conv(
    place: Window, x: tuple[int, ...], weight: tuple[int, ...], bias: np.ndarray | None, residual: np.ndarray | None
) -> Plan:
    """Checks the operands of a convolution and says how its kernel is called."""
    shapes = (None if bias is None else bias.shape, None if residual is None else residual.shape)
    found = conv_shape(place, x, weight, *shapes)
    return conv_plan(place, x, weight, found)  # type: ignore[arg-type]


def pack_conv(
    place: Window, channels: int | None, weight: np.ndarray, bias: np.ndarray | None
) -> tuple[Callable[..., None], Any]:
    """The kernel for these weights and what it takes for them; `channels` is a number for a depthwise one."""
    lead = 3 - place.axes
    weight = weight.reshape(*weight.shape[:2], *(1,) * lead, *weight.shape[2:])
    stride, dilation = (1,) * lead + place.stride, (1,) * lead + place.dilation
    if channels is not None:
        return _dispatch.kernel("depthwise"), _dispatch.kernel("depthwise_pack")(weight, bias, stride, dilation, channels)
    return _dispatch.kernel("conv"), _dispatch.kernel("conv_pack")(weight, bias, stride, dilation, place.groups)


def run_conv(
    kernel: Callable[..., None],
    x: np.ndarray,
    packed: Any,
    plan: Plan,
    residual: np.ndarray | None,
    act: Activation,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """A planned convolution of checked operands, into `out` if it is given: contiguous, of the shape of the result."""
    x5, out5, pads, shape, mode, layouts = plan
    if out is None:
        out = empty(shape)
    flat = None if residual is None else residual.reshape(out5)
    kernel(x.reshape(x5), packed, out.reshape(out5), pads, mode, *layouts, flat, act)
    return out


@op("conv1d", "x weight bias residual", _rule("conv1d", 1), _normal)
def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    layout: str = "nchw",
    activation: Any = None,
    residual: Tensor | None = None,
) -> np.ndarray:
    """Convolution over a sequence: ``act(x * weight + bias + residual)``, a cross-correlation as in every framework.

    Args:
        x: ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last, or the same without n; any real dtype, computed in
            float32.
        weight: ``(o, i / groups, kl)`` in both layouts.
        bias: ``(o,)`` or None.
        stride: an int, or a sequence of one.
        padding: an int, a pair (before, after) in a sequence, ``"valid"`` for none, or ``"same"`` for ``ceil(size / stride)``
            outputs by TensorFlow's rule: what is odd goes after.
        dilation: the distance between the taps of the kernel; an int, or a sequence of one.
        groups: channels are cut into so many groups, each with weights of its own; as many as channels: depthwise.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: channels first, ``"nchw"`` or ``"ncl"``, or last, ``"nhwc"`` or ``"nlc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.
        residual: added before the activation, of the shape of the result, or None.

    Returns:
        float32 ``(n, o, ol)`` or ``(n, ol, o)``, each size ``(size + before + after - dilation * (k - 1) - 1) // stride + 1``.

    Raises:
        ShapeError: shapes or arguments do not fit.
        DTypeError: an argument is complex, or no array of numbers.
        UnsupportedError: no elementwise function has the name given as `activation`.

    >>> import fastlayers as fl
    >>> fl.functional.conv1d([[[1.0, 2.0, 3.0]]], [[[1.0, -1.0]]])
    array([[[-1., -1.]]], dtype=float32)
    """
    place = window("conv1d", 1, stride, padding, dilation, groups, padding_mode, layout)
    return _conv(place, x, weight, bias, residual, activation)


@op("conv2d", "x weight bias residual", _rule("conv2d", 2), _normal)
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    layout: str = "nchw",
    activation: Any = None,
    residual: Tensor | None = None,
) -> np.ndarray:
    """Convolution over a plane: ``act(x * weight + bias + residual)``, a cross-correlation as in every framework.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype, computed
            in float32.
        weight: ``(o, i / groups, kh, kw)`` in both layouts.
        bias: ``(o,)`` or None.
        stride: an int, or one an axis.
        padding: an int, one an axis, a pair (before, after) an axis, ``"valid"`` for none, or ``"same"`` for ``ceil(size /
            stride)`` outputs by TensorFlow's rule: what is odd goes after.
        dilation: the distance between the taps of the kernel; an int, or one an axis.
        groups: channels are cut into so many groups, each with weights of its own; as many as channels: depthwise.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.
        residual: added before the activation, of the shape of the result, or None.

    Returns:
        float32 ``(n, o, oh, ow)`` or ``(n, oh, ow, o)``, each size ``(size + before + after - dilation * (k - 1) - 1) // stride
        + 1``.

    Raises:
        ShapeError: shapes or arguments do not fit.
        DTypeError: an argument is complex, or no array of numbers.
        UnsupportedError: no elementwise function has the name given as `activation`.

    >>> import numpy as np, fastlayers as fl
    >>> x, w = np.ones((1, 3, 5, 5)), np.ones((4, 3, 3, 3))
    >>> fl.functional.conv2d(x, w, stride=2, padding=1)[0, 0]
    array([[12., 18., 12.],
           [18., 27., 18.],
           [12., 18., 12.]], dtype=float32)
    """
    place = window("conv2d", 2, stride, padding, dilation, groups, padding_mode, layout)
    return _conv(place, x, weight, bias, residual, activation)


@op("conv3d", "x weight bias residual", _rule("conv3d", 3), _normal)
def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    layout: str = "nchw",
    activation: Any = None,
    residual: Tensor | None = None,
) -> np.ndarray:
    """Convolution over a volume: ``act(x * weight + bias + residual)``, a cross-correlation as in every framework.

    Args:
        x: ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype,
            computed in float32.
        weight: ``(o, i / groups, kd, kh, kw)`` in both layouts.
        bias: ``(o,)`` or None.
        stride: an int, or one an axis.
        padding: an int, one an axis, a pair (before, after) an axis, ``"valid"`` for none, or ``"same"`` for ``ceil(size /
            stride)`` outputs by TensorFlow's rule: what is odd goes after.
        dilation: the distance between the taps of the kernel; an int, or one an axis.
        groups: channels are cut into so many groups, each with weights of its own; as many as channels: depthwise.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: channels first, ``"nchw"`` or ``"ncdhw"``, or last, ``"nhwc"`` or ``"ndhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.
        residual: added before the activation, of the shape of the result, or None.

    Returns:
        float32 ``(n, o, od, oh, ow)`` or ``(n, od, oh, ow, o)``, each size ``(size + before + after - dilation * (k - 1) - 1)
        // stride + 1``.

    Raises:
        ShapeError: shapes or arguments do not fit.
        DTypeError: an argument is complex, or no array of numbers.
        UnsupportedError: no elementwise function has the name given as `activation`.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.conv3d(np.ones((1, 2, 4, 4, 4)), np.ones((3, 2, 4, 4, 4))).shape
    (1, 3, 1, 1, 1)
    """
    place = window("conv3d", 3, stride, padding, dilation, groups, padding_mode, layout)
    return _conv(place, x, weight, bias, residual, activation)

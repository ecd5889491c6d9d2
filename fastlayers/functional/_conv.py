"""Convolution over one, two and three spatial axes (a cross-correlation, as in every framework)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.conv import call
from ..calls.conv_choice import Convolution
from ..calls.machine import ARRAYS, Machine
from ..errors import UnsupportedError
from ..graph.arrays import as_float32, empty, optional_float32
from ..graph.ops import op
from ..graph.record import ints, record
from ..ir.graph import Shape
from ..kernels.table import PAD_MODES, Activation
from ._activation_names import IDENTITY, normal_activation, resolve
from ._conv_rules import Place, conv_shape, geometry, settled, window
from ._recorded import with_batch

if TYPE_CHECKING:
    from ._types import Padding, Tensor

__all__ = ["conv1d", "conv2d", "conv3d"]


def _rule(name: str, axes: int) -> Callable[..., Shape]:
    """The shape rule of a convolution over `axes` axes."""

    def rule(x: Shape, weight: Shape, bias: Shape | None, residual: Shape | None, activation: Any, **place: Any) -> Shape:
        resolve(name, activation)
        return conv_shape(window(name, axes, **place, causal=True), x, weight, bias, residual)

    return rule


def plain(attributes: dict[str, Any]) -> None:
    """Makes sequences tuples and the activation plain data."""
    normal_activation(attributes)
    for name in ("stride", "padding", "dilation", "output_padding", "output_size"):
        value = attributes.get(name)
        if isinstance(value, (tuple, list)):
            attributes[name] = tuple(tuple(v) if isinstance(v, (tuple, list)) else v for v in value)


def _conv(place: Place, x: Any, weight: Any, bias: Any, residual: Any, activation: Any) -> np.ndarray:
    name = place.op
    act = resolve(name, activation)
    x, weight = as_float32(x, name, "x"), as_float32(weight, name, "weight")
    bias, residual = optional_float32(bias, name, "bias"), optional_float32(residual, name, "residual")
    shapes = (None if bias is None else bias.shape, None if residual is None else residual.shape)
    shape: Any = conv_shape(place, x.shape, weight.shape, *shapes)
    return run_conv(place, shape, x, weight, bias, residual, act)


def run_conv(
    place: Place,
    shape: tuple[int, ...],
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    residual: np.ndarray | None,
    act: Activation,
    kept: Machine | None = None,
) -> np.ndarray:
    """A convolution of checked operands, whose result has this shape.

    `kept` is a layer's, which has packed weights; without it weights are packed for this call.
    """
    out, window = empty(shape), geometry(place, weight.shape[2:], x.shape)
    how = Convolution(window, place.groups, PAD_MODES[place.mode], place.last, place.last, kept is None)
    call(kept or ARRAYS, how, x, weight, bias, out, residual, act)
    return out


def attributes(place: Place, act: Activation) -> dict[str, Any]:
    """Attributes of the operator Conv that a convolution becomes in a program."""
    made: dict[str, Any] = {"strides": place.stride, "dilations": place.dilation, "group": place.groups}
    if act.code != IDENTITY.code:  # passes may not replace it
        made["activation"] = tuple(act)
    if place.padding is None:
        made["auto_pad"] = "SAME_UPPER"
    else:
        made["pads"] = (*(before for before, _ in place.padding), *(after for _, after in place.padding))
    if place.mode != "zeros":
        made["pad_mode"] = PAD_MODES[place.mode]
    if place.last:
        made.update(x_last=True, out_last=True)
    return made


def _record(name: str, axes: int, x: Any, weight: Any, bias: Any, residual: Any, activation: Any, **place: Any) -> Any:
    act = resolve(name, activation)
    found = settled(window(name, axes, **place, causal=True), weight.shape[2:])
    if found.causal:
        raise UnsupportedError(f"compile: {name} with padding='causal': expected weights whose kernel's size is known")
    if residual is not None and x.ndim == axes + 1:
        residual = record("Unsqueeze", residual, ints(0))
    rest = (weight, bias) if residual is None else (weight, bias, residual)
    return with_batch(x, axes, lambda x: record("Conv", x, *rest, **attributes(found, act)))


@op("conv1d", "x weight bias residual", _rule("conv1d", 1), partial(_record, "conv1d", 1), plain, weights="weight bias")
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

    See `conv2d` for the arguments. Here x is ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last, with a weight ``(o, i
    / groups, kl)``. `padding` may also be ``"causal"``: none after, and as much before as the kernel reaches back.

    >>> import fastlayers as fl
    >>> fl.functional.conv1d([[[1.0, 2.0, 3.0]]], [[[1.0, -1.0]]])
    array([[[-1., -1.]]], dtype=float32)
    """
    place = window("conv1d", 1, stride, padding, dilation, groups, padding_mode, layout, causal=True)
    return _conv(place, x, weight, bias, residual, activation)


@op("conv2d", "x weight bias residual", _rule("conv2d", 2), partial(_record, "conv2d", 2), plain, weights="weight bias")
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
        stride: an int, or one per axis.
        padding: an int, one per axis, a pair (before, after) an axis, ``"valid"`` for none, or ``"same"`` for ``ceil(size /
            stride)`` outputs by TensorFlow's rule: what is odd goes after.
        dilation: the distance between the taps of the kernel; an int, or one per axis.
        groups: number of groups of channels, each with separate weights; equal to the number of channels: depthwise.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.
        residual: added before the activation, of the shape of the result, or None.

    Returns:
        float32 ``(n, o, oh, ow)`` or ``(n, oh, ow, o)``, each size ``(size + before + after - dilation * (k - 1) - 1) // stride
        + 1``.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
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


@op("conv3d", "x weight bias residual", _rule("conv3d", 3), partial(_record, "conv3d", 3), plain, weights="weight bias")
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

    See `conv2d` for the arguments. Here x is ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` if `layout` is channels-last, with a
    weight ``(o, i / groups, kd, kh, kw)``.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.conv3d(np.ones((1, 2, 4, 4, 4)), np.ones((3, 2, 4, 4, 4))).shape
    (1, 3, 1, 1, 1)
    """
    place = window("conv3d", 3, stride, padding, dilation, groups, padding_mode, layout)
    return _conv(place, x, weight, bias, residual, activation)

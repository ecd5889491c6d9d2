"""Separable convolutions: depthwise, then pointwise; and kernels that are products of a column and a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ..calls.conv_separable import TOLERANCE, factors
from ..errors import ArgumentError, ShapeError
from ..graph.arrays import as_float32, optional_float32
from ..graph.symbol import Symbol
from ..ir.checks import differ, integer, number, same_shape
from ._activation_names import resolve
from ._conv import conv1d, conv2d
from ._conv_rules import Place, conv_shape, window

if TYPE_CHECKING:
    from ._types import Padding, Tensor

__all__ = ["separable_conv1d", "separable_conv2d", "separate"]


def _checked(place: Place, x: Any, depthwise: Any, pointwise: Any, bias: Any, multiplier: Any) -> tuple[Any, Any, Any, Any, int]:
    """The operands, arrays converted, and the number of channels; raises, in the name of the operation, what is wrong."""
    op, n = place.op, place.axes
    multiplier = integer(op, "depth_multiplier", multiplier, 1)
    x, depthwise, pointwise = (
        value if isinstance(value, Symbol) else as_float32(value, op, name)
        for value, name in ((x, "x"), (depthwise, "weight_depthwise"), (pointwise, "weight_pointwise"))
    )
    bias = bias if isinstance(bias, Symbol) else optional_float32(bias, op, "bias")
    made = depthwise.shape[0] if len(depthwise.shape) == n + 2 else None
    if not isinstance(made, int) or differ(depthwise.shape[1], 1) or not made or made % multiplier:
        raise ShapeError(
            f"{op}: weight_depthwise has shape {depthwise.shape}: expected (channels * {multiplier}, 1, "
            f"{', '.join(['k'] * n)}), of at least one channel"
        )
    channels = made // multiplier
    if (
        len(pointwise.shape) != n + 2
        or differ(pointwise.shape[1], depthwise.shape[0])
        or any(differ(k, 1) for k in pointwise.shape[2:])
    ):
        raise ShapeError(
            f"{op}: weight_pointwise has shape {pointwise.shape}: expected (o, {depthwise.shape[0]}, {', '.join(['1'] * n)}) "
            f"for weight_depthwise {depthwise.shape}"
        )
    conv_shape(place._replace(groups=channels), x.shape, depthwise.shape, None, None)
    if bias is not None:
        same_shape(
            op, "bias", bias.shape, (pointwise.shape[0],), f"one value an output channel of weight_pointwise {pointwise.shape}"
        )
    return x, depthwise, pointwise, bias, channels


@checked
def separable_conv1d(
    x: Tensor,
    weight_depthwise: Tensor,
    weight_pointwise: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    depth_multiplier: int = 1,
    *,
    padding_mode: str = "zeros",
    layout: str = "nchw",
    activation: Any = None,
) -> np.ndarray:
    """Every channel of a sequence convolved alone, then all mixed: ``act((x * depthwise) pointwiseᵀ + bias)``, as in Keras.

    Args:
        x: ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last, or the same without n; any real dtype,
            computed in float32.
        weight_depthwise: ``(c * m, 1, kl)``: output ``c * m + j`` is the j-th of channel c.
        weight_pointwise: ``(o, c * m, 1)``.
        bias: ``(o,)`` or None.
        stride: of the depthwise part; an int, or a sequence of one.
        padding: of the depthwise part: an int, a pair (before, after) in a sequence,
            ``"valid"`` for none, ``"causal"`` for none after and as much before as the kernel reaches back, or ``"same"`` for
            ``ceil(size / stride)`` outputs by TensorFlow's rule.
        dilation: of the depthwise part, the distance between the taps of the kernel; an int, or a sequence of one.
        depth_multiplier: m, outputs of the depthwise part an input channel.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: channels first, ``"nchw"`` or ``"ncl"``, or last, ``"nhwc"`` or ``"nlc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.

    Returns:
        float32 ``(n, o, ol)`` or ``(n, ol, o)``.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: no elementwise function has the name given as `activation`.

    >>> import numpy as np, fastlayers as fl
    >>> x, depthwise, pointwise = np.ones((1, 2, 6)), np.ones((2, 1, 3)), np.ones((5, 2, 1))
    >>> fl.functional.separable_conv1d(x, depthwise, pointwise, padding="same").shape
    (1, 5, 6)
    """
    place = window("separable_conv1d", 1, stride, padding, dilation, 1, padding_mode, layout, causal=True)
    act = resolve(place.op, activation)
    x, depthwise, pointwise, bias, groups = _checked(place, x, weight_depthwise, weight_pointwise, bias, depth_multiplier)
    y = conv1d(x, depthwise, None, stride, padding, dilation, groups, padding_mode=padding_mode, layout=layout)
    return conv1d(y, pointwise, bias, layout=layout, activation=act)


@checked
def separable_conv2d(
    x: Tensor,
    weight_depthwise: Tensor,
    weight_pointwise: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    depth_multiplier: int = 1,
    *,
    padding_mode: str = "zeros",
    layout: str = "nchw",
    activation: Any = None,
) -> np.ndarray:
    """Every channel of a plane convolved alone, then all mixed: ``act((x * depthwise) pointwiseᵀ + bias)``, as in Keras.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype,
            computed in float32.
        weight_depthwise: ``(c * m, 1, kh, kw)``: output ``c * m + j`` is the j-th of channel c.
        weight_pointwise: ``(o, c * m, 1, 1)``.
        bias: ``(o,)`` or None.
        stride: of the depthwise part; an int, or one per axis.
        padding: of the depthwise part: an int, one per axis, a pair (before, after) an axis,
            ``"valid"`` for none, or ``"same"`` for ``ceil(size / stride)`` outputs by TensorFlow's rule.
        dilation: of the depthwise part, the distance between the taps of the kernel; an int, or one per axis.
        depth_multiplier: m, outputs of the depthwise part an input channel.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.

    Returns:
        float32 ``(n, o, oh, ow)`` or ``(n, oh, ow, o)``.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: no elementwise function has the name given as `activation`.

    >>> import numpy as np, fastlayers as fl
    >>> x, depthwise, pointwise = np.ones((1, 3, 5, 5)), np.ones((3, 1, 3, 3)), np.ones((2, 3, 1, 1))
    >>> fl.functional.separable_conv2d(x, depthwise, pointwise, stride=2)[0, 0]
    array([[27., 27.],
           [27., 27.]], dtype=float32)
    """
    place = window("separable_conv2d", 2, stride, padding, dilation, 1, padding_mode, layout)
    act = resolve(place.op, activation)
    x, depthwise, pointwise, bias, groups = _checked(place, x, weight_depthwise, weight_pointwise, bias, depth_multiplier)
    y = conv2d(x, depthwise, None, stride, padding, dilation, groups, padding_mode=padding_mode, layout=layout)
    return conv2d(y, pointwise, bias, layout=layout, activation=act)


def separate(weight: Any, tolerance: float = TOLERANCE) -> tuple[np.ndarray, np.ndarray] | None:
    """Writes kernels of one input channel as products: ``weight[o, 0, i, j] = column[o, 0, i, 0] * row[o, 0, 0, j]``.

    A convolution with such kernels is one with the columns, then one with the rows: kh + kw multiplications a result instead of
    kh * kw. `DepthwiseConv2d` and compiled models do so by themselves where it is faster.

    Args:
        weight: ``(o, 1, kh, kw)``, of a depthwise convolution, or of one whose groups have one input channel each.
        tolerance: how large the second singular value of a kernel may be, as a part of the first.

    Returns:
        ``(column, row)``, float32 ``(o, 1, kh, 1)`` and ``(o, 1, 1, kw)``; None if a kernel is no such product.

    Raises:
        ArgumentError: `weight` has another shape, or the tolerance is below 0.
        DTypeError: `weight` is not numeric.

    >>> import numpy as np
    >>> from fastlayers.functional._conv_separable import separate
    >>> column, row = separate(np.outer([1.0, 2.0, 1.0], [1.0, 0.0, 1.0]).reshape(1, 1, 3, 3))
    >>> (column * row).reshape(3, 3).round(3) + 0.0
    array([[1., 0., 1.],
           [2., 0., 2.],
           [1., 0., 1.]], dtype=float32)
    >>> separate(np.eye(3).reshape(1, 1, 3, 3)) is None
    True
    """
    kernels = as_float32(weight, "separate", "weight")
    if kernels.ndim != 4 or kernels.shape[1] != 1 or 0 in kernels.shape:
        raise ShapeError(f"separate: weight has shape {kernels.shape}: expected (o, 1, kh, kw), none of them 0")
    if not number("separate", "tolerance", tolerance) >= 0:
        raise ArgumentError(f"separate: tolerance is {tolerance!r}: expected at least 0")
    return factors(kernels, tolerance)

"""Transposed convolution over one, two and three spatial axes: the gradient of a cross-correlation, as in every framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..calls.conv_transpose import call
from ..calls.geometry import Window
from ..calls.machine import ARRAYS, Machine
from ..errors import UnsupportedError
from ..graph.arrays import as_float32, empty, optional_float32
from ..graph.ops import op
from ..graph.record import record
from ..ir.graph import Shape
from ..kernels.table import Activation
from ._activation_names import resolve
from ._conv import plain
from ._conv_transpose_rules import Transposed, crops, output_sizes, transposed, transposed_shape
from ._recorded import after, with_batch

if TYPE_CHECKING:
    from ._types import Padding, Tensor

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def _rule(name: str, axes: int) -> Callable[..., Shape]:
    """The shape rule of a transposed convolution over `axes` axes."""

    def rule(x: Shape, weight: Shape, bias: Shape | None, activation: Any, output_size: Any, **place: Any) -> Shape:
        resolve(name, activation)
        return transposed_shape(transposed(name, axes, **place), x, weight, bias, output_size)

    return rule


def _conv_transpose(place: Transposed, x: Any, weight: Any, bias: Any, activation: Any, output_size: Any) -> np.ndarray:
    name = place.op
    act = resolve(name, activation)
    x, weight, bias = as_float32(x, name, "x"), as_float32(weight, name, "weight"), optional_float32(bias, name, "bias")
    shape: Any = transposed_shape(place, x.shape, weight.shape, None if bias is None else bias.shape, output_size)
    return run_transposed(place, shape, x, weight, bias, act)


def run_transposed(
    place: Transposed,
    shape: tuple[int, ...],
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    act: Activation,
    kept: Machine = ARRAYS,
) -> np.ndarray:
    """A transposed convolution of checked operands, whose result has this shape; `kept`: as of `run_conv`."""
    out = empty(shape)
    call(kept, _window(place, weight.shape[2:]), place.groups, place.last, place.last, x, weight, bias, out, act)
    return out


@lru_cache(256)
def _window(place: Transposed, kernel: tuple[int, ...]) -> Window:
    """The window of a kernel; its pads are what is cropped."""
    return Window(kernel, place.stride, place.dilation, tuple([cut[:2] for cut in crops(place, kernel)]))


def attributes(place: Transposed, kernel: Sequence[int], act: Activation, sizes: Sequence[int] | None = None) -> dict[str, Any]:
    """Attributes of the operator ConvTranspose that a program has for it; `sizes`: the result's, if given."""
    cuts = crops(place, tuple(kernel))
    made: dict[str, Any] = {
        "strides": place.stride,
        "dilations": place.dilation,
        "group": place.groups,
        "pads": (*(cut.before for cut in cuts), *(cut.after for cut in cuts)),
        **after(act),
    }
    made.update({"output_padding": tuple(cut.extra for cut in cuts)} if sizes is None else {"output_size": sizes})
    if place.last:
        made.update(x_last=True, out_last=True)
    return made


def _record(name: str, axes: int, x: Any, weight: Any, bias: Any, activation: Any, output_size: Any, **given: Any) -> Any:
    place = transposed(name, axes, **given)
    sizes = output_sizes(place, output_size, x.ndim)
    made = attributes(place, _kernel(weight.shape[2:], place), resolve(name, activation), sizes)
    return with_batch(x, axes, lambda x: record("ConvTranspose", x, weight, bias, **made))


def _kernel(sizes: Shape, place: Transposed) -> list[int]:
    """Sizes of the kernel; where they are not known, any sizes, since a padding given as integers needs none."""
    if isinstance(place.padding, str) and not all(isinstance(k, int) for k in sizes):
        raise UnsupportedError(
            f"compile: {place.op} with padding={place.padding!r}: expected weights whose kernel's size is known"
        )
    return [k if isinstance(k, int) else 1 for k in sizes]


def _declared(axes: int) -> Callable[[F], F]:
    name = f"conv_transpose{axes}d"
    return op(name, "x weight bias", _rule(name, axes), partial(_record, name, axes), plain, weights="weight bias")


@_declared(1)
def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    output_padding: int | Sequence[int] | None = None,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    *,
    layout: str = "nchw",
    activation: Any = None,
    output_size: Sequence[int] | None = None,
) -> np.ndarray:
    """Transposed convolution over a sequence: ``act(y + bias)``, input i adding ``x[i] * weight`` to y from ``i * stride`` on.

    See `conv_transpose2d` for the arguments. Here x is ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last, with a
    weight ``(c, o / groups, kl)``.

    >>> import fastlayers as fl
    >>> fl.functional.conv_transpose1d([[[1.0, 2.0]]], [[[1.0, 10.0, 100.0]]], stride=2)
    array([[[  1.,  10., 102.,  20., 200.]]], dtype=float32)
    """
    place = transposed("conv_transpose1d", 1, stride, padding, output_padding, groups, dilation, layout)
    return _conv_transpose(place, x, weight, bias, activation, output_size)


@_declared(2)
def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    output_padding: int | Sequence[int] | None = None,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    *,
    layout: str = "nchw",
    activation: Any = None,
    output_size: Sequence[int] | None = None,
) -> np.ndarray:
    """Transposed convolution over a plane: ``act(y + bias)``, input i adding ``x[i] * weight`` to y from ``i * stride`` on.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype,
            computed in float32.
        weight: ``(c, o / groups, kh, kw)`` in both layouts.
        bias: ``(o,)`` or None.
        stride: the distance between what neighbouring inputs add to; an int, or one per axis.
        padding: what is left out at both ends of the result: an int, one per axis, a pair (before, after) an axis,
            or a name: ``"valid"`` and ``"same"`` give sizes of ``(size - 1) * stride + max(k, stride)`` and ``size * stride``,
            as Keras does.
        output_padding: how much longer the result is at its end, less than stride or dilation; an int, or one per axis. None is
            0, or, if padding is a name, as above; with an int, ``"same"`` means ``(size - 1) * stride + k % 2 + output_padding``.
        groups: number of groups of channels, each with separate weights; equal to the number of channels: depthwise.
        dilation: the distance between the taps of the kernel; an int, or one per axis.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.
        output_size: sizes of the result's space, or its whole shape, instead of an output padding; or None.

    Returns:
        float32 ``(n, o, oh, ow)`` or ``(n, oh, ow, o)``, each size ``(size - 1) *
        stride - before - after + dilation * (k - 1) + 1 + output_padding``.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: no elementwise function has the name given as `activation`.

    >>> import numpy as np, fastlayers as fl
    >>> x, w = np.ones((1, 3, 4, 4)), np.ones((3, 2, 4, 4))
    >>> fl.functional.conv_transpose2d(x, w, stride=2, padding=1).shape
    (1, 2, 8, 8)
    """
    place = transposed("conv_transpose2d", 2, stride, padding, output_padding, groups, dilation, layout)
    return _conv_transpose(place, x, weight, bias, activation, output_size)


@_declared(3)
def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    output_padding: int | Sequence[int] | None = None,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    *,
    layout: str = "nchw",
    activation: Any = None,
    output_size: Sequence[int] | None = None,
) -> np.ndarray:
    """Transposed convolution over a volume: ``act(y + bias)``, input i adding ``x[i] * weight`` to y from ``i * stride`` on.

    See `conv_transpose2d` for the arguments. Here x is ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` if `layout` is channels-last,
    with a weight ``(c, o / groups, kd, kh, kw)``.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.conv_transpose3d(np.ones((1, 2, 3, 3, 3)), np.ones((2, 4, 2, 2, 2)), padding="same", stride=2).shape
    (1, 4, 6, 6, 6)
    """
    place = transposed("conv_transpose3d", 3, stride, padding, output_padding, groups, dilation, layout)
    return _conv_transpose(place, x, weight, bias, activation, output_size)

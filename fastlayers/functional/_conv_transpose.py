"""Transposed convolution over one, two and three spatial axes: the gradient of a cross-correlation, as in every framework."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.conv_transpose import Phases, every_key, pack_arguments, phases
from ..errors import UnsupportedError
from ..graph.arrays import as_float32, empty, optional_float32
from ..graph.ops import op
from ..graph.record import record
from ..ir.graph import Shape
from ..kernels import dispatch
from ..kernels.table import Activation
from ._activation_names import normal_activation, resolve
from ._conv_transpose_rules import Plan, Transposed, crop, output_sizes, transposed, transposed_plan, transposed_shape
from ._recorded import after, with_batch

if TYPE_CHECKING:
    from ._types import Padding, Tensor

__all__ = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def _rule(name: str, axes: int) -> Callable[..., Shape]:
    """The shape rule of a transposed convolution over `axes` axes."""

    def rule(x: Shape, weight: Shape, bias: Shape | None, activation: Any, output_size: Any, **place: Any) -> Shape:
        resolve(name, activation)
        return transposed_shape(transposed(name, axes, **place), x, weight, bias, output_size)

    return rule


def _normal(attributes: dict[str, Any]) -> None:
    """Makes sequences tuples and the activation plain data."""
    normal_activation(attributes)
    for name in ("stride", "padding", "output_padding", "dilation", "output_size"):
        value = attributes[name]
        if isinstance(value, (tuple, list)):
            attributes[name] = tuple(tuple(v) if isinstance(v, (tuple, list)) else v for v in value)


def _conv_transpose(place: Transposed, x: Any, weight: Any, bias: Any, activation: Any, output_size: Any) -> np.ndarray:
    name = place.op
    act = resolve(name, activation)
    x, weight, bias = as_float32(x, name, "x"), as_float32(weight, name, "weight"), optional_float32(bias, name, "bias")
    plan = plan_transposed(place, x.shape, weight.shape, None if bias is None else bias.shape, output_size)
    kernel, packed = pack_transposed(place, weight, bias)
    return run_transposed(kernel, x, packed, plan, act)


def plan_transposed(
    place: Transposed, x: tuple[int, ...], weight: tuple[int, ...], bias: tuple[int, ...] | None, output_size: Any
) -> Plan:
    """Checks the operands of a transposed convolution and says how its kernel is called."""
    found = transposed_shape(place, x, weight, bias, output_size)
    return transposed_plan(place, x, weight, found)  # type: ignore[arg-type]


def pack_transposed(place: Transposed, weight: np.ndarray, bias: np.ndarray | None) -> tuple[Callable[..., None], Any]:
    """The kernel for these weights and what it takes for them."""
    lead = 3 - place.axes
    weight = weight.reshape(*weight.shape[:2], *(1,) * lead, *weight.shape[2:])
    stride, dilation = (1,) * lead + place.stride, (1,) * lead + place.dilation
    kernel = dispatch.kernel("conv_transpose")
    packed = dispatch.kernel("conv_transpose_pack")(weight, bias, stride, dilation, place.groups)
    found = phases(weight.shape[2:], stride, dilation, weight.shape[0], place.groups)
    if found is None or dispatch.current() == "reference":  # the reference shows what is meant
        return kernel, packed
    return _Depthwise(found, weight, bias, kernel, packed), None


class _Depthwise:
    """Stands for the kernel where groups are channels: see `calls.conv_transpose`. Immutable once made."""

    def __init__(self, found: Phases, weight: np.ndarray, bias: np.ndarray | None, kernel: Any, packed: Any) -> None:
        self._found, self._kernel, self._packed = found, kernel, packed
        self._depthwise, self._copy = dispatch.kernel("depthwise"), dispatch.kernel("copy")
        pack = dispatch.kernel("depthwise_pack")
        self._parts = {key: pack(*pack_arguments(found, key, weight, bias)) for key in every_key(found)}

    def __call__(
        self, x: np.ndarray, packed: Any, out: np.ndarray, pads: Sequence[int], x_last: bool, out_last: bool, act: Activation
    ) -> None:
        plan = self._found.plan(x.shape, out.shape, pads, x_last) if x_last == out_last else None
        if plan is None:
            self._kernel(x, self._packed, out, pads, x_last, out_last, act)
            return
        parts, copies, size = plan
        scratch = empty((size,)) if copies else out.reshape(-1)
        for part in parts:
            to = scratch[part.start : part.start + math.prod(part.shape)].reshape(part.shape)
            self._depthwise(x, self._parts[part.key], to, part.pads, 0, x_last, None, act)
        for copy in copies:
            self._copy(scratch, out, *copy, 4)


def run_transposed(kernel: Callable[..., None], x: np.ndarray, packed: Any, plan: Plan, act: Activation) -> np.ndarray:
    """A planned transposed convolution of checked operands."""
    out = empty(plan.shape)
    kernel(x.reshape(plan.x), packed, out.reshape(plan.out), plan.pads, *plan.layouts, act)
    return out


def _record(name: str, axes: int, x: Any, weight: Any, bias: Any, activation: Any, output_size: Any, **given: Any) -> Any:
    place = transposed(name, axes, **given)
    cuts = [crop(place, axis, k) for axis, k in enumerate(_kernel(weight.shape[2:], place))]
    attributes: dict[str, Any] = {
        "strides": place.stride,
        "dilations": place.dilation,
        "group": place.groups,
        "pads": (*(cut.before for cut in cuts), *(cut.after for cut in cuts)),
        **after(resolve(name, activation)),
    }
    sizes = output_sizes(place, output_size, x.ndim)
    if sizes is None:
        attributes["output_padding"] = tuple(cut.extra for cut in cuts)
    else:
        attributes["output_size"] = sizes
    if place.last:
        attributes.update(x_last=True, out_last=True)
    return with_batch(x, axes, lambda x: record("ConvTranspose", x, weight, bias, **attributes))


def _kernel(sizes: Shape, place: Transposed) -> list[int]:
    """Sizes of the kernel; where they are not known, any sizes, since a padding given as integers needs none."""
    if isinstance(place.padding, str) and not all(isinstance(k, int) for k in sizes):
        raise UnsupportedError(
            f"compile: {place.op} with padding={place.padding!r}: expected weights whose kernel's size is known"
        )
    return [k if isinstance(k, int) else 1 for k in sizes]


@op(
    "conv_transpose1d",
    "x weight bias",
    _rule("conv_transpose1d", 1),
    partial(_record, "conv_transpose1d", 1),
    _normal,
    weights="weight bias",
)
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


@op(
    "conv_transpose2d",
    "x weight bias",
    _rule("conv_transpose2d", 2),
    partial(_record, "conv_transpose2d", 2),
    _normal,
    weights="weight bias",
)
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


@op(
    "conv_transpose3d",
    "x weight bias",
    _rule("conv_transpose3d", 3),
    partial(_record, "conv_transpose3d", 3),
    _normal,
    weights="weight bias",
)
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

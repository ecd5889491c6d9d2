"""Results of a transposed convolution: cropping, strides and sizes. Computes no values of a tensor."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .._arguments import shown
from .._tuples import NamedTuple
from .._windows import Crop, cropped_to
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ir.checks import MOST_STEP, integer, integers
from ..ir.graph import Dim, Shape
from ..rules.windows import bias_rule, letter, transposed_channels_rule, transposed_size
from ._conv_rules import channels_last, padding_pairs

__all__ = ["Transposed", "crops", "output_sizes", "transposed", "transposed_shape"]


class Transposed(NamedTuple):
    """The arguments of a transposed convolution that do not depend on its input, checked; one entry per spatial axis."""

    op: str
    axes: int
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...] | str  # "same" or "valid": Keras' rule for the size of the result
    extra: tuple[int, ...] | None
    groups: int
    dilation: tuple[int, ...]
    last: bool


def transposed(
    op: str, axes: int, stride: Any, padding: Any, output_padding: Any, groups: Any, dilation: Any, layout: Any
) -> Transposed:
    """Checks the arguments of a transposed convolution over `axes` spatial axes."""
    strides, dilations = (
        integers(op, "stride", stride, axes, 1, MOST_STEP),
        integers(op, "dilation", dilation, axes, 1, MOST_STEP),
    )
    extra = None if output_padding is None else integers(op, "output_padding", output_padding, axes, 0, MOST_STEP)
    for axis, more in enumerate(extra or ()):
        if more >= max(strides[axis], dilations[axis]):
            raise ArgumentError(
                f"{op}: output_padding is {output_padding!r}: expected less than stride {strides[axis]} or dilation "
                f"{dilations[axis]} along {letter(axes, axis)}"
            )
    pairs = padding_pairs(op, padding, axes)
    place = padding if isinstance(padding, str) or pairs is None else pairs
    number, last = integer(op, "groups", groups, 1), channels_last(op, layout, axes)
    return Transposed(op, axes, strides, place, extra, number, dilations, last)


@lru_cache(1024)
def crops(t: Transposed, kernel: tuple[int, ...]) -> tuple[Crop, ...]:
    """For each axis, what is cut from, or added to, the full result of (size - 1) * stride + dilation * (k - 1) + 1 positions."""
    extras = t.extra or (None,) * t.axes
    if not isinstance(t.padding, str):
        return tuple([Crop(*pads, extra or 0) for pads, extra in zip(t.padding, extras, strict=True)])
    steps = zip(kernel, t.stride, t.dilation, extras, strict=True)
    return tuple([cropped_to(d * (k - 1) + 1, s, t.padding == "same", extra) for k, s, d, extra in steps])


def output_sizes(t: Transposed, value: Any, rank: int) -> tuple[int, ...] | None:
    """An `output_size` argument as one int per spatial axis; the whole shape of the result may be given too."""
    if value is None:
        return None
    if isinstance(t.padding, str):
        raise ArgumentError(f"{t.op}: output_size is {shown(value)}: expected None with padding={t.padding!r}")
    if not isinstance(value, (tuple, list)):
        raise DTypeError(f"{t.op}: output_size is {shown(value)} of type {type(value).__name__}: expected a sequence of ints")
    sizes = list(value)
    if len(sizes) == rank:
        sizes = sizes[-1 - t.axes : -1] if t.last else sizes[-t.axes :]
    if len(sizes) != t.axes:
        raise ArgumentError(
            f"{t.op}: output_size is {shown(value)}: expected {t.axes} sizes, or {rank} with those of the other axes"
        )
    return tuple(integer(t.op, "output_size", size, 0) for size in sizes)


def transposed_shape(t: Transposed, x: Shape, weight: Shape, bias: Shape | None, output_size: Any = None) -> Shape:
    """Checks the shapes of a transposed convolution and returns that of its result; sizes may be names or None."""
    n, op = t.axes, t.op
    if not n < len(x) <= n + 2:
        space = [letter(n, axis) for axis in range(n)]
        inner = [*space, "c"] if t.last else ["c", *space]
        raise ShapeError(
            f"{op}: x has shape {x} ({len(x)} axes): expected (n, {', '.join(inner)}), or ({', '.join(inner)}) without a batch"
        )
    if len(weight) != n + 2:
        names = ", ".join(f"k{letter(n, axis)}" for axis in range(n))
        raise ShapeError(f"{op}: weight has shape {weight}: expected (c, o / groups, {names}), in every layout")
    channels, sizes = (x[-1], x[-1 - n : -1]) if t.last else (x[-1 - n], x[-n:])
    out_channels = transposed_channels_rule(op, x, channels, weight, t.groups)
    bias_rule(op, bias, out_channels, weight, t.groups)
    wanted = output_sizes(t, output_size, len(x))
    if wanted is not None:
        t = t._replace(extra=None)  # it follows from the size
    kernel = weight[2:]
    cuts = crops(t, tuple([k if isinstance(k, int) else 1 for k in kernel]))
    out = [_size(t, axis, size, k, cut, wanted) for axis, (size, k, cut) in enumerate(zip(sizes, kernel, cuts, strict=True))]
    return (*x[: -1 - n], *((*out, out_channels) if t.last else (out_channels, *out)))


def _size(t: Transposed, axis: int, size: Dim, kernel: Dim, cut: Crop, wanted: tuple[int, ...] | None) -> Dim:
    """Positions of the result along one axis."""
    stride = t.stride[axis]
    if not isinstance(kernel, int):
        return None if wanted is None else wanted[axis]
    reach = t.dilation[axis] * (kernel - 1) + 1
    if wanted is None or not isinstance(size, int):
        found = transposed_size(t.op, letter(t.axes, axis), size, stride, reach, cut[:2], cut.extra)
        return found if wanted is None else wanted[axis]
    least = (size - 1) * stride + reach - cut.before - cut.after + cut.extra
    if not least <= wanted[axis] < least + stride:
        raise ArgumentError(
            f"{t.op}: output_size is {wanted}: expected {least} to {least + stride - 1} along {letter(t.axes, axis)}, "
            f"for an input of {size}, stride {stride} and a kernel of {kernel}"
        )
    return wanted[axis]

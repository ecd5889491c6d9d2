"""Where the windows of a convolution are: padding, strides and sizes of the result. Computes no values of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tuples import NamedTuple
from .._windows import same_padding
from ..errors import ArgumentError, ShapeError
from ..ir.checks import MOST_STEP, integer, integers, same_shape
from ..ir.graph import Dim, Shape
from ..kernels.table import PAD_MODES
from ..rules.windows import bias_rule, channels_rule, window_sizes

__all__ = ["Plan", "Window", "channels_last", "conv_plan", "conv_shape", "padding_pairs", "settled", "window"]

_LAYOUTS = {
    "nchw": False, "ncl": False, "ncdhw": False,
    "nhwc": True, "nlc": True, "ndhwc": True,
}  # fmt: skip
_RANKS = {"ncl": 1, "nlc": 1, "ncdhw": 3, "ndhwc": 3}  # "nchw" and "nhwc" mean channels first and last in every rank


class Window(NamedTuple):
    """The arguments of a convolution that do not depend on its input, checked. Everything about space has one entry an axis."""

    op: str
    axes: int
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...] | None  # None: "same"
    dilation: tuple[int, ...]
    groups: int
    mode: str
    last: bool
    causal: bool = False  # padding follows from the kernel: see `settled`


class Plan(NamedTuple):
    """How a kernel is called for one shape of input. Space has three axes here, the first ones of size 1 if there are fewer."""

    x: tuple[int, ...]
    out: tuple[int, ...]
    pads: tuple[int, ...]
    shape: tuple[int, ...]  # of the result as the caller sees it
    mode: int
    layouts: tuple[bool, bool]  # channels-last? of input and result


def channels_last(op: str, layout: Any, axes: int) -> bool:
    """Whether a `layout` argument puts the channels last."""
    if not isinstance(layout, str) or layout.lower() not in _LAYOUTS or _RANKS.get(layout.lower(), axes) != axes:
        names = [name for name in _LAYOUTS if _RANKS.get(name, axes) == axes]
        raise ArgumentError(f"{op}: layout is {layout!r}: expected one of {', '.join(map(repr, names))}")
    return _LAYOUTS[layout.lower()]


def window(
    op: str,
    axes: int,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
    padding_mode: Any,
    layout: Any,
    causal: bool = False,
) -> Window:
    """Checks the arguments of a convolution over `axes` spatial axes. `causal`: whether padding may be that word."""
    before = causal and axes == 1 and isinstance(padding, str) and padding == "causal"
    if not isinstance(padding_mode, str) or padding_mode not in PAD_MODES:
        raise ArgumentError(f"{op}: padding_mode is {padding_mode!r}: expected one of {', '.join(map(repr, PAD_MODES))}")
    return Window(
        op,
        axes,
        integers(op, "stride", stride, axes, 1, MOST_STEP),
        padding_pairs(op, "valid" if before else padding, axes, causal and axes == 1),
        integers(op, "dilation", dilation, axes, 1, MOST_STEP),
        integer(op, "groups", groups, 1),
        padding_mode,
        channels_last(op, layout, axes),
        before,
    )


def settled(w: Window, kernel: Sequence[Dim]) -> Window:
    """The window for kernels of these sizes: a causal one is padded before by what the kernel reaches back."""
    if not w.causal or not isinstance(kernel[0], int):
        return w
    return w._replace(padding=((w.dilation[0] * max(kernel[0] - 1, 0), 0),), causal=False)


def padding_pairs(op: str, padding: Any, axes: int, causal: bool = False) -> tuple[tuple[int, int], ...] | None:
    """What is added before and after each axis; None for "same", which depends on the input."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            words = "'same', 'valid', 'causal'" if causal else "'same', 'valid'"
            raise ArgumentError(f"{op}: padding is {padding!r}: expected {words} or integers")
        return None if padding == "same" else ((0, 0),) * axes
    if isinstance(padding, (tuple, list)) and any(isinstance(p, (tuple, list)) for p in padding):
        if len(padding) != axes or not all(isinstance(p, (tuple, list)) and len(p) == 2 for p in padding):
            raise ArgumentError(f"{op}: padding is {padding!r}: expected {axes} pairs (before, after), one per axis")
        pairs = [integers(op, "padding", p, 2, 0, MOST_STEP) for p in padding]
        return tuple((before, after) for before, after in pairs)
    return tuple((p, p) for p in integers(op, "padding", padding, axes, 0, MOST_STEP))


def conv_shape(w: Window, x: Shape, weight: Shape, bias: Shape | None, residual: Shape | None) -> Shape:
    """Checks the shapes of a convolution and returns that of its result; sizes may be names or None."""
    op, n = w.op, w.axes
    space = "dhw"[3 - n :] if n > 1 else "l"
    inner = [*space, "c"] if w.last else ["c", *space]
    if len(x) not in (n + 1, n + 2):
        raise ShapeError(
            f"{op}: x has shape {x} ({len(x)} axes): expected (n, {', '.join(inner)}), or ({', '.join(inner)}) without a batch"
        )
    if len(weight) != n + 2:
        kernel = ", ".join(f"k{letter}" for letter in space)
        raise ShapeError(f"{op}: weight has shape {weight}: expected (o, i / groups, {kernel}), in every layout")
    w = settled(w, weight[2:])
    channels, sizes = (x[-1], x[-1 - n : -1]) if w.last else (x[-1 - n], x[-n:])
    channels_rule(op, x, channels, weight, w.groups, w.last)
    bias_rule(op, bias, weight[0], weight)
    out = window_sizes(op, sizes, weight[2:], w.stride, w.dilation, w.padding, w.mode)
    shape = (*x[: -1 - n], *((*out, weight[0]) if w.last else (weight[0], *out)))
    if residual is not None:
        same_shape(op, "residual", residual, shape, "the shape of the result")
    return shape


def conv_plan(w: Window, x: tuple[int, ...], weight: tuple[int, ...], shape: tuple[int, ...]) -> Plan:
    """How the kernel is called for an input `x` whose result has the `shape` that `conv_shape` found."""
    n, w = w.axes, settled(w, weight[2:])
    ones = (1,) * (3 - n)
    batch = x[0] if len(x) == n + 2 else 1
    if w.last:
        sizes, x5, out5 = x[-1 - n : -1], (batch, *ones, *x[-1 - n :]), (batch, *ones, *shape[-1 - n :])
    else:
        sizes = x[-n:]
        x5, out5 = (batch, x[-1 - n], *ones, *sizes), (batch, weight[0], *ones, *shape[-n:])
    pads = [0, 0] * (3 - n)
    for axis, size in enumerate(sizes):
        reach = w.dilation[axis] * (weight[2 + axis] - 1) + 1
        pads += w.padding[axis] if w.padding is not None else same_padding(size, reach, w.stride[axis])
    return Plan(x5, out5, tuple(pads), shape, PAD_MODES[w.mode], (w.last, w.last))

"""Windows of a convolution: padding, strides and sizes of the result. Computes no values of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._arguments import shown
from .._tuples import NamedTuple
from ..calls.geometry import Window
from ..errors import ArgumentError, ShapeError
from ..ir.checks import MOST_STEP, integer, integers, same_shape
from ..ir.graph import Dim, Shape
from ..kernels.table import PAD_MODES
from ..rules.windows import bias_rule, channels_rule, window_sizes

__all__ = ["Place", "channels_last", "conv_shape", "geometry", "padding_pairs", "settled", "window"]

_LAYOUTS = {
    "nchw": False, "ncl": False, "ncdhw": False,
    "nhwc": True, "nlc": True, "ndhwc": True,
}  # fmt: skip
_RANKS = {"ncl": 1, "nlc": 1, "ncdhw": 3, "ndhwc": 3}  # "nchw" and "nhwc" mean channels first and last in every rank


class Place(NamedTuple):
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


def channels_last(op: str, layout: Any, axes: int) -> bool:
    """Whether a `layout` argument puts the channels last."""
    if not isinstance(layout, str) or layout.lower() not in _LAYOUTS or _RANKS.get(layout.lower(), axes) != axes:
        names = [name for name in _LAYOUTS if _RANKS.get(name, axes) == axes]
        known = {"channels_first": names[0], "channels_last": names[-1]}.get(layout) if isinstance(layout, str) else None
        hint = f"; {layout} is {known!r}" if known else ""
        raise ArgumentError(f"{op}: layout is {shown(layout)}: expected one of {', '.join(map(repr, names))}{hint}")
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
) -> Place:
    """Checks the arguments of a convolution over `axes` spatial axes. `causal`: whether padding may be that word."""
    before = causal and axes == 1 and isinstance(padding, str) and padding == "causal"
    if not isinstance(padding_mode, str) or padding_mode not in PAD_MODES:
        raise ArgumentError(f"{op}: padding_mode is {padding_mode!r}: expected one of {', '.join(map(repr, PAD_MODES))}")
    return Place(
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


def settled(w: Place, kernel: Sequence[Dim]) -> Place:
    """The window for kernels of these sizes: a causal one is padded before by what the kernel reaches back."""
    if not w.causal or not isinstance(kernel[0], int):
        return w
    return w._replace(padding=((w.dilation[0] * max(kernel[0] - 1, 0), 0),), causal=False)


def padding_pairs(op: str, padding: Any, axes: int, causal: bool = False) -> tuple[tuple[int, int], ...] | None:
    """Padding before and after each axis; None for "same", which depends on the input."""
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


def conv_shape(w: Place, x: Shape, weight: Shape, bias: Shape | None, residual: Shape | None) -> Shape:
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
    if w.causal:
        w = settled(w, weight[2:])
    channels, sizes = (x[-1], x[-1 - n : -1]) if w.last else (x[-1 - n], x[-n:])
    channels_rule(op, x, channels, weight, w.groups, w.last)
    bias_rule(op, bias, weight[0], weight)
    out = window_sizes(op, sizes, weight[2:], w.stride, w.dilation, w.padding, w.mode)
    shape = (*x[: -1 - n], *((*out, weight[0]) if w.last else (weight[0], *out)))
    if residual is not None:
        same_shape(op, "residual", residual, shape, "the shape of the result")
    return shape


def geometry(w: Place, kernel: Sequence[int], x: Sequence[int]) -> Window:
    """The window of a kernel of these sizes over an input of shape x, with its padding."""
    if w.causal:
        w = settled(w, kernel)
    made = Window(tuple(kernel), w.stride, w.dilation, w.padding)
    return made if made.pads is not None else made.padded(x[-1 - w.axes : -1] if w.last else x[-w.axes :])

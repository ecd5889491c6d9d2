"""Where the windows of a convolution are: padding, strides and sizes of the result. Computes no values of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tuples import NamedTuple
from .._windows import same_padding, windows_along
from ..errors import ShapeError
from ..ir.checks import MOST_STEP, differ, integer, integers, same_shape
from ..ir.graph import Dim, Shape
from ..kernels.table import PAD_MODES

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
        raise ShapeError(f"{op}: layout is {layout!r}: expected one of {', '.join(map(repr, names))}")
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
    """Checks the arguments of a convolution over `axes` axes of space. `causal`: whether padding may be that word."""
    before = causal and axes == 1 and isinstance(padding, str) and padding == "causal"
    if not isinstance(padding_mode, str) or padding_mode not in PAD_MODES:
        raise ShapeError(f"{op}: padding_mode is {padding_mode!r}: expected one of {', '.join(map(repr, PAD_MODES))}")
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
            raise ShapeError(f"{op}: padding is {padding!r}: expected {words} or numbers")
        return None if padding == "same" else ((0, 0),) * axes
    if isinstance(padding, (tuple, list)) and any(isinstance(p, (tuple, list)) for p in padding):
        if len(padding) != axes or not all(isinstance(p, (tuple, list)) and len(p) == 2 for p in padding):
            raise ShapeError(f"{op}: padding is {padding!r}: expected {axes} pairs (before, after), one per axis")
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
    _check_channels(w, channels, weight, x)
    if bias is not None:
        same_shape(op, "bias", bias, (weight[0],), f"one value an output channel of weight {weight}")
    out = tuple(_size(w, axis, size, weight[2 + axis]) for axis, size in enumerate(sizes))
    shape = (*x[: -1 - n], *((*out, weight[0]) if w.last else (weight[0], *out)))
    if residual is not None:
        same_shape(op, "residual", residual, shape, "the shape of the result")
    return shape


def _check_channels(w: Window, channels: Dim, weight: Shape, x: Shape) -> None:
    o, i, *kernel = weight
    if isinstance(i, int) and differ(channels, i * w.groups):
        if isinstance(channels, int) and channels % w.groups:
            raise ShapeError(f"{w.op}: x has {channels} channels: expected a multiple of groups={w.groups}")
        axes = "l" if len(kernel) == 1 else "dhw"[-len(kernel) :]
        layout = f"nc{axes}" if w.last else f"n{axes}c"
        hint = f"; or is layout={layout!r} meant?" if x[-1 - len(kernel) if w.last else -1] == i * w.groups else ""
        want = f"(o, {channels // w.groups if isinstance(channels, int) else channels}, {', '.join(map(str, kernel))})"
        raise ShapeError(
            f"{w.op}: weight has {i} input channels, x {x} has {channels} (groups={w.groups}): "
            f"expected weight of shape {want}, got {weight}{hint}"
        )
    if isinstance(o, int) and o % w.groups:
        raise ShapeError(f"{w.op}: weight has {o} output channels: expected a multiple of groups={w.groups}, got shape {weight}")
    if any(k == 0 for k in kernel):
        raise ShapeError(f"{w.op}: weight has shape {weight}: expected a kernel of at least 1 along every axis")


def _size(w: Window, axis: int, size: Dim, kernel: Dim) -> Dim:
    """Outputs along one axis."""
    stride, name = w.stride[axis], "dhw"[3 - w.axes + axis]
    if w.padding is None:
        return windows_along(size, None, 1, stride)
    if not isinstance(kernel, int):
        return None
    before, after = w.padding[axis]
    reach = w.dilation[axis] * (kernel - 1) + 1
    if isinstance(size, int):
        _check_pads(w, name, size, before, after)
    found = windows_along(size, (before, after), reach, stride)
    if found == -1 and isinstance(size, int):
        raise ShapeError(
            f"{w.op}: x has size {size} along {name}, {size + before + after} with padding: "
            f"expected at least {reach}, what a kernel of {kernel} with dilation {w.dilation[axis]} covers"
        )
    return found


def _check_pads(w: Window, name: str, size: int, before: int, after: int) -> None:
    most = {"zeros": None, "reflect": max(size - 1, 0), "replicate": None if size else 0, "circular": size}[w.mode]
    if most is not None and max(before, after) > most:
        raise ShapeError(
            f"{w.op}: padding ({before}, {after}) along {name}: expected at most {most} "
            f"with padding_mode={w.mode!r} and an input of {size}"
        )


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
        pads += w.padding[axis] if w.padding is not None else _same_pads(w, axis, size, weight[2 + axis])
    return Plan(x5, out5, tuple(pads), shape, PAD_MODES[w.mode], (w.last, w.last))


def _same_pads(w: Window, axis: int, size: int, kernel: int) -> tuple[int, int]:
    """TensorFlow's rule: as many outputs as size / stride, rounded up; what is odd goes after."""
    before, after = same_padding(size, w.dilation[axis] * (kernel - 1) + 1, w.stride[axis])
    if size == 0:
        return before, after
    _check_pads(w, "dhw"[3 - w.axes + axis], size, before, after)
    return before, after

"""Rules of shapes that convolutions and pools have, with what their errors say: the same for a function, a layer, an operator of
a recorded graph and one of a file. `op` is how an error names what was called; sizes may be names or None (see `graph.ir`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._windows import same_padding, windows_along
from ..errors import ArgumentError, ShapeError

__all__ = [
    "bias_rule", "channels_rule", "check_mode", "kernel_rule", "letter", "most_padding", "padded_size",
    "transposed_channels_rule", "transposed_size", "window_sizes",
]  # fmt: skip

_Dim = int | str | None
_Shape = tuple[_Dim, ...]
_Pairs = Sequence[tuple[int, int]]


def letter(axes: int, axis: int) -> str:
    """The name of a spatial axis in errors."""
    return "l" if axes == 1 else "dhw"[axis - axes] if axes <= 3 else str(axis)


def _differ(a: _Dim, b: _Dim) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _groups_rule(op: str, groups: int) -> None:
    if groups < 1:
        raise ArgumentError(f"{op}: groups is {groups}: expected at least 1")


def kernel_rule(op: str, weight: _Shape) -> None:
    """Raises where a kernel has no positions."""
    if 0 in weight[2:]:
        raise ShapeError(f"{op}: weight has shape {weight}: expected a kernel of at least 1 along every axis")


def _other_layout(x: _Shape, axes: int, channels: int, last: bool) -> str:
    """An error's hint where x has as many channels as are wanted, at the other end of its shape."""
    letters = "".join(letter(axes, axis) for axis in range(axes))
    layout = f"nc{letters}" if last else f"n{letters}c"
    return f"; or is layout={layout!r} meant?" if x[-1 - axes if last else -1] == channels else ""


def channels_rule(op: str, x: _Shape, channels: _Dim, weight: _Shape, groups: int, last: bool | None = None) -> None:
    """Raises unless `weight` (o, i / groups, ...) fits the channels of x, and groups to both.

    `last`: whether channels are the last axis, of who has a choice: an error then says where the other layout would fit.
    """
    o, i, *kernel = weight
    _groups_rule(op, groups)
    if isinstance(i, int) and _differ(channels, i * groups):
        if isinstance(channels, int) and channels % groups:
            raise ShapeError(f"{op}: x has {channels} channels: expected a multiple of groups={groups}")
        want = f"(o, {channels // groups if isinstance(channels, int) else channels}, {', '.join(map(str, kernel))})"
        hint = "" if last is None else _other_layout(x, len(kernel), i * groups, last)
        raise ShapeError(
            f"{op}: weight has {i} input channels, x {x} has {channels} (groups={groups}): "
            f"expected weight of shape {want}, got {weight}{hint}"
        )
    if isinstance(o, int) and o % groups:
        raise ShapeError(f"{op}: weight has {o} output channels: expected a multiple of groups={groups}, got shape {weight}")
    kernel_rule(op, weight)


def transposed_channels_rule(op: str, x: _Shape, channels: _Dim, weight: _Shape, groups: int) -> _Dim:
    """The channels of the result of a transposed convolution; raises unless `weight` (i, o / groups, ...) fits those of x."""
    _groups_rule(op, groups)
    if _differ(channels, weight[0]):
        raise ShapeError(f"{op}: weight has {weight[0]} input channels, x {x} has {channels}: expected as many")
    if isinstance(weight[0], int) and weight[0] % groups:
        raise ShapeError(f"{op}: weight has {weight[0]} input channels: expected a multiple of groups={groups}")
    kernel_rule(op, weight)
    return weight[1] * groups if isinstance(weight[1], int) else None


def bias_rule(op: str, bias: _Shape | None, channels: _Dim, weight: _Shape, groups: int = 1) -> None:
    """Raises unless a bias, if there is one, has one value per output channel; `groups` where these follow from it."""
    if bias is not None and (len(bias) != 1 or _differ(bias[0], channels)):
        more = f" with groups={groups}" if groups != 1 else ""
        raise ShapeError(
            f"{op}: bias has shape {bias}: expected ({channels},), one value an output channel of weight {weight}{more}"
        )


def window_sizes(
    op: str, space: Sequence[_Dim], kernel: Sequence[_Dim], stride: Sequence[int], dilation: Sequence[int], pads: _Pairs | None,
    mode: str = "zeros", ceil: bool = False,
) -> tuple[_Dim, ...]:  # fmt: skip
    """The number of windows along each axis; raises where none fits, or where an axis is too small for its padding.

    Args:
        op: as errors call it.
        space: sizes of the axes.
        kernel: positions that a window reads along each.
        stride: between windows.
        dilation: between the positions that a window reads.
        pads: what is added before and after each axis; None: TensorFlow's "same".
        mode: what is added.
        ceil: whether a last window may overhang.
    """
    found: list[_Dim] = []
    for axis, (size, k, s, d) in enumerate(zip(space, kernel, stride, dilation, strict=True)):
        if not isinstance(k, int) and pads is not None:
            found.append(None)
            continue
        reach = d * (k - 1) + 1 if isinstance(k, int) else 1
        pair = None if pads is None else pads[axis]
        if mode != "zeros" and isinstance(size, int) and isinstance(k, int):
            check_mode(op, letter(len(space), axis), size, pair or same_padding(size, reach, s), mode)
        count = windows_along(size, pair, reach, s, ceil)
        if pair is not None and isinstance(size, int) and (count == -1 or (size == 0 and sum(pair) < reach)):
            raise ShapeError(
                f"{op}: x has size {size} along {letter(len(space), axis)}, {size + sum(pair)} with padding: "
                f"expected at least {reach}, what a window of {k} with dilation {d} covers"
            )
        found.append(count)
    return tuple(found)


def most_padding(size: int, mode: str) -> float:
    """The most positions that can be added at an end of an axis, by what is added."""
    return {"reflect": max(size - 1, 0), "replicate": math.inf if size else 0, "circular": size}.get(mode, math.inf)


def padded_size(op: str, axis: int, size: _Dim, before: int, after: int, mode: str = "constant") -> _Dim:
    """An axis with positions added to it, or cut off where there are fewer than 0, of constants alone.

    `mode`: what is added, of who takes no more of it than an axis has; files may mirror an axis several times over.
    """
    if mode not in ("constant", "zeros") and isinstance(size, int):
        most = most_padding(size, mode)
        if not 0 <= min(before, after) <= max(before, after) <= most:
            raise ShapeError(
                f"{op}: ({before}, {after}) along axis {axis} of size {size}: expected 0 to {most} with mode={mode!r}"
            )
    if not isinstance(size, int):
        return size if before + after == 0 else None
    if size + min(before, 0) + min(after, 0) < 0:
        raise ShapeError(
            f"{op}: ({before}, {after}) cuts more than there is from size {size} along axis {axis}: expected a size >= 0"
        )
    return size + before + after


def check_mode(op: str, name: str, size: int, pads: tuple[int, int], mode: str) -> None:
    """Raises where an axis has too few positions to be padded so from them."""
    most = most_padding(size, mode)
    if max(pads) > most:
        raise ShapeError(
            f"{op}: padding {pads} along {name}: expected at most {most} with padding_mode={mode!r} and an input of {size}"
        )


def transposed_size(op: str, name: str, size: _Dim, stride: int, reach: int, pads: tuple[int, int], extra: int) -> _Dim:
    """Positions of the result of a transposed convolution along an axis, of which `pads` are cropped and `extra` added."""
    more = reach - sum(pads) + extra
    if not isinstance(size, int):
        return size if stride == 1 and more == 1 else None
    least = (size - 1) * stride + more
    if least < 0 or (least < 1 and size):
        raise ShapeError(
            f"{op}: x has size {size} along {name}, and {least} positions are left of the result after padding {pads}: "
            "expected at least 1"
        )
    return least

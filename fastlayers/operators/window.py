"""Arithmetic of windows that slide over space: attributes of Conv and of pools as integers, sizes of results, ONNX's automatic
padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from ..calls.geometry import Window
from ..errors import LimitError
from ..ir.graph import Dim, Shape
from ..rules.windows import window_sizes
from ._base import View

__all__ = ["arranged", "check_padding", "check_work", "conv_size", "spatial", "window"]

_LARGEST = (1 << 31) - 1  # of any number that says how windows are
# Positions of padding, and values that a window reads, that nothing minds; and how many times what is really there they may be
# beyond: more than benign windows have, which overlap and reach over an edge, but are in an image.
_FREE_POSITIONS, _MOST_PADDING = 1 << 20, 64
_FREE_WORK, _MOST_OVERLAP = 1 << 34, 1 << 14


@lru_cache(1024)
def _explicit(kernel: tuple[Any, ...], strides: Any, dilations: Any, pads: Any) -> Window | None:
    """A window whose padding is given; None if any number is none or out of range."""
    axes = len(kernel)
    strides, dilations, pads = strides or (1,) * axes, dilations or (1,) * axes, pads or (0,) * (2 * axes)
    if not len(strides) == len(dilations) == axes or len(pads) != 2 * axes:
        return None
    whole = all(type(v) is int for v in (*kernel, *strides, *dilations, *pads))
    if not whole or not all(1 <= v <= _LARGEST for v in (*kernel, *strides, *dilations)):
        return None
    if not all(-(1 << 31) <= v <= _LARGEST for v in pads):
        return None
    return Window(kernel, strides, dilations, tuple(zip(pads[:axes], pads[axes:], strict=True)))


def window(n: View, kernel: Sequence[int], space: Sequence[Dim] | None) -> Window:
    """The attributes strides, dilations, pads and auto_pad, for an input of `space` sizes (None: rank known from the kernel
    alone).
    """
    axes = len(kernel)
    auto = n.get("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        with suppress(TypeError):  # an attribute that is no tuple: what is wrong is said below
            found = _explicit(tuple(kernel), n.get("strides"), n.get("dilations"), n.get("pads"))
            if found is not None:
                return found

    def numbers(name: str, count: int, default: int, least: int) -> tuple[int, ...]:
        values = tuple(int(v) for v in n.get(name) or (default,) * count)
        if len(values) != count or any(not least <= v <= _LARGEST for v in values):
            raise n.fail(f"{name} is {values}: expected {count} values from {least} to {_LARGEST}")
        return values

    stride, dilation = numbers("strides", axes, 1, 1), numbers("dilations", axes, 1, 1)
    if any(not 1 <= k <= _LARGEST for k in kernel):
        raise n.fail(f"the kernel has shape {tuple(kernel)}: expected sizes from 1 to {_LARGEST}")
    if auto in ("NOTSET", ""):
        flat = numbers("pads", 2 * axes, 0, -(1 << 31))
        return Window(tuple(kernel), stride, dilation, tuple(zip(flat[:axes], flat[axes:], strict=True)))
    if auto == "VALID":
        return Window(tuple(kernel), stride, dilation, ((0, 0),) * axes)
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise n.fail(f"auto_pad is {auto!r}: expected NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    if space is None or any(not isinstance(d, int) for d in space):
        return Window(tuple(kernel), stride, dilation, None)
    return Window(tuple(kernel), stride, dilation, None).padded(space, auto == "SAME_LOWER")  # type: ignore[arg-type]


def conv_size(n: View, space: Sequence[Dim], place: Window, ceil: bool = False, mode: str = "zeros") -> tuple[Dim, ...]:
    """Sizes of the result. With `ceil` a last window may overhang, but not begin after the image and its padding before."""
    if n.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        if place.pads is not None and mode != "zeros":
            window_sizes(n.where, space, place.kernel, place.stride, place.dilation, place.pads, mode)
        made = window_sizes(n.where, space, place.kernel, place.stride, place.dilation, None)
    else:
        made = window_sizes(n.where, space, place.kernel, place.stride, place.dilation, place.pads, mode, ceil)
    if place.pads is not None and all(isinstance(d, int) for d in (*space, *made)):
        spans = [  # with what a last window overhangs
            max(d + before + after, (size - 1) * s + reach)  # type: ignore[operator]
            for d, (before, after), size, s, reach in zip(space, place.pads, made, place.stride, place.reach, strict=True)
        ]
        check_padding(n, spans, space, made)
    return made


def check_padding(n: View, spans: Sequence[int], space: Sequence[Dim], made: Sequence[Dim]) -> None:
    """Raises where windows span far more positions than image and result have."""
    real = math.prod(space) + math.prod(made)  # type: ignore[arg-type]
    if math.prod(spans) > max(_FREE_POSITIONS, _MOST_PADDING * real):
        raise LimitError(
            f"{n.where}: its windows span {tuple(spans)} positions, of an image of {tuple(space)} for a result of {tuple(made)}: "
            "nearly all of them padding"
        )


def check_work(n: View, work: int, real: int) -> None:
    """Raises where so many values are read that each of the `real` ones would be read absurdly often."""
    if work > max(_FREE_WORK, _MOST_OVERLAP * real):
        raise LimitError(f"{n.where}: its windows read {work} values, where input and result have {real}")


def spatial(shape: Shape, last: bool) -> Shape:
    """The space axes of a shape with channels first or last."""
    return shape[1:-1] if last else shape[2:]


def arranged(batch: Dim, channels: Dim, space: Sequence[Dim], last: bool) -> Shape:
    """A shape from its parts."""
    return (batch, *space, channels) if last else (batch, channels, *space)

"""The place of a layer's channels: an axis, or a layout, which says it by a name."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..functional._conv_rules import channels_last
from ..ir.checks import integer

__all__ = ["channel_axis"]


def channel_axis(name: str, axis: Any, layout: Any, space: int = 2) -> int:
    """The axis of the channels, given as such or by a layout of so many spatial axes: 1, or -1 where they are last."""
    found = integer(name, "axis", axis)
    if layout is None:
        return found
    last = channels_last(name, layout, space)
    if found != 1:
        raise ArgumentError(f"{name}: layout is {layout!r} and axis {found}: expected one of the two")
    return -1 if last else 1

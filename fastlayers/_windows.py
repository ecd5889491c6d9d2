"""Windows that slide along one axis: how many there are, and TensorFlow's padding. Said once, for functions and operators."""

from __future__ import annotations

__all__ = ["same_padding", "windows_along"]

_Dim = int | str | None


def same_padding(size: int, reach: int, stride: int, lower: bool = False) -> tuple[int, int]:
    """What is added before and after an axis for ``ceil(size / stride)`` windows: the odd one after, or before if `lower`."""
    total = max((-(-size // stride) - 1) * stride + reach - size, 0) if size else 0
    small = total // 2
    return (total - small, small) if lower else (small, total - small)


def windows_along(size: _Dim, pads: tuple[int, int] | None, reach: int, stride: int, ceil: bool = False) -> _Dim:
    """How many windows of `reach` positions there are; -1 where none fits. A name stays where every position has one.

    Args:
        size: of the axis: a number, a name, or None if it is not known.
        pads: what is added before and after it; None: `same_padding`.
        reach: the positions that a window spans.
        stride: between two windows.
        ceil: whether a last window may overhang; it may not begin after the axis and its padding before.
    """
    if not isinstance(size, int):
        every = stride == 1 and (pads is None or sum(pads) == reach - 1)
        return size if every else None
    if pads is None:
        return -(-size // stride)
    room = size + sum(pads) - reach
    if room < 0 and not (ceil and room + stride > 0):
        return -1
    count = room // stride + 1
    return count + 1 if ceil and room % stride and count * stride < size + pads[0] else count

"""Windows that slide along one axis: how many there are, and what is added or cropped for it. Said once, for functions,
operators and readers of files; `rules.windows` has the rules of shapes.
"""

from __future__ import annotations

from ._tuples import NamedTuple

__all__ = ["Crop", "cropped_to", "halves", "same_padding", "windows_along"]

_Dim = int | str | None


def halves(total: int, lower: bool = False) -> tuple[int, int]:
    """`total` positions before and after an axis: the odd one after, or before if `lower`."""
    small = total // 2
    return (total - small, small) if lower else (small, total - small)


def same_padding(size: int, reach: int, stride: int, lower: bool = False) -> tuple[int, int]:
    """Padding before and after an axis for ``ceil(size / stride)`` windows: the odd one after, or before if `lower`."""
    return halves(max((-(-size // stride) - 1) * stride + reach - size, 0) if size else 0, lower)


def windows_along(size: _Dim, pads: tuple[int, int] | None, reach: int, stride: int, ceil: bool = False) -> _Dim:
    """Number of windows of `reach` positions along an axis; -1 where none fits. A name stays where every position has one.

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


class Crop(NamedTuple):
    """One axis of a transposed convolution: positions of the full result left out before and after, and added after it."""

    before: int
    after: int
    extra: int


def cropped_to(reach: int, stride: int, same: bool, extra: int | None = None) -> Crop:
    """Numbers of positions that Keras cuts from, or adds to, the full result of ``(size - 1) * stride + reach`` along an axis.

    "valid" keeps all and adds what is missing to max(reach, stride); "same" wants size * stride positions, or, if an output
    padding is given, (size - 1) * stride + reach mod 2 + output_padding of them. Left out is half before, what is odd after;
    as TensorFlow does it, for one k that the dilation has spread.
    """
    if not same:
        return Crop(0, 0, max(stride - reach, 0) if extra is None else extra)
    less = reach - (stride if extra is None else reach % 2 + extra)  # positions too many; below 0: too few
    before = max(less // 2, 0)
    return Crop(before, max(less - before, 0), max(before - less, 0))

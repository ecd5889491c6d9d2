"""Padding layers, with torch's names: every mode over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import shown
from ..errors import ArgumentError, ShapeError
from ..functional import pad
from ..functional._conv_rules import channels_last
from ..graph.record import shape_of
from ..ir.checks import integer, number
from ._base import Frozen, Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d",
    "ZeroPad3d",
]  # fmt: skip


class _Pad(Layer):
    """Makes the last `_axes` axes longer at their ends.

    Args:
        padding: an int for all ends, or counts ``(last axis before, last axis after, the axis before it: before, after, ...)``.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``: then the axes are those before the channels.
    """

    _axes = 0
    _mode = "constant"
    value = 0.0

    def __init__(self, padding: int | Sequence[int], *, layout: str = "nchw") -> None:
        name = type(self).__name__
        given = (padding,) * (2 * self._axes) if not isinstance(padding, (tuple, list)) else tuple(padding)
        self.padding = tuple(integer(name, "padding", p) for p in given)
        self._last = channels_last(name, layout, self._axes)
        if len(self.padding) != 2 * self._axes:
            raise ArgumentError(f"{name}: padding is {shown(padding)}: expected an int or {2 * self._axes} of them")

    def __call__(self, x: Tensor) -> np.ndarray:
        """Pads x, with or without a batch: ``(n, c, ...)`` or ``(c, ...)``, or channels last; returns float32."""
        ndim = len(shape_of(x, type(self).__name__, "x"))
        if ndim not in (self._axes + 1, self._axes + 2):
            raise ShapeError(
                f"{type(self).__name__}: x has {ndim} axes: expected {self._axes + 2}, or {self._axes + 1} without a batch"
            )
        return pad(x, (0, 0, *self.padding) if self._last else self.padding, self._mode, self.value)

    def _arguments(self) -> str:
        return f"{self.padding}" + (f", value={self.value}" if self.value else "") + (", layout='nhwc'" if self._last else "")


class _ConstantPad(_Pad):
    """Fills in a given number.

    Args:
        padding: as of the other padding layers; negative values cut.
        value: what is filled in.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``: then the axes are those before the channels.
    """

    def __init__(self, padding: int | Sequence[int], value: float, *, layout: str = "nchw") -> None:
        super().__init__(padding, layout=layout)
        self.value = number(type(self).__name__, "value", value)


def _layer(name: str, mode: str, axes: int, base: type[_Pad] = _Pad) -> Any:
    # Line by line: whether a docstring keeps its indentation depends on Python's version.
    arguments = (line.strip() for line in (base.__doc__ or "").partition("Args:")[2].splitlines())
    listed = "".join(f"    {line}\n" for line in arguments if line)
    doc = f"`functional.pad` over the last {axes} axes, ``mode={mode!r}``.\n\nArgs:\n{listed}"
    made: Any = Frozen(name, (base,), {"_axes": axes, "_mode": mode, "__doc__": doc, "__module__": __name__})
    return made


CircularPad1d, CircularPad2d, CircularPad3d = (_layer(f"CircularPad{n}d", "circular", n) for n in (1, 2, 3))
ConstantPad1d, ConstantPad2d, ConstantPad3d = (_layer(f"ConstantPad{n}d", "constant", n, _ConstantPad) for n in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_layer(f"ReflectionPad{n}d", "reflect", n) for n in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_layer(f"ReplicationPad{n}d", "replicate", n) for n in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_layer(f"ZeroPad{n}d", "constant", n) for n in (1, 2, 3))

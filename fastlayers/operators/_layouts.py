"""Layouts of operators over images whose channels come last in memory, as their traits state them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._traits import Layout, Sides

if TYPE_CHECKING:
    from ._base import View

__all__ = ["ALIKE", "convolution_sides", "maps", "windows"]


def _constant(n: View) -> bool:
    """Whether all inputs but x are known beforehand."""
    return all(spec is None or n.value(i) is not None for i, spec in enumerate(n.inputs) if i)


def windows(*dtypes: Any) -> Layout:
    """Layout of an operator that keeps that of x, of one of these dtypes; `x_last` tells it whether channels are last."""

    def sides(n: View) -> Sides | None:
        return Sides(((0, -1),)) if n.spec(0).dtype in dtypes and _constant(n) else None

    return Layout("tied", sides, lambda x, out: {"x_last": x})


def maps(*dtypes: Any) -> Layout:
    """Layout of an operator that makes one element of every map of x: its result has one layout only, channels first."""

    def sides(n: View) -> Sides | None:
        if n.get("channels_last", 0) or n.spec(0).dtype not in dtypes:
            return None
        return Sides(((0,),), first=(-1,))

    return Layout("tied", sides, lambda x, out: {"x_last": x})


def convolution_sides(n: View, weight: int, residual: int, largest_depthwise: int | None) -> Sides | None:
    """Sides of a convolution: both are free, but for a depthwise one, whose two sides have the same layout.

    Args:
        n: the node.
        weight: the position of the weights.
        residual: the position of what is added to the result.
        largest_depthwise: a depthwise kernel with more taps is faster with channels first, and one with fewer does not ask for
            channels last; None if one with channels last is always faster.
    """
    values, shape = n.value(weight), n.shape(0)
    if values is None or shape is None or "x_last" in n.node.attributes:
        return None
    x: tuple[int, ...] = (0,)
    out: tuple[int, ...] = (-1, residual) if n.has(residual) else (-1,)
    first: tuple[int, ...] = ()
    added = n.shape(residual) if n.has(residual) else shape
    if added is None or len(added) != len(shape):
        first = (-1,)
    if values.shape[1] == 1 and n.get("group", 1) > 1:
        if largest_depthwise is None:
            return Sides(((*x, *out),), first, (0, -1))
        return Sides(((*x, *out),), (-1,) if values[0].size > largest_depthwise else first)
    return Sides((x, out), first, (0, -1))


# Of functions of one array whose other inputs are parameters that have no layout.
ALIKE = Layout("tied", lambda n: Sides(((0, -1),)), lambda x, out: {})

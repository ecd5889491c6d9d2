"""Every operator that a graph may have: its shape rule, its meaning in numpy, and the kernel calls that it becomes. See `_base`."""

from ._base import OPERATORS, Operator, Spec, View

__all__ = ["OPERATORS", "Operator", "Spec", "View"]

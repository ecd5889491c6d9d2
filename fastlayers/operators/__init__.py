"""Every operator that a graph may have: its shape rule, its meaning in numpy, the kernel calls that it becomes. See `_base`."""

from . import arithmetic, blocks, constant, einsum, gathering, logic, movement, padding, reduce, shape, unary
from ._base import OPERATORS, Operator, Spec, View

__all__ = [
    "OPERATORS",
    "Operator",
    "Spec",
    "View",
    "arithmetic",
    "blocks",
    "constant",
    "einsum",
    "gathering",
    "logic",
    "movement",
    "padding",
    "reduce",
    "shape",
    "unary",
]

"""Every operator that a graph may have: its shape rule, its reference implementation, the kernel calls that it becomes. See
`_base`; the module of a family is imported when one of its operators is first asked for (`families`).
"""

from ._base import BOOL, FLOAT32, INT64, MAX_ROUNDS, OPERATORS, Operator, Spec, View, traits_of
from ._traits import UNDECIDED, Traits

__all__ = [
    "BOOL", "FLOAT32", "INT64", "MAX_ROUNDS", "OPERATORS", "UNDECIDED", "Operator", "Spec", "Traits", "View", "traits_of",
]  # fmt: skip

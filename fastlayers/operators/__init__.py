"""Every operator that a graph may have: its shape rule, its reference implementation, the kernel calls that it becomes. See
`_base`; the module of a family is imported when one of its operators is first asked for (`_families`).
"""

from ._base import OPERATORS, Operator, Spec, View, traits_of
from ._traits import Traits

__all__ = ["OPERATORS", "Operator", "Spec", "Traits", "View", "traits_of"]

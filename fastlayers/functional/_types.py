"""Types of arguments, for type checkers alone."""

from numpy.typing import ArrayLike

from ..graph.symbol import Symbol

__all__ = ["Tensor"]

# An array, what numpy can make one of, or a symbolic value. Results are typed as arrays; given a symbolic value they are symbolic.
Tensor = ArrayLike | Symbol

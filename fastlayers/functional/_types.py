"""Types of arguments, for type checkers alone."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from ..graph.symbol import Symbol

__all__ = ["Padding", "Tensor"]

# An array, what numpy can make one of, or a symbolic value. Results are typed as arrays; of a symbolic value they are symbolic.
Tensor = ArrayLike | Symbol
# As convolutions take it: for all axes, one per axis, a pair (before, after) an axis, or "same" or "valid".
Padding = int | Sequence[int] | Sequence[Sequence[int]] | str

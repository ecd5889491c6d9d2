"""States of a value in a graph whose inputs are batches of several requests, and products of sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tuples import NamedTuple

__all__ = ["COUNT", "ONE", "ROWS", "Kind", "Mixed", "MixedRows", "Rows", "Size", "over", "size", "times"]

ROWS = "<rows>"  # the symbol of the number of rows in a batch


class Size(NamedTuple):
    """A product of an integer and symbols: a size, or an integer that was computed of sizes."""

    factor: int
    symbols: tuple[str, ...] = ()

    @property
    def counted(self) -> bool:
        """Whether it depends on the number of rows."""
        return ROWS in self.symbols

    @property
    def known(self) -> bool:
        """Whether it is an integer."""
        return not self.symbols


ONE = Size(1)


def size(dim: Any, unknown: str) -> Size:
    """A dimension as a Size; `unknown` names one of which nothing is known."""
    return Size(int(dim)) if isinstance(dim, int) else Size(1, (dim if isinstance(dim, str) else unknown,))


def times(sizes: Iterable[Size]) -> Size:
    """The product."""
    factor = 1
    symbols: tuple[str, ...] = ()
    for one in sizes:
        factor *= one.factor
        symbols += one.symbols
    return Size(factor, tuple(sorted(symbols)) if factor else ())


def over(a: Size, b: Size) -> Size | None:
    """The quotient where it is exact whatever the symbols are, else None."""
    left = list(a.symbols)
    for symbol in b.symbols:
        if symbol not in left:
            return None
        left.remove(symbol)
    return None if b.factor == 0 or a.factor % b.factor else Size(a.factor // b.factor, tuple(left))


class Rows(NamedTuple):
    """A value that, for a batch, is the concatenation along `axis` of the values of its requests.

    Attributes:
        axis: has `outer` times the number of rows times `each` entries.
        each: entries for each row, next to each other.
        outer: how often all rows come one after the other along the axis, where an axis before it was joined with it.
    """

    axis: int
    each: Size = ONE
    outer: Size = ONE


class Mixed(NamedTuple):
    """A value of which nothing of the kind can be shown; `why` names the node that is to blame."""

    why: str


class MixedRows(Exception):
    """Raised by a rule: the node's results are mixed, or cannot be shown not to be."""


class _Count:
    def __repr__(self) -> str:
        return "COUNT"


# Integers that depend on the number of rows, and on nothing else of the batch: their entries are in `axes.Walk.entries`.
COUNT = _Count()
# None: the same in every batch.
Kind = Rows | Mixed | _Count | None

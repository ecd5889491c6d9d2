"""Checks that several operations share. Sizes may be ints, names or None (see graph.ir); errors say op, argument, rule."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..errors import DTypeError, ShapeError
from ..graph.ir import Dim, Shape

__all__ = ["axis", "differ", "integer", "integers", "number", "product", "rank", "same_shape"]


def differ(a: Dim, b: Dim) -> bool:
    """Whether two sizes are known and not equal."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def product(sizes: Sequence[Dim]) -> int | None:
    """The product of sizes, or None if one of them is unknown."""
    total = 1
    for size in sizes:
        if not isinstance(size, int):
            return None
        total *= size
    return total


def rank(op: str, argument: str, shape: Shape, least: int, most: int, rule: str) -> None:
    """Raises unless the shape has between `least` and `most` axes."""
    if not least <= len(shape) <= most:
        raise ShapeError(f"{op}: {argument} has shape {shape} ({len(shape)} axes): expected {rule}")


def same_shape(op: str, argument: str, got: Shape, want: Shape, what: str) -> None:
    """Raises unless `got` is `want`."""
    if len(got) != len(want) or any(map(differ, got, want)):
        raise ShapeError(f"{op}: {argument} has shape {got}: expected {want}, {what}")


def integer(op: str, argument: str, value: Any, least: int | None = None) -> int:
    """A plain int, of at least `least`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise DTypeError(f"{op}: {argument} is {value!r} of type {type(value).__name__}: expected an int") from None
    if least is not None and found < least:
        raise ShapeError(f"{op}: {argument} is {found}: expected at least {least}")
    return found


def integers(op: str, argument: str, value: Any, count: int, least: int | None = None) -> tuple[int, ...]:
    """`count` ints, given as one int for all or as a sequence of them."""
    if not isinstance(value, (tuple, list)):
        return (integer(op, argument, value, least),) * count
    if len(value) != count:
        raise ShapeError(f"{op}: {argument} is {tuple(value)!r} of length {len(value)}: expected one int or {count}, one an axis")
    return tuple(integer(op, argument, v, least) for v in value)


def number(op: str, argument: str, value: Any) -> float:
    """A plain float."""
    if isinstance(value, (str, bytes)):
        raise DTypeError(f"{op}: {argument} is {value!r}: expected a number")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DTypeError(f"{op}: {argument} of type {type(value).__name__} is no number: expected a float") from None


def axis(op: str, value: Any, ndim: int, argument: str = "dim") -> int:
    """An axis counted from the front; negative ones count from the end. A value without axes has 0 and -1, as in torch."""
    found = integer(op, argument, value)
    limit = max(ndim, 1)
    if not -limit <= found < limit:
        raise ShapeError(f"{op}: {argument} is {found}, x has {ndim} axes: expected {-limit} to {limit - 1}")
    return found % limit

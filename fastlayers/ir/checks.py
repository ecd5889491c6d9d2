"""Checks that several operations share. Sizes may be ints, names or None (see ir.graph); errors say op, argument, rule."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arguments import LARGEST, as_flag, shown
from .._machine import memory
from ..errors import ArgumentError, DTypeError, Error, LimitError, ShapeError
from .graph import Dim, Shape

_LARGEST_SINGLE = float(np.finfo(np.float32).max)
# Steps, pads and windows: products of two of them are far from where 64 bits end.
MOST_STEP = 2**31 - 1
# Of layers upon each other: more are made one by one until memory ends.
MOST_LAYERS = 1 << 12

__all__ = [
    "MOST_LAYERS",
    "MOST_STEP",
    "axis",
    "differ",
    "fits",
    "flag",
    "integer",
    "integers",
    "number",
    "product",
    "rank",
    "same_shape",
    "sequence",
    "single",
]


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


def integer(op: str, argument: str, value: Any, least: int | None = None, most: int = LARGEST) -> int:
    """A plain int, of at least `least` and at most `most`."""
    if value.__class__ is int:
        found: int = value
    else:
        try:
            if isinstance(value, (bool, np.bool_)):
                raise TypeError
            found = operator.index(value)
        except Error:  # of a symbolic value
            raise
        except Exception:  # a third-party type may raise anything
            raise DTypeError(f"{op}: {argument} is {shown(value)} of type {type(value).__name__}: expected an int") from None
    if least is not None and found < least:
        raise ArgumentError(f"{op}: {argument} is {shown(found)}: expected at least {least}")
    if not -LARGEST <= found <= most:
        raise ArgumentError(f"{op}: {argument} is {shown(found)}: expected at most {most}")
    return found


def integers(op: str, argument: str, value: Any, count: int, least: int | None = None, most: int = LARGEST) -> tuple[int, ...]:
    """`count` ints, given as one int for all or as a sequence of them."""
    if not isinstance(value, (tuple, list)):
        return (integer(op, argument, value, least, most),) * count
    if len(value) != count:
        raise ArgumentError(
            f"{op}: {argument} is {shown(tuple(value))} of length {len(value)}: expected one int or {count}, one per axis"
        )
    return tuple(integer(op, argument, v, least, most) for v in value)


def sequence(op: str, argument: str, value: Any) -> tuple[Any, ...]:
    """A sequence as a tuple; a number alone, or a name, is none."""
    if not isinstance(value, (tuple, list)):
        raise DTypeError(f"{op}: {argument} is {shown(value)} of type {type(value).__name__}: expected a sequence")
    return tuple(value)


def number(op: str, argument: str, value: Any) -> float:
    """A plain float; NaN and infinity pass; callers that cannot take them refuse them."""
    if value.__class__ is float:
        return value
    if isinstance(value, (str, bytes)):
        raise DTypeError(f"{op}: {argument} is {shown(value)}: expected a number")
    try:
        # numpy would take an array of one number, and a complex one, with a warning.
        if getattr(value, "ndim", 0) or isinstance(value, np.complexfloating):
            raise TypeError
        return float(value)
    except Error:
        raise
    except OverflowError:
        raise ArgumentError(f"{op}: {argument} is {shown(value)}: expected a number that a float can hold") from None
    except Exception:
        raise DTypeError(f"{op}: {argument} of type {type(value).__name__} is no number: expected a float") from None


def flag(op: str, argument: str, value: Any) -> bool:
    """A plain bool, given as True or False, or as 1 or 0."""
    return bool(as_flag(op, argument, value))


def fits(op: str, count: int, dtype: Any, what: str) -> None:
    """Raises where so many values are more than the machine can hold: the system would grant them, and end the process."""
    size = count * np.dtype(dtype).itemsize
    if size > (most := memory() // 4 * 3):
        raise LimitError(f"{op}: no memory for {what}: {size} bytes, expected at most {most}")


def single(op: str, argument: str, value: Any, infinite: bool = False) -> float:
    """A number as kernels take it: one that float32 can hold; infinity where `infinite` says that the formula has a meaning."""
    found = number(op, argument, value)
    if -_LARGEST_SINGLE <= found <= _LARGEST_SINGLE or (infinite and found == found):
        return found
    raise ArgumentError(f"{op}: {argument} is {found}: expected a number{'' if infinite else ' that float32 can hold'}")


def axis(op: str, value: Any, ndim: int, argument: str = "dim", after: int = 0) -> int:
    """An axis counted from the front; negative ones count from the end. A value without axes has 0 and -1, as in torch.

    `after`: how many places after the last axis may be meant too.
    """
    found = integer(op, argument, value)
    limit = max(ndim, 1)
    most = ndim + after if after else limit
    if not -limit <= found < most:
        raise ShapeError(f"{op}: {argument} is {found}, x has {ndim} axes: expected {-limit} to {most - 1}")
    return found % limit if found < 0 else found

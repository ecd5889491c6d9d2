"""Arithmetic, comparisons and choices with broadcasting: computed in float64, rounded to float32 once at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import ARITHMETIC, BINARY, COMPARE, INTEGER, Activation
from .activation import evaluate

__all__ = ["arithmetic", "binary", "choose", "compare", "integer", "where"]


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # A single exponent of 0.5 would make numpy draw roots, and that of -infinity is another one than C's pow gives.
    return np.asarray(np.power(a, np.array(np.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape)))))


_FUNCTIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": _power,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "prelu": lambda a, b: np.where(a >= 0, a, a * b),
    "squared_difference": lambda a, b: np.square(a - b),
}
_BY_CODE = {BINARY[name]: function for name, function in _FUNCTIONS.items()}
_COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
_COMPARISON_BY_CODE = {COMPARE[name]: function for name, function in _COMPARISONS.items()}


def binary(a: np.ndarray, b: np.ndarray, out: np.ndarray, op: int, activation: Activation) -> None:
    """out = f(a, b), f a number of table.BINARY, then the activation; a and b broadcast. out may be one that has its shape."""
    with np.errstate(all="ignore"):
        out[...] = evaluate(_BY_CODE[op](a.astype(np.float64), b.astype(np.float64)), activation)


def compare(a: np.ndarray, b: np.ndarray, out: np.ndarray, op: int) -> None:
    """out = a ? b as booleans, the comparison a number of table.COMPARE; a and b broadcast."""
    out[...] = _COMPARISON_BY_CODE[op](a, b)


def where(condition: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out = a where the condition (booleans) holds, else b; all three broadcast. out may be a or b if that has its shape."""
    out[...] = np.where(condition, a, b)


_INTEGERS: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "equal": np.equal, "not_equal": np.not_equal,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip
_INTEGER_BY_CODE = {number: _INTEGERS[name] for name, number in INTEGER.items()}


def integer(a: np.ndarray, b: np.ndarray, out: np.ndarray, op: int, source: int) -> None:
    """out = f(a, b), f a number of table.INTEGER; a and b broadcast and are booleans, int32 or int64 (`source`)."""
    with np.errstate(all="ignore"):
        out[...] = _INTEGER_BY_CODE[op](a, b)


def _truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b; integers are cut off toward zero, as in C, and 0 where b is 0."""
    return np.divide(a, b) if a.dtype.kind == "f" else np.asarray((a - np.fmod(a, b)) // b)


def _integer_power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Wraps around; a power below 0 is cut off, that of 0 is the least number, as if infinity were cast."""
    if a.dtype.kind == "f":
        return _power(a, b)
    whole = np.power(a, np.maximum(b, b.dtype.type(0)))
    if b.dtype.kind == "u":
        return np.asarray(whole)
    odd = np.where(b & b.dtype.type(1), a, np.abs(a))
    below = np.where(np.abs(a) == 1, odd, np.where(a == 0, np.iinfo(a.dtype).min, 0))
    return np.asarray(np.where(b < 0, below, whole).astype(a.dtype))


def _shifted(a: np.ndarray, b: np.ndarray, left: bool) -> np.ndarray:
    """By fewer than 0 bits, or all of them, nothing of a number is left but its sign."""
    beyond = (b < 0) | (b >= a.dtype.itemsize * 8)
    by = np.where(beyond, b.dtype.type(0), b)
    if left:
        return np.asarray(np.where(beyond, a.dtype.type(0), np.left_shift(a, by)))
    sign = np.where(a < 0, a.dtype.type(-1) if a.dtype.kind == "i" else a.dtype.type(0), a.dtype.type(0))
    return np.asarray(np.where(beyond, sign, np.right_shift(a, by)))


_ARITHMETIC: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    **{name: function for name, function in _INTEGERS.items() if name in ARITHMETIC},
    "divide": _truncated,
    "power": _integer_power,
    "mod": np.mod,
    "fmod": np.fmod,
    "left": lambda a, b: _shifted(a, b, True),
    "right": lambda a, b: _shifted(a, b, False),
    "prelu": lambda a, b: np.where(a < 0, a * b, a),
}
_ARITHMETIC_BY_CODE = {number: _ARITHMETIC[name] for name, number in ARITHMETIC.items()}


def arithmetic(a: np.ndarray, b: np.ndarray, out: np.ndarray, op: int, source: int) -> None:
    """out = f(a, b), f a number of table.ARITHMETIC, of the dtype that `source` (table.KINDS) says; both broadcast."""
    with np.errstate(all="ignore"):
        out[...] = _ARITHMETIC_BY_CODE[op](a, b)


def choose(condition: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray, itemsize: int) -> None:
    """As `where`, of items of one or two bytes (`itemsize`)."""
    out[...] = np.where(condition, a, b)

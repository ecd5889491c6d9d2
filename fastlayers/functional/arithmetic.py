"""Sums, differences, products and quotients with broadcasting, in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.ir import Dim, Shape
from ..graph.ops import op
from ..kernels import _dispatch
from ..kernels.table import BINARY
from ._activation import IDENTITY
from ._arrays import as_float32, empty
from ._recorded import same

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["add", "divide", "multiply", "subtract"]


def broadcast(op_name: str, a: Shape, b: Shape) -> Shape:
    """The shape of two operands together: aligned at the last axis, sizes are equal or one of them is 1."""
    if a[len(a) - len(b) :] == b and len(a) >= len(b):
        return a
    count = max(len(a), len(b))
    pairs = zip((1,) * (count - len(a)) + tuple(a), (1,) * (count - len(b)) + tuple(b), strict=True)
    return tuple(_together(op_name, x, y, a, b) for x, y in pairs)


def _together(op_name: str, x: Dim, y: Dim, a: Shape, b: Shape) -> Dim:
    if x == y or y == 1:
        return x
    if x == 1:
        return y
    if isinstance(x, int) and isinstance(y, int):
        raise ShapeError(
            f"{op_name}: operands have shapes {a} and {b}: expected sizes that are equal or 1, aligned at the last axis"
        )
    # One size is known and greater than 1: the other one must turn out to be it, or 1.
    return x if isinstance(x, int) else (y if isinstance(y, int) else None)


def _apply(op_name: str, a: Any, b: Any) -> np.ndarray:
    a, b = as_float32(a, op_name, "a"), as_float32(b, op_name, "b")
    out = empty(broadcast(op_name, a.shape, b.shape))  # type: ignore[arg-type]
    _dispatch.kernel("binary")(a, b, out, BINARY[op_name], IDENTITY)
    return out


@op("add", "a b", lambda a, b: broadcast("add", a, b), same("Add"))
def add(a: Tensor, b: Tensor) -> np.ndarray:
    """Sum: ``a + b``.

    Args:
        a: any shape that broadcasts with that of b; any real dtype.
        b: the other operand.

    Returns:
        float32, the common shape.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: an operand is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.add([1.0, 2.0], 1)
    array([2., 3.], dtype=float32)
    """
    return _apply("add", a, b)


@op("subtract", "a b", lambda a, b: broadcast("subtract", a, b), same("Sub"))
def subtract(a: Tensor, b: Tensor) -> np.ndarray:
    """Difference: ``a - b``.

    Args:
        a: any shape that broadcasts with that of b; any real dtype.
        b: the other operand.

    Returns:
        float32, the common shape.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: an operand is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.subtract([1.0, 2.0], 1)
    array([0., 1.], dtype=float32)
    """
    return _apply("subtract", a, b)


@op("multiply", "a b", lambda a, b: broadcast("multiply", a, b), same("Mul"))
def multiply(a: Tensor, b: Tensor) -> np.ndarray:
    """Product, element by element: ``a * b``.

    Args:
        a: any shape that broadcasts with that of b; any real dtype.
        b: the other operand.

    Returns:
        float32, the common shape.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: an operand is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.multiply([1.0, 2.0], [3.0, 4.0])
    array([3., 8.], dtype=float32)
    """
    return _apply("multiply", a, b)


@op("divide", "a b", lambda a, b: broadcast("divide", a, b), same("Div"))
def divide(a: Tensor, b: Tensor) -> np.ndarray:
    """Quotient: ``a / b``; division by 0 gives an infinity or NaN.

    Args:
        a: any shape that broadcasts with that of b; any real dtype.
        b: the other operand.

    Returns:
        float32, the common shape.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: an operand is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.divide([1.0, 2.0], 2)
    array([0.5, 1. ], dtype=float32)
    """
    return _apply("divide", a, b)

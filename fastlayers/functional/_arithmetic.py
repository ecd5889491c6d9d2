"""Mathematics element by element, in float32: sums, differences, products and quotients with broadcasting; limits, exponential,
logarithm, error function, root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..ir.checks import single
from ..ir.graph import Shape
from ..kernels import dispatch
from ..kernels.table import BINARY, UNARY, Activation
from ..rules.shapes import broadcast_rule
from ._activation_names import IDENTITY
from ._activation_unary import PLAIN, numbers_rule, run_unary
from ._recorded import clipped, same

if TYPE_CHECKING:
    from ._types import Tensor


__all__ = ["add", "clip", "divide", "erf", "exp", "log", "multiply", "sqrt", "subtract"]


def broadcast(op_name: str, a: Shape, b: Shape) -> Shape:
    """The shape of two operands together."""
    return broadcast_rule(op_name, (a, b))


def _apply(op_name: str, a: Any, b: Any) -> np.ndarray:
    a, b = as_float32(a, op_name, "a"), as_float32(b, op_name, "b")
    out = empty(broadcast(op_name, a.shape, b.shape))  # type: ignore[arg-type]
    dispatch.kernel("binary")(a, b, out, BINARY[op_name], IDENTITY)
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
        DTypeError: an operand is complex or not numeric.

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
        DTypeError: an operand is complex or not numeric.

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
        DTypeError: an operand is complex or not numeric.

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
        DTypeError: an operand is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.divide([1.0, 2.0], 2)
    array([0.5, 1. ], dtype=float32)
    """
    return _apply("divide", a, b)


_CLIP = UNARY["clip"].code


_INF = float("inf")


def clip_rule(x: Shape, min: float | None, max: float | None) -> Shape:
    """The shape rule of `clip`: as of any elementwise function; limits may be None."""
    for name, value in (("min", min), ("max", max)):
        if value is not None:
            single("clip", name, value, infinite=True)
    return x


@op("clip", "x", clip_rule, lambda x, min, max: clipped(x, min, max))
def clip(x: Tensor, min: float | None = None, max: float | None = None) -> np.ndarray:
    """Limits to a range: ``min(max(x, min), max)``.

    Args:
        x: any shape, any real dtype.
        min: the least result, or None for no limit.
        max: the largest result, or None for no limit; it wins if it is below `min`.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric, or a parameter is not a number.

    >>> import fastlayers as fl
    >>> fl.functional.clip([-1.0, 0.5, 7.0], 0, 1)
    array([0. , 0.5, 1. ], dtype=float32)
    """
    clip_rule((), min, max)
    return run_unary("clip", x, Activation(_CLIP, -_INF if min is None else float(min), _INF if max is None else float(max)))


@op("exp", "x", numbers_rule("exp"), same("Exp"))
def exp(x: Tensor) -> np.ndarray:
    """Exponential function: ``e ** x``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.exp([0.0])
    array([1.], dtype=float32)
    """
    return run_unary("exp", x, PLAIN["exp"])


@op("log", "x", numbers_rule("log"), same("Log"))
def log(x: Tensor) -> np.ndarray:
    """Natural logarithm; -inf at 0 and NaN below: ``log(x)``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.log([1.0])
    array([0.], dtype=float32)
    """
    return run_unary("log", x, PLAIN["log"])


@op("erf", "x", numbers_rule("erf"), same("Erf"))
def erf(x: Tensor) -> np.ndarray:
    """Gauss error function: ``2 / sqrt(pi) * integral of exp(-t**2) from 0 to x``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.erf([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("erf", x, PLAIN["erf"])


@op("sqrt", "x", numbers_rule("sqrt"), same("Sqrt"))
def sqrt(x: Tensor) -> np.ndarray:
    """Square root; NaN below 0: ``sqrt(x)``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.sqrt([4.0])
    array([2.], dtype=float32)
    """
    return run_unary("sqrt", x, PLAIN["sqrt"])

"""Plain mathematics, element by element: limits, exponential, logarithm, error function, root."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..graph.ir import Shape
from ..graph.ops import op
from ..kernels.table import UNARY, Activation
from ._checks import number, single
from ._recorded import clipped, same
from ._unary import PLAIN, floats, numbers_rule, run_unary

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = [
    "clip",
    "erf",
    "exp",
    "hardtanh",
    "identity",
    "log",
    "sqrt",
]

_CLIP = UNARY["clip"].code
_INF = float("inf")


def clip_rule(x: Shape, min: float | None, max: float | None) -> Shape:
    """The shape rule of `clip`: as of any elementwise function; limits may be None."""
    for name, value in (("min", min), ("max", max)):
        if value is not None:
            single("clip", name, value, infinite=True)
    return x


@op("identity", "x", numbers_rule("identity"), same("Identity"))
def identity(x: Tensor) -> np.ndarray:
    """The numbers themselves, as float32: ``x``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.identity([1, 2])
    array([1., 2.], dtype=float32)
    """
    return run_unary("identity", x, PLAIN["identity"])


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
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.clip([-1.0, 0.5, 7.0], 0, 1)
    array([0. , 0.5, 1. ], dtype=float32)
    """
    clip_rule((), min, max)
    return run_unary("clip", x, Activation(_CLIP, -_INF if min is None else float(min), _INF if max is None else float(max)))


@op("hardtanh", "x", numbers_rule("hardtanh"), lambda x, min_val, max_val: clipped(x, min_val, max_val), floats)
def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> np.ndarray:
    """Limits to a range, -1 to 1 by default: ``min(max(x, min_val), max_val)``.

    Args:
        x: any shape, any real dtype.
        min_val: the least result.
        max_val: the largest result; it wins if it is below `min_val`.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.hardtanh([-2.0, 0.5])
    array([-1. ,  0.5], dtype=float32)
    """
    min_val = number("hardtanh", "min_val", min_val)
    max_val = number("hardtanh", "max_val", max_val)
    least, most = (single("hardtanh", name, value, infinite=True) for name, value in (("min_val", min_val), ("max_val", max_val)))
    return run_unary("hardtanh", x, Activation(_CLIP, least, most))


@op("exp", "x", numbers_rule("exp"), same("Exp"))
def exp(x: Tensor) -> np.ndarray:
    """Exponential function: ``e ** x``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

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
        DTypeError: x is complex, or no array of numbers.

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
        DTypeError: x is complex, or no array of numbers.

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
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.sqrt([4.0])
    array([2.], dtype=float32)
    """
    return run_unary("sqrt", x, PLAIN["sqrt"])

"""Softmax and its logarithm over one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ..calls.machine import ARRAYS
from ..calls.normalization import along, cut_at
from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..graph.record import record
from ..graph.symbol import Symbol
from ..ir.checks import axis
from ..ir.graph import Shape
from ._arithmetic import multiply

if TYPE_CHECKING:
    from ._types import Tensor


__all__ = ["log_softmax", "softmax", "softmin"]


@op("softmax", "x", lambda x, dim: _rule("softmax", x, dim), lambda x, dim: record("Softmax", x, axis=dim))
def softmax(x: Tensor, dim: int = -1) -> np.ndarray:
    """Exponentials, divided by their sum along an axis: ``exp(x) / sum(exp(x))``, without overflow.

    Args:
        x: any shape, any real dtype.
        dim: the axis along which the results sum to 1.

    Returns:
        float32, the shape of x.

    Raises:
        ShapeError: there is no such axis.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.softmax([1000.0, 1000.0])
    array([0.5, 0.5], dtype=float32)
    """
    return run_softmax("softmax", x, dim)


@op("log_softmax", "x", lambda x, dim: _rule("log_softmax", x, dim), lambda x, dim: record("LogSoftmax", x, axis=dim))
def log_softmax(x: Tensor, dim: int = -1) -> np.ndarray:
    """Logarithm of softmax along an axis: ``x - log(sum(exp(x)))``, without overflow or loss of small results.

    Args:
        x: any shape, any real dtype.
        dim: the axis along which the exponentials of the results sum to 1.

    Returns:
        float32, the shape of x.

    Raises:
        ShapeError: there is no such axis.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.log_softmax([0.0, -1000.0])
    array([    0., -1000.], dtype=float32)
    """
    return run_softmax("log_softmax", x, dim)


def _rule(name: str, x: Shape, dim: Any) -> Shape:
    axis(name, dim, len(x))
    return x


def run_softmax(name: str, x: Any, dim: Any) -> np.ndarray:
    """`softmax` or `log_softmax`, by name."""
    x = as_float32(x, name, "x")
    at = axis(name, dim, x.ndim)
    out = empty(x.shape)
    along(ARRAYS, name, x, out, cut_at(x.shape, at) if x.ndim else (1, 1, 1))
    return out


@checked
def softmin(x: Tensor, dim: int = -1) -> np.ndarray:
    """Softmax of the negated input: ``exp(-x) / sum(exp(-x))``.

    Args:
        x: any shape, any real dtype.
        dim: the axis along which the results sum to 1.

    Returns:
        float32, the shape of x.

    Raises:
        ShapeError: there is no such axis.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.softmin([1000.0, 1000.0])
    array([0.5, 0.5], dtype=float32)
    """
    x = x if isinstance(x, Symbol) else as_float32(x, "softmin", "x")
    axis("softmin", dim, len(x.shape))
    return softmax(multiply(x, -1.0), dim)

"""Further activations: CELU, shrinkages, thresholds, logarithm of the sigmoid, quick GELU. The usual ones: activation.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.ir import Shape
from ..graph.ops import op
from ..graph.record import record
from ..graph.symbol import Symbol
from ..kernels.table import UNARY, Activation
from ._activation import resolve
from ._arrays import as_float32
from ._checks import axis, number
from ._recorded import activates
from ._unary import PLAIN, floats, numbers_rule, run_unary
from .arithmetic import multiply
from .softmax import softmax

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["celu", "hardshrink", "logsigmoid", "quick_gelu", "softmin", "softshrink", "tanhshrink", "threshold"]


def celu_rule(x: Shape, alpha: Any) -> Shape:
    """The shape rule of `celu`, which refuses an `alpha` of 0."""
    if number("celu", "alpha", alpha) == 0.0:
        raise ShapeError("celu: alpha is 0: expected another number, x is divided by it")
    return x


def _shrink(x: Any, lambd: float, bias: float = 0.0) -> Any:
    return record("Activate", x, activation=tuple(resolve("shrink", ("shrink", {"lambd": lambd, "bias": bias}))))


@op("celu", "x", celu_rule, activates("celu"), floats)
def celu(x: Tensor, alpha: float = 1.0) -> np.ndarray:
    """Exponential linear unit with one slope at 0: ``x if x > 0 else alpha * (exp(x / alpha) - 1)``.

    Args:
        x: any shape, any real dtype.
        alpha: the limit far below zero is -alpha; above 0.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.
        ShapeError: `alpha` is 0.

    >>> import fastlayers as fl
    >>> fl.functional.celu([0.0, 2.0], 0.5)
    array([0., 2.], dtype=float32)
    """
    celu_rule((), alpha)
    return run_unary("celu", x, Activation(UNARY["celu"].code, float(alpha)))


@op("hardshrink", "x", numbers_rule("hardshrink"), _shrink, floats)
def hardshrink(x: Tensor, lambd: float = 0.5) -> np.ndarray:
    """Zero near zero: ``x if |x| > lambd else 0``.

    Args:
        x: any shape, any real dtype.
        lambd: how near.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.hardshrink([-1.0, 0.25, 1.0])
    array([-1.,  0.,  1.], dtype=float32)
    """
    return run_unary("hardshrink", x, Activation(UNARY["shrink"].code, number("hardshrink", "lambd", lambd)))


@op("softshrink", "x", numbers_rule("softshrink"), lambda x, lambd: _shrink(x, lambd, lambd), floats)
def softshrink(x: Tensor, lambd: float = 0.5) -> np.ndarray:
    """Nearer to zero: ``x - lambd if x > lambd else x + lambd if x < -lambd else 0``.

    Args:
        x: any shape, any real dtype.
        lambd: by how much.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.softshrink([-1.0, 0.25, 1.0])
    array([-0.5,  0. ,  0.5], dtype=float32)
    """
    lambd = number("softshrink", "lambd", lambd)
    return run_unary("softshrink", x, Activation(UNARY["shrink"].code, lambd, lambd))


@op("tanhshrink", "x", numbers_rule("tanhshrink"), activates("tanhshrink"))
def tanhshrink(x: Tensor) -> np.ndarray:
    """What the hyperbolic tangent takes away: ``x - tanh(x)``, in float32, so that little is left of results near 0.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.tanhshrink([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("tanhshrink", x, PLAIN["tanhshrink"])


@op("threshold", "x", numbers_rule("threshold"), activates("threshold"), floats)
def threshold(x: Tensor, threshold: float, value: float) -> np.ndarray:
    """Another number where x is small: ``x if x > threshold else value``.

    Args:
        x: any shape, any real dtype.
        threshold: what x must be above.
        value: what stands there else.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.threshold([0.5, 2.0], 1.0, -1.0)
    array([-1.,  2.], dtype=float32)
    """
    found = Activation(UNARY["threshold"].code, number("threshold", "threshold", threshold), number("threshold", "value", value))
    return run_unary("threshold", x, found)


@op("logsigmoid", "x", numbers_rule("logsigmoid"), activates("logsigmoid"))
def logsigmoid(x: Tensor) -> np.ndarray:
    """Logarithm of the logistic function: ``-log(1 + exp(-x))``, without overflow or loss of small results.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.logsigmoid([200.0, -1000.0])
    array([    0., -1000.], dtype=float32)
    """
    return run_unary("logsigmoid", x, PLAIN["logsigmoid"])


@op("quick_gelu", "x", numbers_rule("quick_gelu"), activates("quick_gelu"), floats)
def quick_gelu(x: Tensor, alpha: float = 1.702) -> np.ndarray:
    """GELU as some exported models have it: ``x * sigmoid(alpha * x)``.

    Args:
        x: any shape, any real dtype.
        alpha: the factor; 1 gives `silu`.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.quick_gelu([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("quick_gelu", x, Activation(UNARY["quick_gelu"].code, number("quick_gelu", "alpha", alpha)))


def softmin(x: Tensor, dim: int = -1) -> np.ndarray:
    """Softmax of what is taken negative: ``exp(-x) / sum(exp(-x))``.

    Args:
        x: any shape, any real dtype.
        dim: the axis along which the results sum to 1.

    Returns:
        float32, the shape of x.

    Raises:
        ShapeError: there is no such axis.
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.softmin([1000.0, 1000.0])
    array([0.5, 0.5], dtype=float32)
    """
    x = x if isinstance(x, Symbol) else as_float32(x, "softmin", "x")
    axis("softmin", dim, len(x.shape))
    return softmax(multiply(x, -1.0), dim)

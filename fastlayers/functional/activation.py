"""The usual activations. Gated ones are in gated.py, softmax in softmax.py, plain mathematics in elementwise.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ShapeError
from ..graph.ir import Shape
from ..graph.ops import op
from ..graph.record import record
from ..kernels.table import UNARY, Activation
from ._checks import number, single
from ._recorded import activates, alpha, clipped, same
from ._unary import PLAIN, floats, numbers_rule, run_unary

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = [
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "leaky_relu",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]

_RELU6 = Activation(UNARY["clip"].code, 0.0, 6.0)


def gelu_rule(x: Shape, approximate: str) -> Shape:
    """The shape rule of `gelu`, which checks `approximate`."""
    if approximate not in ("none", "tanh"):
        raise ShapeError(f"gelu: approximate is {approximate!r}: expected 'none' or 'tanh'")
    return x


def softplus_rule(x: Shape, beta: float, threshold: float) -> Shape:
    """The shape rule of `softplus`, which refuses a `beta` of 0."""
    if number("softplus", "beta", beta) == 0.0:
        raise ShapeError("softplus: beta is 0: expected another number, the result is divided by it")
    number("softplus", "threshold", threshold)
    return x


@op("relu", "x", numbers_rule("relu"), same("Relu"))
def relu(x: Tensor) -> np.ndarray:
    """Rectifier: ``max(x, 0)``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.relu([-1.0, 2.0])
    array([0., 2.], dtype=float32)
    """
    return run_unary("relu", x, PLAIN["relu"])


@op("relu6", "x", numbers_rule("relu6"), lambda x: clipped(x, 0.0, 6.0))
def relu6(x: Tensor) -> np.ndarray:
    """Rectifier that stops at 6: ``min(max(x, 0), 6)``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.relu6([-1.0, 7.0])
    array([0., 6.], dtype=float32)
    """
    return run_unary("relu6", x, _RELU6)


@op("leaky_relu", "x", numbers_rule("leaky_relu"), alpha("LeakyRelu", alpha="negative_slope"), floats)
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> np.ndarray:
    """Rectifier with a slope below zero: ``x if x >= 0 else negative_slope * x``.

    Args:
        x: any shape, any real dtype.
        negative_slope: the slope below zero. (Keras uses 0.2 or 0.3.)

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.leaky_relu([-1.0, 2.0], 0.5)
    array([-0.5,  2. ], dtype=float32)
    """
    negative_slope = number("leaky_relu", "negative_slope", negative_slope)
    return run_unary("leaky_relu", x, Activation(UNARY["leaky_relu"].code, negative_slope))


@op("elu", "x", numbers_rule("elu"), alpha("Elu", alpha="alpha"), floats)
def elu(x: Tensor, alpha: float = 1.0) -> np.ndarray:
    """Exponential linear unit: ``x if x > 0 else alpha * (exp(x) - 1)``.

    Args:
        x: any shape, any real dtype.
        alpha: the limit far below zero is -alpha.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.elu([0.0, 2.0])
    array([0., 2.], dtype=float32)
    """
    alpha = number("elu", "alpha", alpha)
    return run_unary("elu", x, Activation(UNARY["elu"].code, single("elu", "alpha", alpha)))


@op("selu", "x", numbers_rule("selu"), same("Selu"))
def selu(x: Tensor) -> np.ndarray:
    """Self-normalizing exponential linear unit: ``scale * (x if x > 0 else alpha * (exp(x) - 1))``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.selu([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("selu", x, PLAIN["selu"])


@op("gelu", "x", gelu_rule, lambda x, approximate: record("Gelu", x, approximate=approximate))
def gelu(x: Tensor, approximate: str = "none") -> np.ndarray:
    """Gaussian error linear unit: ``x * Phi(x)``.

    Args:
        x: any shape, any real dtype.
        approximate: ``"none"`` for the exact Phi, by erf, or ``"tanh"`` for
            ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.
        ShapeError: `approximate` is neither of the two.

    >>> import fastlayers as fl
    >>> fl.functional.gelu([0.0])
    array([0.], dtype=float32)
    """
    gelu_rule((), approximate)
    return run_unary("gelu", x, PLAIN["gelu_tanh" if approximate == "tanh" else "gelu"])


@op("silu", "x", numbers_rule("silu"), same("Swish"))
def silu(x: Tensor) -> np.ndarray:
    """Sigmoid linear unit, also called swish: ``x * sigmoid(x)``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.silu([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("silu", x, PLAIN["silu"])


@op("sigmoid", "x", numbers_rule("sigmoid"), same("Sigmoid"))
def sigmoid(x: Tensor) -> np.ndarray:
    """Logistic function: ``1 / (1 + exp(-x))``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.sigmoid([0.0])
    array([0.5], dtype=float32)
    """
    return run_unary("sigmoid", x, PLAIN["sigmoid"])


@op("tanh", "x", numbers_rule("tanh"), same("Tanh"))
def tanh(x: Tensor) -> np.ndarray:
    """Hyperbolic tangent: ``tanh(x)``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.tanh([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("tanh", x, PLAIN["tanh"])


@op("hardsigmoid", "x", numbers_rule("hardsigmoid"), alpha("HardSigmoid", alpha="alpha", beta="beta"), floats)
def hardsigmoid(x: Tensor, alpha: float = 1 / 6, beta: float = 0.5) -> np.ndarray:
    """Sigmoid in three straight pieces: ``min(max(alpha * x + beta, 0), 1)``.

    Args:
        x: any shape, any real dtype.
        alpha: the slope: 1/6 in torch and Keras 3, 0.2 in Keras 1 and 2 and by default in ONNX.
        beta: the value at zero.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.

    >>> import fastlayers as fl
    >>> fl.functional.hardsigmoid([-3.0, 0.0, 3.0])
    array([0. , 0.5, 1. ], dtype=float32)
    """
    alpha = number("hardsigmoid", "alpha", alpha)
    beta = number("hardsigmoid", "beta", beta)
    return run_unary("hardsigmoid", x, Activation(UNARY["hardsigmoid"].code, alpha, beta))


@op("hardswish", "x", numbers_rule("hardswish"), same("HardSwish"))
def hardswish(x: Tensor) -> np.ndarray:
    """Swish in straight and parabolic pieces: ``x * min(max(x / 6 + 1/2, 0), 1)``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.hardswish([-3.0, 0.0, 3.0])
    array([-0.,  0.,  3.], dtype=float32)
    """
    return run_unary("hardswish", x, PLAIN["hardswish"])


@op("softplus", "x", softplus_rule, activates("softplus"), floats)
def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> np.ndarray:
    """Smooth rectifier: ``x if beta * x > threshold else log(1 + exp(beta * x)) / beta``.

    Args:
        x: any shape, any real dtype.
        beta: how sharp the bend is; not 0.
        threshold: above it the result is x itself.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers; or a parameter is no number.
        ShapeError: `beta` is 0.

    >>> import fastlayers as fl
    >>> fl.functional.softplus([100.0])
    array([100.], dtype=float32)
    """
    softplus_rule((), beta, threshold)
    return run_unary("softplus", x, Activation(UNARY["softplus"].code, float(beta), float(threshold)))


@op("softsign", "x", numbers_rule("softsign"), same("Softsign"))
def softsign(x: Tensor) -> np.ndarray:
    """Sigmoid without exponentials: ``x / (1 + |x|)``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.softsign([1.0])
    array([0.5], dtype=float32)
    """
    return run_unary("softsign", x, PLAIN["softsign"])


@op("mish", "x", numbers_rule("mish"), same("Mish"))
def mish(x: Tensor) -> np.ndarray:
    """Self-regularised smooth rectifier: ``x * tanh(log(1 + exp(x)))``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.mish([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("mish", x, PLAIN["mish"])


swish = silu

"""Activations: functions of one array, element by element. Those of two are in activation_gated.py, mathematics elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..graph.ops import op
from ..graph.record import record
from ..ir.checks import number, single
from ..ir.graph import Shape
from ..kernels.table import UNARY, Activation
from ._activation_names import above_zero, not_zero, resolve
from ._activation_unary import PLAIN, floats, numbers_rule, run_unary
from ._recorded import activates, alpha, clipped, same

if TYPE_CHECKING:
    from ._types import Tensor


__all__ = [
    "celu",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "identity",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "quick_gelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "swish",
    "tanh",
    "tanhshrink",
    "threshold",
]


_RELU6 = Activation(UNARY["clip"].code, 0.0, 6.0)


def gelu_rule(x: Shape, approximate: str) -> Shape:
    """The shape rule of `gelu`, which checks `approximate`."""
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate is {approximate!r}: expected 'none' or 'tanh'")
    return x


def softplus_rule(x: Shape, beta: float, threshold: float) -> Shape:
    """The shape rule of `softplus`, which refuses a `beta` of 0."""
    not_zero("softplus", "beta", beta)
    number("softplus", "threshold", threshold)
    return x


@op("relu", "x", numbers_rule("relu"), same("Relu"))
def relu(x: Tensor, inplace: bool = False) -> np.ndarray:
    """Rectifier: ``max(x, 0)``.

    Args:
        x: any shape, any real dtype.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.relu([-1.0, 2.0])
    array([0., 2.], dtype=float32)
    """
    return run_unary("relu", x, PLAIN["relu"])


@op("relu6", "x", numbers_rule("relu6"), lambda x: clipped(x, 0.0, 6.0))
def relu6(x: Tensor, inplace: bool = False) -> np.ndarray:
    """Rectifier that stops at 6: ``min(max(x, 0), 6)``.

    Args:
        x: any shape, any real dtype.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.relu6([-1.0, 7.0])
    array([0., 6.], dtype=float32)
    """
    return run_unary("relu6", x, _RELU6)


@op("leaky_relu", "x", numbers_rule("leaky_relu"), alpha("LeakyRelu", alpha="negative_slope"), floats)
def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> np.ndarray:
    """Rectifier with a slope below zero: ``x if x >= 0 else negative_slope * x``.

    Args:
        x: any shape, any real dtype.
        negative_slope: the slope below zero. (Keras uses 0.2 or 0.3.)
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric, or a parameter is not a number.

    >>> import fastlayers as fl
    >>> fl.functional.leaky_relu([-1.0, 2.0], 0.5)
    array([-0.5,  2. ], dtype=float32)
    """
    negative_slope = number("leaky_relu", "negative_slope", negative_slope)
    return run_unary("leaky_relu", x, Activation(UNARY["leaky_relu"].code, negative_slope))


@op("elu", "x", numbers_rule("elu"), alpha("Elu", alpha="alpha"), floats)
def elu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> np.ndarray:
    """Exponential linear unit: ``x if x > 0 else alpha * (exp(x) - 1)``.

    Args:
        x: any shape, any real dtype.
        alpha: the limit far below zero is -alpha.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric, or a parameter is not a number.

    >>> import fastlayers as fl
    >>> fl.functional.elu([0.0, 2.0])
    array([0., 2.], dtype=float32)
    """
    alpha = number("elu", "alpha", alpha)
    return run_unary("elu", x, Activation(UNARY["elu"].code, single("elu", "alpha", alpha)))


@op("selu", "x", numbers_rule("selu"), same("Selu"))
def selu(x: Tensor, inplace: bool = False) -> np.ndarray:
    """Self-normalizing exponential linear unit: ``scale * (x if x > 0 else alpha * (exp(x) - 1))``.

    Args:
        x: any shape, any real dtype.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

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
        DTypeError: x is complex or not numeric.
        ShapeError: `approximate` is neither of the two.

    >>> import fastlayers as fl
    >>> fl.functional.gelu([0.0])
    array([0.], dtype=float32)
    """
    gelu_rule((), approximate)
    return run_unary("gelu", x, PLAIN["gelu_tanh" if approximate == "tanh" else "gelu"])


@op("silu", "x", numbers_rule("silu"), same("Swish"))
def silu(x: Tensor, inplace: bool = False) -> np.ndarray:
    """Sigmoid linear unit, also called swish: ``x * sigmoid(x)``.

    Args:
        x: any shape, any real dtype.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

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
        DTypeError: x is complex or not numeric.

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
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.tanh([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("tanh", x, PLAIN["tanh"])


@op("hardsigmoid", "x", numbers_rule("hardsigmoid"), alpha("HardSigmoid", alpha="alpha", beta="beta"), floats)
def hardsigmoid(x: Tensor, inplace: bool = False, *, alpha: float = 1 / 6, beta: float = 0.5) -> np.ndarray:
    """Sigmoid in three straight pieces: ``min(max(alpha * x + beta, 0), 1)``.

    Args:
        x: any shape, any real dtype.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.
        alpha: the slope: 1/6 in torch and Keras 3, 0.2 in Keras 1 and 2 and by default in ONNX.
        beta: the value at zero.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric, or a parameter is not a number.

    >>> import fastlayers as fl
    >>> fl.functional.hardsigmoid([-3.0, 0.0, 3.0])
    array([0. , 0.5, 1. ], dtype=float32)
    """
    alpha = number("hardsigmoid", "alpha", alpha)
    beta = number("hardsigmoid", "beta", beta)
    return run_unary("hardsigmoid", x, Activation(UNARY["hardsigmoid"].code, alpha, beta))


@op("hardswish", "x", numbers_rule("hardswish"), same("HardSwish"))
def hardswish(x: Tensor, inplace: bool = False) -> np.ndarray:
    """Swish in straight and parabolic pieces: ``x * min(max(x / 6 + 1/2, 0), 1)``.

    Args:
        x: any shape, any real dtype.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

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
        DTypeError: x is complex or not numeric, or a parameter is not a number.
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
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.softsign([1.0])
    array([0.5], dtype=float32)
    """
    return run_unary("softsign", x, PLAIN["softsign"])


@op("mish", "x", numbers_rule("mish"), same("Mish"))
def mish(x: Tensor, inplace: bool = False) -> np.ndarray:
    """Self-regularized smooth rectifier: ``x * tanh(log(1 + exp(x)))``.

    Args:
        x: any shape, any real dtype.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.mish([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("mish", x, PLAIN["mish"])


swish = silu


@op("identity", "x", numbers_rule("identity"), same("Identity"))
def identity(x: Tensor) -> np.ndarray:
    """The values themselves, as float32: ``x``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.identity([1, 2])
    array([1., 2.], dtype=float32)
    """
    return run_unary("identity", x, PLAIN["identity"])


@op("hardtanh", "x", numbers_rule("hardtanh"), lambda x, min_val, max_val: clipped(x, min_val, max_val), floats)
def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> np.ndarray:
    """Limits to a range, -1 to 1 by default: ``min(max(x, min_val), max_val)``.

    Args:
        x: any shape, any real dtype.
        min_val: the least result.
        max_val: the largest result; it wins if it is below `min_val`.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric, or a parameter is not a number.

    >>> import fastlayers as fl
    >>> fl.functional.hardtanh([-2.0, 0.5])
    array([-1. ,  0.5], dtype=float32)
    """
    min_val = number("hardtanh", "min_val", min_val)
    max_val = number("hardtanh", "max_val", max_val)
    least, most = (single("hardtanh", name, value, infinite=True) for name, value in (("min_val", min_val), ("max_val", max_val)))
    return run_unary("hardtanh", x, Activation(UNARY["clip"].code, least, most))


def celu_rule(x: Shape, alpha: Any) -> Shape:
    """The shape rule of `celu`, which refuses an `alpha` that is not above 0."""
    above_zero("celu", "alpha", alpha)
    return x


def _shrink(x: Any, lambd: float, bias: float = 0.0) -> Any:
    return record("Activate", x, activation=tuple(resolve("shrink", ("shrink", {"lambd": lambd, "bias": bias}))))


@op("celu", "x", celu_rule, activates("celu"), floats)
def celu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> np.ndarray:
    """Exponential linear unit with one slope at 0: ``x if x > 0 else alpha * (exp(x / alpha) - 1)``.

    Args:
        x: any shape, any real dtype.
        alpha: the limit far below zero is -alpha; above 0.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric, or a parameter is not a number.
        ShapeError: `alpha` is not above 0.

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
        DTypeError: x is complex or not numeric, or a parameter is not a number.

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
        DTypeError: x is complex or not numeric, or a parameter is not a number.

    >>> import fastlayers as fl
    >>> fl.functional.softshrink([-1.0, 0.25, 1.0])
    array([-0.5,  0. ,  0.5], dtype=float32)
    """
    lambd = number("softshrink", "lambd", lambd)
    return run_unary("softshrink", x, Activation(UNARY["shrink"].code, lambd, lambd))


@op("tanhshrink", "x", numbers_rule("tanhshrink"), activates("tanhshrink"))
def tanhshrink(x: Tensor) -> np.ndarray:
    """The part that the hyperbolic tangent takes away: ``x - tanh(x)``, in float32, so that little is left of results near 0.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.tanhshrink([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("tanhshrink", x, PLAIN["tanhshrink"])


@op("threshold", "x", numbers_rule("threshold"), activates("threshold"), floats)
def threshold(x: Tensor, threshold: float, value: float, inplace: bool = False) -> np.ndarray:
    """Another number where x is small: ``x if x > threshold else value``.

    Args:
        x: any shape, any real dtype.
        threshold: what x must be above.
        value: what stands there else.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric, or a parameter is not a number.

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
        DTypeError: x is complex or not numeric.

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
        DTypeError: x is complex or not numeric, or a parameter is not a number.

    >>> import fastlayers as fl
    >>> fl.functional.quick_gelu([0.0])
    array([0.], dtype=float32)
    """
    return run_unary("quick_gelu", x, Activation(UNARY["quick_gelu"].code, number("quick_gelu", "alpha", alpha)))

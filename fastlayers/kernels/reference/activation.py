"""Elementwise kernels in numpy: computed in float64, rounded to float32 once at the end."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..table import UNARY, Activation

__all__ = ["evaluate", "gated", "prelu", "unary"]

# A function of x (float64) and of the parameters a and b.
Function = Callable[[np.ndarray, float, float], np.ndarray]

_erf_of_one = np.frompyfunc(math.erf, 1, 1)
_erfc_of_one = np.frompyfunc(math.erfc, 1, 1)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.asarray(_erf_of_one(x), np.float64)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))  # at most 1: nothing overflows
    return np.asarray(np.where(x < 0, e, 1) / (1 + e))


def _expm1_below(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.expm1(np.minimum(x, 0)))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    # 0.5 (1 + tanh(u)) = sigmoid(2 u), which does not cancel where tanh is near -1
    return np.asarray(x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gelu(x: np.ndarray) -> np.ndarray:
    # not 1 + erf, which cancels below 0
    return x * np.asarray(_erfc_of_one(-x / math.sqrt(2)), np.float64) / 2


def _softplus(x: np.ndarray, beta: float, threshold: float) -> np.ndarray:
    return np.where(beta * x > threshold, x, np.logaddexp(0, beta * x) / beta)


_FUNCTIONS: dict[str, Function] = {
    "identity": lambda x, a, b: x,
    "relu": lambda x, a, b: np.maximum(x, 0),
    "clip": lambda x, a, b: np.minimum(np.maximum(x, a), b),
    "leaky_relu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "elu": lambda x, a, b: np.where(x > 0, x, a * _expm1_below(x)),
    "selu": lambda x, a, b: b * np.where(x > 0, x, a * _expm1_below(x)),
    "sigmoid": lambda x, a, b: _sigmoid(x),
    "tanh": lambda x, a, b: np.tanh(x),
    "gelu": lambda x, a, b: _gelu(x),
    "gelu_tanh": lambda x, a, b: _gelu_tanh(x),
    "silu": lambda x, a, b: x * _sigmoid(x),
    "hardsigmoid": lambda x, a, b: np.minimum(np.maximum(a * x + b, 0), 1),
    "hardswish": lambda x, a, b: x * np.minimum(np.maximum(x + 3, 0), 6) / 6,
    "softplus": _softplus,
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "mish": lambda x, a, b: x * np.tanh(np.logaddexp(0, x)),
    "exp": lambda x, a, b: np.exp(x),
    "log": lambda x, a, b: np.log(x),
    "erf": lambda x, a, b: _erf(x),
    "sqrt": lambda x, a, b: np.sqrt(x),
    "square": lambda x, a, b: x * x,
    "negative": lambda x, a, b: -x,
    "abs": lambda x, a, b: np.abs(x),
    "reciprocal": lambda x, a, b: 1 / x,
    "floor": lambda x, a, b: np.floor(x),
    "ceil": lambda x, a, b: np.ceil(x),
    "round": lambda x, a, b: np.rint(x),
    "sign": lambda x, a, b: np.sign(x),
    "sin": lambda x, a, b: np.sin(x),
    "cos": lambda x, a, b: np.cos(x),
    "celu": lambda x, a, b: np.where(x > 0, x, a * np.expm1(-np.abs(x / a))),
    "shrink": lambda x, a, b: np.where(x < -a, x + b, np.where(x > a, x - b, np.where(np.isnan(x), x, 0))),
    "threshold": lambda x, a, b: np.where(x <= a, b, x),
    "tanhshrink": lambda x, a, b: x - np.tanh(x),
    "logsigmoid": lambda x, a, b: -np.logaddexp(0, -x),
    "quick_gelu": lambda x, a, b: x * _sigmoid(a * x),
}
_BY_CODE: dict[int, Function] = {UNARY[name].code: function for name, function in _FUNCTIONS.items()}


def evaluate(x: np.ndarray, activation: Activation) -> np.ndarray:
    """f(x) in float64; the parameters are float32 values, as the compiled kernels take them."""
    code, a, b = activation
    return _BY_CODE[code](x.astype(np.float64), float(np.float32(a)), float(np.float32(b)))


def unary(x: np.ndarray, out: np.ndarray, activation: Activation) -> None:
    """out = f(x), f given by code and parameters; out may be x."""
    with np.errstate(all="ignore"):
        out[...] = evaluate(x, activation)


def prelu(x__oci: np.ndarray, slope__c: np.ndarray, out__oci: np.ndarray) -> None:
    """out = x where x >= 0, else slope[c] x."""
    with np.errstate(all="ignore"):
        out__oci[...] = np.where(x__oci >= 0, x__oci, slope__c[:, None].astype(np.float64) * x__oci)


def gated(x__o2i: np.ndarray, out__oi: np.ndarray, activation: Activation, gate: int) -> None:
    """out = x[:, 1 - gate] * f(x[:, gate]), f without parameters."""
    with np.errstate(all="ignore"):
        out__oi[...] = x__o2i[:, 1 - gate] * evaluate(x__o2i[:, gate], activation)

"""Elementwise functions in float32, as kernels call them: `function` finds one by its number in table.UNARY.

libdevice's functions are within 2 ulp (erfc 6). Formulas are chosen so that nothing overflows or cancels on the way; NaN stays
NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import UNARY
from ._cuda import SIMULATED, device, devices, f32, libdevice

__all__ = ["cosine", "erf", "erfc", "exp", "expm1", "floor", "function", "log", "log1p", "power", "root", "sine", "tanh"]

if SIMULATED:

    def _plain(name: str) -> Any:
        def call(*values: Any) -> Any:
            return f32(getattr(np, name)(*(f32(v) for v in values)))

        return call

    def erf(x: Any) -> Any:
        """As the GPU's."""
        return f32(math.erf(x))

    def erfc(x: Any) -> Any:
        """As the GPU's."""
        return f32(math.erfc(x))

    def power(x: Any, y: Any) -> Any:
        """As the GPU's: numpy's for float32 differs from C's for infinite exponents."""
        return f32(np.power(np.array([x], np.float64), np.array([y], np.float64))[0])

    exp, expm1, log, log1p = _plain("exp"), _plain("expm1"), _plain("log"), _plain("log1p")
    tanh, root, sine, cosine = _plain("tanh"), _plain("sqrt"), _plain("sin"), _plain("cos")
    floor, ceil, rint, absolute = _plain("floor"), _plain("ceil"), _plain("rint"), _plain("abs")
else:
    exp, expm1, log, log1p = libdevice.expf, libdevice.expm1f, libdevice.logf, libdevice.log1pf
    tanh, root, sine, cosine, power = libdevice.tanhf, libdevice.sqrtf, libdevice.sinf, libdevice.cosf, libdevice.powf
    floor, ceil, rint, absolute = libdevice.floorf, libdevice.ceilf, libdevice.rintf, libdevice.fabsf
    erf, erfc = libdevice.erff, libdevice.erfcf

# As kernels read them: single precision, or all that they touch would become double.
_ZERO, _ONE, _HALF, _TWO = f32(0), f32(1), f32(0.5), f32(2)
_SIXTH, _ROOT_HALF, _CUBE, _TANH2 = f32(1 / 6), f32(math.sqrt(0.5)), f32(0.044715), f32(2 * math.sqrt(2 / math.pi))
_LARGE = f32(20)


@device
def _sigmoid(x: Any) -> Any:
    e = exp(-absolute(x))  # at most 1
    return (e if x < _ZERO else _ONE) / (_ONE + e)


@device
def _log_of_one_and_exp(x: Any) -> Any:
    return (x if x > _ZERO else _ZERO) + log1p(exp(-absolute(x)))


def _clip(x: Any, a: Any, b: Any) -> Any:
    x = a if x < a else x
    return b if x > b else x


def _hardsigmoid(x: Any, a: Any, b: Any) -> Any:
    y = a * x + b
    y = _ZERO if y < _ZERO else y
    return _ONE if y > _ONE else y


def _hardswish(x: Any, a: Any, b: Any) -> Any:
    y = x * _SIXTH + _HALF
    y = _ZERO if y < _ZERO else y
    return x * (_ONE if y > _ONE else y)


def _softplus(x: Any, a: Any, b: Any) -> Any:
    y = a * x
    return x if y > b else _log_of_one_and_exp(y) / a


def _mish(x: Any, a: Any, b: Any) -> Any:
    e = exp(_LARGE if x > _LARGE else x)
    n = e * (e + _TWO)  # tanh(log(1 + e)) = n / (n + 2)
    return x if x > _LARGE else x * (n / (n + _TWO))


_FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "identity": lambda x, a, b: x,
    "relu": lambda x, a, b: _ZERO if x < _ZERO else x,
    "clip": _clip,
    "leaky_relu": lambda x, a, b: x if x >= _ZERO else a * x,
    "elu": lambda x, a, b: x if x > _ZERO else a * expm1(x),
    "selu": lambda x, a, b: b * (x if x > _ZERO else a * expm1(x)),
    "sigmoid": lambda x, a, b: _sigmoid(x),
    "tanh": lambda x, a, b: tanh(x),
    # not 1 + erf, which cancels below 0
    "gelu": lambda x, a, b: _HALF * x * erfc(-x * _ROOT_HALF),
    "gelu_tanh": lambda x, a, b: x * _sigmoid(_TANH2 * (x + _CUBE * x * x * x)),
    "silu": lambda x, a, b: x * _sigmoid(x),
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "softplus": _softplus,
    "softsign": lambda x, a, b: x / (_ONE + absolute(x)),
    "mish": _mish,
    "exp": lambda x, a, b: exp(x),
    "log": lambda x, a, b: log(x),
    "erf": lambda x, a, b: erf(x),
    "sqrt": lambda x, a, b: root(x),
    "square": lambda x, a, b: x * x,
    "negative": lambda x, a, b: -x,
    "abs": lambda x, a, b: absolute(x),
    "reciprocal": lambda x, a, b: _ONE / x,
    "floor": lambda x, a, b: floor(x),
    "ceil": lambda x, a, b: ceil(x),
    "round": lambda x, a, b: rint(x),
    "sign": lambda x, a, b: _ONE if x > _ZERO else (-_ONE if x < _ZERO else x),
    "sin": lambda x, a, b: sine(x),
    "cos": lambda x, a, b: cosine(x),
    "celu": lambda x, a, b: x if x > _ZERO else a * expm1(-absolute(x / a)),
    "shrink": lambda x, a, b: x + b if x < -a else (x - b if x > a else (_ZERO if x == x else x)),
    "threshold": lambda x, a, b: b if x <= a else x,
    "tanhshrink": lambda x, a, b: x - tanh(x),
    "logsigmoid": lambda x, a, b: -_log_of_one_and_exp(-x),
    "quick_gelu": lambda x, a, b: x * _sigmoid(a * x),
}
_BY_CODE = {UNARY[name].code: made for name, made in devices(_FUNCTIONS).items()}


def function(code: int) -> Any:
    """The device function (x, a, b) of a number of table.UNARY; a and b are an Activation's parameters."""
    return _BY_CODE[code]

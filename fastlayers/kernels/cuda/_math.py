"""Elementwise functions in float32, as kernels call them: `function` finds one by its number in table.UNARY.

libdevice's functions are within 2 ulp (erfc 6). Formulas are chosen so that nothing overflows or cancels on the way; NaN stays
NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..table import UNARY
from ._cuda import SIMULATED, device, f32, libdevice

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


@device
def _identity(x: Any, a: Any, b: Any) -> Any:
    return x


@device
def _relu(x: Any, a: Any, b: Any) -> Any:
    return _ZERO if x < _ZERO else x


@device
def _clip(x: Any, a: Any, b: Any) -> Any:
    x = a if x < a else x
    return b if x > b else x


@device
def _leaky_relu(x: Any, a: Any, b: Any) -> Any:
    return x if x >= _ZERO else a * x


@device
def _elu(x: Any, a: Any, b: Any) -> Any:
    return x if x > _ZERO else a * expm1(x)


@device
def _selu(x: Any, a: Any, b: Any) -> Any:
    return b * (x if x > _ZERO else a * expm1(x))


@device
def _sigmoid_of(x: Any, a: Any, b: Any) -> Any:
    return _sigmoid(x)


@device
def _tanh(x: Any, a: Any, b: Any) -> Any:
    return tanh(x)


@device
def _gelu(x: Any, a: Any, b: Any) -> Any:
    return _HALF * x * erfc(-x * _ROOT_HALF)  # not 1 + erf, which cancels below 0


@device
def _gelu_tanh(x: Any, a: Any, b: Any) -> Any:
    return x * _sigmoid(_TANH2 * (x + _CUBE * x * x * x))


@device
def _silu(x: Any, a: Any, b: Any) -> Any:
    return x * _sigmoid(x)


@device
def _hardsigmoid(x: Any, a: Any, b: Any) -> Any:
    y = a * x + b
    y = _ZERO if y < _ZERO else y
    return _ONE if y > _ONE else y


@device
def _hardswish(x: Any, a: Any, b: Any) -> Any:
    y = x * _SIXTH + _HALF
    y = _ZERO if y < _ZERO else y
    return x * (_ONE if y > _ONE else y)


@device
def _softplus(x: Any, a: Any, b: Any) -> Any:
    y = a * x
    return x if y > b else _log_of_one_and_exp(y) / a


@device
def _softsign(x: Any, a: Any, b: Any) -> Any:
    return x / (_ONE + absolute(x))


@device
def _mish(x: Any, a: Any, b: Any) -> Any:
    e = exp(_LARGE if x > _LARGE else x)
    n = e * (e + _TWO)  # tanh(log(1 + e)) = n / (n + 2)
    return x if x > _LARGE else x * (n / (n + _TWO))


@device
def _exp(x: Any, a: Any, b: Any) -> Any:
    return exp(x)


@device
def _log(x: Any, a: Any, b: Any) -> Any:
    return log(x)


@device
def _erf(x: Any, a: Any, b: Any) -> Any:
    return erf(x)


@device
def _sqrt(x: Any, a: Any, b: Any) -> Any:
    return root(x)


@device
def _square(x: Any, a: Any, b: Any) -> Any:
    return x * x


@device
def _negative(x: Any, a: Any, b: Any) -> Any:
    return -x


@device
def _abs(x: Any, a: Any, b: Any) -> Any:
    return absolute(x)


@device
def _reciprocal(x: Any, a: Any, b: Any) -> Any:
    return _ONE / x


@device
def _floor(x: Any, a: Any, b: Any) -> Any:
    return floor(x)


@device
def _ceil(x: Any, a: Any, b: Any) -> Any:
    return ceil(x)


@device
def _round(x: Any, a: Any, b: Any) -> Any:
    return rint(x)


@device
def _sign(x: Any, a: Any, b: Any) -> Any:
    return _ONE if x > _ZERO else (-_ONE if x < _ZERO else x)


@device
def _sin(x: Any, a: Any, b: Any) -> Any:
    return sine(x)


@device
def _cos(x: Any, a: Any, b: Any) -> Any:
    return cosine(x)


@device
def _celu(x: Any, a: Any, b: Any) -> Any:
    return x if x > _ZERO else a * expm1(-absolute(x / a))


@device
def _shrink(x: Any, a: Any, b: Any) -> Any:
    return x + b if x < -a else (x - b if x > a else (_ZERO if x == x else x))


@device
def _threshold(x: Any, a: Any, b: Any) -> Any:
    return b if x <= a else x


@device
def _tanhshrink(x: Any, a: Any, b: Any) -> Any:
    return x - tanh(x)


@device
def _logsigmoid(x: Any, a: Any, b: Any) -> Any:
    return -_log_of_one_and_exp(-x)


@device
def _quick_gelu(x: Any, a: Any, b: Any) -> Any:
    return x * _sigmoid(a * x)


_NAMES = {"sigmoid": _sigmoid_of}
_BY_CODE: dict[int, Any] = {unary.code: _NAMES.get(name, globals()[f"_{name}"]) for name, unary in UNARY.items()}


def function(code: int) -> Any:
    """The device function (x, a, b) of a number of table.UNARY; a and b are an Activation's parameters."""
    return _BY_CODE[code]

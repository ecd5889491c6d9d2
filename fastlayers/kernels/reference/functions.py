"""Functions of one array of any dtype, in numpy: floats are computed in float64 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import FUNCTIONS

__all__ = ["function"]

_erf = np.frompyfunc(math.erf, 1, 1)
_FUNCTIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "is_nan": np.isnan, "is_inf": np.isinf, "is_positive_inf": np.isposinf, "is_negative_inf": np.isneginf, "not": np.invert,
    "negative": np.negative, "abs": np.abs, "sign": np.sign, "relu": lambda x: np.maximum(x, x.dtype.type(0)), "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "reciprocal": lambda x: 1 / x,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": lambda x: _erf(x).astype(np.float64),
}  # fmt: skip
_BY_CODE = {number: _FUNCTIONS[name] for name, number in FUNCTIONS.items()}


def function(x: np.ndarray, out: np.ndarray, op: int, source: int) -> None:
    """out = f(x), f a number of table.FUNCTIONS, of the dtype that `source` (table.KINDS) says; tests give booleans."""
    with np.errstate(all="ignore"):
        out[...] = _BY_CODE[op](x.astype(np.float64) if x.dtype == np.float32 else x)

"""Powers with one exponent for all values."""

from __future__ import annotations

import numpy as np

from ..table import BINARY, UNARY, Activation
from .activation import unary
from .binary import binary

__all__ = ["powers"]

_NAMES = {2.0: "square", 0.5: "sqrt"}


def powers(x: np.ndarray, out: np.ndarray, exponent: float, absolute: bool) -> np.ndarray:
    """out = x^exponent, or |x|^exponent; out may be x."""
    if exponent in _NAMES:
        unary(x, out, Activation(UNARY[_NAMES[exponent]].code))
        return out
    if absolute:
        unary(x, out, Activation(UNARY["abs"].code))
        x = out
    if exponent != 1:
        binary(x, np.asarray(exponent, np.float32), out, BINARY["power"], Activation(0))
    return out

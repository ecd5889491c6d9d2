"""The shared part of elementwise functions: the call of the kernel and the rules of shapes and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.arrays import as_float32, empty
from ..ir.checks import number
from ..ir.graph import Shape
from ..kernels import dispatch
from ..kernels.table import UNARY, Activation

__all__ = ["PLAIN", "floats", "numbers_rule", "run_unary"]

# Every function with the defaults of its parameters.
PLAIN = {name: Activation(unary.code, *unary.defaults) for name, unary in UNARY.items()}


def run_unary(op_name: str, x: Any, activation: Activation) -> np.ndarray:
    """An elementwise function given as kernels know it."""
    x = as_float32(x, op_name, "x")
    out = empty(x.shape)
    dispatch.kernel("unary")(x, out, activation)
    return out


def numbers_rule(op_name: str) -> Callable[..., Shape]:
    """The shape rule of an elementwise function: the shape of x; its parameters must be scalars."""

    def rule(x: Shape, **parameters: Any) -> Shape:
        for name, value in parameters.items():
            number(op_name, name, value)
        return x

    return rule


def floats(parameters: dict[str, Any]) -> None:
    """Makes the attributes of a recorded operation plain floats."""
    parameters.update({name: float(value) for name, value in parameters.items()})

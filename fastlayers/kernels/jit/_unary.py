"""The loops of all elementwise functions in one compiled function, which other kernels call through its address."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..table import UNARY, Activation
from ._math import FUNCTIONS
from ._njit import emitted, inner
from ._vector import Emit, Float, V

__all__ = ["apply", "spell"]

SELU = UNARY["selu"].code


@emitted
def _apply(e: Emit, code: V, a: Float, b: Float, x: V, y: V, n: V) -> None:
    va, vb = e.splat(a), e.splat(b)

    def case(function: Callable[[Emit, V, V, V], V]) -> Callable[[], None]:
        def body(i: V, mask: V | None) -> None:
            e.store(e.at(y, i), function(e, e.load(e.at(x, i), mask=mask), va, vb), mask)

        return lambda: e.vectors(n, body)

    e.switch(code, {UNARY[name].code: case(function) for name, function in FUNCTIONS.items()})


@inner
def apply(code: int, a: float, b: float, x: int, y: int, n: int) -> None:
    """y = f(x) for n floats; y may be x. Of SELU, a is given multiplied by b."""
    _apply(code, a, b, x, y, n)


def spell(activation: Activation) -> tuple[int, float, float]:
    """Code and parameters as compiled functions take them."""
    code, a, b = activation
    if code == SELU:
        a = float(np.float32(a) * np.float32(b))
    return code, a, b

"""The loops of all elementwise functions in one compiled function, which other kernels call through its address."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..table import UNARY, Activation
from ._math import FUNCTIONS
from ._njit import emitted, inner
from ._records import Act
from ._vector import Emit, V

__all__ = ["apply", "spell"]

SELU = UNARY["selu"].code


@emitted
def _apply(e: Emit, act: Act, x: V, y: V, n: V) -> None:
    va, vb = e.splat(act.a), e.splat(act.b)

    def case(function: Callable[[Emit, V, V, V], V]) -> Callable[[], None]:
        def body(i: V, mask: V | None) -> None:
            e.store(e.at(y, i), function(e, e.load(e.at(x, i), mask=mask), va, vb), mask)

        return lambda: e.vectors(n, body)

    e.switch(act.code, {UNARY[name].code: case(function) for name, function in FUNCTIONS.items()})


@inner
def apply(act: Act, x: int, y: int, n: int) -> None:
    """y = f(x) for n floats; y may be x. Of SELU, a is given multiplied by b."""
    _apply(act, x, y, n)


def spell(activation: Activation) -> Act:
    """An activation as compiled functions take it."""
    code, a, b = activation
    if code == SELU:
        a = float(np.float32(a) * np.float32(b))
    return Act(code, a, b)

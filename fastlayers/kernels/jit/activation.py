"""Elementwise functions: one compiled function holds the loops of all codes, and other kernels call it through its address."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..table import UNARY, Activation
from ._math import FUNCTIONS
from ._njit import call, emitted, kernel
from ._threads import address, spread
from ._vector import Emit, V
from . import binary as _binary

__all__ = ["apply", "gated", "prelu", "spell", "unary"]

PIECE = 4096  # numbers of one task: they stay in the first-level cache
SELU, LEAKY = UNARY["selu"].code, UNARY["leaky_relu"].code


@emitted
def _apply(e: Emit, code: V, a: float, b: float, x: V, y: V, n: V) -> None:
    va, vb = e.splat(a), e.splat(b)

    def case(function: Callable[[Emit, V, V, V], V]) -> Callable[[], None]:
        def body(i: V, mask: V | None) -> None:
            e.store(e.at(y, i), function(e, e.load(e.at(x, i), mask=mask), va, vb), mask)

        return lambda: e.vectors(n, body)

    e.switch(code, {UNARY[name].code: case(function) for name, function in FUNCTIONS.items()})


@kernel
def apply(code: int, a: float, b: float, x: int, y: int, n: int):
    """y = f(x) for n floats; y may be x. Of SELU, a is given multiplied by b."""
    _apply(code, a, b, x, y, n)


@kernel
def _pieces(function: int, code: int, a: float, b: float, x: int, y: int, n: int, first: int, last: int):
    start, stop = first * PIECE, min(n, last * PIECE)
    call(function, code, a, b, x + 4 * start, y + 4 * start, stop - start)


@kernel
def _gated(function: int, code: int, gate: int, x: int, y: int, inner: int, multiply: int, first: int, last: int):
    for row in range(first, last):
        at = x + row * inner * 8
        for start in range(0, inner, PIECE):
            n = min(PIECE, inner - start)
            to = y + (row * inner + start) * 4
            call(function, code, 0.0, 0.0, at + (gate * inner + start) * 4, to, n)
            call(multiply, _binary.MULTIPLY, to, at + ((1 - gate) * inner + start) * 4, 1, 1, to, n)


def spell(activation: Activation) -> tuple[int, float, float]:
    """Code and parameters as compiled functions take them."""
    code, a, b = activation
    if code == SELU:
        a = float(np.float32(a) * np.float32(b))
    return code, a, b


def unary(x: np.ndarray, out: np.ndarray, activation: Activation) -> None:
    """out = f(x), f given by code and parameters; out may be x."""
    n = x.size
    given = (apply.address, *spell(activation), address(x), address(out), n)
    if n:
        spread(-(-n // PIECE), n * 20.0, lambda first, last: _pieces(*given, first, last))


def prelu(x__oci: np.ndarray, slope__c: np.ndarray, out__oci: np.ndarray) -> None:
    """out = x where x >= 0, else slope[c] x."""
    _binary.binary(x__oci, slope__c[:, None], out__oci, _binary.PRELU, Activation(0))


def gated(x__o2i: np.ndarray, out__oi: np.ndarray, activation: Activation, gate: int) -> None:
    """out = x[:, 1 - gate] * f(x[:, gate]), f without parameters."""
    rows, inner = out__oi.shape
    if out__oi.size:
        given = apply.address, activation.code, gate, address(x__o2i), address(out__oi), inner, _binary.row.address
        spread(rows, out__oi.size * 20.0, lambda first, last: _gated(*given, first, last))

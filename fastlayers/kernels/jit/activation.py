"""Elementwise functions, gated units and PReLU."""

from __future__ import annotations

import numpy as np

from ..table import Activation
from ._njit import call, kernel
from ._records import Act
from ._threads import address, spread
from ._unary import apply, spell
from .binary import MULTIPLY, PRELU, binary, row

__all__ = ["gated", "prelu", "unary"]

PIECE = 4096  # values of one task: they stay in the first-level cache


@kernel
def _pieces(function: int, act: Act, x: int, y: int, n: int, first: int, last: int) -> None:
    start, stop = first * PIECE, min(n, last * PIECE)
    call(function, act, x + 4 * start, y + 4 * start, stop - start)


@kernel
def _gated(function: int, multiply: int, code: int, gate: int, x: int, y: int, inner: int, first: int, last: int) -> None:
    for number in range(first, last):
        at = x + number * inner * 8
        for start in range(0, inner, PIECE):
            n = min(PIECE, inner - start)
            to = y + (number * inner + start) * 4
            call(function, Act(code, 0.0, 0.0), at + (gate * inner + start) * 4, to, n)
            call(multiply, MULTIPLY, to, at + ((1 - gate) * inner + start) * 4, 1, 1, to, n)


def unary(x: np.ndarray, out: np.ndarray, activation: Activation) -> None:
    """out = f(x), f given by code and parameters; out may be x."""
    n = x.size
    given = (apply.address, spell(activation), address(x), address(out), n)
    if n:
        spread(-(-n // PIECE), n * 20.0, lambda first, last: _pieces(*given, first, last))


def prelu(x__oci: np.ndarray, slope__c: np.ndarray, out__oci: np.ndarray) -> None:
    """out = x where x >= 0, else slope[c] x."""
    binary(x__oci, slope__c[:, None], out__oci, PRELU, Activation(0))


def gated(x__o2i: np.ndarray, out__oi: np.ndarray, activation: Activation, gate: int) -> None:
    """out = x[:, 1 - gate] * f(x[:, gate]), f without parameters."""
    rows, inner = out__oi.shape
    if out__oi.size:
        given = apply.address, row.address, activation.code, gate, address(x__o2i), address(out__oi), inner
        spread(rows, out__oi.size * 20.0, lambda first, last: _gated(*given, first, last))

"""Matrix products with weights: which kernels run, and why.

Weights that are known are packed, once; others are packed for one call, or read where they are, which gives the same bits: sums
have one order. To read them is faster for few rows of x, and within a call that nothing else shares only if they are large.
"""

from __future__ import annotations

import math
from typing import Any

from ..kernels import dispatch
from ..kernels.table import BINARY, Activation
from .machine import Machine

__all__ = ["computed", "few", "linear", "once"]

IDENTITY = Activation(0)
# Rows of x up to which products read weights where they are. In plans, next to weights that are packed for the call (AMD Zen 4,
# one thread): 0.6 of the time for 1 row and 1024 x 1024 weights, 0.9 for 16 rows, 0.9 for 32 and 256 x 256; 1 for 128 rows.
MOST_ROWS = 32
# Elements of weights from which a call without a plan does so too: to pack those takes longer than to transpose them in pieces.
LARGE = 1 << 18


def few(x: Any) -> bool:
    """Whether x has so few rows that to pack the weights takes longer than to read them where they are."""
    return bool(math.prod(x.shape[:-1]) <= MOST_ROWS)


def linear(m: Machine, x: Any, packed: Any, n: int, residual: Any, out: Any, act: Activation) -> None:
    """``out = act(x weightᵀ + bias + residual)`` with packed weight and bias; a residual that is broadcast comes afterwards."""
    given = x.shape
    if residual is None or (len(given) == 2 and residual.shape == (given[0], n)):  # the shortest way, which small calls notice
        if len(given) != 2:
            rows = math.prod(given[:-1])
            x, out = m.view(x, (rows, given[-1])), m.view(out, (rows, n))
        m.call("linear", x, packed, out, residual, act)
        return
    shape, rows = (*given[:-1], n), math.prod(given[:-1])
    x, flat = m.view(x, (rows, given[-1])), (rows, n)
    if residual.shape == shape:
        m.call("linear", x, packed, m.view(out, flat), m.view(residual, flat), act)
        return
    own = out if out.shape == shape else m.temp(shape)
    m.call("linear", x, packed, m.view(own, flat), None, IDENTITY)
    m.call("binary", own, residual, out, BINARY["add"], act)


def computed(m: Machine, x: Any, weight: Any, bias: Any, residual: Any, out: Any, act: Activation) -> None:
    """The same with weights that are read where they are."""
    n, k = weight.shape
    rows, shape = math.prod(x.shape[:-1]), (*x.shape[:-1], n)
    own = out if out.shape == shape else m.temp(shape)
    product = act if bias is None and residual is None else IDENTITY
    m.call("matmul", m.view(x, (1, rows, k)), m.view(weight, (1, n, k)), m.view(own, (1, rows, n)), True, product)
    if bias is not None:
        m.call("binary", own, bias, own, BINARY["add"], act if residual is None else IDENTITY)
    if residual is not None:
        m.call("binary", own, residual, out, BINARY["add"], act)


def once(m: Machine, x: Any, weight: Any, bias: Any, residual: Any, out: Any, act: Activation) -> None:
    """The same with weights that are an argument of this call."""
    if weight.size >= LARGE and few(x) and dispatch.step("matmul") is not None:
        computed(m, x, weight, bias, residual, out, act)
    else:
        linear(m, x, m.call("linear_pack", weight, bias), weight.shape[0], residual, out, act)

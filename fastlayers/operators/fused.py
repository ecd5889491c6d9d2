"""Epilogues that passes and layers put after an operator: a residual that is added, and an activation. Attribute `activation`:
(code, a, b).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.graph import Shape
from ..kernels.halves import STORED
from ..kernels.table import EXACT_BFLOAT16, HALF_KINDS, HALVES, UNARY, Activation
from ._base import FLOAT32, View
from .shapes import broadcast

__all__ = ["EXACT", "IDENTITY", "activation", "finished", "fused", "half_of", "taken", "times", "widened"]

IDENTITY = Activation(UNARY["identity"].code)
_CODES = {function.code for function in UNARY.values()}


def fused(n: View) -> Activation:
    """The activation after the operator, as kernels take it."""
    return activation(n, n.get("activation", IDENTITY))


def activation(n: View, found: Any) -> Activation:
    """A function as kernels take it. Raises ShapeError for a number that they do not have."""
    fits = isinstance(found, tuple) and 1 <= len(found) <= 3 and all(isinstance(v, (int, float)) for v in found)
    if not fits or type(found[0]) is not int or found[0] not in _CODES:
        raise n.fail(f"activation is {found!s:.80}: expected a number of a function and two parameters")
    return Activation(*found)


def times(weight: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The product formed in float64 and rounded once; numpy works in pieces, so there is no float64 copy of the weights."""
    return np.asarray(np.multiply(weight, factors, out=np.empty_like(weight), dtype=np.float64, casting="same_kind"))


def widened(n: View, shape: Shape) -> Shape | None:
    """The result's shape, which a residual (input 3) of larger sizes widens."""
    return broadcast(n, (shape, n.shape(3))) if n.has(3) else shape


def finished(n: View, y: np.ndarray, residual: np.ndarray | None = None) -> np.ndarray:
    """Applies the operator's epilogue, in numpy."""
    if residual is not None:
        y = y + residual
    act = fused(n)
    if act.code == IDENTITY.code:
        return y
    from ..kernels.reference.activation import unary

    out = np.empty(np.shape(y), np.float32)
    unary(np.ascontiguousarray(y, np.float32).reshape(out.shape), out, act)
    return out


# `half` of weights that have 16 bits, with which results are those of float32 to the bit.
EXACT = {"float16": HALVES["float16"], "bfloat16": EXACT_BFLOAT16}


def taken(n: View, halves: tuple[int, ...], *positions: int) -> bool:
    """Whether these inputs (all, by default) are float32, or at `halves` as they are stored in 16 bits."""
    dtypes = (FLOAT32, STORED.get(half_of(n)))
    rest = [i for i in positions or range(len(n.inputs)) if i not in halves]
    return n.float32(*rest) and all(not n.has(i) or n.spec(i).dtype in dtypes for i in halves)


def half_of(n: View) -> int:
    """Storage of the node's weights: 0 for float32, or a number of `kernels.table.HALF_KINDS`."""
    half = n.get("half", 0)
    if half and (isinstance(half, bool) or half not in HALF_KINDS.values()):
        raise n.fail(f"half is {half!r:.50}: expected 0, or one of {HALF_KINDS}")
    return half or 0

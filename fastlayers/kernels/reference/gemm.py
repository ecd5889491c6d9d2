"""The packed matrix product with its epilogue, in plain numpy."""

from __future__ import annotations

import numpy as np

from ..._tuples import NamedTuple
from ..fits import fits
from ..halves import rounded, widened
from ..table import Activation
from .activation import unary

__all__ = ["linear", "linear_half_pack", "linear_pack"]

FloatArray = np.ndarray


class Packed(NamedTuple):
    """Nothing to rearrange here: the weights as they came, copied."""

    weight__nk: FloatArray
    bias__n: FloatArray | None


def linear_pack(weight__nk: FloatArray, bias__n: FloatArray | None) -> Packed:
    """Weights (out, in) and bias (out,) of ``y = x Wᵀ + b``."""
    fits("linear_pack", (), (weight__nk, bias__n))
    return Packed(weight__nk.astype(np.float64), None if bias__n is None else bias__n.astype(np.float64))


def linear_half_pack(weight__nk: FloatArray, bias__n: FloatArray | None, half: int) -> Packed:
    """`linear_pack` with weights rounded to what is stored in 16 bits; `half` is one of `table.HALF_KINDS`."""
    return linear_pack(rounded(widened(weight__nk, half), half), bias__n)


def linear(
    x__mk: FloatArray, packed: Packed, out__mn: FloatArray, residual__mn: FloatArray | None, activation: Activation
) -> None:
    """``out = act(x Wᵀ + b + residual)``, summed in float64 and rounded once before the activation."""
    fits("linear", packed.weight__nk.shape[::-1], (x__mk, out__mn, residual__mn))
    total = x__mk.astype(np.float64) @ packed.weight__nk.T
    if packed.bias__n is not None:
        total += packed.bias__n
    if residual__mn is not None:
        total += residual__mn
    out__mn[...] = total
    unary(out__mn, out__mn, activation)

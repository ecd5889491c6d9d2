"""Linear layers. Weights are packed as [terms][columns], columns rounded up to fours, so that neighbours read neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..fits import fits
from ..halves import rounded, widened
from ..table import Activation
from ._cuda import stream_pointer
from ._device import Array, on_device, upload
from ._product import FEW, Layout, few_rows, matrix, multiply

__all__ = ["Packed", "linear", "linear_half_pack", "linear_pack"]


class Packed(NamedTuple):
    """Weights [k][n, rounded up], bias (n,) or None, and the sizes."""

    weight: Array
    bias: Array | None
    n: int
    k: int


def columns_of(weight__kn: np.ndarray) -> np.ndarray:
    """Weights with columns of zeros up to a number divisible by 4, and one row at least."""
    k, n = weight__kn.shape
    packed = np.zeros((max(k, 1), -(-n // 4) * 4), np.float32)
    packed[:k, :n] = weight__kn
    return packed


def linear_pack(weight__nk: np.ndarray, bias__n: np.ndarray | None) -> Packed:
    """Weights (out, in) and bias (out,) of ``y = x Wᵀ + b``."""
    fits("linear_pack", (), (weight__nk, bias__n))
    return Packed(upload(columns_of(weight__nk.T)), None if bias__n is None else upload(bias__n), *weight__nk.shape)


def linear_half_pack(weight__nk: np.ndarray, bias__n: np.ndarray | None, half: int) -> Packed:
    """`linear_pack` with weights of the values that are stored in 16 bits; `half` is one of `table.HALF_KINDS`."""
    return linear_pack(rounded(widened(weight__nk, half), half), bias__n)


@on_device
def linear(x__mk: Array, packed: Packed, out__mn: Array, residual__mn: Array | None, activation: Activation) -> None:
    """``out = act(x Wᵀ + b + residual)``."""
    fits("linear", (packed.k, packed.n), (x__mk, out__mn, residual__mn))
    (m, n), k, stored = out__mn.shape, packed.k, packed.weight.shape[1]
    if not m * n:
        return
    if m <= FEW:
        few_rows(x__mk, packed.weight.flat, packed.bias, residual__mn, out__mn, m, k, n, stored, activation)
        return
    left = "rows4" if k % 4 == 0 and x__mk.aligned else "rows"
    wide = n % 4 == 0 and out__mn.aligned and (residual__mn is None or residual__mn.aligned)
    multiply(
        left, "columns4", x__mk.flat, matrix(m, k, n, stream_pointer()), packed.weight.flat, packed.bias, residual__mn, out__mn,
        Layout(n, stored, stored, wide=wide), activation,
    )  # fmt: skip

"""Linear layers: weights packed into panels once; tasks are blocks of rows and columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..fits import fits
from ..halves import rounded
from ..table import Activation
from ._njit import call, kernel
from ._threads import address, spread
from ._tile import block, pack, panels_of, product
from ._unary import apply, spell

__all__ = ["linear", "linear_half_pack", "linear_pack"]

ROWS, COLS = 256, 256  # of one task: its sums and a block of its rows stay in a second-level cache


class Packed(NamedTuple):
    """Weights in panels, and the bias, padded to whole panels, or None."""

    weights: np.ndarray
    bias__n: np.ndarray | None
    n: int
    k: int


def padded_bias(bias: np.ndarray | None) -> np.ndarray | None:
    """A bias with zeros up to whole panels."""
    return None if bias is None else np.concatenate([bias, np.zeros(panels_of(len(bias)) - len(bias), np.float32)])


def linear_pack(weight__nk: np.ndarray, bias__n: np.ndarray | None) -> Packed:
    """Weights (out, in) and bias (out,) of ``y = x Wᵀ + b``."""
    fits("linear_pack", (), (weight__nk, bias__n))
    return Packed(pack(weight__nk), padded_bias(bias__n), *weight__nk.shape)


def linear_half_pack(weight__nk: np.ndarray, bias__n: np.ndarray | None, half: int) -> Packed:
    """`linear_pack` with weights of the values that are stored in 16 bits; `half` is one of `table.HALVES`."""
    return linear_pack(rounded(weight__nk, half), bias__n)


@kernel
def _linear(
    product: int, block: int, apply: int, x: int, m: int, k: int, b: int, n: int, out: int, bias: int, residual: int, code: int,
    a: float, bb: float, first: int, last: int,
) -> None:  # fmt: skip
    col_tasks = (n + COLS - 1) // COLS
    for task in range(first, last):
        i0, j0 = task // col_tasks * ROWS, task % col_tasks * COLS
        at = 4 * (i0 * n + j0)
        call(
            product, block, apply, x + 4 * i0 * k, k, min(ROWS, m - i0), k, b, n, j0, min(COLS, n - j0), out + at, n,
            bias + 4 * j0 if bias != 0 else 0, residual + at if residual != 0 else 0, n, code, a, bb,
        )  # fmt: skip


def linear(
    x__mk: np.ndarray, packed: Packed, out__mn: np.ndarray, residual__mn: np.ndarray | None, activation: Activation
) -> None:
    """``out = act(x Wᵀ + b + residual)``."""
    n, k = packed.n, packed.k
    m = x__mk.shape[0] if x__mk.ndim else 0
    # In the order of what it costs: the call of `fits` would be a fifth of a short call.
    if x__mk.shape != (m, k) or out__mn.shape != (m, n) or residual__mn is not None:
        fits("linear", (k, n), (x__mk, out__mn, residual__mn))
    given = (
        product.address, block.address, apply.address, address(x__mk), m, k, address(packed.weights), n, address(out__mn),
        address(packed.bias__n), address(residual__mn), *spell(activation),
    )  # fmt: skip
    if out__mn.size:
        spread(-(-m // ROWS) * -(-n // COLS), 1.0 * m * n * k, lambda first, last: _linear(*given, first, last))

"""Linear layers: weights packed into panels once; tasks are blocks of rows and columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..fits import fits
from ..halves import rounded, widened
from ..table import Activation
from ._njit import call, kernel
from ._records import Act, Columns, End, Lines
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
    """`linear_pack` with weights of the values that are stored in 16 bits; `half` is one of `table.HALF_KINDS`."""
    return linear_pack(rounded(widened(weight__nk, half), half), bias__n)


class Plan(NamedTuple):
    """(m, k) by packed (k, n)."""

    product: int
    block: int
    apply: int
    m: int
    k: int
    n: int
    weights: int
    bias: int
    act: Act


@kernel
def _linear(p: Plan, x: int, out: int, residual: int, first: int, last: int) -> None:
    col_tasks = (p.n + COLS - 1) // COLS
    for task in range(first, last):
        i0, j0 = task // col_tasks * ROWS, task % col_tasks * COLS
        at = 4 * (i0 * p.n + j0)
        end = End(p.bias + 4 * j0 if p.bias != 0 else 0, residual + at if residual != 0 else 0, p.n, p.act)
        x_at = Lines(x + 4 * i0 * p.k, p.k, min(ROWS, p.m - i0), p.k)
        call(p.product, p.block, p.apply, x_at, Columns(p.weights, p.n, j0, min(COLS, p.n - j0)), out + at, p.n, end)


def linear(
    x__mk: np.ndarray, packed: Packed, out__mn: np.ndarray, residual__mn: np.ndarray | None, activation: Activation
) -> None:
    """``out = act(x Wᵀ + b + residual)``."""
    n, k = packed.n, packed.k
    m = x__mk.shape[0] if x__mk.ndim else 0
    # Checked here, cheapest first: calling `fits` would take a fifth of a short call.
    if x__mk.shape != (m, k) or out__mn.shape != (m, n) or residual__mn is not None:
        fits("linear", (k, n), (x__mk, out__mn, residual__mn))
    plan = Plan(
        product.address, block.address, apply.address, m, k, n, address(packed.weights), address(packed.bias__n),
        spell(activation),
    )  # fmt: skip
    given = plan, address(x__mk), address(out__mn), address(residual__mn)
    if out__mn.size:
        spread(-(-m // ROWS) * -(-n // COLS), 1.0 * m * n * k, lambda first, last: _linear(*given, first, last))

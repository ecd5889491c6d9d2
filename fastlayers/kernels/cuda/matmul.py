"""Batched products of two run-time operands, each read where it is."""

from __future__ import annotations

from ..table import Activation
from ._cuda import stream_pointer
from ._device import Array, on_device
from ._product import FEW, Layout, few_rows, matrix, multiply

__all__ = ["matmul"]


@on_device
def matmul(a__bmk: Array, b__bkn: Array, out__bmn: Array, transpose_b: bool, activation: Activation) -> None:
    """``out = act(a b)`` for every entry of the batch; a and b may have one entry for all, b is (b, n, k) if `transpose_b`."""
    batch, m, n = out__bmn.shape
    k = a__bmk.shape[2]
    if not out__bmn.size:
        return
    a_batch, b_batch = a__bmk.shape[0], b__bkn.shape[0]
    if b_batch == 1 and a_batch == batch:  # the rows of all entries are those of one
        batch, m = 1, batch * m
    a_step, b_step = (m * k if a_batch > 1 and batch > 1 else 0), (k * n if b_batch > 1 else 0)
    if m <= FEW and batch == 1 and not transpose_b:
        few_rows(a__bmk, b__bkn.flat, None, None, out__bmn, m, k, n, n, activation)
        return
    left = "rows4" if k % 4 == 0 and a__bmk.aligned else "rows"
    neighbours = k if transpose_b else n
    right = ("rows" if transpose_b else "columns") + ("4" if neighbours % 4 == 0 and b__bkn.aligned else "")
    layout = Layout(n, n, neighbours, batch, a_step, b_step, m * n, wide=n % 4 == 0 and out__bmn.aligned)
    multiply(
        left, right, a__bmk.flat, matrix(m, k, n, stream_pointer()), b__bkn.flat, None, None, out__bmn, layout,
        activation,
    )  # fmt: skip

"""Batched products of two run-time operands: b is packed into panels first, unless there are too few rows for that to pay."""

from __future__ import annotations

import numpy as np

from ..table import Activation
from ._njit import call, kernel
from ._threads import address, scratch, spread
from ._tile import BLOCK, PANEL, block, pack_product, panels_of, product, put_integer, swap, table
from ._unary import apply, spell

__all__ = ["matmul"]

ROWS, COLS = 128, 256  # of one task
FEW = 8  # rows up to which b is read where it is, or packed a block at a time


@kernel
def pack_batch(pack: int, swap: int, b: int, transposed: int, k: int, n: int, to: int, first: int, last: int) -> None:
    """Packs entries of a batch, (k, n) each, or (n, k) if `transposed`."""
    size = (n + PANEL - 1) // PANEL * PANEL * k
    for entry in range(first, last):
        call(pack, swap, b + 4 * entry * k * n, k if transposed != 0 else n, transposed, k, n, to + 4 * entry * size)


@kernel
def _packed(
    product: int, block: int, apply: int, a: int, a_step: int, panels: int, b_step: int, out: int, m: int, k: int, n: int,
    code: int,
    p: float, q: float, first: int, last: int,
) -> None:  # fmt: skip
    row_tasks, col_tasks = (m + ROWS - 1) // ROWS, (n + COLS - 1) // COLS
    for task in range(first, last):
        rest, j0 = task // col_tasks, task % col_tasks * COLS
        entry, i0 = rest // row_tasks, rest % row_tasks * ROWS
        call(
            product, block, apply, a + 4 * (entry * a_step + i0 * k), k, min(ROWS, m - i0), k, panels + 4 * entry * b_step, n, j0,
            min(COLS, n - j0), out + 4 * ((entry * m + i0) * n + j0), n, 0, 0, 0, code, p, q,
        )  # fmt: skip


@kernel
def _in_place(
    pack: int, swap: int, block: int, apply: int, a: int, a_step: int, b: int, b_step: int, transposed: int, out: int, m: int,
    k: int, n: int, code: int, p: float, q: float, scratch: int, first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: (entry, COLS columns), for few rows. Whole panels are read where they are; the rest, and what is transposed, is
    packed to scratch block by block."""
    col_tasks = (n + COLS - 1) // COLS
    own = table()
    rows = own + 16
    for task in range(first, last):
        entry, j0 = task // col_tasks, task % col_tasks * COLS
        cols = min(COLS, n - j0)
        whole = cols // PANEL * PANEL if transposed == 0 else 0
        to = out + 4 * (entry * m * n + j0)
        for i in range(m):
            put_integer(rows, i, a + 4 * (entry * a_step + i * k))
        for k0 in range(0, max(k, 1), BLOCK):
            klen = min(BLOCK, k - k0)
            put_integer(own, 0, k0)
            put_integer(own, 1, klen)
            more, act = 1 if k0 > 0 else 0, code if k0 + klen == k else 0
            if whole > 0:
                from_ = b + 4 * (entry * b_step + k0 * n + j0)
                call(block, rows, m, own, 1, from_, n, PANEL, to, n, whole, more, 0, 0, 0, act, p, q, apply)
            if cols > whole:
                if transposed != 0:
                    call(pack, swap, b + 4 * (entry * b_step + j0 * k + k0), k, 1, klen, cols, scratch)
                else:
                    call(pack, swap, b + 4 * (entry * b_step + k0 * n + j0 + whole), n, 0, klen, cols - whole, scratch)
                call(
                    block, rows, m, own, 1, scratch, PANEL, PANEL * klen, to + 4 * whole, n, cols - whole, more, 0, 0, 0, act, p,
                    q, apply,
                )  # fmt: skip


def matmul(a__bmk: np.ndarray, b__bkn: np.ndarray, out__bmn: np.ndarray, transpose_b: bool, activation: Activation) -> None:
    """``out = act(a b)`` for every entry of the batch; a and b may have one entry for all, b is (b, n, k) if `transpose_b`."""
    batch, m, n = out__bmn.shape
    k = a__bmk.shape[2]
    if not out__bmn.size:
        return
    if len(b__bkn) == 1 and len(a__bmk) == batch > 1:  # the rows of all entries are those of one
        batch, m = 1, batch * m
    a_step = m * k if len(a__bmk) == len(out__bmn) and batch > 1 else 0
    work = 1.0 * batch * m * n * k
    if m <= FEW:
        b_step = 0 if len(b__bkn) == 1 else k * n
        some = (
            pack_product.address, swap.address, block.address, apply.address, address(a__bmk), a_step, address(b__bkn), b_step,
            int(transpose_b), address(out__bmn), m, k, n, *spell(activation),
        )  # fmt: skip

        def run(first: int, last: int) -> None:
            own = scratch(BLOCK * (COLS if transpose_b else PANEL))
            _in_place(*some, address(own), first, last)

        spread(batch * -(-n // COLS), max(work, 2.0 * batch * n * k), run)
        return
    size = panels_of(n) * k
    panels = scratch(len(b__bkn) * size)
    packing = pack_product.address, swap.address, address(b__bkn), int(transpose_b), k, n, address(panels)
    spread(len(b__bkn), 4.0 * b__bkn.size, lambda first, last: pack_batch(*packing, first, last))
    given = (
        product.address, block.address, apply.address, address(a__bmk), a_step, address(panels), 0 if len(b__bkn) == 1 else size,
        address(out__bmn), m, k, n, *spell(activation),
    )  # fmt: skip
    spread(batch * -(-m // ROWS) * -(-n // COLS), work, lambda first, last: _packed(*given, first, last))

"""Batched products of two run-time operands: b is packed into panels first, unless there are too few rows for that to pay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..table import Activation
from ._njit import call, kernel
from ._records import Act, Columns, End, Lines, Panels, Rows, Sums
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


class Plan(NamedTuple):
    """Batches of (m, k) by (k, n): floats from an entry of a and of b to the next, 0 where all share one."""

    product: int
    block: int
    apply: int
    pack: int
    swap: int
    a_step: int
    b_step: int
    transposed: int
    m: int
    k: int
    n: int
    act: Act


@kernel
def _packed(p: Plan, a: int, panels: int, out: int, first: int, last: int) -> None:
    row_tasks, col_tasks = (p.m + ROWS - 1) // ROWS, (p.n + COLS - 1) // COLS
    for task in range(first, last):
        rest, j0 = task // col_tasks, task % col_tasks * COLS
        entry, i0 = rest // row_tasks, rest % row_tasks * ROWS
        lines = Lines(a + 4 * (entry * p.a_step + i0 * p.k), p.k, min(ROWS, p.m - i0), p.k)
        columns = Columns(panels + 4 * entry * p.b_step, p.n, j0, min(COLS, p.n - j0))
        to = out + 4 * ((entry * p.m + i0) * p.n + j0)
        call(p.product, p.block, p.apply, lines, columns, to, p.n, End(0, 0, 0, p.act))


@kernel
def _in_place(p: Plan, a: int, b: int, out: int, scratch: int, first: int, last: int) -> None:
    """Tasks: (entry, COLS columns), for few rows. Whole panels are read where they are; the rest, and what is transposed, is
    packed to scratch block by block."""
    col_tasks = (p.n + COLS - 1) // COLS
    own = table()
    rows = own + 16
    for task in range(first, last):
        entry, j0 = task // col_tasks, task % col_tasks * COLS
        cols = min(COLS, p.n - j0)
        whole = cols // PANEL * PANEL if p.transposed == 0 else 0
        to = out + 4 * (entry * p.m * p.n + j0)
        for i in range(p.m):
            put_integer(rows, i, a + 4 * (entry * p.a_step + i * p.k))
        for k0 in range(0, max(p.k, 1), BLOCK):
            klen = min(BLOCK, p.k - k0)
            put_integer(own, 0, k0)
            put_integer(own, 1, klen)
            more = 1 if k0 > 0 else 0
            end = End(0, 0, 0, Act(p.act.code if k0 + klen == p.k else 0, p.act.a, p.act.b))
            if whole > 0:
                from_ = b + 4 * (entry * p.b_step + k0 * p.n + j0)
                call(p.block, Rows(rows, own, 1), p.m, Panels(from_, p.n, PANEL), Sums(to, p.n, more), whole, end, p.apply)
            if cols > whole:
                if p.transposed != 0:
                    call(p.pack, p.swap, b + 4 * (entry * p.b_step + j0 * p.k + k0), p.k, 1, klen, cols, scratch)
                else:
                    call(p.pack, p.swap, b + 4 * (entry * p.b_step + k0 * p.n + j0 + whole), p.n, 0, klen, cols - whole, scratch)
                panels = Panels(scratch, PANEL, PANEL * klen)
                sums = Sums(to + 4 * whole, p.n, more)
                call(p.block, Rows(rows, own, 1), p.m, panels, sums, cols - whole, end, p.apply)


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
    few = m <= FEW
    size = k * n if few else panels_of(n) * k  # floats of an entry of b
    plan = Plan(
        product.address, block.address, apply.address, pack_product.address, swap.address, a_step,
        0 if len(b__bkn) == 1 else size, int(transpose_b), m, k, n, spell(activation),
    )  # fmt: skip
    if few:

        def run(first: int, last: int) -> None:
            own = scratch(BLOCK * (COLS if transpose_b else PANEL))
            _in_place(plan, address(a__bmk), address(b__bkn), address(out__bmn), address(own), first, last)

        spread(batch * -(-n // COLS), max(work, 2.0 * batch * n * k), run)
        return
    panels = scratch(len(b__bkn) * size)
    packing = pack_product.address, swap.address, address(b__bkn), int(transpose_b), k, n, address(panels)
    spread(len(b__bkn), 4.0 * b__bkn.size, lambda first, last: pack_batch(*packing, first, last))
    given = plan, address(a__bmk), address(panels), address(out__bmn)
    spread(batch * -(-m // ROWS) * -(-n // COLS), work, lambda first, last: _packed(*given, first, last))

"""Tiles of a product: a block of threads computes rows x columns of out = bounded(left right + bias + residual).

Left: "rows" of a matrix, or what a convolution's pixels "gather" from the places that a table tells. Right: "columns", a matrix
[k][column], or "rows", [column][k]. With a "4" four neighbours are read at once. Sums have the order of the contract: chains of
256 terms from zero, added in order: in `out` itself, which is little work once in 256 terms, while a second set of sums would
halve the threads that a processor holds. So they depend neither on the tile, nor on whether one block computes all chains of a
result or (PARTED) each writes its own, for `add_parts_kernel` to add.

Operands pass through shared memory in stages of `depth` terms, two in turn: the next stage's values are on their way to
registers while the threads multiply one. A thread's rows and columns are fours, apart: so threads of a warp read different banks,
or one word.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._cuda import F32, I64, Kernel, cuda, device, f32, kernel, load1, load4, per_function, store1, store4
from ._operands import OPERANDS
from ._places import FIELDS, FIRST_TERM, FIRST_WEIGHT, STEP, TERMS, first, origin, pixel, valid

__all__ = [
    "ACROSS", "BIAS", "BLOCK", "LARGE", "MEDIUM", "MOST_WARPS", "NARROW", "PARTED", "RESIDUAL", "SHORT", "SMALL", "WIDE",
    "Product", "Tile", "add_parts_kernel", "few_rows_kernel", "tile_kernel",
]  # fmt: skip

BLOCK = 256  # terms of a chain
# Of `flags`. ACROSS: neighbours in `out` are rows, not columns; WIDE: four of them may be read and written at once.
BIAS, RESIDUAL, WIDE, PARTED, ACROSS = 1, 2, 4, 8, 16
PIECE = 32  # rows that are put in order for writing at a time
MOST_WARPS = 16  # of a block that computes few rows
_ZERO = f32(0)
TWO = 2
_WORD = np.int64


class Tile(NamedTuple):
    """Rows and columns of a block and of a thread, and the terms of a stage."""

    rows: int
    columns: int
    high: int
    broad: int
    depth: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows // self.high * (self.columns // self.broad)


# The widest at least keep three blocks on a processor: 166 registers a thread.
LARGE, MEDIUM, NARROW = Tile(128, 64, 8, 8, 8), Tile(64, 64, 4, 8, 8), Tile(128, 32, 8, 4, 16)
SHORT, SMALL = Tile(32, 64, 4, 4, 16), Tile(32, 32, 4, 4, 16)
_KINDS = (("gather", "columns4"), ("gather4", "columns4"), ("rows4", "columns4"), ("rows", "columns"), ("rows4", "rows4"))
_SAMPLES = [(LARGE, *kinds) for kinds in _KINDS[:3]]
_SAMPLES += [(MEDIUM, *_KINDS[3]), (NARROW, *_KINDS[0]), (SHORT, *_KINDS[4]), (SMALL, *_KINDS[1])]


class Product(NamedTuple):
    """Partition of a product by a launch. `stored`: columns of right, with stride `line`; `chains` of a block; `part`: values
    from one part to the next; x_group .. bias_group: from a group to the next; low, high: what results are clamped between."""

    flags: int
    columns: int
    stored: int
    line: int
    groups: int
    phases: int
    row_tiles: int
    chains: int
    part: int
    x_group: int
    w_group: int
    out_group: int
    bias_group: int
    out_column: int
    low: float
    high: float


class Fours(NamedTuple):
    """Four neighbours in out, from row r, column c on, `inside` of which exist; where column 0 and their bias are."""

    r: int
    c: int
    at: int
    b: int
    inside: int


@device
def _bounded(v: Any, low: Any, high: Any) -> Any:
    v = low if v < low else v  # NaN is neither less nor greater, and stays
    return high if v > high else v


@device
def _finish(p: Any, out: Any, bias: Any, residual: Any, origins: Any, to: Any, more: Any, last: Any, sums: Any) -> None:
    """Puts four sums, those of them that exist. After `more`, with what comes `last`."""
    v0, v1, v2, v3 = sums
    b, step = to.b, 0 if p.flags & ACROSS else 1
    if p.flags & WIDE and to.inside > 3:
        at = load1(origins, to.r) + to.at + to.c * p.out_column
        if more:
            w0, w1, w2, w3 = load4(out, at)
            v0, v1, v2, v3 = w0 + v0, w1 + v1, w2 + v2, w3 + v3
        if last:
            if p.flags & BIAS:
                v0, v1 = v0 + load1(bias, b), v1 + load1(bias, b + step)
                v2, v3 = v2 + load1(bias, b + 2 * step), v3 + load1(bias, b + 3 * step)
            if p.flags & RESIDUAL:
                w0, w1, w2, w3 = load4(residual, at)
                v0, v1, v2, v3 = v0 + w0, v1 + w1, v2 + w2, v3 + w3
            v0, v1 = _bounded(v0, p.low, p.high), _bounded(v1, p.low, p.high)
            v2, v3 = _bounded(v2, p.low, p.high), _bounded(v3, p.low, p.high)
        store4(out, at, v0, v1, v2, v3)
    else:
        for i in range(min(to.inside, 4)):
            at = load1(origins, to.r + i * (1 - step)) + to.at + (to.c + i * step) * p.out_column
            v = v0
            if more:
                v = load1(out, at) + v
            if last:
                if p.flags & BIAS:
                    v = v + load1(bias, b + i * step)
                if p.flags & RESIDUAL:
                    v = v + load1(residual, at)
                v = _bounded(v, p.low, p.high)
            store1(out, at, v)
            v0, v1, v2 = v1, v2, v3


@per_function(samples=_SAMPLES)
def tile_kernel(tile: Tile, left: str, right: str) -> Kernel:
    """The kernel for tiles of this size and operands in these layouts."""
    ROWS, COLUMNS, HIGH, BROAD, DEPTH = tile
    THREADS = tile.threads
    L_LINE, R_LINE = ROWS + 4, COLUMNS + 4  # of a term in shared memory
    L_STAGE, R_STAGE = DEPTH * L_LINE, DEPTH * R_LINE
    L_BOTH, R_BOTH, SUMS = 2 * L_STAGE, 2 * R_STAGE, HIGH * BROAD
    DOWN, ALONG = ROWS // HIGH, COLUMNS // BROAD  # threads
    ALONG8, PIECE_FOURS, COLUMN_FOURS = ALONG // 8, PIECE * COLUMNS // 4, COLUMNS // 4
    PIECE_NUMBERS = PIECE * R_LINE
    UP_FOURS, SIDE_FOURS, UP_APART, SIDE_APART = HIGH // 4, BROAD // 4, DOWN * 4, ALONG * 4
    L_LOADS, R_LOADS = ROWS * DEPTH // THREADS, COLUMNS * DEPTH // THREADS  # values of a thread
    assert L_LOADS % 4 == 0 and R_LOADS % 4 == 0 and DOWN % 4 == 0 and ALONG % 8 == 0
    GATHER, GATHER4, R_ROWS = left == "gather", left == "gather4", right.startswith("rows")
    ROWS4 = left == "rows4"
    PIXELS = L_LOADS // 4 if GATHER4 else 1
    L_FOURS = DEPTH // 4 if GATHER4 or ROWS4 else DEPTH  # threads of a row, unless they read a pixel each
    APART = THREADS // L_FOURS
    R_PER_LINE = (DEPTH // 4 if right == "rows4" else DEPTH) if R_ROWS else COLUMNS // 4 if right == "columns4" else COLUMNS
    R_EACH = 4 if right == "columns4" else 1
    fetch_left, put_left = OPERANDS[left](ROWS, DEPTH, THREADS)
    fetch_right, put_right = OPERANDS[right](COLUMNS, DEPTH, THREADS)

    @kernel
    def product_kernel(x: F32, table: I64, places: I64, w: F32, bias: F32, residual: F32, out: F32, p: Product) -> None:
        ls = cuda.shared.array(L_BOTH, f32, alignment=16)
        rs = cuda.shared.array(R_BOTH, f32, alignment=16)
        origins = cuda.shared.array(ROWS, _WORD)  # of the rows in out, and in left, with the taps that they have
        firsts = cuda.shared.array(ROWS, _WORD)
        taps = cuda.shared.array(ROWS, _WORD)
        staged = cuda.shared.array(PIECE_NUMBERS, f32, alignment=16)
        sums = cuda.local.array(SUMS, f32)
        a = cuda.local.array(HIGH, f32)
        b = cuda.local.array(BROAD, f32)
        next_l = cuda.local.array(L_LOADS, f32)
        next_r = cuda.local.array(R_LOADS, f32)
        l_at = cuda.local.array(PIXELS, _WORD)
        l_has = cuda.local.array(PIXELS, _WORD)
        r_at = cuda.local.array(1, _WORD)
        r_has = cuda.local.array(1, _WORD)
        tid = cuda.threadIdx.x
        column_tiles = (p.columns + COLUMNS - 1) // COLUMNS
        rest = cuda.blockIdx.x
        column0, rest = rest % column_tiles * COLUMNS, rest // column_tiles
        row0, rest = rest % p.row_tiles * ROWS, rest // p.row_tiles
        group, rest = rest % p.groups, rest // p.groups
        here, share = rest % p.phases * FIELDS, rest // p.phases
        rows, terms = places[here] - row0, places[here + TERMS]
        if rows <= 0:
            return
        for i in range(tid, ROWS, THREADS):
            n, d, h, v = pixel(places, here, row0 + i)
            store1(origins, i, origin(places, here, n, d, h, v) + group * p.out_group)
            store1(firsts, i, first(places, here, n, d, h, v) + group * p.x_group)
            if GATHER or GATHER4:
                store1(taps, i, valid(places, here, d, h, v) if i < rows else 0)
            else:
                store1(taps, i, rows - i)
        if R_ROWS:
            column = column0 + tid // R_PER_LINE
            r_at[0] = column * p.line
        else:
            column = column0 + tid % R_PER_LINE * R_EACH
            r_at[0] = column
        r_at[0] += places[here + FIRST_WEIGHT] + group * p.w_group
        r_has[0] = p.stored - column
        step, table0 = places[here + STEP], places[here + FIRST_TERM]
        k = share * p.chains * BLOCK
        stop = max(min(terms, k + p.chains * BLOCK), k + 1)
        cuda.syncthreads()
        for j in range(PIXELS):
            i = (tid % ROWS if GATHER else tid // L_FOURS) + j * APART
            l_at[j], l_has[j] = load1(firsts, i), load1(taps, i)
        side = (tid >> 5) % ALONG8 * 32 + (tid & 7) * 4
        up = (tid >> 5) // ALONG8 * 16 + (tid >> 3 & 3) * 4
        fetch_left(x, table, l_at, l_has, step, table0 + k, terms, next_l, tid)
        fetch_right(w, table, r_at, r_has, p.line, k, terms, next_r, tid)
        put_left(ls, 0, next_l, tid)
        put_right(rs, 0, next_r, tid)
        cuda.syncthreads()
        l_now, r_now = 0, 0
        while k < stop:
            for i in range(SUMS):
                sums[i] = _ZERO
            chain = min(stop, k + BLOCK)
            while k < chain:
                k += DEPTH
                if k < stop:
                    fetch_left(x, table, l_at, l_has, step, table0 + k, terms, next_l, tid)
                    fetch_right(w, table, r_at, r_has, p.line, k, terms, next_r, tid)
                l_from, r_from = l_now + up, r_now + side
                for _ in range(DEPTH // TWO):
                    for u in range(TWO):  # two terms a turn: one's loads are under way while the other's are multiplied
                        for g in range(UP_FOURS):
                            a[4 * g], a[4 * g + 1], a[4 * g + 2], a[4 * g + 3] = load4(ls, l_from + g * UP_APART + u * L_LINE)
                        for g in range(SIDE_FOURS):
                            b[4 * g], b[4 * g + 1], b[4 * g + 2], b[4 * g + 3] = load4(rs, r_from + g * SIDE_APART + u * R_LINE)
                        for i in range(HIGH):
                            for j in range(BROAD):
                                sums[i * BROAD + j] += a[i] * b[j]
                    l_from += TWO * L_LINE
                    r_from += TWO * R_LINE
                l_now, r_now = L_STAGE - l_now, R_STAGE - r_now
                if k < stop:
                    put_left(ls, l_now, next_l, tid)
                    put_right(rs, r_now, next_r, tid)
                cuda.syncthreads()
            # Through shared memory, so that neighbouring threads write neighbours, whichever they are.
            for piece in range(0, ROWS, PIECE):
                for i in range(HIGH):
                    r = up + i // 4 * UP_APART + i % 4 - piece
                    if r >= 0 and r < PIECE:
                        for g in range(SIDE_FOURS):
                            s = i * BROAD + 4 * g
                            to = r * R_LINE + side + g * SIDE_APART
                            store4(staged, to, sums[s], sums[s + 1], sums[s + 2], sums[s + 3])
                cuda.syncthreads()
                parted = p.flags & PARTED
                more, last = k > BLOCK and parted == 0, k >= stop and parted == 0
                to = column0 * p.out_column + ((k - 1) // BLOCK * p.part if parted else 0)
                for e in range(tid, PIECE_FOURS, THREADS):
                    if p.flags & ACROSS:
                        r, c = (e & 3) * 4 + e // (4 * COLUMNS) * 16, e // 4 % COLUMNS
                        s = r * R_LINE + c
                        v0, v1 = load1(staged, s), load1(staged, s + R_LINE)
                        v2, v3 = load1(staged, s + 2 * R_LINE), load1(staged, s + 3 * R_LINE)
                        inside = rows - piece - r if column0 + c < p.columns else 0
                    else:
                        r, c = e // COLUMN_FOURS, e % COLUMN_FOURS * 4
                        v0, v1, v2, v3 = load4(staged, r * R_LINE + c)
                        inside = p.columns - column0 - c if piece + r < rows else 0
                    if inside > 0:
                        fours = Fours(piece + r, c, to, group * p.bias_group + column0 + c, inside)
                        _finish(p, out, bias, residual, origins, fours, more, last, (v0, v1, v2, v3))
                cuda.syncthreads()

    return product_kernel


@kernel
def add_parts_kernel(
    parts: F32, bias: F32, residual: F32, out: F32, flags: int, n: int, count: int, inner: int, columns: int, low: float,
    high: float,
) -> None:  # fmt: skip
    """The sums of `count` parts of n values, in order, with what comes after the last; a column has `inner` neighbours."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        v = load1(parts, i)
        for p in range(1, count):
            v += load1(parts, i + p * n)
        if flags & BIAS:
            v += load1(bias, i // inner % columns)
        if flags & RESIDUAL:
            v += load1(residual, i)
        store1(out, i, _bounded(v, low, high))


@per_function(samples=[(1,), (2,), (4,)])
def few_rows_kernel(count: int) -> Kernel:
    """The product of up to `count` rows, bound by reading right once: a warp for 32 columns and a chain, and then the next."""
    AHEAD, SUMS, PARTIAL = 16, count * 32, count * 32 * MOST_WARPS

    @kernel
    def rows_kernel(
        x: F32, w: F32, bias: F32, residual: F32, out: F32, flags: int, rows: int, terms: int, columns: int, stored: int,
        low: float, high: float,
    ) -> None:  # fmt: skip
        partial = cuda.shared.array(PARTIAL, f32)
        totals = cuda.shared.array(SUMS, f32)
        sums = cuda.local.array(count, f32)
        ahead = cuda.local.array(AHEAD, f32)
        lane, warp, warps = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5, cuda.blockDim.x >> 5
        column0 = cuda.blockIdx.x * 32
        column = min(column0 + lane, stored - 1)
        begin = 0
        while begin == 0 or begin * BLOCK < terms:
            k = (begin + warp) * BLOCK
            stop = min(terms, k + BLOCK)
            for r in range(count):
                sums[r] = _ZERO
            while k + AHEAD <= stop:
                for i in range(AHEAD):
                    ahead[i] = load1(w, (k + i) * stored + column)
                for i in range(AHEAD):
                    for r in range(count):
                        sums[r] += load1(x, min(r, rows - 1) * terms + k + i) * ahead[i]
                k += AHEAD
            while k < stop:
                v = load1(w, k * stored + column)
                for r in range(count):
                    sums[r] += load1(x, min(r, rows - 1) * terms + k) * v
                k += 1
            for r in range(count):
                store1(partial, warp * SUMS + r * 32 + lane, sums[r])
            cuda.syncthreads()
            for i in range(cuda.threadIdx.x, SUMS, cuda.blockDim.x):
                v = load1(partial, i)
                if begin > 0:
                    v = load1(totals, i) + v
                for p in range(1, warps):
                    if (begin + p) * BLOCK < terms:
                        v += load1(partial, p * SUMS + i)
                store1(totals, i, v)
            cuda.syncthreads()
            begin += warps
        for i in range(cuda.threadIdx.x, SUMS, cuda.blockDim.x):
            r, c = i >> 5, column0 + (i & 31)
            if r < rows and c < columns:
                v = load1(totals, i)
                if flags & BIAS:
                    v += load1(bias, c)
                if flags & RESIDUAL:
                    v += load1(residual, r * columns + c)
                store1(out, r * columns + c, _bounded(v, low, high))

    rows_kernel.most_threads = 32 * MOST_WARPS
    return rows_kernel

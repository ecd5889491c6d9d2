"""The packed matrix product over one block of K, with register tiles emitted as LLVM vectors: `aot/csrc/gemm.h` and `tile.h`.

A tile of m rows and p panels of 16 columns keeps its sums in registers; each is one chain of multiply-adds in the order of k,
so results do not depend on the tile's size. Rows are read in place, through one address each. All kernels that multiply call
`block` and `product` through their addresses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..table import UNARY
from ._njit import call, emitted, inner
from ._records import Act, Columns, End, Lines, Panels, Rows, Sums
from ._threads import scratch
from ._vector import I64, REGISTERS, WIDTH, Emit, Integer, V

__all__ = [
    "BLOCK",
    "PANEL",
    "block",
    "integer",
    "pack",
    "pack_all",
    "pack_product",
    "panels_of",
    "product",
    "put_integer",
    "swap",
    "table",
    "zero",
]

PANEL, BLOCK = 16, 256  # columns of a panel, terms of a block of K: they are part of the contract
NV = PANEL // WIDTH  # vectors of a panel
RELU = UNARY["relu"].code

# Panels that are walked at once, with the rows of the tallest tile: sums and one term of each panel fit the registers. Those of
# few rows walk more panels, for their sums would wait for one another; eight panels are more streams than caches follow.
_WIDE = REGISTERS == 32
TALL = {16: {1: 8, 2: 8, 3: 8, 4: 6}, 8: {1: 6, 3: 2}, 4: {1: 6, 3: 2} if _WIDE else {1: 3, 2: 1}}[WIDTH]
TALL_ROWS, FEW_PANELS = TALL[1], max(TALL)
FEW_ROWS = TALL[FEW_PANELS]
ROWS = 256  # rows of a call of `block`


@emitted
def integer(e: Emit, place: V, index: V) -> Integer:
    """A number of a table of 64-bit integers."""
    return e.load(e.at(place, index, 8), I64)


@emitted
def put_integer(e: Emit, place: V, index: V, value: V) -> None:
    """Changes a number of a table of 64-bit integers."""
    e.store(e.at(place, index, 8), value)


@emitted
def table(e: Emit) -> Integer:
    """A table of 2 + 256 integers of the caller's own: a run, and the rows of `block`."""
    with e.builder.goto_entry_block():
        memory = e.builder.alloca(I64, ROWS + 2)
    return V(e, e.builder.ptrtoint(memory, I64))


@emitted
def zero(e: Emit, y: V, n: V) -> None:
    """n floats become 0."""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.f(0.0), mask))


def _tile(e: Emit, m: int, p: int, left: Rows, b: Panels, ahead: V, c: Sums, end: End) -> None:
    count = p * NV
    row = [e.load(e.at(left.at, i, 8), I64) for i in range(m)]
    sums = [[e.var(e.f(0.0)) for _ in range(count)] for _ in range(m)]
    place = e.var(b.at)
    with e.loop(0, left.count) as r:
        start, length = (e.load(e.at(left.runs, r * 2 + part, 8), I64) for part in range(2))
        with e.loop(start, start + length) as k:
            at = place.get()
            e.prefetch(at + ahead, write=False)
            terms = [e.load(e.at(e.at(at, b.panel * q), v * WIDTH)) for q in range(p) for v in range(NV)]
            for i in range(m):
                x = e.broadcast(e.at(row[i], k))
                for j in range(count):
                    sums[i][j].set(e.fma(x, terms[j], sums[i][j].get()))
            place.set(e.at(at, b.row))
    places = [(i, j) for i in range(m) for j in range(count)]

    def add(base: V, line: V) -> None:
        for i, j in places:
            sums[i][j].set(e.load(e.at(e.at(base, line * i), j * WIDTH)) + sums[i][j].get())

    with e.when(c.more.differs(0)):
        add(c.at, c.line)
    with e.when(end.bias.differs(0)):
        add(end.bias, e.i64(0))
    with e.when(end.residual.differs(0)):
        add(end.residual, end.line)
    with e.when(end.act.code.equals(RELU)):
        for i, j in places:
            sums[i][j].set(e.most(0.0, sums[i][j].get()))
    for i, j in places:
        e.store(e.at(e.at(c.at, c.line * i), j * WIDTH), sums[i][j].get())


@emitted
def _tiles(e: Emit, m: V, p: V, left: Rows, b: Panels, ahead: V, c: Sums, end: End) -> None:
    """c (+)= rows b for m rows, p whole panels; then what follows, of activations ReLU alone. What is
    `ahead` bytes of b's rows is prefetched."""

    def case(height: int, panels: int) -> Callable[[], None]:
        return lambda: _tile(e, height, panels, left, b, ahead, c, end)

    # Of three panels, few rows are left out: `block` takes two panels for them.
    sizes = [
        (height, panels) for panels, rows in TALL.items() for height in range(4 if panels == 3 and rows > 3 else 1, rows + 1)
    ]
    e.switch(p * 16 + m, {panels * 16 + height: case(height, panels) for height, panels in sizes})


@emitted
def _panel(e: Emit, x: V, ldx: V, y: V, rows: V, cols: V) -> None:
    masks = [e.mask(cols - v * WIDTH) for v in range(NV)]
    with e.loop(0, rows) as r:
        for v in range(NV):
            e.store(e.at(y, r * PANEL + v * WIDTH), e.load(e.at(e.at(x, r * ldx), v * WIDTH), mask=masks[v]))


@emitted
def _unpanel(e: Emit, x: V, y: V, ldy: V, rows: V, cols: V) -> None:
    masks = [e.mask(cols - v * WIDTH) for v in range(NV)]
    with e.loop(0, rows) as r:
        for v in range(NV):
            e.store(e.at(e.at(y, r * ldy), v * WIDTH), e.load(e.at(x, r * PANEL + v * WIDTH)), masks[v])


@emitted
def tile_buffer(e: Emit) -> Integer:
    """Room for the rows of the tallest tile, one panel wide."""
    with e.builder.goto_entry_block():
        memory = e.builder.alloca(e.f(0).kind, TALL_ROWS * NV)
    return V(e, e.builder.ptrtoint(memory, I64))


@inner
def block(left: Rows, m: int, b: Panels, c: Sums, n: int, end: End, apply: int) -> None:
    """c[i, j] (+)= sum over k of the runs of left[i][k] b[k, j] for m rows and n columns; then what follows, whose bias has whole
    panels. apply: the address of `_unary.apply`."""
    panels, whole = (n + PANEL - 1) // PANEL, n // PANEL
    part, part_residual = tile_buffer(), tile_buffer()
    j = 0
    while j < panels and m > 0:
        p, most, rest = 1, TALL_ROWS, whole - j
        if WIDTH < 16 and m <= FEW_ROWS and rest >= FEW_PANELS:
            p, most = FEW_PANELS, FEW_ROWS
        elif WIDTH == 16 and rest >= 4 and rest != 5 and (m <= 6 or m > 8):
            p, most = 4, 6
        elif WIDTH == 16 and rest > 1:
            p = 3 if m > 3 and rest != 2 and rest != 4 else 2
        tiles = (m + most - 1) // most  # of heights that differ by at most one
        low, high = m // tiles, m % tiles
        cols = min(p * PANEL, n - j * PANEL)
        i = 0
        for tile in range(tiles):
            height = low + (1 if tile < high else 0)
            to, line = c.at + 4 * (i * c.line + j * PANEL), c.line
            extra, extra_line = end.residual + 4 * (i * end.line + j * PANEL) if end.residual != 0 else 0, end.line
            if j == whole:  # the last panel is not whole: the tile works on whole ones in a buffer
                if c.more != 0:
                    _panel(to, c.line, part, height, cols)
                if end.residual != 0:
                    _panel(extra, end.line, part_residual, height, cols)
                    extra, extra_line = part_residual, PANEL
                to, line = part, PANEL
            _tiles(
                height, p, Rows(left.at + 8 * i, left.runs, left.count), Panels(b.at + 4 * j * b.panel, b.row, b.panel),
                4 * (p + tile) * b.panel if tile < p else 0, Sums(to, line, c.more),
                End(end.bias + 4 * j * PANEL if end.bias != 0 else 0, extra, extra_line, end.act),
            )  # fmt: skip
            if j == whole:
                to = c.at + 4 * (i * c.line + j * PANEL)
                _unpanel(part, to, c.line, height, cols)
            if end.act.code > RELU:  # while the tile is in the nearest cache
                for r in range(height):
                    call(apply, end.act, to + 4 * r * c.line, to + 4 * r * c.line, cols)
            i += height
        j += p


@inner
def product(block: int, apply: int, x: Lines, b: Columns, c: int, ldc: int, end: End) -> None:
    """c = act(x b + bias + residual) for columns of packed b; bias begins at the first of them."""
    width = (b.all + PANEL - 1) // PANEL * PANEL
    own = table()
    rows = own + 16
    for m0 in range(0, x.m, ROWS):
        count = min(ROWS, x.m - m0)
        for i in range(count):
            put_integer(rows, i, x.at + 4 * (m0 + i) * x.line)
        k0 = 0
        while True:  # once even if k is 0: bias and activation are applied
            klen = min(BLOCK, x.k - k0)
            put_integer(own, 0, k0)
            put_integer(own, 1, klen)
            last = k0 + klen == x.k
            call(
                block, Rows(rows, own, 1), count, Panels(b.at + 4 * (width * k0 + b.first * klen), PANEL, PANEL * klen),
                Sums(c + 4 * m0 * ldc, ldc, 1 if k0 > 0 else 0), b.n,
                End(
                    end.bias if last else 0, end.residual + 4 * m0 * end.line if last and end.residual != 0 else 0, end.line,
                    Act(end.act.code if last else 0, end.act.a, end.act.b),
                ), apply,
            )  # fmt: skip
            k0 += klen
            if k0 >= x.k:
                break


@emitted
def _swap(e: Emit, x: V, ldx: V, y: V, ldy: V, rows: V, cols: V) -> None:
    def emit(r: V, c: V, edge: bool) -> None:
        values = []
        for i in range(WIDTH):
            at = e.at(e.at(x, (r + i) * ldx), c)
            if edge:
                value = e.var(e.f(0.0))
                with e.when(r + i < rows):
                    value.set(e.load(at, mask=e.mask(cols - c)))
                values.append(value.get())
            else:
                values.append(e.load(at))
        step = 1
        while step < WIDTH:
            for i in range(WIDTH):
                if not i & step:
                    p, q = values[i], values[i | step]
                    values[i] = e.lanes(p, [lane if not lane & step else WIDTH + lane - step for lane in range(WIDTH)], q)
                    values[i | step] = e.lanes(p, [lane + step if not lane & step else WIDTH + lane for lane in range(WIDTH)], q)
            step *= 2
        for i in range(WIDTH):
            at = e.at(e.at(y, (c + i) * ldy), r)
            if edge:
                with e.when(c + i < cols):
                    e.store(at, values[i], e.mask(rows - r))
            else:
                e.store(at, values[i])

    def block_at(r: V, c: V) -> None:
        whole = (r + WIDTH <= rows) & (c + WIDTH <= cols)
        with e.builder.if_else(whole.v) as (then, otherwise):
            with then:
                emit(r, c, False)
            with otherwise:
                emit(r, c, True)

    # Along the longer side, so that as few lines as can be are read or written at once.
    with e.builder.if_else((rows > cols).v) as (tall, flat):
        with tall, e.loop(0, cols, WIDTH) as c, e.loop(0, rows, WIDTH) as r:
            block_at(r, c)
        with flat, e.loop(0, rows, WIDTH) as r, e.loop(0, cols, WIDTH) as c:
            block_at(r, c)


@inner
def swap(x: int, ldx: int, y: int, ldy: int, rows: int, cols: int) -> None:
    """y[c, r] = x[r, c] for rows x cols floats, lines with strides ldx and ldy."""
    _swap(x, ldx, y, ldy, rows, cols)


@inner
def pack_product(swap: int, x: int, ldx: int, transposed: int, k: int, n: int, y: int) -> None:
    """Packs x (k, n), or x (n, k) if `transposed`, lines with stride ldx, into panels."""
    for k0 in range(0, k, BLOCK):
        klen = min(BLOCK, k - k0)
        for j0 in range(0, n, PANEL):
            cols = min(PANEL, n - j0)
            if transposed != 0:
                if cols < PANEL:
                    zero(y, klen * PANEL)
                call(swap, x + 4 * (j0 * ldx + k0), ldx, y, PANEL, cols, klen)
            else:
                _panel(x + 4 * (k0 * ldx + j0), ldx, y, klen, cols)
            y += 4 * klen * PANEL


def panels_of(n: int) -> int:
    """n columns, rounded up to whole panels."""
    return -(-n // PANEL) * PANEL


def pack_all(weight__gnk: np.ndarray) -> np.ndarray:
    """Weights (groups, n, k) as read-only panels (groups, size): blocks of K one after another, each of panels of 16 columns.

    Panels begin where lines of the cache do: a vector that is in two takes twice as long to load.
    """
    groups, n, k = weight__gnk.shape
    wide = np.zeros((groups, panels_of(n), k), np.float32)
    wide[:, :n] = weight__gnk
    packed = scratch(wide.size).reshape(groups, panels_of(n) * k)
    for k0 in range(0, k, BLOCK):
        part = wide[:, :, k0 : k0 + BLOCK]
        panels = part.reshape(groups, panels_of(n) // PANEL, PANEL, part.shape[2]).swapaxes(2, 3)
        packed[:, panels_of(n) * k0 :][:, : part[0].size if groups else 0] = panels.reshape(groups, panels_of(n) * part.shape[2])
    packed.flags.writeable = False
    return packed


def pack(weight__nk: np.ndarray) -> np.ndarray:
    """Weights (n, k) in panels: see `pack_all`."""
    packed: np.ndarray = pack_all(weight__nk[np.newaxis])[0]
    return packed

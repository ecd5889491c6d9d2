"""Padded, channels-last rows of an image, which products read as runs; what convolutions and transposed convolutions share."""

from __future__ import annotations

from ._njit import call, emitted, inner, kernel
from ._tile import BLOCK, PANEL, integer, put_integer, zero
from ._vector import WIDTH, Emit, V

__all__ = ["copy_row", "draw", "even", "fill", "plan_runs", "runs_size", "sums"]


@emitted
def copy_row(e: Emit, x: V, y: V, n: V) -> None:
    """y = x, n floats."""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.load(e.at(x, i), mask=mask), mask))


@emitted
def draw(e: Emit, first: V, pitch: V, rows: V, n: V) -> None:
    """Draws n floats of each of `rows` rows, which begin `pitch` floats apart, toward the cache."""
    with e.loop(0, rows) as i, e.loop(0, n, 16) as j:
        e.prefetch(e.at(e.at(first, pitch * i), j))


@emitted
def _beside(e: Emit, x: V, pitch: V, y: V, n: V) -> None:
    """y[i, c] = x[c, i] of three channels, whose n floats each begin `pitch` floats apart: images mostly have so many."""

    def body(i: V, mask: V | None) -> None:
        of = [e.load(e.at(e.at(x, pitch * c), i), mask=mask) for c in range(3)]
        for part in range(3):
            places = [part * WIDTH + lane for lane in range(WIDTH)]
            two = e.lanes(of[0], [place // 3 + WIDTH * (place % 3 == 1) for place in places], of[1])
            value = e.lanes(two, [WIDTH + place // 3 if place % 3 == 2 else lane for lane, place in enumerate(places)], of[2])
            left = e.mask((n - i) * 3 - part * WIDTH) if mask is not None else None
            e.store(e.at(y, i * 3 + part * WIDTH), value, left)

    e.vectors(n, body)


@inner
def fill(
    swap: int, x: int, last: int, channels: int, ig: int, d: int, h: int, w: int, z0: int, z_step: int, planes: int, y0: int,
    y_step: int,
    rows: int, x0: int, x_step: int, cols: int, to: int,
) -> None:  # fmt: skip
    """Writes planes x rows x cols pixels of `ig` floats, those at z0 + i z_step, y0 + j y_step, x0 + k x_step of the image x:
    zeros where
    that is outside. x begins at the group's first channel and has `channels` in all; `last`: they are the last axis. x_step:
    1 or -1.
    """
    volume = d * h * w
    for z in range(planes):
        zi = z0 + z * z_step
        for r in range(rows):
            yi = y0 + r * y_step
            if zi < 0 or zi >= d or yi < 0 or yi >= h:
                zero(to, cols * ig)
                to += 4 * cols * ig
                continue
            start = min(max(-x0, 0), cols)
            stop = max(start, min(cols, w - x0))
            at = (zi * h + yi) * w + x0 + start
            zero(to, start * ig)
            if last == 0 and ig == 3:
                _beside(x + 4 * at, volume, to + 12 * start, stop - start)
            elif last == 0:
                call(swap, x + 4 * at, volume, to + 4 * start * ig, ig, ig, stop - start)
            elif channels == ig:
                copy_row(x + 4 * at * ig, to + 4 * start * ig, (stop - start) * ig)
            else:
                for i in range(stop - start):
                    copy_row(x + 4 * (at + i) * channels, to + 4 * (start + i) * ig, ig)
            zero(to + 4 * stop * ig, (cols - stop) * ig)
            to += 4 * cols * ig


@kernel
def plan_runs(table: int, kd: int, kh: int, kw: int, plane: int, row: int, pixel: int, ig: int) -> None:
    """Runs of a pixel's taps, in floats from its first; `starts` of the blocks of K are in front, (offset, length) pairs after.

    The numbers of K: taps in the order kd, kh, kw, `ig` channels each; plane, row, pixel: floats from a tap to the next.
    """
    k = kd * kh * kw * ig
    blocks = max(1, (k + BLOCK - 1) // BLOCK)
    runs = table + 8 * (blocks + 1)
    count, room, number, end = 0, BLOCK, 0, -1
    put_integer(table, 0, 0)
    for z in range(kd):
        for y in range(kh):
            for x in range(kw):
                at, left = z * plane + y * row + x * pixel, ig
                while left > 0:
                    if room == 0:
                        number += 1
                        put_integer(table, number, count)
                        room, end = BLOCK, -1
                    n = min(left, room)
                    if at == end:  # it goes on where the last one ended
                        put_integer(runs, 2 * count - 1, integer(runs, 2 * count - 1) + n)
                    else:
                        put_integer(runs, 2 * count, at)
                        put_integer(runs, 2 * count + 1, n)
                        count += 1
                    at += n
                    end = at
                    left -= n
                    room -= n
    put_integer(table, blocks, count)


def runs_size(taps: int, k: int) -> int:
    """Integers that `plan_runs` may write."""
    blocks = max(1, -(-k // BLOCK))
    return blocks + 1 + 2 * (taps + blocks)


@inner
def sums(
    block: int, apply: int, rows: int, m: int, table: int, k: int, b: int, n_all: int, j0: int, n: int, c: int, ldc: int,
    bias: int,
    residual: int, ldr: int, code: int, a: float, bb: float,
) -> None:  # fmt: skip
    """c = act(sums + bias + residual) for m pixels, whose addresses are `rows`, and columns j0 .. j0 + n - 1 of packed b."""
    width = (n_all + PANEL - 1) // PANEL * PANEL
    blocks = max(1, (k + BLOCK - 1) // BLOCK)
    runs = table + 8 * (blocks + 1)
    for number in range(blocks):
        k0 = number * BLOCK
        klen = min(BLOCK, k - k0)
        begin, stop = integer(table, number), integer(table, number + 1)
        end = number + 1 == blocks
        call(
            block, rows, m, runs + 16 * begin, stop - begin, b + 4 * (width * k0 + j0 * klen), PANEL, PANEL * klen, c, ldc, n,
            1 if number > 0 else 0, bias if end else 0, residual if end else 0, ldr, code if end else 0, a, bb, apply,
        )  # fmt: skip


def even(n: int, most: int) -> int:
    """The size of the pieces, at most `most`, in which n is cut as evenly as can be."""
    return max(1, -(-n // max(1, -(-n // most))))

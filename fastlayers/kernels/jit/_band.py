"""Padded, channels-last rows of an image, which products read as runs; what convolutions and transposed convolutions share."""

from __future__ import annotations

from ._njit import call, emitted, inner, kernel
from ._records import Act, Columns, End, Image, Panels, Rows, Span, Sums
from ._tile import BLOCK, PANEL, integer, put_integer, zero
from ._vector import WIDTH, Emit, V

__all__ = ["copy_row", "draw", "even", "fill", "plan_runs", "runs_size", "sums"]


@emitted
def copy_row(e: Emit, x: V, y: V, n: V) -> None:
    """y = x, n floats."""
    e.vectors(n, lambda i, mask: e.store(e.at(y, i), e.load(e.at(x, i), mask=mask), mask))


@emitted
def draw(e: Emit, first: V, pitch: V, rows: V, n: V) -> None:
    """Draws n floats of each of `rows` rows with stride `pitch` toward the cache."""
    with e.loop(0, rows) as i, e.loop(0, n, 16) as j:
        e.prefetch(e.at(e.at(first, pitch * i), j))


@emitted
def _beside(e: Emit, x: V, pitch: V, y: V, n: V) -> None:
    """y[i, c] = x[c, i] of three channels, whose n floats each have stride `pitch`: images mostly have so many."""

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
def fill(swap: int, x: Image, z: Span, y: Span, u: Span, to: int) -> None:
    """Writes the pixels at planes z, rows y and columns u (which are neighbours) of an image, the channels that are `taken` of
    each: zeros where that is outside."""
    volume = x.d * x.h * x.w
    for plane in range(z.count):
        zi = z.first + plane * z.step
        for r in range(y.count):
            yi = y.first + r * y.step
            if zi < 0 or zi >= x.d or yi < 0 or yi >= x.h:
                zero(to, u.count * x.taken)
                to += 4 * u.count * x.taken
                continue
            start = min(max(-u.first, 0), u.count)
            stop = max(start, min(u.count, x.w - u.first))
            at = (zi * x.h + yi) * x.w + u.first + start
            zero(to, start * x.taken)
            if x.last == 0 and x.taken == 3:
                _beside(x.at + 4 * at, volume, to + 12 * start, stop - start)
            elif x.last == 0:
                call(swap, x.at + 4 * at, volume, to + 4 * start * x.taken, x.taken, x.taken, stop - start)
            elif x.channels == x.taken:
                copy_row(x.at + 4 * at * x.taken, to + 4 * start * x.taken, (stop - start) * x.taken)
            else:
                for i in range(stop - start):
                    copy_row(x.at + 4 * (at + i) * x.channels, to + 4 * (start + i) * x.taken, x.taken)
            zero(to + 4 * stop * x.taken, (u.count - stop) * x.taken)
            to += 4 * u.count * x.taken


@kernel
def plan_runs(table: int, kd: int, kh: int, kw: int, plane: int, row: int, pixel: int, ig: int) -> None:
    """Runs of a pixel's taps, in floats from its first; `starts` of the blocks of K are in front, (offset, length) pairs after.

    The values of K: taps in the order kd, kh, kw, `ig` channels each; plane, row, pixel: floats from a tap to the next.
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
def sums(block: int, apply: int, rows: int, m: int, table: int, k: int, b: Columns, c: int, ldc: int, end: End) -> None:
    """c = act(sums + bias + residual) for m pixels, whose addresses are `rows`, and columns of packed b."""
    width = (b.all + PANEL - 1) // PANEL * PANEL
    blocks = max(1, (k + BLOCK - 1) // BLOCK)
    runs = table + 8 * (blocks + 1)
    for number in range(blocks):
        k0 = number * BLOCK
        klen = min(BLOCK, k - k0)
        begin, stop = integer(table, number), integer(table, number + 1)
        last = number + 1 == blocks
        call(
            block, Rows(rows, runs + 16 * begin, stop - begin), m,
            Panels(b.at + 4 * (width * k0 + b.first * klen), PANEL, PANEL * klen), Sums(c, ldc, 1 if number > 0 else 0), b.n,
            End(
                end.bias if last else 0, end.residual if last else 0, end.line,
                Act(end.act.code if last else 0, end.act.a, end.act.b),
            ), apply,
        )  # fmt: skip


def even(n: int, most: int) -> int:
    """The size of the pieces, at most `most`, in which n is cut as evenly as can be."""
    return max(1, -(-n // max(1, -(-n // most))))

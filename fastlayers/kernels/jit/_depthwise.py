"""The inner loops of depthwise convolution, emitted as LLVM vectors: see `aot/csrc/depthwise.h`.

Every output is one chain of multiply-adds over its taps in order, then bias, residual and a lower bound; so neither layout nor
path nor place in a vector shows in the result. Kernels of usual shape keep an input in a register for all the outputs that need
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._njit import emitted
from ._records import Filter, Taps
from ._vector import F32, I64, REGISTERS, WIDTH, Emit, Float, V, Var

__all__ = ["copy_end", "pixels", "repeat", "row_bands", "row_first"]

TOGETHER = 8 if REGISTERS == 32 else 4  # channels-last outputs whose sums are retained at once
SHARED = {3: (1, 2), 5: (1, 2), 7: (1,)}  # widths of kernels whose inputs are shared, with their strides
BANDS = 4  # rows of channels-first outputs that are computed at once


def _end(e: Emit, total: Var, residual: V, at: V, bound: V, mask: V | None) -> V:
    """Sums with what follows them; `at`: their place in the residual, if there is one. NaN passes the bound."""
    with e.when(residual.differs(0)):
        total.set(total.get() + e.load(e.at(residual, at), mask=mask))
    return e.most(bound, total.get())


# ---- channels-last: a vector is WIDTH channels of one pixel


@emitted
def pixels(e: Emit, taps: V, ntaps: V, kw: V, shift: V, own: Filter, residual: V, y: V, c: V, count: V, bound: Float) -> None:
    """`count` neighbouring outputs of a row.

    taps: the addresses that the first one reads; kw: how many of them each are next to each other, if that is known; shift:
    floats between the inputs of neighbouring outputs.
    """
    least = e.splat(bound)

    def finish(sums: list[Var], first: V, i: V, mask: V | None) -> None:
        b = e.load(e.at(own.bias, i), mask=mask)
        for q, total in enumerate(sums):
            at = (first + q) * c + i
            total.set(total.get() + b)
            e.store(e.at(y, at), _end(e, total, residual, at, least, mask), mask)

    def shared(wide: int, step: int) -> Callable[[], None]:
        def group(first: V, number: int) -> None:
            def lanes(i: V) -> None:
                sums = [e.var(e.f(0.0)) for _ in range(number)]
                w_at = e.var(e.at(own.weight, i))
                place = first * shift + i
                with e.loop(0, ntaps, wide) as t:
                    at = e.at(e.load(e.at(taps, t, 8), I64), place)
                    w = [e.load(e.at(w_at.get(), c * u)) for u in range(wide)]
                    w_at.set(e.at(w_at.get(), c * wide))
                    for u in range((number - 1) * step + wide):
                        x = e.load(e.at(at, c * u))
                        for q in range(number):
                            if 0 <= u - q * step < wide:
                                sums[q].set(e.fma(w[u - q * step], x, sums[q].get()))
                finish(sums, first, i, None)

            with e.loop(0, c, WIDTH) as i:  # the last vector begins early
                lanes(e.smaller(i, c - WIDTH))

        def emit() -> None:
            at = e.var(e.i64(0))
            for number in (TOGETHER, TOGETHER // 2, 1):
                with e.loop(at.get(), count - (number - 1), number) as first:
                    group(first, number)
                    at.set(first + number)

        return emit

    def listed() -> None:
        def group(first: V, number: int, vectors: int, i: V, mask: V | None) -> None:
            sums = [e.var(e.f(0.0)) for _ in range(number * vectors)]
            w_at = e.var(e.at(own.weight, i))
            with e.loop(0, ntaps) as t:
                at = e.at(e.load(e.at(taps, t, 8), I64), first * shift + i)
                for v in range(vectors):
                    w = e.load(e.at(w_at.get(), v * WIDTH), mask=mask)
                    for q in range(number):
                        x = e.load(e.at(e.at(at, shift * q), v * WIDTH), mask=mask)
                        sums[q * vectors + v].set(e.fma(w, x, sums[q * vectors + v].get()))
                w_at.set(e.at(w_at.get(), c))
            for v in range(vectors):
                finish(sums[v::vectors], first, i + v * WIDTH, mask)

        whole = count & -TOGETHER
        with e.loop(0, whole, TOGETHER) as first:
            e.vectors(c, lambda i, mask: group(first, TOGETHER, 1, i, mask))
        with e.loop(whole, count) as first:  # also the border of an image: several vectors keep the adders busy
            fours = c & (-4 * WIDTH)
            with e.loop(0, fours, 4 * WIDTH) as i:
                group(first, 1, 4, i, None)
            e.vectors(c - fours, lambda i, mask: group(first, 1, 1, fours + i, mask))

    number = e.i64(0)
    for wide, steps in SHARED.items():
        for step in steps:
            fits = kw.equals(wide) & shift.equals(c * step) & (c >= WIDTH)
            number = e.select(fits, e.i64(wide * 4 + step), number)
    cases = {wide * 4 + step: shared(wide, step) for wide, steps in SHARED.items() for step in steps}
    e.switch(number, {0: listed, **cases})


@emitted
def repeat(e: Emit, x: V, y: V, n: V, times: V) -> None:
    """Each of n floats `times` times."""
    with e.loop(0, n) as i:
        one = e.load(e.at(x, i), F32)
        with e.loop(0, times) as k:
            e.store(e.at(y, i * times + k), one)


# ---- channels-first: a vector is WIDTH outputs of one row


@emitted
def row_bands(e: Emit, x: V, own: Filter, residual: V, y: V, rows: V, cols: V, taps: Taps, bound: Float) -> None:
    """Rows of outputs, at least BANDS, whose neighbours' inputs are a kernel row apart: `line` floats; x goes on after them."""
    least, b = e.splat(bound), e.broadcast(own.bias)
    last = e.select(cols > WIDTH, cols - WIDTH, e.i64(0))
    whole, part = cols >= WIDTH, e.mask(cols)

    def case(high: int) -> Callable[[], None]:
        known = high == 3
        kept = [e.broadcast(e.at(own.weight, t)) for t in range(9)] if known else []

        def band(top: V, at: list[V]) -> None:
            sums = [[e.var(e.f(0.0)) for _ in at] for _ in range(BANDS)]

            def take(r: int, from_: V, t: Any) -> None:
                found = [e.load(e.at(e.at(from_, j), taps.tap * t)) for j in at]
                for q in range(BANDS):
                    if 0 <= r - q < high:
                        w = kept[(r - q) * 3 + t] if known else e.broadcast(e.at(own.weight, taps.kw * (r - q) + t))
                        for u, value in enumerate(found):
                            sums[q][u].set(e.fma(w, value, sums[q][u].get()))

            for r in range(BANDS - 1 + high):
                from_ = e.at(x, taps.line * (top + r))
                if known:
                    for t in range(3):
                        take(r, from_, t)
                else:
                    with e.loop(0, taps.kw) as column:
                        take(r, from_, column)
            for q in range(BANDS):
                for u, j in enumerate(at):
                    place, total = (top + q) * cols + j, sums[q][u]
                    total.set(total.get() + b)
                    with e.builder.if_else(whole.v) as (then, otherwise):
                        with then:
                            e.store(e.at(y, place), _end(e, total, residual, place, least, None))
                        with otherwise:
                            e.store(e.at(y, place), _end(e, total, residual, place, least, part), part)

        def emit() -> None:
            with e.loop(0, rows, BANDS) as first:
                top = e.smaller(first, rows - BANDS)
                done = e.i64(0)
                if not known:  # two vectors share a weight's load
                    done = (cols + (WIDTH - 1)) & (-2 * WIDTH)
                    with e.loop(0, done, 2 * WIDTH) as j:
                        band(top, [j, e.smaller(j + WIDTH, last)])
                with e.loop(done, cols, WIDTH) as j:
                    band(top, [e.smaller(j, last)])

        return emit

    e.switch(taps.kh, {high: case(high) for high in (3, 5, 7)})


@emitted
def row_first(e: Emit, x: V, own: Filter, residual: V, y: V, count: V, stride: V, taps: Taps, bound: Float) -> None:
    """A row of outputs of one channel; x goes on after what it reads."""
    least = e.splat(bound)

    def case(step: int, known: int) -> Callable[[], None]:
        def emit() -> None:
            few = 0 < known * known <= REGISTERS - 6
            kept = [e.broadcast(e.at(own.weight, t)) for t in range(known * known)] if few else []
            b = e.broadcast(own.bias)

            def body(i: V, mask: V | None) -> None:
                total = e.var(e.f(0.0))
                w_at = e.var(own.weight)

                def take(offset: V, w: V) -> None:
                    at = e.at(x, offset + i * stride)
                    total.set(e.fma(w, e.strided(at, step if step < 3 else stride), total.get()))

                if known:
                    for t in range(known * known):
                        w = kept[t] if kept else e.broadcast(e.at(own.weight, t))
                        take(taps.line * (t // known) + taps.tap * (t % known), w)
                else:
                    with e.loop(0, taps.kd) as z, e.loop(0, taps.kh) as r, e.loop(0, taps.kw) as column:
                        take(z * taps.plane + r * taps.line + column * taps.tap, e.broadcast(w_at.get()))
                        w_at.set(e.at(w_at.get(), 1))
                total.set(total.get() + b)
                e.store(e.at(y, i), _end(e, total, residual, i, least, mask), mask)

            e.vectors(count, body)

        return emit

    number = e.select(stride > 2, e.i64(3), stride)
    for known in (3, 5):
        fits = taps.kd.equals(1) & taps.kh.equals(known) & taps.kw.equals(known) & (stride < 3)
        number = e.select(fits, stride + known * 4, number)
    cases = {step: case(step, 0) for step in (1, 2, 3)}
    cases |= {known * 4 + step: case(step, known) for known in (3, 5) for step in (1, 2)}
    e.switch(number, cases)


@emitted
def copy_end(e: Emit, x: V, residual: V, y: V, n: V, bound: Float) -> None:
    """y = x + residual, which may be none, with its lower bound."""
    least = e.splat(bound)

    def body(i: V, mask: V | None) -> None:
        e.store(e.at(y, i), _end(e, e.var(e.load(e.at(x, i), mask=mask)), residual, i, least, mask), mask)

    e.vectors(n, body)

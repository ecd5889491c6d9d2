"""Reads the operands of a product, by the threads of a block, into shared memory: neighbours there are of one term.

Each maker takes the lines of a tile, its terms and its threads, and returns two device functions: one fetches the thread's
values of the stage that begins at term k, the other puts them. `at` says where a thread's lines begin, `has` what they have: a
bit for each tap of a pixel, or how many lines (columns) there are from the thread's first one on. `step`: between lines, or
terms, of a matrix.
"""

from __future__ import annotations

from typing import Any

from ._cuda import device, f32, load1, load4, store1, store4
from ._places import BELOW, SHIFT

__all__ = ["OPERANDS"]

_ZERO = f32(0)


def _gather(rows: int, depth: int, threads: int) -> Any:
    """A thread reads terms of one pixel; neighbours read neighbours."""
    LINE, LOADS, STEP_K = rows + 4, rows * depth // threads, threads // rows
    ROWS = rows

    @device
    def fetch(x: Any, table: Any, at: Any, has: Any, step: Any, k: Any, terms: Any, to: Any, tid: Any) -> None:
        for j in range(LOADS):
            entry = load1(table, k + tid // ROWS + j * STEP_K)
            v = _ZERO
            if has[0] >> (entry >> SHIFT) & 1:
                v = load1(x, at[0] + (entry & BELOW))
            to[j] = v

    @device
    def put(shared: Any, stage: Any, given: Any, tid: Any) -> None:
        to = stage + tid // ROWS * LINE + tid % ROWS
        for j in range(LOADS):
            store1(shared, to + j * STEP_K * LINE, given[j])

    return fetch, put


def _swapped4(lines: int, depth: int, threads: int) -> Any:
    """Writes fours of neighbouring terms to shared memory, where a term's values are neighbours."""
    LINE, LOADS, FOURS, APART = lines + 4, lines * depth // threads // 4, depth // 4, threads // (depth // 4)

    @device
    def put(shared: Any, stage: Any, given: Any, tid: Any) -> None:
        to = stage + tid % FOURS * 4 * LINE + tid // FOURS
        for j in range(LOADS):
            for i in range(4):
                store1(shared, to + i * LINE + j * APART, given[4 * j + i])

    return put


def _gather4(rows: int, depth: int, threads: int) -> Any:
    LOADS, FOURS = rows * depth // threads // 4, depth // 4

    @device
    def fetch(x: Any, table: Any, at: Any, has: Any, step: Any, k: Any, terms: Any, to: Any, tid: Any) -> None:
        entry = load1(table, k + tid % FOURS * 4)
        for j in range(LOADS):
            p = q = r = s = _ZERO
            if has[j] >> (entry >> SHIFT) & 1:
                p, q, r, s = load4(x, at[j] + (entry & BELOW))
            to[4 * j], to[4 * j + 1], to[4 * j + 2], to[4 * j + 3] = p, q, r, s

    return fetch, _swapped4(rows, depth, threads)


def _rows4(lines: int, depth: int, threads: int) -> Any:
    """Lines of a matrix whose terms are neighbours; `has` says how many lines there are from the thread's first on."""
    LOADS, FOURS, APART = lines * depth // threads // 4, depth // 4, threads // (depth // 4)

    @device
    def fetch(x: Any, table: Any, at: Any, has: Any, step: Any, k: Any, terms: Any, to: Any, tid: Any) -> None:
        term = k + tid % FOURS * 4
        for j in range(LOADS):
            p = q = r = s = _ZERO
            if term < terms and j * APART < has[0]:
                p, q, r, s = load4(x, at[0] + term + j * APART * step)
            to[4 * j], to[4 * j + 1], to[4 * j + 2], to[4 * j + 3] = p, q, r, s

    return fetch, _swapped4(lines, depth, threads)


def _rows(lines: int, depth: int, threads: int) -> Any:
    LINE, LOADS, APART = lines + 4, lines * depth // threads, threads // depth
    DEPTH = depth

    @device
    def fetch(x: Any, table: Any, at: Any, has: Any, step: Any, k: Any, terms: Any, to: Any, tid: Any) -> None:
        term = k + tid % DEPTH
        for j in range(LOADS):
            v = _ZERO
            if term < terms and j * APART < has[0]:
                v = load1(x, at[0] + term + j * APART * step)
            to[j] = v

    @device
    def put(shared: Any, stage: Any, given: Any, tid: Any) -> None:
        to = stage + tid % DEPTH * LINE + tid // DEPTH
        for j in range(LOADS):
            store1(shared, to + j * APART, given[j])

    return fetch, put


def _columns4(columns: int, depth: int, threads: int) -> Any:
    """Terms whose columns are neighbours; `has` says how many columns there are from the thread's first on."""
    LINE, LOADS, FOURS, APART = columns + 4, columns * depth // threads // 4, columns // 4, threads // (columns // 4)

    @device
    def fetch(x: Any, table: Any, at: Any, has: Any, step: Any, k: Any, terms: Any, to: Any, tid: Any) -> None:
        term = k + tid // FOURS
        for j in range(LOADS):
            p = q = r = s = _ZERO
            if term + j * APART < terms and has[0] > 0:
                p, q, r, s = load4(x, at[0] + (term + j * APART) * step)
            to[4 * j], to[4 * j + 1], to[4 * j + 2], to[4 * j + 3] = p, q, r, s

    @device
    def put(shared: Any, stage: Any, given: Any, tid: Any) -> None:
        to = stage + tid // FOURS * LINE + tid % FOURS * 4
        for j in range(LOADS):
            store4(shared, to + j * APART * LINE, given[4 * j], given[4 * j + 1], given[4 * j + 2], given[4 * j + 3])

    return fetch, put


def _columns(columns: int, depth: int, threads: int) -> Any:
    LINE, LOADS, APART = columns + 4, columns * depth // threads, threads // columns
    COLUMNS = columns

    @device
    def fetch(x: Any, table: Any, at: Any, has: Any, step: Any, k: Any, terms: Any, to: Any, tid: Any) -> None:
        term = k + tid // COLUMNS
        for j in range(LOADS):
            v = _ZERO
            if term + j * APART < terms and has[0] > 0:
                v = load1(x, at[0] + (term + j * APART) * step)
            to[j] = v

    @device
    def put(shared: Any, stage: Any, given: Any, tid: Any) -> None:
        to = stage + tid // COLUMNS * LINE + tid % COLUMNS
        for j in range(LOADS):
            store1(shared, to + j * APART * LINE, given[j])

    return fetch, put


OPERANDS = {"gather": _gather, "gather4": _gather4, "rows": _rows, "rows4": _rows4, "columns": _columns, "columns4": _columns4}

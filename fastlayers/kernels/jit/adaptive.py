"""Adaptive pooling: bin i of an axis reaches from floor(i * in / out) to ceil((i + 1) * in / out). Where all bins are alike it is
pooling."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..table import REDUCE
from ._bins import Edges, Part, bins
from ._njit import call, kernel
from ._threads import address, scratch, spread
from .pooling import avg_pool, max_pool

__all__ = ["adaptive_pool"]


class Plan(NamedTuple):
    """Images of `image` floats; the rows of bins of each are cut into `parts`."""

    bins: int
    mean: int
    image: int
    plane: int
    row: int
    cols: int
    c: int
    nz: int
    edges: Edges
    parts: int


@kernel
def _adaptive(p: Plan, x: int, out: int, line: int, first: int, last: int) -> None:
    """Tasks: parts of images."""
    rows = p.nz * p.edges.ny
    for task in range(first, last):
        number, part = task // p.parts, task % p.parts
        begin, end = rows * part // p.parts, rows * (part + 1) // p.parts
        to = out + 4 * (number * rows + begin) * p.edges.nx * p.c
        call(p.bins, p.mean, Part(x + 4 * number * p.image, p.plane, p.row, p.cols, p.c), p.edges, line, to, begin, end)


@lru_cache(maxsize=64)
def _ends(size: int, count: int) -> np.ndarray:
    """First and end of every bin of an axis."""
    return np.array([(i * size // count, -(-(i + 1) * size // count)) for i in range(count)], np.int64)


def adaptive_pool(x: np.ndarray, out: np.ndarray, op: int, channels_last: bool) -> None:
    """out = the mean or the largest number of each bin (op of table.REDUCE)."""
    if not x.size:
        out[...] = 0
    if not x.size or not out.size:
        return
    space = slice(1, 4) if channels_last else slice(2, 5)
    size, to = x.shape[space], out.shape[space]
    mean = op == REDUCE["mean"]
    if all(n % o == 0 for n, o in zip(size, to, strict=True)):
        kernel = tuple(n // o for n, o in zip(size, to, strict=True))
        given = x, out, kernel, kernel, (1, 1, 1), (0,) * 6
        if mean:
            avg_pool(*given, False, channels_last)
        else:
            max_pool(*given, channels_last)
        return
    c = x.shape[4] if channels_last else 1
    images = x.shape[0] * (1 if channels_last else x.shape[1])
    row = size[2] * c
    tables = [_ends(n, o) for n, o in zip(size, to, strict=True)]
    parts = to[0] * to[1] if channels_last else 1

    plan = Plan(
        bins.address, int(mean), size[0] * size[1] * row, size[1] * row, row, size[2], c, to[0],
        Edges(*map(address, tables), *to[1:]), parts,
    )  # fmt: skip

    def run(first: int, last: int) -> None:
        line = scratch(row)
        _adaptive(plan, address(x), address(out), address(line), first, last)

    spread(images * parts, x.size * 4.0, run)

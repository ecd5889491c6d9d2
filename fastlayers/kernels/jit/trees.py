"""Ensembles of decision trees, row by row; see `reference/trees.py`. Tasks are ranges of rows.

Sums are of doubles, tree by tree in their order. A flag says which of the two dtypes x has: both are read as doubles, which
compare as floats do.
"""

from __future__ import annotations

import numpy as np

from ..._tuples import NamedTuple
from ..tree_layout import AVERAGE, MAX, MIN, Trees, check_fit, trees_of
from ._njit import emitted, kernel
from ._threads import address, scratch, spread
from ._tile import integer
from ._vector import F32, F64, Double, Emit, V

__all__ = ["tree_ensemble", "tree_ensemble_pack"]

STEP_COST = 20.0  # of a row's step, in multiply-adds


class Packed(NamedTuple):
    """Trees with their integers as 64 bits, which kernels read."""

    trees: Trees
    arrays: tuple[np.ndarray, ...]
    steps: int

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self.trees.nbytes + sum(array.nbytes for array in self.arrays)


@emitted
def _float(e: Emit, place: V, index: V) -> Double:
    return e.convert(e.load(e.at(place, index), F32), F64, "fpext")


@emitted
def _double(e: Emit, place: V, index: V) -> Double:
    return e.load(e.at(place, index, 8), F64)


@emitted
def _put_double(e: Emit, place: V, index: V, value: Double) -> None:
    e.store(e.at(place, index, 8), value)


class Plan(NamedTuple):
    """Trees for rows of `columns` values, doubles if `wide`; their leaves have weights of n targets."""

    columns: int
    wide: int
    roots: int
    trees: int
    feature: int
    split: int
    child: int
    missing: int
    starts: int
    targets: int
    weight: int
    n: int
    op: int


@kernel
def _rows(p: Plan, x: int, sums: int, seen: int, first: int, last: int) -> None:
    """sums[row - first, target]; seen[target] of a row, 1 where a leaf has said something, for the least and the largest."""
    for row in range(first, last):
        out = sums + 8 * (row - first) * p.n
        for j in range(p.n):
            _put_double(out, j, 0.0)
            _put_double(seen, j, 0.0)
        for tree in range(p.trees):
            at = integer(p.roots, tree)
            while at >= 0:
                place = row * p.columns + integer(p.feature, at)
                value = _double(x, place) if p.wide != 0 else _float(x, place)
                if value != value:
                    at = integer(p.missing, at)
                elif value <= _double(p.split, at):
                    at = integer(p.child, 2 * at)
                else:
                    at = integer(p.child, 2 * at + 1)
            leaf = -1 - at
            for i in range(integer(p.starts, leaf), integer(p.starts, leaf + 1)):
                target, given = integer(p.targets, i), _double(p.weight, i)
                if p.op < 2:
                    _put_double(out, target, _double(out, target) + given)
                    continue
                old = _double(out, target)
                better = given < old if p.op == 2 else given > old
                if _double(seen, target) == 0.0 or given != given or (old == old and better):
                    _put_double(out, target, given)
                _put_double(seen, target, 1.0)


def tree_ensemble_pack(
    roots: np.ndarray,
    feature: np.ndarray,
    split: np.ndarray,
    modes: np.ndarray,
    yes: np.ndarray,
    no: np.ndarray,
    missing: np.ndarray,
    members: np.ndarray | None,
    starts: np.ndarray,
    targets: np.ndarray,
    weight: np.ndarray,
    size: int,
) -> Packed:
    """The trees, checked and laid out; as the reference explains."""
    trees = trees_of(roots, feature, split, modes, yes, no, missing, members, starts, targets, weight, size)
    integers = (trees.roots, trees.feature, trees.child, trees.missing, trees.start, trees.target)
    doubles = tuple(np.ascontiguousarray(a, np.float64) for a in (trees.split, trees.weight))
    arrays = (*(np.ascontiguousarray(a, np.int64) for a in integers), *doubles)
    return Packed(trees, arrays, int(trees.depth.sum(dtype=np.int64)))


def tree_ensemble(x__mk: np.ndarray, packed: Packed, base__n: np.ndarray | None, out__mn: np.ndarray, op: int) -> None:
    """out[m, n] = base[n] + the sum, mean, least or largest (`op`) of what the leaves that row m reaches have for target n."""
    trees = packed.trees
    check_fit(trees, x__mk.shape, None if base__n is None else base__n.shape, out__mn.shape)
    (rows, columns), n = x__mk.shape, trees.targets
    roots, feature, child, missing, starts, targets, split, weight = map(address, packed.arrays)
    least = {MIN: 2, MAX: 3}.get(op, 0)

    plan = Plan(
        columns, int(x__mk.dtype == np.float64), roots, len(trees.roots), feature, split, child, missing, starts, targets, weight,
        n, least,
    )  # fmt: skip

    def run(first: int, last: int) -> None:
        sums = np.empty((last - first, n))
        seen = scratch(2 * n)
        _rows(plan, address(x__mk), address(sums), address(seen), first, last)
        if op == AVERAGE:
            sums /= max(len(trees.roots), 1)
        if base__n is not None:
            sums += base__n
        out__mn[first:last] = sums

    spread(rows, STEP_COST * rows * (packed.steps + len(trees.roots) + n), run)

"""Classes at the leaves of a binary tree: the probability of one, of all, and the most probable; see `reference/tree.py`.

Logarithms are added in double: paths may be long, and what all classes share must not be off by the same error.
"""

from __future__ import annotations

import numpy as np

from ...errors import ShapeError
from ._math import FUNCTIONS
from ._njit import emitted, kernel
from ._threads import address, scratch, spread
from ._tile import integer, put_integer
from ._vector import F32, F64, Double, Emit, Float, V

__all__ = ["tree_argmax", "tree_distribution", "tree_log_prob"]

NODE_COST = 40.0  # operations a node next to its product


def _log_side(e: Emit, z: V) -> V:
    return FUNCTIONS["logsigmoid"](e, z, z, z)


@emitted
def _node(e: Emit, x: V, weight: V, bias: V, d: V, node: V) -> Float:
    """The sum of a node."""
    row = e.at(weight, node * d)

    def term(so_far: V, i: V, mask: V | None) -> V:
        return e.fma(e.load(e.at(x, i), mask=mask), e.load(e.at(row, i), mask=mask), so_far)

    total = e.var(e.lane(e.folded(d, 0.0, term, lambda a, b: a + b), 0))
    with e.when(bias.differs(0)):
        total.set(total.get() + e.load(e.at(bias, node), F32))
    return total.get()


@emitted
def _side(e: Emit, z: Float) -> Double:
    """The logarithm of the probability of left; that of right is the one of -z."""
    return e.convert(e.lane(_log_side(e, e.splat(z)), 0), F64, "fpext")


@emitted
def _sides(e: Emit, x: V, left: V, right: V, n: V) -> None:
    def body(i: V, mask: V | None) -> None:
        z = e.load(e.at(x, i), mask=mask)
        e.store(e.at(left, i), _log_side(e, z), mask)
        e.store(e.at(right, i), _log_side(e, -z), mask)

    e.vectors(n, body)


@emitted
def _float(e: Emit, place: V, index: V) -> Float:
    return e.load(e.at(place, index), F32)


@emitted
def _put_float(e: Emit, place: V, index: V, value: Double) -> None:
    e.store(e.at(place, index), e.convert(value, F32, "fptrunc"))


@emitted
def _double(e: Emit, place: V, index: V) -> Double:
    return e.load(e.at(place, index, 8), F64)


@emitted
def _put_double(e: Emit, place: V, index: V, value: Double) -> None:
    e.store(e.at(place, index, 8), value)


@kernel
def _path(
    x: int, weight: int, bias: int, d: int, targets: int, starts: int, points: int, codes: int, out: int, first: int, last: int
) -> None:
    for row in range(first, last):
        target, total = integer(targets, row), 0.0
        for i in range(integer(starts, target), integer(starts, target + 1)):
            z = _node(x + 4 * row * d, weight, bias, d, integer(points, i))
            total += _side(-z if integer(codes, i) != 0 else z)
        _put_float(out, row, total)


@kernel
def _spread(x: int, m: int, order: int, left: int, right: int, out: int, own: int, first: int, last: int) -> None:
    logs = own + 8 * m
    for row in range(first, last):
        _sides(x + 4 * row * m, own, own + 4 * m, m)
        _put_double(logs, integer(order, 0), 0.0)
        for i in range(m):
            node = integer(order, i)
            here = _double(logs, node)
            for side in range(2):
                child = integer(right if side == 1 else left, node)
                log = here + _float(own + 4 * m * side, node)
                if child < 0:
                    _put_float(out + 4 * row * (m + 1), -1 - child, log)
                else:
                    _put_double(logs, child, log)


@kernel
def _best(
    x: int, weight: int, bias: int, d: int, root: int, left: int, right: int, ids: int, out: int, stack: int, first: int,
    last: int,
) -> None:  # fmt: skip
    """Down the more probable side first, then wherever what is left is not below what was found: a child is at most as probable.

    stack: pairs of a logarithm and a child.
    """
    for row in range(first, last):
        best, most, high = -1, 0.0, 1
        _put_double(stack, 0, 0.0)
        put_integer(stack, 1, root)
        while high > 0:
            high -= 1
            here, child = _double(stack, 2 * high), integer(stack, 2 * high + 1)
            if best >= 0 and here < most:
                continue
            if child < 0:
                if best < 0 or here > most or (here == most and -1 - child < best):
                    best, most = -1 - child, here
                continue
            z = _node(x + 4 * row * d, weight, bias, d, child)
            for turn in range(2):
                to_left = (z > 0) == (turn == 1)
                _put_double(stack, 2 * high, here + _side(z if to_left else -z))
                put_integer(stack, 2 * high + 1, integer(left if to_left else right, child))
                high += 1
        put_integer(ids, row, best)
        _put_float(out, row, most)


def tree_log_prob(
    x__bd: np.ndarray,
    weight__md: np.ndarray,
    bias__m: np.ndarray | None,
    targets__b: np.ndarray,
    starts__s: np.ndarray,
    points__p: np.ndarray,
    codes__p: np.ndarray,
    out__b: np.ndarray,
) -> None:
    """out[b] = log of the probability of class targets[b], a sum over its path; ShapeError if there is no such class."""
    (rows, d), count = x__bd.shape, len(starts__s) - 1
    targets__b = targets__b.copy()  # of the caller, who may change them after they were looked at
    wrong = targets__b[(targets__b < 0) | (targets__b >= count)]
    if wrong.size:
        raise ShapeError(f"tree_log_prob: class {wrong[0]} is out of range: expected 0 to {count - 1}")
    places = [address(a) for a in (targets__b, starts__s, points__p, codes__p, out__b)]
    given = address(x__bd), address(weight__md), address(bias__m), d, *places
    work = rows * (len(points__p) / max(count, 1)) * (2.0 * d + NODE_COST)
    spread(rows, work, lambda first, last: _path(*given, first, last))


def tree_distribution(
    x__bm: np.ndarray, order__m: np.ndarray, left__m: np.ndarray, right__m: np.ndarray, out__bn: np.ndarray
) -> None:
    """out[b, c] = log of the probability of class c, from the sums of all nodes; in `order` a node is after the one above."""
    rows, m = x__bm.shape
    if not m:
        out__bn[...] = 0
        return
    given = address(x__bm), m, address(order__m), address(left__m), address(right__m), address(out__bn)

    def run(first: int, last: int) -> None:
        own = scratch(4 * m)
        _spread(*given, address(own), first, last)

    spread(rows, NODE_COST * rows * m, run)


def tree_argmax(
    x__bd: np.ndarray,
    weight__md: np.ndarray,
    bias__m: np.ndarray | None,
    order__m: np.ndarray,
    left__m: np.ndarray,
    right__m: np.ndarray,
    ids__b: np.ndarray,
    out__b: np.ndarray,
    depth: int,
) -> None:
    """ids[b] = the most probable class, the lowest of equals, out[b] the log of its probability; `depth`: of the tree."""
    rows, d = x__bd.shape
    root = int(order__m[0]) if len(order__m) else -1
    places = [address(a) for a in (left__m, right__m, ids__b, out__b)]
    given = address(x__bd), address(weight__md), address(bias__m), d, root, *places

    def run(first: int, last: int) -> None:
        own = scratch(4 * (depth + 2))
        _best(*given, address(own), first, last)

    spread(rows, 4.0 * rows * (depth + 1) * (2.0 * d + NODE_COST), run)

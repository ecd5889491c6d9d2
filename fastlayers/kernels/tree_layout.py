"""Stores decision trees for the kernel `tree_ensemble`: checked once, every comparison made ``x <= split``. Runs no kernel.

A tree of `trees_of` is made of nodes and leaves. Children are indices: 0 and above is a node, below 0 is leaf -1 - child. A node
of one of the seven modes becomes nodes that all ask ``x <= split``, which is exact in floating point:

- ``x < t`` is ``x <= p``, p being the next number below t; ``x >= t`` and ``x > t`` are these two with the children exchanged;
- ``x == t`` is ``x <= t`` and not ``x <= p``: two nodes; membership in a set is a search tree over the values of the set.

So a walk needs no branch per node. Where a missing value (NaN) goes is a third child, which only rows that have one look at; it
is one of the other two, or below them, so the depth of a tree bounds its ways as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._distinct import distinct
from .._tuples import NamedTuple
from ..errors import ShapeError
from .fits import fits

__all__ = [
    "AVERAGE",
    "DEEPEST",
    "DENSE",
    "LEQ",
    "MAX",
    "MEMBER",
    "MIN",
    "SINGLE",
    "SPARSE",
    "SUM",
    "Trees",
    "check_fit",
    "trees_of",
]

# Modes of nodes, and aggregate functions, as ai.onnx.ml 5 values them.
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
AVERAGE, SUM, MIN, MAX = range(4)
# Leaves: one weight each, all for target 0; one for every target, in order; or any pairs.
SINGLE, DENSE, SPARSE = range(3)
_MOST = (1 << 31) - 2  # children are int32
DEEPEST = 1 << 16  # a file of a chain could make looking at it slow


class Trees(NamedTuple):
    """Trees as kernels walk them; arrays are read-only. m nodes, l leaves, r trees, w weights.

    `split` has the dtype of x. `child` (m, 2): where x <= split holds, and where not. `missing` (m,): where NaN goes.
    `depth` (r,): nodes of the longest way through each tree.
    """

    roots: np.ndarray
    depth: np.ndarray
    feature: np.ndarray
    split: np.ndarray
    child: np.ndarray
    missing: np.ndarray
    start: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    targets: int
    features: int
    kind: int

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self if isinstance(array, np.ndarray))


def trees_of(
    roots: np.ndarray,
    feature: np.ndarray,
    split: np.ndarray,
    mode: np.ndarray,
    yes: np.ndarray,
    no: np.ndarray,
    missing: np.ndarray,
    members: np.ndarray | None,
    start: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    targets: int,
) -> Trees:
    """The trees, checked.

    Args:
        roots: (r,) the child that each tree begins with.
        feature, split, mode, yes, no: (m,) of each node the column of x, what it is compared with, how, and the children for
            true and false.
        missing: (m,) whether NaN goes where true does, whatever the comparison says of it.
        members: for each node of mode MEMBER, in their order, the values of its set and a NaN; None if there are none.
        start: (l + 1,) where the weights of each leaf begin. `target`, `weight`: (w,) what each is added to, and how much.
        targets: the number of sums.

    Raises:
        ShapeError: sizes differ, a number is out of range, or something is reached in two ways, so that it is no tree.
    """
    nodes, leaves = len(feature), len(start) - 1
    _check_sizes(nodes, (feature, split, mode, yes, no, missing), (start, target, weight), targets)
    children = np.concatenate([yes, no, roots]).astype(np.int64)
    if children.size and (children.min() < -leaves or children.max() >= nodes):
        raise ShapeError(
            f"tree_ensemble: children and roots are from {children.min()} to {children.max()}: expected {-leaves} (the last of "
            f"{leaves} leaves) to {nodes - 1} (the last of {nodes} nodes)"
        )
    inner = children[children >= 0]
    if inner.size and np.bincount(inner).max() > 1:
        raise ShapeError("tree_ensemble: a node is reached in more than one way: expected trees, without cycles")
    if nodes and (mode.min() < LEQ or mode.max() > MEMBER):
        raise ShapeError(f"tree_ensemble: modes are from {mode.min()} to {mode.max()}: expected 0 to {MEMBER}")
    if nodes and (feature.min() < 0 or feature.max() > _MOST):
        raise ShapeError(f"tree_ensemble: features are from {feature.min()} to {feature.max()}: expected 0 to {_MOST}")
    missing = missing != 0
    # A set's mode says nothing else of NaN: it is no member of any.
    nan = np.where(missing | (mode == NEQ), yes, no)
    split, left, right, feature, nan = _as_leq(feature, split, mode, yes, no, nan, members)
    if len(feature) > _MOST or leaves > _MOST:
        raise ShapeError(f"tree_ensemble: {len(feature)} nodes and {leaves} leaves: expected at most {_MOST}")
    child = np.stack([left, right], axis=1).astype(np.int32)
    made = Trees(
        roots.astype(np.int32), _depths(roots, child), feature.astype(np.int32), split, child, nan.astype(np.int32),
        start.astype(np.int64), target.astype(np.int32), weight, targets, int(feature.max(initial=-1)) + 1,
        _kind(start, target, targets),
    )  # fmt: skip
    for array in made:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return made


def check_fit(trees: Trees, x: tuple[int, ...], base: tuple[int, ...] | None, out: tuple[int, ...]) -> None:
    """Raises ShapeError unless arrays of these shapes fit the trees and each other."""
    fits("tree_ensemble", (trees.targets,), (x, base, out))
    if x[1] < trees.features:
        raise ShapeError(f"tree_ensemble: x has shape {x}: expected (rows, columns), at least {trees.features} columns")


def _check_sizes(nodes: int, of_nodes: tuple[np.ndarray, ...], of_leaves: tuple[np.ndarray, ...], targets: int) -> None:
    if any(a.ndim != 1 or len(a) != nodes for a in of_nodes):
        raise ShapeError(
            f"tree_ensemble: the arrays of nodes have shapes {[a.shape for a in of_nodes]}: expected vectors of one length"
        )
    start, target, weight = of_leaves
    if any(a.ndim != 1 for a in of_leaves) or len(target) != len(weight):
        raise ShapeError(f"tree_ensemble: the arrays of leaves have shapes {[a.shape for a in of_leaves]}: expected vectors")
    if not len(start) or start[0] != 0 or start[-1] != len(weight) or (np.diff(start) < 0).any():
        raise ShapeError(f"tree_ensemble: starts of leaves do not ascend from 0 to {len(weight)}, the number of weights")
    if targets < 0 or (target.size and not 0 <= target.min() <= target.max() < targets):
        raise ShapeError(f"tree_ensemble: targets of leaves are not all from 0 to {targets - 1}")


def _kind(start: np.ndarray, target: np.ndarray, targets: int) -> int:
    leaves = len(start) - 1
    counts = np.diff(start)
    if targets == 1 and (counts == 1).all():
        return SINGLE
    if leaves and (counts == targets).all() and (target.reshape(leaves, targets) == np.arange(targets)).all():
        return DENSE
    return SPARSE


def _depths(roots: np.ndarray, child: np.ndarray) -> np.ndarray:
    """Nodes of the longest way through each tree, all trees at once, level by level."""
    depth = np.zeros(len(roots), np.int32)
    tree, at = np.arange(len(roots)), roots.astype(np.int64)
    while True:
        inner = at >= 0
        tree, at = tree[inner], at[inner]
        if not at.size:
            return depth
        if depth[tree[0]] >= DEEPEST:
            raise ShapeError(f"tree_ensemble: a tree is more than {DEEPEST} nodes deep")
        depth[tree] += np.bincount(tree, minlength=len(roots))[tree] > 0
        tree, at = np.repeat(tree, 2), child[at].reshape(-1).astype(np.int64)


# ---- every comparison as x <= split ----------------------------------------------------------------------------------


def _as_leq(
    feature: np.ndarray,
    split: np.ndarray,
    mode: np.ndarray,
    yes: np.ndarray,
    no: np.ndarray,
    nan: np.ndarray,
    members: np.ndarray | None,
) -> tuple[np.ndarray, ...]:
    """split, left, right, feature and nan of nodes that all ask x <= split."""
    below = np.nextafter(split, np.asarray(-np.inf, split.dtype))
    # Nothing is below -inf; a NaN is never reached.
    below = np.where(split == -np.inf, np.asarray(np.nan, split.dtype), below).astype(split.dtype)
    left, right = yes.astype(np.int64).copy(), no.astype(np.int64).copy()
    swapped = (mode == GTE) | (mode == GT)
    left[swapped], right[swapped] = no[swapped], yes[swapped]
    asked = np.where((mode == LT) | (mode == GTE), below, split)
    # Comparisons with NaN are false, of two that differ true; exchanged children would make them the opposite. The other child
    # stays one, which a missing value may take, and what is below it counts in the depth.
    undefined = (mode < MEMBER) & np.isnan(split)
    side, other = np.where(mode == NEQ, yes, no), np.where(mode == NEQ, no, yes)
    left, right = np.where(undefined, side, left), np.where(undefined, other, right)
    asked = np.where(undefined, np.asarray(np.inf, split.dtype), asked)
    equal = ((mode == EQ) | (mode == NEQ)) & ~undefined
    # x <= t, then on that side x <= p: what is not, is t.
    at = np.flatnonzero(equal)
    same = np.where(mode[at] == EQ, yes[at], no[at])
    other = np.where(mode[at] == EQ, no[at], yes[at])
    second = len(split) + np.arange(len(at))
    left[at], right[at] = second, other
    asked = np.concatenate([asked, below[at]])
    left, right = np.concatenate([left, other]), np.concatenate([right, same])
    feature, nan = np.concatenate([feature, feature[at]]), np.concatenate([nan, nan[at]])
    sets = np.flatnonzero(mode == MEMBER)
    if not len(sets):
        return asked, left, right, feature, nan
    values = _sets(members, len(sets))
    more: list[tuple[Any, int, int, int, int]] = []
    base = len(asked)
    for node, found in zip(sets.tolist(), values, strict=True):
        _search(node, distinct(found.astype(split.dtype))[0], int(yes[node]), int(no[node]), base, more, (asked, left, right))
        for i in range(len(more)):
            if more[i][3] < 0:
                more[i] = (*more[i][:3], int(feature[node]), int(nan[node]))
    if more:
        columns = list(zip(*more, strict=True))
        asked = np.concatenate([asked, np.asarray(columns[0], split.dtype)])
        left, right, feature, nan = (
            np.concatenate([old, np.asarray(new, np.int64)])
            for old, new in zip((left, right, feature, nan), columns[1:], strict=True)
        )
    return asked, left, right, feature, nan


def _sets(members: np.ndarray | None, count: int) -> list[np.ndarray]:
    """The values of each set, which are one after the other, a NaN behind each set."""
    given = np.zeros(0, np.float32) if members is None else members.reshape(-1)
    ends = np.flatnonzero(np.isnan(given))
    if len(ends) != count or (count and ends[-1] != len(given) - 1):
        raise ShapeError(
            f"tree_ensemble: membership_values has {len(ends)} sets: expected {count}, one per node of mode MEMBER, "
            "each ending in NaN"
        )
    return [part[:-1] for part in np.split(given, ends + 1)[:-1]]


def _search(
    node: int,
    values: np.ndarray,
    yes: int,
    no: int,
    base: int,
    more: list[tuple[Any, int, int, int, int]],
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """A search tree for ascending `values` in place of a node; nodes next to it go to `more`, without their feature."""
    asked, left, right = arrays
    below = np.nextafter(values, np.asarray(-np.inf, values.dtype))
    # Borders between what is a member and what is not, alternately: x <= border i is asked.
    borders = np.stack([below, values], axis=1).reshape(-1)
    borders = np.where(
        np.isnan(borders) | (np.repeat(values, 2) == -np.inf) & (np.arange(len(borders)) % 2 == 0), np.nan, borders
    )
    if not len(borders):
        asked[node], left[node], right[node] = np.inf, no, yes  # which a missing value may take
        return

    def build(low: int, high: int, at: int) -> None:
        """Nodes for the intervals `low` .. `high`, of which every odd one is of members, the topmost at place `at`."""
        stack = [(low, high, at)]
        while stack:
            low, high, at = stack.pop()
            middle = (low + high) // 2
            children = []
            for a, b in ((low, middle), (middle + 1, high)):
                if a == b:
                    children.append(yes if a % 2 else no)
                    continue
                children.append(base + len(more))
                more.append((0, 0, 0, -1, 0))
                stack.append((a, b, children[-1]))
            border = borders[middle]
            if at == node:
                asked[node], left[node], right[node] = border, *children
            else:
                more[at - base] = (border, *children, -1, 0)

    build(0, len(borders), node)

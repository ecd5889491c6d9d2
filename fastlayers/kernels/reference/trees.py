"""Ensembles of decision trees: every tree's leaf for a row, and the sums, means, least or largest of what the leaves say."""

from __future__ import annotations

import numpy as np

from ..tree_layout import AVERAGE, MAX, MIN, Trees, check_fit, trees_of

__all__ = ["leaves_of", "tree_ensemble", "tree_ensemble_pack"]


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
) -> Trees:
    """The trees, checked and laid out; see `tree_layout.trees_of`. `size`: the number of targets."""
    return trees_of(roots, feature, split, modes, yes, no, missing, members, starts, targets, weight, size)


def leaves_of(trees: Trees, x: np.ndarray, tree: int) -> np.ndarray:
    """The leaf at which each row of x ends in a tree."""
    at = np.full(len(x), trees.roots[tree], np.int64)
    rows = np.arange(len(x))
    while True:
        rows = rows[at[rows] >= 0]
        if not rows.size:
            return -1 - at
        here = at[rows]
        value = x[rows, trees.feature[here]]
        taken = np.where(value <= trees.split[here], trees.child[here, 0], trees.child[here, 1])
        at[rows] = np.where(np.isnan(value), trees.missing[here], taken)


def tree_ensemble(x__mk: np.ndarray, packed: Trees, base__n: np.ndarray | None, out__mn: np.ndarray, op: int) -> None:
    """out[m, n] = base[n] + the sum (`op` SUM; AVERAGE, MIN, MAX) of what the leaves that row m of x reaches have for target n.

    Sums are of doubles, tree by tree in their order. A target that no leaf says anything of is 0. x and out have the dtype of the
    splits, float32 or float64; base is float64.
    """
    check_fit(packed, x__mk.shape, None if base__n is None else base__n.shape, out__mn.shape)
    rows = len(x__mk)
    sums = np.zeros((rows, packed.targets))
    seen = np.zeros((rows, packed.targets), bool)
    function = np.minimum if op == MIN else np.maximum
    counts = np.diff(packed.start)
    for tree in range(len(packed.roots)):
        leaf = leaves_of(packed, x__mk, tree)
        for i in range(int(counts[leaf].max(initial=0))):
            row = np.flatnonzero(counts[leaf] > i)
            at = packed.start[leaf[row]] + i
            target, weight = packed.target[at], packed.weight[at].astype(np.float64)
            if op in (MIN, MAX):
                weight = np.where(seen[row, target], function(sums[row, target], weight), weight)
                sums[row, target], seen[row, target] = weight, True
            else:
                sums[row, target] += weight
    if op == AVERAGE:
        sums /= max(len(packed.roots), 1)
    if base__n is not None:
        sums += base__n
    out__mn[...] = sums

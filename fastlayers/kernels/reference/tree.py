"""Classes at the leaves of a binary tree in numpy: computed in float64, rounded to float32 once at the end.

A node with sum z goes left with probability 1 / (1 + exp(-z)), else right. A child of 0 and above is a node, one below 0 is class
-1 - child. `points` and `codes` from `starts[c]` to `starts[c + 1]` are the nodes from the root to
class c, and 0 where it goes left.
"""

from __future__ import annotations

import numpy as np

from ...errors import ShapeError

__all__ = ["tree_argmax", "tree_distribution", "tree_log_prob"]


def _sides(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the probabilities of left and right."""
    with np.errstate(all="ignore"):
        return -np.logaddexp(0, -z), -np.logaddexp(0, z)


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
    count = len(starts__s) - 1
    wrong = targets__b[(targets__b < 0) | (targets__b >= count)]
    if wrong.size:
        raise ShapeError(f"tree_log_prob: class {wrong[0]} is out of range: expected 0 to {count - 1}")
    for i, target in enumerate(targets__b):
        path = slice(starts__s[target], starts__s[target + 1])
        nodes = points__p[path]
        with np.errstate(all="ignore"):
            z = weight__md[nodes].astype(np.float64) @ x__bd[i] + (0 if bias__m is None else bias__m[nodes])
        left, right = _sides(z)
        out__b[i] = np.where(codes__p[path] == 0, left, right).sum()


def tree_distribution(
    x__bm: np.ndarray, order__m: np.ndarray, left__m: np.ndarray, right__m: np.ndarray, out__bn: np.ndarray
) -> None:
    """out[b, c] = log of the probability of class c, from the sums of all nodes; in `order` a node is after the one above."""
    sides = _sides(x__bm.astype(np.float64))
    if not len(order__m):
        out__bn[...] = 0
        return
    logs = np.zeros(x__bm.shape)
    for node in order__m:
        for child, side in zip((left__m[node], right__m[node]), sides, strict=True):
            value = logs[:, node] + side[:, node]
            if child < 0:
                out__bn[:, -1 - child] = value
            else:
                logs[:, child] = value


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
    with np.errstate(all="ignore"):
        z = x__bd.astype(np.float64) @ weight__md.T.astype(np.float64) + (0 if bias__m is None else bias__m)
    logs = np.empty((len(x__bd), len(order__m) + 1))
    tree_distribution(z, order__m, left__m, right__m, logs)
    ids__b[...] = logs.argmax(axis=1)
    out__b[...] = logs.max(axis=1)

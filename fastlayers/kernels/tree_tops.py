"""The topmost storeys of decision trees as whole binary trees, all of whose questions vectors ask at once; see csrc/tree_tops.h.

A top of s storeys has nodes 1 to 2^s - 1, node i's children being 2 i and 2 i + 1, and 2^s ways out. Node i asks ``x <= split``,
whose yes leads to 2 i + 1. What is below a leaf asks something too, but all its ways out lead to the leaf.
"""

from __future__ import annotations

import numpy as np

from .._tuples import NamedTuple
from .tree_layout import Trees

__all__ = ["COLUMNS", "STOREYS", "Tops", "tops_of"]

STOREYS = 6
COLUMNS = 64
WIDTH = 64  # nodes that there is room for
SPARE = 8  # of these for each leaf that there is, at most: tops of trees that are mostly empty are not worth their memory


class Tops(NamedTuple):
    """Tops of r trees. Arrays are read-only.

    `feature` and `split` (r, WIDTH), `missing` (r,): bit i says that NaN is a yes at node i. `exits` (r, 2^storeys): the child,
    as trees have them, that each way out leads to.
    """

    feature: np.ndarray
    split: np.ndarray
    missing: np.ndarray
    exits: np.ndarray
    storeys: int

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self if isinstance(array, np.ndarray))


def tops_of(trees: Trees) -> Tops | None:
    """The tops, or None where there is nothing to gain or a node leads NaN to none of its children."""
    count, nodes, leaves = len(trees.roots), len(trees.feature), len(trees.start) - 1
    storeys = min(int(trees.depth.max(initial=0)), STOREYS)
    if not storeys or trees.split.dtype != np.float32 or trees.features > COLUMNS or count * WIDTH > SPARE * leaves:
        return None
    if nodes and not (trees.missing[:, None] == trees.child).any(axis=1).all():
        return None
    feature, split = np.zeros((count, WIDTH), np.uint8), np.zeros((count, WIDTH), np.float32)
    missing = np.zeros(count, np.uint64)
    at = trees.roots.astype(np.int64)[:, None]
    for storey in range(storeys):
        first = 1 << storey
        tree, place = np.nonzero(at >= 0)
        node = at[tree, place]
        yes, no = at.copy(), at.copy()
        yes[tree, place], no[tree, place] = trees.child[node].T
        feature[tree, first + place], split[tree, first + place] = trees.feature[node], trees.split[node]
        joins = trees.missing[node] == trees.child[node, 0]
        np.bitwise_or.at(missing, tree[joins], np.uint64(1) << (first + place[joins]).astype(np.uint64))
        at = np.stack([no, yes], axis=2).reshape(count, 2 * first)
    made = Tops(feature, split, missing, at.astype(np.int32), storeys)
    for array in made:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return made

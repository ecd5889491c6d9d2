"""Hierarchical softmax."""

from __future__ import annotations

import numpy as np

from fastlayers.functional._tree_classes import ClassTree

from ._base import E, Example

_TREE = ClassTree.huffman([9, 1, 4, 2, 2])
_ONE = ClassTree.balanced(1)
_PATHS = (_TREE.starts, _TREE.points, _TREE.codes)
_CHILDREN = (_TREE.order, _TREE.left, _TREE.right)

EXAMPLES: list[Example] = [
    E("hierarchical_log_prob", (3, 6), (4, 6), (4,), np.array([0, 4, 1]), *_PATHS),
    E("hierarchical_log_prob", (2, 2, 6), (4, 6), None, np.array([[0, 4], [2, 3]], np.int32), *_PATHS),
    E("hierarchical_log_prob", (6,), (4, 6), None, np.array(1), *_PATHS),
    E("hierarchical_log_prob", (2, 3), (0, 3), None, np.array([0, 0]), _ONE.starts, _ONE.points, _ONE.codes),
    E("hierarchical_log_softmax", (3, 2, 4), *_CHILDREN),
    E("hierarchical_log_softmax", (0, 4), *_CHILDREN),
    E("hierarchical_log_softmax", (2, 0), _ONE.order, _ONE.left, _ONE.right),
]

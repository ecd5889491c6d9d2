"""Binary trees with classes at their leaves, as hierarchical softmax takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arguments import checked
from .._distinct import distinct
from ..errors import ArgumentError, DTypeError, ShapeError
from ..graph.arrays import as_array, as_int64
from ..ir.checks import fits, integer, sequence

__all__ = ["ClassTree"]


class ClassTree:
    """A binary tree whose leaves are classes and whose nodes are rows of a matrix; see `HierarchicalSoftmax`.

    Made by `huffman`, `balanced` or `from_paths`. A child of 0 and above is a node, one below 0 is class ``-1 - child``.

    Attributes:
        left: child of each node where the code is 0, ``(n - 1,)``.
        right: child of each node where the code is 1, ``(n - 1,)``.
        order: the nodes, each after the one above it.
        starts: where the path of each class begins in `points` and `codes`, and the end, ``(n + 1,)``.
        points: the nodes from the root to each class, one class after the other.
        codes: 0 where the path goes left at that node, 1 where it goes right.
        depth: the number of nodes of the longest path.

    >>> import fastlayers as fl
    >>> tree = fl.ClassTree.huffman([10, 1, 2, 5])
    >>> [len(tree.path(c)[0]) for c in range(4)]
    [1, 3, 3, 2]
    """

    __slots__ = ("codes", "depth", "left", "order", "points", "right", "starts")

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        self.left, self.right = (as_int64(a, "ClassTree", name).copy() for a, name in ((left, "left"), (right, "right")))
        if self.left.ndim != 1 or self.left.shape != self.right.shape:
            raise ShapeError(f"ClassTree: left has shape {self.left.shape}, right {self.right.shape}: expected (nodes,) of both")
        nodes = len(self.left)
        above = np.full(nodes, -1, np.int64)
        code = np.zeros(nodes, np.int64)
        leaf_above, leaf_code = np.full(nodes + 1, -1, np.int64), np.zeros(nodes + 1, np.int64)
        for side, children in enumerate((self.left, self.right)):
            inner = children >= 0
            if np.any(children >= nodes) or np.any(children < -1 - nodes):
                raise ArgumentError(f"ClassTree: a child is out of range: expected {-1 - nodes} to {nodes - 1}")
            above[children[inner]], code[children[inner]] = np.nonzero(inner)[0], side
            leaf_above[-1 - children[~inner]], leaf_code[-1 - children[~inner]] = np.nonzero(~inner)[0], side
        given = np.concatenate([self.left, self.right])
        roots = np.nonzero(above < 0)[0]
        if nodes and (len(distinct(given)[0]) != 2 * nodes or len(roots) != 1):
            raise ArgumentError("ClassTree: the nodes are no tree: expected one root, all else below one node each")
        # Level by level from the root; how many nodes are above each.
        level, found, deep = roots, [roots], np.zeros(nodes, np.int64)
        while level.size:
            children = np.stack([self.left[level], self.right[level]], axis=1)
            parents = np.broadcast_to(level[:, None], children.shape)[children >= 0]
            level = children[children >= 0]
            deep[level] = deep[parents] + 1
            found.append(level)
        self.order = np.concatenate(found).astype(np.int64)
        if len(self.order) != nodes:
            raise ArgumentError("ClassTree: the nodes are no tree: some are not below the root")
        lengths = np.where(leaf_above >= 0, deep[leaf_above] + 1, 0) if nodes else np.zeros(1, np.int64)
        self.depth = int(lengths.max())
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.points, self.codes = np.empty(self.starts[-1], np.int64), np.empty(self.starts[-1], np.int64)
        at, bit, place = leaf_above.copy(), leaf_code.copy(), self.starts[1:] - 1
        while np.any(at >= 0):  # all classes at once, from the leaves up
            alive = at >= 0
            self.points[place[alive]], self.codes[place[alive]] = at[alive], bit[alive]
            bit[alive], at[alive] = code[at[alive]], above[at[alive]]
            place = place - 1
        for name in ("left", "right", "order", "starts", "points", "codes"):
            getattr(self, name).flags.writeable = False

    @property
    def num_classes(self) -> int:
        """The number of leaves, one more than there are nodes."""
        return len(self.left) + 1

    def path(self, target: int) -> tuple[np.ndarray, np.ndarray]:
        """The nodes from the root to a class and the codes there: word2vec's ``point`` and ``code``."""
        target = integer("ClassTree.path", "target", target)
        if not 0 <= target < self.num_classes:
            raise ArgumentError(f"ClassTree.path: target is {target}: expected 0 to {self.num_classes - 1}")
        part = slice(self.starts[target], self.starts[target + 1])
        return self.points[part], self.codes[part]

    @classmethod
    @checked
    def balanced(cls, num_classes: int) -> ClassTree:
        """Paths whose lengths differ by one at most: node i has the children 2 i + 1 and 2 i + 2; classes follow nodes."""
        nodes = integer("ClassTree.balanced", "num_classes", num_classes, 1) - 1
        # The arrays that are made on the way, and the path of each class.
        fits("ClassTree.balanced", (16 + 2 * nodes.bit_length()) * nodes, np.int64, f"a tree of {nodes + 1} classes")
        children = 2 * np.arange(nodes)[:, None] + [1, 2]
        children = np.where(children < nodes, children, -1 - (children - nodes))
        return cls(children[:, 0], children[:, 1])

    @classmethod
    @checked
    def huffman(cls, counts: Any) -> ClassTree:
        """The tree with the least expected path for classes that come up as often as `counts` says: word2vec's own.

        Nodes are numbered as they are made, the root last; classes of equal counts keep their order.
        """
        array = as_array(counts, "ClassTree.huffman", "counts")
        if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf":
            raise ShapeError(f"ClassTree.huffman: counts has shape {array.shape}: expected one number a class, at least one")
        if not np.all(array >= 0) or not np.all(np.isfinite(array)):
            raise ArgumentError("ClassTree.huffman: counts has a number below 0, or none: expected counts of at least 0")
        n = len(array)
        order = np.argsort(-array.astype(np.float64), kind="stable")
        weights = [float(array[c]) for c in order] + [float("inf")] * (n - 1)
        names = [-1 - int(c) for c in order] + list(range(n - 1))
        left, right = np.zeros(n - 1, np.int64), np.zeros(n - 1, np.int64)
        # The two least are at the end of the classes or at the beginning of the nodes that were made and not yet used.
        classes, made = n - 1, n
        for node in range(n - 1):
            picked = []
            for _ in range(2):
                if classes >= 0 and weights[classes] < weights[made]:
                    picked.append(classes)
                    classes -= 1
                elif made < n + node:
                    picked.append(made)
                    made += 1
                else:
                    picked.append(classes)
                    classes -= 1
            weights[n + node] = weights[picked[0]] + weights[picked[1]]
            left[node], right[node] = names[picked[0]], names[picked[1]]
        return cls(left, right)

    @classmethod
    @checked
    def from_paths(cls, points: Sequence[Any], codes: Sequence[Any]) -> ClassTree:
        """The tree of word2vec's ``point`` and ``code`` of every class: the nodes from the root on, and the sides taken there."""
        points, codes = (
            sequence("ClassTree.from_paths", name, given if not isinstance(given, np.ndarray) else [*np.atleast_1d(given)])
            for name, given in (("points", points), ("codes", codes))
        )
        if len(points) != len(codes) or not len(points):
            raise ArgumentError(f"ClassTree.from_paths: {len(points)} points, {len(codes)} codes: expected one of each a class")
        nodes = len(points) - 1
        children = np.full((nodes, 2), np.iinfo(np.int64).min, np.int64)
        for target, (given, bits) in enumerate(zip(points, codes, strict=True)):
            path, sides = (as_int64(v, "ClassTree.from_paths", name) for v, name in ((given, "points"), (bits, "codes")))
            if (
                path.shape != sides.shape
                or path.ndim != 1
                or np.any((path < 0) | (path >= nodes))
                or np.any((sides < 0) | (sides > 1))
            ):
                raise ArgumentError(
                    f"ClassTree.from_paths: class {target}: expected nodes 0 to {nodes - 1}, as many codes 0 or 1"
                )
            below = [*path[1:].tolist(), -1 - target]
            for node, side, child in zip(path.tolist(), sides.tolist(), below, strict=True):
                if children[node, side] not in (np.iinfo(np.int64).min, child):
                    raise ArgumentError(f"ClassTree.from_paths: class {target}: node {node} has another child at {side}")
                children[node, side] = child
        if np.any(children == np.iinfo(np.int64).min):
            raise ArgumentError("ClassTree.from_paths: a node has one child only: expected a full tree")
        return cls(children[:, 0], children[:, 1])

    def __reduce__(self) -> Any:
        return ClassTree, (self.left, self.right)

    def __repr__(self) -> str:
        return f"ClassTree({self.num_classes} classes, depth {self.depth})"


def checked_tree(name: str, tree: Any) -> ClassTree:
    """The argument `tree`, which must be one."""
    if not isinstance(tree, ClassTree):
        raise DTypeError(f"{name}: tree is of type {type(tree).__name__}: expected a ClassTree")
    return tree

"""Hierarchical softmax: classes at the leaves of a binary tree, whose nodes each decide between two sides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..graph.arrays import as_float32, as_int64, empty, optional_float32
from ..graph.ops import op
from ..graph.symbol import Symbol
from ..ir.checks import same_shape
from ..ir.graph import Shape
from ..kernels import dispatch
from ..rules.weights import tree_rule
from ._linear import linear
from ._recorded import same
from ._tree_classes import ClassTree, checked_tree

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["hierarchical_argmax", "hierarchical_log_prob", "hierarchical_log_softmax"]


def weights_rule(name: str, x: Shape, weight: Shape, bias: Shape | None, nodes: int) -> None:
    """Checks x and the weights of the nodes."""
    tree_rule(name, x, weight, bias, nodes)


def hierarchical_log_prob(x: Tensor, targets: Tensor, weight: Tensor, tree: ClassTree, bias: Tensor | None = None) -> np.ndarray:
    """Logarithm of the probability of one class each: the sum over its path of ``log sigmoid(+-(weight[node] x + bias[node]))``.

    The sign is + where the path goes left (code 0) and - where it goes right, as in word2vec. The work is that of the path: for a
    Huffman tree the logarithm of the number of classes on average, or less.

    Args:
        x: ``(..., in)``, any real dtype.
        targets: integers, the classes, of the shape of x without its last axis.
        weight: a row for each node, ``(n - 1, in)``: word2vec's ``syn1``.
        tree: n classes.
        bias: ``(n - 1,)`` or None.

    Returns:
        float32, the shape of targets.

    Raises:
        ArgumentError: shapes do not fit the tree, or a target is no class of it.
        DTypeError: targets are no integers, or `tree` is none.

    >>> import numpy as np, fastlayers as fl
    >>> tree = fl.ClassTree.balanced(4)
    >>> np.exp(fl.functional.hierarchical_log_prob([[1.0]], [2], [[0.0], [0.0], [0.0]], tree))
    array([0.25], dtype=float32)
    """
    tree = checked_tree("hierarchical_log_prob", tree)
    result: np.ndarray = _tree_log_prob(x, weight, bias, targets, tree.starts, tree.points, tree.codes)
    return result


def log_prob_rule(
    x: Shape, weight: Shape, bias: Shape | None, targets: Shape, starts: Shape, points: Shape, codes: Shape
) -> Shape:
    """Checks the shapes of `hierarchical_log_prob` and returns that of its result."""
    weights_rule("hierarchical_log_prob", x, weight, bias, starts[0] - 2)  # type: ignore[operator]
    same_shape("hierarchical_log_prob", "targets", targets, x[:-1], "that of x without its last axis")
    return targets


@op(
    "hierarchical_log_prob",
    "x weight bias targets:int starts:int points:int codes:int",
    log_prob_rule,
    same("TreeLogProb"),
    plans=False,
)
def _tree_log_prob(
    x: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, starts: Tensor, points: Tensor, codes: Tensor
) -> np.ndarray:
    name = "hierarchical_log_prob"
    x, weight, bias = as_float32(x, name, "x"), as_float32(weight, name, "weight"), optional_float32(bias, name, "bias")
    targets, starts, points, codes = (
        as_int64(v, name, argument)
        for v, argument in ((targets, "targets"), (starts, "starts"), (points, "points"), (codes, "codes"))
    )
    log_prob_rule(
        x.shape, weight.shape, None if bias is None else bias.shape, targets.shape, starts.shape, points.shape, codes.shape
    )
    out = empty(targets.shape)
    count = targets.size
    kernel = dispatch.kernel("tree_log_prob")
    try:
        kernel(x.reshape(count, x.shape[-1]), weight, bias, targets.reshape(count), starts, points, codes, out.reshape(count))
    except ShapeError as error:
        raise ArgumentError(str(error).replace("tree_log_prob: class", f"{name}: target")) from None
    return out


def hierarchical_log_softmax(x: Tensor, weight: Tensor, tree: ClassTree, bias: Tensor | None = None) -> np.ndarray:
    """Logarithms of the probabilities of all classes, see `hierarchical_log_prob`; their exponentials sum to 1.

    Args:
        x: ``(..., in)``, any real dtype.
        weight: a row for each node, ``(n - 1, in)``.
        tree: n classes.
        bias: ``(n - 1,)`` or None.

    Returns:
        float32 ``(..., n)``.

    Raises:
        ShapeError: shapes do not fit the tree.
        DTypeError: an argument is not numeric, or `tree` is none.

    >>> import numpy as np, fastlayers as fl
    >>> tree = fl.ClassTree.balanced(3)
    >>> np.exp(fl.functional.hierarchical_log_softmax([1.0], [[0.0], [0.0]], tree))
    array([0.5 , 0.25, 0.25], dtype=float32)
    """
    name = "hierarchical_log_softmax"
    tree = checked_tree(name, tree)
    x, weight = (v if isinstance(v, Symbol) else as_float32(v, name, a) for v, a in ((x, "x"), (weight, "weight")))
    bias = bias if isinstance(bias, Symbol) else optional_float32(bias, name, "bias")
    weights_rule(name, x.shape, weight.shape, None if bias is None else bias.shape, tree.num_classes - 1)
    result: np.ndarray = spread(linear(x, weight, bias), tree.order, tree.left, tree.right)
    return result


@op(
    "hierarchical_log_softmax",
    "x order:int left:int right:int",
    lambda x, order, left, right: (*x[:-1], order[0] + 1),
    same("TreeDistribution"),
)
def spread(x: Tensor, order: Tensor, left: Tensor, right: Tensor) -> np.ndarray:
    """From the sums of all nodes ``(..., n - 1)`` to the logarithms of all classes ``(..., n)``."""
    name = "hierarchical_log_softmax"
    x = as_float32(x, name, "x")
    order, left, right = (as_int64(v, name, "tree") for v in (order, left, right))
    rows = math.prod(x.shape[:-1])
    out = empty((*x.shape[:-1], len(order) + 1))
    dispatch.kernel("tree_distribution")(x.reshape(rows, len(order)), order, left, right, out.reshape(rows, len(order) + 1))
    return out


def hierarchical_argmax(x: Tensor, weight: Tensor, tree: ClassTree, bias: Tensor | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The most probable classes, found without computing the probabilities of all: a branch is left out once it is less likely.

    That is exact: no class below a node is more probable than the node. Of equals the lowest is taken.

    Args:
        x: ``(..., in)``, any real dtype.
        weight: a row for each node, ``(n - 1, in)``.
        tree: n classes.
        bias: ``(n - 1,)`` or None.

    Returns:
        ``(classes, log_prob)``: int64 and float32, each of the shape of x without its last axis.

    Raises:
        ShapeError: shapes do not fit the tree.
        DTypeError: an argument is not numeric, or `tree` is none.
        UnsupportedError: x is symbolic: how much is looked at depends on the values, which cannot be recorded.

    >>> import fastlayers as fl
    >>> tree = fl.ClassTree.balanced(3)
    >>> classes, _ = fl.functional.hierarchical_argmax([1.0], [[2.0], [3.0]], tree)
    >>> int(classes)
    1
    """
    name = "hierarchical_argmax"
    tree = checked_tree(name, tree)
    if any(isinstance(v, Symbol) for v in (x, weight, bias)):
        raise UnsupportedError(f"{name}: cannot be recorded: take hierarchical_log_softmax in compiled functions")
    x, weight, bias = as_float32(x, name, "x"), as_float32(weight, name, "weight"), optional_float32(bias, name, "bias")
    weights_rule(name, x.shape, weight.shape, None if bias is None else bias.shape, tree.num_classes - 1)
    shape = x.shape[:-1]
    count = math.prod(shape)
    classes, out = np.empty(shape, np.int64), empty(shape)
    dispatch.kernel("tree_argmax")(
        x.reshape(count, x.shape[-1]), weight, bias, tree.order, tree.left, tree.right, classes.reshape(count),
        out.reshape(count), tree.depth,
    )  # fmt: skip
    return classes, out


def given_tree(name: str, num_classes: Any, counts: Any, tree: Any) -> ClassTree:
    """The tree that a layer's arguments say."""
    if tree is None:
        tree = ClassTree.balanced(num_classes) if counts is None else ClassTree.huffman(counts)
    elif counts is not None:
        raise ArgumentError(f"{name}: counts and tree are both given: expected one of them, or none")
    found = checked_tree(name, tree)
    if found.num_classes != num_classes:
        raise ArgumentError(f"{name}: num_classes is {num_classes}, the tree has {found.num_classes} classes: expected the same")
    return found

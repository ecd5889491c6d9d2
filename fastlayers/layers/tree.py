"""Hierarchical softmax as a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..functional import hierarchical_argmax, hierarchical_log_prob, hierarchical_log_softmax
from ..functional._linear import pack_linear, run_linear
from ..functional._tree import given_tree, spread, weights_rule
from ..functional._tree_classes import ClassTree
from ..graph.arrays import as_array, as_float32
from ..graph.symbol import Symbol
from ..ir.checks import integer
from ..kernels.table import Activation
from ._base import WithWeight

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["ClassTree", "HierarchicalSoftmax"]


class HierarchicalSoftmax(WithWeight):
    """Probabilities of classes at the leaves of a binary tree; a node decides by ``sigmoid(weight[node] x + bias[node])``.

    One class costs about as many products as the tree is deep there (`log_prob`), and so does the most probable one in most cases
    (`predict`); calling the layer gives the logarithms of all. The probabilities of all classes sum to 1.

    Args:
        in_features: size of the last axis of x.
        num_classes: n, the leaves.
        counts: how often each class comes up: makes word2vec's Huffman tree; None makes a balanced one.
        tree: a `ClassTree` instead.
        bias: whether nodes have a bias; word2vec's have none.

    Tensors: ``weight`` (n - 1, in_features), and ``bias`` (n - 1,). word2vec's ``syn1`` is `weight`, also with a last row
    that belongs to no node.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.HierarchicalSoftmax(2, 4, counts=[8, 4, 2, 1])
    >>> _ = layer.load_state_dict({"weight": np.zeros((3, 2))})
    >>> np.exp(layer(np.ones(2)))
    array([0.5  , 0.25 , 0.125, 0.125], dtype=float32)
    """

    def __init__(
        self, in_features: int, num_classes: int, counts: Any = None, tree: ClassTree | None = None, bias: bool = False
    ) -> None:
        name = "HierarchicalSoftmax"
        self.in_features = integer(name, "in_features", in_features, 0)
        self.num_classes = integer(name, "num_classes", num_classes, 1)
        self.tree = given_tree(name, self.num_classes, counts, tree)
        shapes: dict[str, tuple[int, ...]] = {"weight": (self.num_classes - 1, self.in_features)}
        self._shapes = {**shapes, "bias": (self.num_classes - 1,)} if bias else shapes

    def __call__(self, x: Tensor) -> np.ndarray:
        """Logarithms of the probabilities of all classes, float32 ``(..., num_classes)``, of x ``(..., in_features)``."""
        if isinstance(x, Symbol):
            tensors = self._tensors()
            return hierarchical_log_softmax(x, tensors["weight"], self.tree, tensors.get("bias"))
        packed = self._packed()
        x = as_float32(x, "HierarchicalSoftmax", "x")
        nodes = self.num_classes - 1
        weights_rule("HierarchicalSoftmax", x.shape, self._shapes["weight"], None, nodes)
        tree = self.tree
        found: np.ndarray = spread(run_linear(packed, x, nodes, None, Activation(0)), tree.order, tree.left, tree.right)
        return found

    def log_prob(self, x: Tensor, targets: Tensor) -> np.ndarray:
        """Logarithms of the probabilities of the classes `targets`, one for each row of x; see `hierarchical_log_prob`."""
        tensors = self._tensors()
        return hierarchical_log_prob(x, targets, tensors["weight"], self.tree, tensors.get("bias"))

    def predict(self, x: Tensor) -> np.ndarray:
        """The most probable class for each row of x, int64; exact, without computing all: see `hierarchical_argmax`."""
        tensors = self._tensors()
        return hierarchical_argmax(x, tensors["weight"], self.tree, tensors.get("bias"))[0]

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        return pack_linear(tensors["weight"], tensors.get("bias")), None

    def _convert(self, given: dict[str, Any], prefix: str) -> None:
        if prefix + "syn1" in given and prefix + "weight" not in given:
            syn1 = as_array(given.pop(prefix + "syn1"), "HierarchicalSoftmax.load_state_dict", prefix + "syn1")
            given[prefix + "weight"] = syn1[:-1] if syn1.ndim == 2 and len(syn1) == self.num_classes else syn1

    def _arguments(self) -> str:
        bias = ", bias" if "bias" in self._shapes else ""
        return f"{self.in_features}, {self.num_classes}, depth={self.tree.depth}{bias}"

"""Hierarchical softmax: the logarithms of the probabilities of one class, or of all, at the leaves of a binary tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.reference import tree as reference
from ._base import FLOAT32, INT64, Spec, View, register

__all__: list[str] = []


def _log_prob_infer(n: View) -> list[Spec]:
    return [Spec(n.shape(3), FLOAT32)]


def _log_prob_run(n: View, x: np.ndarray, weight: np.ndarray, bias: Any, targets: np.ndarray, *tree: Any) -> Sequence[np.ndarray]:
    """Inputs: x, weight, bias or nothing, targets, starts, points, codes."""
    out = np.empty(targets.shape, np.float32)
    count = targets.size
    starts, points, codes = tree
    flat = (x.reshape(count, x.shape[-1]), weight, bias, targets.reshape(count))
    reference.tree_log_prob(*flat, starts, points, codes, out.reshape(count))
    return (out,)


def _log_prob_lower(n: View, b: Any) -> Any:
    if not n.float32(0, 1, 2) or any(n.spec(i).dtype != INT64 for i in (3, 4, 5, 6)):
        return False
    x, targets = b.input(0), b.input(3)
    count = math.prod(targets.shape)
    rest = (b.input(i) for i in (4, 5, 6))
    b.call(
        "tree_log_prob", x.view((count, x.shape[-1])), b.input(1), b.optional(2), targets.view((count,)), *rest,
        b.output(0).view((count,)),
    )  # fmt: skip
    return True


def _distribution_infer(n: View) -> list[Spec]:
    x, order = n.shape(0), n.shape(1)
    count = None if order is None or not isinstance(order[0], int) else order[0] + 1
    return [Spec(None if x is None else (*x[:-1], count), FLOAT32)]


def _distribution_run(n: View, x: np.ndarray, *tree: np.ndarray) -> Sequence[np.ndarray]:
    """Inputs: sums of all nodes, order, left, right."""
    out = np.empty((*x.shape[:-1], x.shape[-1] + 1), np.float32)
    rows = math.prod(x.shape[:-1])
    order, left, right = tree
    reference.tree_distribution(x.reshape(rows, x.shape[-1]), order, left, right, out.reshape(rows, x.shape[-1] + 1))
    return (out,)


def _distribution_lower(n: View, b: Any) -> Any:
    if not n.float32(0) or any(n.spec(i).dtype != INT64 for i in (1, 2, 3)):
        return False
    x, nodes = b.input(0), n.sizes(1)[0]
    rows = math.prod(x.shape[:-1])
    tree = (b.input(i) for i in (1, 2, 3))
    b.call("tree_distribution", x.view((rows, nodes)), *tree, b.output(0).view((rows, nodes + 1)))
    return True


register("TreeLogProb", _log_prob_infer, _log_prob_run, _log_prob_lower)
register("TreeDistribution", _distribution_infer, _distribution_run, _distribution_lower)

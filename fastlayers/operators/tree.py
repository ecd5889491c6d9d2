"""Hierarchical softmax: the logarithms of the probabilities of one class, or of all, at the leaves of a binary tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.reference import tree as reference
from ..rules.weights import tree_rule
from ._base import FLOAT32, INT64, Spec, View, register
from ._traits import PLAIN

__all__: list[str] = []


def _within(n: View, i: int, count: int | None, least: int, most: int) -> bool:
    """Checks the vector of integers of input i; whether its values are known, as kernels need them."""
    shape, value = n.shape(i), n.value(i)
    if shape is not None and (len(shape) != 1 or (count is not None and shape[0] != count)):
        raise n.fail(f"input {i} has shape {shape}: expected a vector" + (f" of {count}" if count is not None else ""))
    if value is not None and value.size and not least <= value.min() <= value.max() <= most:
        raise n.fail(f"input {i} has values from {value.min()} to {value.max()}: expected {least} to {most}")
    return value is not None


def _log_prob_infer(n: View) -> list[Spec]:
    x, weight, bias, targets = (n.shape(i) if n.has(i) else None for i in range(4))
    if not all(s is None or all(isinstance(d, int) for d in s) for s in (x, weight, bias, targets)):
        return [Spec(targets, FLOAT32)]
    if weight is not None:
        tree_rule(n.where, x, weight, bias, weight[0] if weight else None)
    if x is not None and weight is not None and targets is not None and x != (*targets, weight[1]):
        raise n.fail(f"x has shape {x}, the targets {targets}, the weights {weight}: expected x to be (*targets, d)")
    return [Spec(targets, FLOAT32)]


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
    points = math.prod(n.sizes(5))
    known = [_within(n, 4, None, 0, points), _within(n, 5, points, 0, n.sizes(1)[0] - 1), _within(n, 6, points, 0, 1)]
    if not all(known):
        return False
    starts: Any = n.value(4)
    if not starts.size or (np.diff(starts) < 0).any():
        raise n.fail("input 4 is empty or falls: expected where the path of each class starts, and an end")
    x, targets = b.input(0), b.input(3)
    count = math.prod(targets.shape)
    rest = (b.input(i) for i in (4, 5, 6))
    b.call(
        "tree_log_prob", x.view((count, x.shape[-1])), b.input(1), b.optional(2), targets.view((count,)), *rest,
        b.output(0).view((count,)),
    )  # fmt: skip
    return True


def _distribution_infer(n: View) -> list[Spec]:
    x = n.shape(0)
    if x is not None and not x:
        raise n.fail("x is a single number: expected the sums of all nodes along its last axis")
    count = None if x is None or not isinstance(x[-1], int) else x[-1] + 1
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
    nodes = n.sizes(0)[-1]
    known = [_within(n, 1, nodes, 0, nodes - 1), *(_within(n, i, nodes, -nodes - 1, nodes - 1) for i in (2, 3))]
    if not all(known):
        return False
    order, left, right = (np.asarray(n.value(i)) for i in (1, 2, 3))
    place, children = np.argsort(order), np.concatenate([left, right])
    inner = children >= 0
    whole = np.array_equal(order[place], np.arange(nodes)) and np.array_equal(
        np.sort(np.append(children, order[:1])), np.arange(-nodes - 1, nodes) if nodes else []
    )
    if not whole or (place[children[inner]] <= np.tile(place, 2)[inner]).any():
        raise n.fail("inputs 1 to 3 make no tree: expected each node once, after the one above it, and each class once")
    x = b.input(0)
    rows = math.prod(x.shape[:-1])
    tree = (b.input(i) for i in (1, 2, 3))
    b.call("tree_distribution", x.view((rows, nodes)), *tree, b.output(0).view((rows, nodes + 1)))
    return True


register("TreeLogProb", _log_prob_infer, _log_prob_run, _log_prob_lower, traits=PLAIN)
register("TreeDistribution", _distribution_infer, _distribution_run, _distribution_lower, traits=PLAIN)

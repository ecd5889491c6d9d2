"""Nodes that become several of simpler operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnsupportedError
from ...graph.ir import Node

if TYPE_CHECKING:
    from .canonical import Make

__all__ = ["lp_normalization", "mean_variance_normalization"]


def lp_normalization(node: Node, version: int, make: Make) -> list[Node]:
    """x / norm(x); a norm of 0 leaves the zeros that x is."""
    (x,), out, p = node.inputs, node.outputs[0], node.attributes.get("p", 2)
    if p not in (1, 2):
        raise UnsupportedError(f"LpNormalization with p={p}: expected 1 or 2")
    axes = make.constant(np.array([node.attributes.get("axis", -1)], np.int64), f"{out}/axes")
    norm, quotient, there = (make.name(f"{out}/{part}") for part in ("norm", "quotient", "there"))
    return [
        Node(f"ReduceL{p}", (x, axes), (norm,), {"keepdims": 1}),
        Node("Div", (x, norm), (quotient,), {}),
        Node("Cast", (norm,), (there,), {"to": 9}),
        Node("Where", (there, quotient, x), node.outputs, {}),
    ]


def mean_variance_normalization(node: Node, version: int, make: Make) -> list[Node]:
    """(x - mean) / (root of the variance + 1e-9)."""
    (x,), out = node.inputs, node.outputs[0]
    axes = make.constant(np.array(node.attributes.get("axes", (0, 2, 3)), np.int64), f"{out}/axes")
    small = make.constant(np.array(1e-9, np.float32), f"{out}/small")
    parts = ("mean", "centred", "square", "variance", "root", "epsilon", "divisor")
    mean, centred, square, variance, root, epsilon, divisor = (make.name(f"{out}/{part}") for part in parts)
    return [
        Node("ReduceMean", (x, axes), (mean,), {"keepdims": 1}),
        Node("Sub", (x, mean), (centred,), {}),
        Node("Mul", (centred, centred), (square,), {}),
        Node("ReduceMean", (square, axes), (variance,), {"keepdims": 1}),
        Node("Sqrt", (variance,), (root,), {}),
        Node("CastLike", (small, x), (epsilon,), {}),
        Node("Add", (root, epsilon), (divisor,), {}),
        Node("Div", (centred, divisor), node.outputs, {}),
    ]

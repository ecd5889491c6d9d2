"""Nodes that become several of simpler operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnsupportedError
from ...ir.graph import Node

if TYPE_CHECKING:
    from ...operators.graphs import GraphBuilder

__all__ = ["batch_moments", "each_normalization", "lp_normalization", "mean_variance_normalization"]


def lp_normalization(node: Node, version: int, make: GraphBuilder) -> list[Node]:
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


def batch_moments(node: Node, make: GraphBuilder) -> list[Node]:
    """Mean and variance of the batch, which BatchNormalization gave too before opset 14, as outputs 3 and 4."""
    x, (mean_out, variance_out) = node.inputs[0], (*node.outputs, "", "")[3:5]
    stem = next(o for o in node.outputs if o)
    parts = ("rows", "turned", "channels", "sizes", "flat", "mean", "centred", "square")
    rows, turned, channels, sizes, flat, mean, centred, square = (make.name(f"{stem}/{part}") for part in parts)
    axis, rest = (make.constant(np.array([v], np.int64), f"{stem}/number") for v in (1, -1))
    joined = make.constant(np.array([0, 0, -1], np.int64), f"{stem}/joined")
    # The channels go first, and all other axes become one, however many there are.
    nodes = [
        Node("Reshape", (x, joined), (rows,), {}),
        Node("Transpose", (rows,), (turned,), {"perm": (1, 0, 2)}),
        Node("Shape", (turned,), (channels,), {"end": 1}),
        Node("Concat", (channels, rest), (sizes,), {"axis": 0}),
        Node("Reshape", (turned, sizes), (flat,), {}),
        Node("ReduceMean", (flat, axis), (mean,), {"keepdims": 1}),
    ]
    if mean_out:
        nodes.append(Node("Squeeze", (mean, axis), (mean_out,), {}))
    if variance_out:
        nodes += [
            Node("Sub", (flat, mean), (centred,), {}),
            Node("Mul", (centred, centred), (square,), {}),
            Node("ReduceMean", (square, axis), (variance_out,), {"keepdims": 0}),
        ]
    return nodes


def each_normalization(node: Node, make: GraphBuilder) -> list[Node]:
    """BatchNormalization with spatial=0: a mean and a variance for every number of an image, (x - mean) / root * scale + bias."""
    x, scale, bias, mean, variance = node.inputs
    out = node.outputs[0]
    small = make.constant(np.array(node.attributes.get("epsilon", 1e-5), np.float32), f"{out}/small")
    epsilon, sum_, root, centred, normal, scaled = (
        make.name(f"{out}/{part}") for part in ("epsilon", "sum", "root", "centred", "normal", "scaled")
    )
    return [
        Node("CastLike", (small, variance), (epsilon,), {}),
        Node("Add", (variance, epsilon), (sum_,), {}),
        Node("Sqrt", (sum_,), (root,), {}),
        Node("Sub", (x, mean), (centred,), {}),
        Node("Div", (centred, root), (normal,), {}),
        Node("Mul", (normal, scale), (scaled,), {}),
        Node("Add", (scaled, bias), (out,), {}),
    ]


def mean_variance_normalization(node: Node, version: int, make: GraphBuilder) -> list[Node]:
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

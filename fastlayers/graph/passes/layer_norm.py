"""Layer normalisation that exporters spell out, over the last axis.

before                                                                        after
d = Sub(x, ReduceMean(x)); v = ReduceMean(Pow(d, 2) or Mul(d, d))
Div(d, Sqrt(Add(v, epsilon)))                                                 LayerNormalization(x, ones)
Add(Mul(LayerNormalization(x, ones), w), b)                                   LayerNormalization(x, w, b)
"""

from __future__ import annotations

import numpy as np

from ..ir import Node
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("Div"):
        _normalised(net, at, node)
    for op in ("Mul", "Add"):
        for at, node in net.each(op):
            _weights(net, at, node)


def _mean(net: Net, name: str | None) -> str | None:
    """x, if the value is its mean over the last axis, kept."""
    node = net.producer(name)
    if node is None or node.op != "ReduceMean" or not node.attributes.get("keepdims", 1):
        return None
    axes = net.constant(node.inputs[1]) if len(node.inputs) > 1 else None
    rank = net.rank(node.inputs[0])
    if axes is None or axes.size != 1 or int(axes.reshape(-1)[0]) not in (-1, (rank or 0) - 1):
        return None
    return node.inputs[0]


def _normalised(net: Net, at: int, node: Node) -> None:
    centred, root = net.producer(node.inputs[0]), net.producer(node.inputs[1])
    if centred is None or centred.op != "Sub" or root is None or root.op != "Sqrt" or not net.is_float32(centred.inputs[0]):
        return
    total = net.producer(root.inputs[0])
    x = centred.inputs[0]
    if total is None or total.op != "Add" or _mean(net, centred.inputs[1]) != x:
        return
    for i in (0, 1):
        epsilon, square = net.scalar(total.inputs[1 - i]), net.producer(_mean(net, total.inputs[i]))
        if epsilon is None or square is None:
            continue
        by_power = square.op == "Pow" and net.scalar(square.inputs[1]) == 2
        by_product = square.op == "Mul" and square.inputs[0] == square.inputs[1]
        source = net.producer(square.inputs[0])
        # Exporters may write the difference twice.
        twin = source is not None and source.op == "Sub" and source.inputs[0] == x and _mean(net, source.inputs[1]) == x
        size = (net.spec(x).shape or (None,))[-1]  # type: ignore[union-attr]
        if (by_power or by_product) and twin and isinstance(size, int):
            ones = net.new_constant(np.ones(size, np.float32), node.outputs[0])
            net.replace(at, Node("LayerNormalization", (x, ones), node.outputs, {"axis": -1, "epsilon": epsilon}))
            return


def _weights(net: Net, at: int, node: Node) -> None:
    for i in (0, 1):
        norm, constant = net.producer(node.inputs[i]), net.constant(node.inputs[1 - i])
        if norm is None or norm.op != "LayerNormalization" or constant is None or constant.dtype != np.float32:
            continue
        if len(norm.inputs) < 2:
            continue
        scale = net.constant(norm.inputs[1])
        if (
            scale is None
            or net.single(norm.outputs[0]) is not node
            or len(norm.outputs) > 1
            or constant.size != (constant.shape or (None,))[-1]  # a number without axes is no weight: it stays by itself
        ):
            continue
        if constant.shape[-1:] != scale.shape or (net.rank(norm.inputs[0]) or 0) < constant.ndim:
            continue
        if node.op == "Mul" and len(norm.inputs) == 2 and np.all(scale == 1):
            inputs = (norm.inputs[0], net.new_constant(constant.reshape(-1), node.outputs[0]))
        elif node.op == "Add" and len(norm.inputs) == 2:
            inputs = (*norm.inputs, net.new_constant(constant.reshape(-1), node.outputs[0]))  # type: ignore[assignment]
        else:
            continue
        net.replace(at, Node("LayerNormalization", inputs, node.outputs, norm.attributes), norm)
        return

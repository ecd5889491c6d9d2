"""Layer normalization that exporters spell out, over the last axis.

before                                                                        after
d = Sub(x, ReduceMean(x)); v = ReduceMean(Pow(d, 2) or Mul(d, d))
Div(d, Sqrt(Add(v, epsilon)))                                                 LayerNormalization(x, ones)
Add(Mul(LayerNormalization(x, ones), w), b)                                   LayerNormalization(x, w, b)

r = Sqrt(Add(ReduceMean(Pow(x, 2) or Mul(x, x)), epsilon))
Mul(x, Reciprocal(r)), Div(x, r), Mul(x, Div(1, r)), Mul(x, Pow(.., -0.5))    RMSNormalization(x, ones)
Mul(RMSNormalization(x, ones), w)                                             RMSNormalization(x, w)
"""

from __future__ import annotations

import numpy as np

from ..ir.graph import Node
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("Div"):
        _normalized(net, at, node)
    for at, node in net.each("Mul", "Div"):
        _by_root(net, at, node)
    for op in ("Mul", "Add"):
        for at, node in net.each(op):
            _weights(net, at, node)


def _mean(net: Net, name: str | None) -> str | None:
    """x, if the value is its mean over the last axis, kept."""
    node = net.producer(name)
    if node is None or node.op != "ReduceMean" or not node.attributes.get("keepdims", 1) or node.attributes.get("x_last", False):
        return None
    axes = net.value(node.inputs[1]) if len(node.inputs) > 1 else None
    rank = net.rank(node.inputs[0])
    if axes is None or axes.size != 1 or int(axes.reshape(-1)[0]) not in (-1, (rank or 0) - 1):
        return None
    return node.inputs[0]


def _normalized(net: Net, at: int, node: Node) -> None:
    centred, root = net.producer(node.inputs[0]), net.producer(node.inputs[1])
    if centred is None or centred.op != "Sub" or root is None or root.op != "Sqrt" or not net.is_float32(centred.inputs[0]):
        return
    total = net.producer(root.inputs[0])
    x = centred.inputs[0]
    if total is None or total.op != "Add" or _mean(net, centred.inputs[1]) != x:
        return
    for i in (0, 1):
        epsilon, square = net.scalar(total.inputs[1 - i], total.inputs[i]), net.producer(_mean(net, total.inputs[i]))
        if epsilon is None or square is None:
            continue
        by_power = square.op == "Pow" and net.scalar(square.inputs[1], square.inputs[0]) == 2
        by_product = square.op == "Mul" and square.inputs[0] == square.inputs[1]
        source = net.producer(square.inputs[0])
        # Exporters may write the difference twice.
        twin = source is not None and source.op == "Sub" and source.inputs[0] == x and _mean(net, source.inputs[1]) == x
        size = (net.spec(x).shape or (None,))[-1]  # type: ignore[union-attr]
        if (by_power or by_product) and twin and isinstance(size, int):
            ones = net.constant(np.ones(size, np.float32), node.outputs[0])
            net.replace(at, Node("LayerNormalization", (x, ones), node.outputs, {"axis": -1, "epsilon": epsilon}))
            return


def _square(net: Net, name: str | None) -> str | None:
    """x, if the value is its square."""
    node = net.producer(name)
    if node is None or "activation" in node.attributes:
        return None
    power = node.op == "Pow" and net.scalar(node.inputs[1], node.inputs[0]) == 2
    return node.inputs[0] if power or (node.op == "Mul" and node.inputs[0] == node.inputs[1]) else None


def _root(net: Net, name: str | None) -> str | None:
    """The square of a value, if it is a root."""
    node = net.producer(name)
    return node.inputs[0] if node is not None and node.op == "Sqrt" else None


def _inverse_root(net: Net, name: str | None) -> str | None:
    """x, if the value is 1 / sqrt(x)."""
    node = net.producer(name)
    if node is None or "activation" in node.attributes:
        return None
    if node.op == "Reciprocal":
        return _root(net, node.inputs[0])
    if node.op == "Div" and net.scalar(node.inputs[0], node.inputs[1]) == 1:
        return _root(net, node.inputs[1])
    power = node.op == "Pow" and net.scalar(node.inputs[1], node.inputs[0]) == -0.5
    return node.inputs[0] if power else None


def _by_root(net: Net, at: int, node: Node) -> None:
    """x divided by the root of its mean square."""
    for i in (0, 1) if node.op == "Mul" else (0,):
        x = node.inputs[i]
        size = None if (spec := net.spec(x)) is None else (spec.shape or (None,))[-1]
        found = _inverse_root(net, node.inputs[1 - i]) if node.op == "Mul" else _root(net, node.inputs[1])
        total = net.producer(found)
        if (
            total is None
            or total.op != "Add"
            or not net.is_float32(x)
            or not isinstance(size, int)
            or "activation" in total.attributes
        ):
            continue
        for k in (0, 1):
            epsilon = net.scalar(total.inputs[1 - k], total.inputs[k])
            if epsilon is not None and x is not None and _square(net, _mean(net, total.inputs[k])) == x:
                ones = net.constant(np.ones(size, np.float32), node.outputs[0])
                attributes = {"axis": -1, "epsilon": epsilon}
                net.replace(at, Node("RMSNormalization", (x, ones), node.outputs, attributes))
                return


def _weights(net: Net, at: int, node: Node) -> None:
    for i in (0, 1):
        norm, constant = net.producer(node.inputs[i]), net.value(node.inputs[1 - i])
        if (
            norm is None
            or norm.op not in ("LayerNormalization", "RMSNormalization")
            or constant is None
            or constant.dtype != np.float32
        ):
            continue
        if len(norm.inputs) < 2:
            continue
        scale = net.value(norm.inputs[1])
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
            inputs = (norm.inputs[0], net.constant(constant.reshape(-1), node.outputs[0]))
        elif node.op == "Add" and len(norm.inputs) == 2 and norm.op == "LayerNormalization":
            inputs = (*norm.inputs, net.constant(constant.reshape(-1), node.outputs[0]))  # type: ignore[assignment]
        else:
            continue
        net.replace(at, Node(norm.op, inputs, node.outputs, norm.attributes), norm)
        return

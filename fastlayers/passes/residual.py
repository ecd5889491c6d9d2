"""A sum of a layer's result and something else becomes the layer's residual, added before the result leaves the registers.

before                                 after
Relu(Add(Conv(x, W, b), y))            Conv(x, W, b, y, activation=relu)

If y turns out to be of another shape it is added by itself, as before: that is settled when the model is bound.
"""

from __future__ import annotations

from ..ir.graph import Node
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("Add", "Sum"):
        if len(node.inputs) != 2 or node.inputs[0] == node.inputs[1]:
            continue
        # The later of two layers, since its operands are all there at the sum's place; a constant is no residual.
        choices = sorted((0, 1), key=lambda i: -net.made.get(node.inputs[i] or "", -1))
        for i in choices:
            layer, other = net.producer(node.inputs[i]), node.inputs[1 - i]
            if layer is None or not _takes(net, layer) or net.single(node.inputs[i]) is not node or net.value(other) is not None:
                continue
            if not net.is_float32(other) or _broadcasts(net, node.inputs[i], other):
                continue
            inputs = (*layer.inputs[:3], *(None,) * (3 - len(layer.inputs)), other, *layer.inputs[4:])
            # Of the sum's own attributes, which may be words of a file that mean something else to the layer, this one alone.
            activation = {key: value for key, value in node.attributes.items() if key == "activation"}
            net.replace(at, Node(layer.op, inputs, node.outputs, {**layer.attributes, **activation}), layer)
            break


def _takes(net: Net, layer: Node) -> bool:
    """Whether it can add a residual as its input 3, and nothing comes between."""
    if "residual" not in net.traits(layer).epilogue or "activation" in layer.attributes or any(layer.inputs[3:4]):
        return False
    weights = all(net.value(name) is not None for name in layer.inputs[1:] if name is not None)
    return weights and net.is_float32(layer.inputs[0])


def _broadcasts(net: Net, a: str | None, b: str | None) -> bool:
    """Whether the shapes are known to differ."""
    p, q = net.spec(a), net.spec(b)
    if p is None or q is None or p.shape is None or q.shape is None:
        return False
    return len(p.shape) != len(q.shape) or any(
        isinstance(d, int) and isinstance(e, int) and d != e for d, e in zip(p.shape, q.shape, strict=True)
    )

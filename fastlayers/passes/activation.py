"""An elementwise function of one argument goes into the operation before it, which applies it while the values are in registers.

before                        after
Relu(Conv(x, W, b))           Conv(x, W, b, activation=relu)
Relu(Reshape(Linear(x, W)))   Reshape(Linear(x, W, activation=relu))

Which operators are such functions, and which can apply one, is among their traits.
"""

from __future__ import annotations

from ..ir.graph import Node
from ._net import Net, merged

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each():
        if net.traits(node).unary is None or sum(bool(n) for n in node.outputs) != 1:
            continue
        name, reader, views = node.inputs[0], node, []
        before = net.producer(name)
        while before is not None and before.op in ("Reshape", "Transpose") and net.single(name) is reader:
            views.append(before)
            name, reader = before.inputs[0], before
            before = net.producer(name)
        if before is None or "activation" not in net.traits(before).epilogue or "activation" in before.attributes:
            continue
        if net.single(name) is not reader or sum(bool(n) for n in before.outputs) != 1 or not _taken(net, before):
            continue
        function = net.function(node)
        if function is None:
            continue
        results = node.outputs
        for view in views:
            within = net.name(str(view.inputs[0]))
            net.specs[within] = net.specs[str(view.inputs[0])]
            after = net.position(view)
            net.replace(at, Node(view.op, (within, *view.inputs[1:]), results, view.attributes))
            at, results = after, (within,)
        net.replace(at, Node(before.op, before.inputs, results, merged(before, activation=tuple(function))), before)


def _taken(net: Net, node: Node) -> bool:
    """Whether the operation runs in a kernel: in float32, and with fixed weights where it has weights."""
    weights = net.traits(node).weights
    # Weights are what the operator wants: those of Affine are retained in float64.
    given = [(i, name) for i, name in enumerate(node.inputs) if name is not None]
    return all(net.value(name) is not None if i in weights else net.is_float32(name) for i, name in given)

"""Elementwise operators whose results nothing else needs go into the one that reads them, and one step passes over memory once.

before                                          after
y = Mul(x, Add(Tanh(Mul(x, a)), b))             y = Elementwise(x, a, b), body: the nodes before

All results are float32 and have the shape of the last one; what is broadcast, and conditions, come from outside. Which operators
they are is asked of their traits. The result has the same bits. Trees of two nodes stay: a step less is worth no more than what
a block costs. So do comparisons and logic, whose bytes are written and read again too closely for a processor's liking: Less,
Not, Where took 1.3 times as long (Zen 5).
"""

from __future__ import annotations

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..operators import BOOL, FLOAT32, Spec
from ._net import Net

__all__ = ["apply"]

# Of a node; more are left to a second one. See program.merged.
_FEWEST, _NODES, _INPUTS = 3, 20, 14
# Results of fewer elements take less time than what a step more or less costs.
_LEAST = 256


def apply(net: Net) -> None:
    """See the module."""
    inside: set[int] = set()
    for at in range(len(net.nodes) - 1, -1, -1):
        node = net.nodes[at]
        if node is None or at in inside or not _fits(net, node):
            continue
        group = _group(net, at)
        if len(group) >= _FEWEST:
            inside.update(group)
            _replace(net, at, sorted(group))


def _fits(net: Net, node: Node) -> bool:
    """Whether a node may be part of a tree: it runs in kernels, and its result is large."""
    traits = net.traits(node)
    if not traits.elementwise or len(node.outputs) != 1 or not node.outputs[0] or any(n == "" for n in node.inputs):
        return False
    if any(isinstance(value, Graph) for value in node.attributes.values()):
        return False
    spec = net.spec(node.outputs[0])
    given = [net.spec(name) for name in node.inputs if name is not None]
    if spec is None or spec.shape is None or any(s is None or s.shape is None for s in given):
        return False
    if spec.dtype != FLOAT32 or any(s.dtype not in (FLOAT32, BOOL) for s in given):  # type: ignore[union-attr]
        return False
    return not spec.static or int(np.prod(spec.shape)) >= _LEAST  # type: ignore[arg-type]


def _group(net: Net, root: int) -> set[int]:
    """The positions of the nodes that go into the one at `root`, which is among them."""
    last = net.nodes[root]
    assert last is not None
    shape = net.spec(last.outputs[0]).shape  # type: ignore[union-attr]
    group = {root}
    waiting = [root]
    while waiting and len(group) < _NODES:
        node = net.nodes[waiting.pop(0)]
        assert node is not None
        for name in node.inputs:
            at = net.made.get(name or "")
            if at is None or at in group or name in net.kept or len(group) >= _NODES:
                continue
            maker, spec = net.nodes[at], net.spec(name)
            if maker is None or not _fits(net, maker) or spec is None or not _same(spec, shape):
                continue
            if not group.issuperset(net.readers.get(name or "", ())) or len(_inputs(net, group | {at})) > _INPUTS:
                continue
            group.add(at)
            waiting.append(at)
    return group


def _same(spec: Spec, shape: tuple[object, ...] | None) -> bool:
    """Whether a value is known to have this shape."""
    return spec.shape == shape and shape is not None and None not in shape


def _inputs(net: Net, group: set[int]) -> list[str]:
    """Inputs that the nodes of a group read from outside of it."""
    names: dict[str, None] = {}
    for at in sorted(group):
        node = net.nodes[at]
        assert node is not None
        for name in node.inputs:
            if name is not None and net.made.get(name) not in group:
                names[name] = None
    return list(names)


def _replace(net: Net, root: int, group: list[int]) -> None:
    nodes = [node for at in group if (node := net.nodes[at]) is not None]
    names = _inputs(net, set(group))
    values = []
    for name in names:
        spec = net.spec(name)
        assert spec is not None
        values.append(Value(name, spec.shape, spec.dtype))
    result = nodes[-1].outputs[0]
    spec = net.spec(result)
    assert spec is not None
    body = Graph(tuple(values), (Value(result, spec.shape, spec.dtype),), tuple(nodes), {})
    net.replace(root, Node("Elementwise", tuple(names), (result,), {"body": body}), *nodes[:-1])

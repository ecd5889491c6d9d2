"""Computes one step of a sequence alone where it alone is read, up to the last attention.

before   Gather(LayerNormalization(Linear(Attention(q, k, v), W, b, x)), i, axis=1)
after    Gather(LayerNormalization(Linear(Attention(q[i], k, v), W, b, x[i])), 0, axis=1), where a[i] is Gather(a, [i], axis=1)

So of a network that classifies texts, or makes vectors of them, by their first token the last block costs little more than its
keys and values. Steps of products, norms and elementwise operations do not depend on each other, and queries of attention neither
where nothing is causal and the mask is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.graph import Node
from ._net import Net, merged

__all__ = ["apply"]

_NORMS = ("LayerNormalization", "RMSNormalization")
_HEADS = frozenset({"q_num_heads", "kv_num_heads", "scale"})
AXIS = 1  # steps, of (b, t, d)


def apply(net: Net) -> None:
    """See the module."""
    for at, node in list(net.each("Gather")):
        number = net.value(node.inputs[1])
        if (
            number is None
            or number.size != 1
            or net.rank(node.inputs[0]) != 3
            or node.attributes.get("axis", 0) not in (AXIS, -2)
        ):
            continue
        inside = _inside(net, at, node)
        if any((found := net.nodes[i]) is not None and net.traits(found).work == "pairs" for i in inside):
            _rewrite(net, at, inside, number)
            return  # positions are others now; a network has one such head


def _inside(net: Net, at: int, node: Node) -> dict[int, tuple[int, ...]]:
    """Positions of nodes of which one step is enough, each with those of its inputs of which one step is enough then."""
    inside: dict[int, tuple[int, ...]] = {at: (0,)}
    wanted = {node.inputs[0]}
    for i in range(at - 1, -1, -1):
        made = net.nodes[i]
        if made is None or wanted.isdisjoint(made.outputs):
            continue
        (name, *more) = made.outputs
        if any(more) or name in net.kept or not all(_by_steps(net, r, inside, name) for r in net.readers[name]):
            continue
        rows = _rows(net, made)
        if rows:
            inside[i] = rows
            wanted.update(made.inputs[j] for j in rows)
    del inside[at]
    return inside


def _by_steps(net: Net, reader: int, inside: Mapping[int, tuple[int, ...]], name: str) -> bool:
    """Whether a node of which one step is enough reads only that step of a value."""
    node = net.nodes[reader]
    return node is not None and reader in inside and all(i in inside[reader] for i, n in enumerate(node.inputs) if n == name)


def _rows(net: Net, node: Node) -> tuple[int, ...]:
    """The inputs of which a step of the result needs the same step alone, the others being the same for all; () if there is more
    to it.
    """
    shape = net.shape(node.outputs[0])
    if shape is None or len(shape) != 3 or shape[AXIS] in (None, 1):
        return ()
    steps = shape[AXIS]

    def has_steps(i: int) -> bool:
        given = net.shape(node.inputs[i])
        return given is not None and len(given) == 3 and given[AXIS] == steps

    if node.op in _NORMS:
        return (0,) if has_steps(0) and node.attributes.get("axis", -1) in (-1, 2) else ()
    if node.op in ("Linear", "BlockLinear"):
        rows = (0, 3) if node.op == "Linear" and len(node.inputs) > 3 and node.inputs[3] is not None else (0,)
        return rows if all(map(has_steps, rows)) else ()
    if node.op == "Attention":
        mask = net.shape(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else (1, 1)
        alike = mask is not None and len(mask) > 1 and mask[-2] == 1
        plain = not any(node.inputs[4:]) and {*node.attributes} <= _HEADS
        return (0,) if alike and plain and all(map(has_steps, range(3))) else ()
    if not net.traits(node).elementwise or net.traits(node).volatile:
        return ()
    found = []
    for i, name in enumerate(node.inputs):
        given = () if name is None else net.shape(name)
        if name is not None and has_steps(i):
            found.append(i)
        elif given is None or (len(given) > 1 and given[-2] != 1):
            return ()
    return tuple(found)


def _rewrite(net: Net, at: int, inside: Mapping[int, tuple[int, ...]], number: np.ndarray) -> None:
    """Computes one step of the nodes inside, of what the others have made."""
    index, zero = net.constant(number.reshape(1)), net.constant(np.zeros_like(number))
    one: dict[str | None, str] = {}
    nodes: list[Node] = []

    def renamed(name: str | None) -> str:
        made = one[name] = net.name(f"{name}~step")
        spec = net.spec(name)
        if spec is not None and spec.shape is not None:
            net.specs[made] = spec._replace(shape=(spec.shape[0], 1, spec.shape[2]))
        return made

    def step(node: Node, rows: tuple[int, ...]) -> tuple[Any, ...]:
        """A node's inputs with one step of each of `rows`."""
        for i in rows:
            name = node.inputs[i]
            if name not in one:
                nodes.append(Node("Gather", (name, index), (renamed(name),), {"axis": AXIS}))
        return tuple(one[name] if i in rows else name for i, name in enumerate(node.inputs))

    for i, node in enumerate(net.nodes):
        if node is None:
            continue
        if i in inside:
            inputs = step(node, inside[i])
            node = Node(node.op, inputs, (renamed(node.outputs[0]),), node.attributes)
        elif i == at:
            (last,) = step(node, (0,))[:1]
            node = Node("Gather", (last, zero), node.outputs, merged(node, axis=AXIS))
        nodes.append(node)
    net.restart(nodes)

"""The order in which a graph's nodes run in stages: what must wait for values goes together.

Where the size of a result depends on values (NonZero, NonMaxSuppression, a Slice to a computed end), a segment ends. Files have
such nodes one after the other, each with the few nodes that follow from it: a detector has one for each of its classes, and each
class would be a segment. Here a node's level is how many results of such sizes it waits for, one after the other; the nodes of a
level are together, and those whose results' sizes depend on values are at its end.
"""

from __future__ import annotations

from ..ir.graph import Graph, Node, captured
from ..operators import traits_of

__all__ = ["by_levels"]


def by_levels(graph: Graph) -> Graph:
    """The graph with its nodes in the order of their levels; the same one where nothing changes."""
    level: dict[str, int] = {}
    # Values that follow from sizes, constants and the integers that a caller gives: they are known when a segment is bound.
    known = set(graph.constants) | {v.name for v in graph.inputs if v.dtype.kind in "iub"}
    keys = []
    for i, node in enumerate(graph.nodes):
        reads = {name for name in node.inputs if name}
        traits = traits_of(node.op)
        counts = _counts(node, known)
        if traits.shape_only or (not counts and reads <= known and not captured(node)):
            known.update(node.outputs)
        at = max((level.get(name, 0) for name in reads | captured(node)), default=0)
        keys.append((at, counts, i))
        level.update((name, at + counts) for name in node.outputs if name)
    order = sorted(keys)
    if order == sorted(keys, key=lambda key: key[2]):
        return graph
    return Graph(graph.inputs, graph.outputs, tuple(graph.nodes[i] for *_, i in order), graph.constants, graph.values)


def _counts(node: Node, known: set[str]) -> bool:
    """Whether the size of a node's result depends on values."""
    traits = traits_of(node.op)
    steers = (
        node.inputs
        if traits.counts is not None and not traits.steers
        else [node.inputs[i] for i in traits.steers if i < len(node.inputs)]
    )
    return any(name and name not in known for name in steers)

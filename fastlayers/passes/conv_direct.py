"""Asks convolutions for the direct algorithm, as ``precision="strict"`` promises, and whatever a stream must equal.

before             after
Conv(x, W)         Conv(x, W, direct=True)     in branches too
"""

from __future__ import annotations

from ..ir.graph import Graph, Node

__all__ = ["direct"]


def direct(graph: Graph) -> Graph:
    """The graph with every convolution marked."""

    def marked(node: Node) -> Node:
        attributes = {name: direct(value) if isinstance(value, Graph) else value for name, value in node.attributes.items()}
        if node.op == "Conv":
            attributes["direct"] = True
        return Node(node.op, node.inputs, node.outputs, attributes)

    return Graph(graph.inputs, graph.outputs, tuple(map(marked, graph.nodes)), graph.constants, graph.values)

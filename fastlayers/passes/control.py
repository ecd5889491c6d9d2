"""States of loops that no iteration changes become values of the graph around, such as weights, which are then packed once.

before                                             after
y, w' = Loop(n, go, x, w) of (i, go, a, b)         y = Loop(n, go, x) of (i, go, a), in which b = Identity(w)
    with the states f(a, b), b                         with the state f(a, b); w' = Identity(w)
"""

from __future__ import annotations

from ..ir.graph import Graph, Node

__all__ = ["unchanging"]


def unchanging(graph: Graph) -> Graph:
    """The graph, whose loops and scans have no states that stay what they are."""
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += _without(node) if node.op in ("Loop", "Scan") and not node.attributes.get("batched", 0) else [node]
    if len(nodes) == len(graph.nodes) and all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return Graph(graph.inputs, graph.outputs, tuple(nodes), graph.constants, graph.values)


def _without(node: Node) -> list[Node]:
    """The nodes that a loop becomes."""
    body: Graph = node.attributes["body"]
    # In a Loop the number of iterations and the condition come first, and the body gives the condition; in a Scan what is
    # scanned comes last.
    first = 2 if node.op == "Loop" else 0
    scanned = 0 if first else int(node.attributes["num_scan_inputs"])
    states = len(node.inputs) - first - scanned
    if len(body.inputs) != len(node.inputs) or states < 0 or len(body.outputs) < states + bool(first):
        return [node]
    same = {n.outputs[0]: n.inputs[0] for n in body.nodes if n.op == "Identity"}
    own = {v.name for v in body.inputs} | body.constants.keys() | {name for inner in body.nodes for name in inner.outputs}
    fixed = []
    for k in range(states):
        given, name, made = node.inputs[first + k], body.inputs[first + k].name, body.outputs[bool(first) + k].name
        seen = {made}
        while made in same and same[made] not in seen:
            made = same[made] or ""
            seen.add(made)
        if made == name and given is not None and given not in own:
            fixed.append(k)
    if not fixed:
        return [node]
    gone = {first + k for k in fixed}
    put = [Node("Identity", (node.inputs[i],), (body.inputs[i].name,), {}) for i in sorted(gone)]
    left = [output for j, output in enumerate(body.outputs) if j - bool(first) not in fixed]
    inputs = tuple(v for i, v in enumerate(body.inputs) if i not in gone)
    within = Graph(inputs, tuple(left), (*put, *body.nodes), body.constants, body.values)
    outputs = tuple(name for k, name in enumerate(node.outputs) if k not in fixed)
    reads = tuple(name for i, name in enumerate(node.inputs) if i not in gone)
    after = [
        Node("Identity", (node.inputs[first + k],), (node.outputs[k],), {})
        for k in fixed
        if k < len(node.outputs) and node.outputs[k]
    ]
    return [Node(node.op, reads, outputs, {**node.attributes, "body": within}), *after]

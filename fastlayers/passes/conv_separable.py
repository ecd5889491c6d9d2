"""A depthwise convolution whose kernels are products of a column and a row becomes two, where these are faster.

before                                   after
Conv(x, W, b), W (c, 1, 7, 7)            Conv(Conv(x, column), row, b), column (c, 1, 7, 1), row (c, 1, 1, 7)

A graph is rewritten before anything else is: normalizations and activations then go into the second convolution.
"""

from __future__ import annotations

from typing import Any

from ..calls.conv_choice import two_passes_pay
from ..calls.conv_separable import factors
from ..ir.graph import Graph, Node

__all__ = ["separated"]


def separated(graph: Graph) -> Graph:
    """The graph with every such convolution in two; branches are rewritten when they are optimized themselves."""
    nodes: list[Node] = []
    constants: dict[str, Any] = dict(graph.constants)
    taken = {*constants, *(v.name for v in graph.inputs), *(name for node in graph.nodes for name in node.outputs)}
    # Between two convolutions of other values than float32 there would be another rounding.
    others = {v.name for v in graph.inputs if v.dtype != "float32"}
    for node in graph.nodes:
        nodes += (_parts(node, constants, taken) if others.isdisjoint(node.inputs) else None) or [node]
    return graph if len(nodes) == len(graph.nodes) else Graph(graph.inputs, graph.outputs, tuple(nodes), constants, graph.values)


def _parts(node: Node, constants: dict[str, Any], taken: set[str]) -> list[Node] | None:
    """The two convolutions, their weights being added to `constants`; None if the node stays as it is. `taken`: names."""
    weight = constants.get(node.inputs[1] or "") if node.op == "Conv" and len(node.inputs) > 1 else None
    groups = node.attributes.get("group", 1)
    if weight is None or weight.ndim != 4 or weight.shape[1] != 1 or weight.dtype != "float32" or groups < 2:
        return None
    if not two_passes_pay(*weight.shape[2:]) or weight.shape[0] % groups or node.attributes.get("direct", False):
        return None
    names = [f"{node.inputs[1]}~{part}~{node.outputs[0]}" for part in ("column", "row")]
    between = f"{node.outputs[0]}~column"
    found = factors(weight) if taken.isdisjoint((between, *names)) else None
    if found is None:
        return None
    constants.update(zip(names, found, strict=True))
    first = Node("Conv", (node.inputs[0], names[0]), (between,), _along(node, 0, groups))
    second = Node("Conv", (between, names[1], *node.inputs[2:]), node.outputs, _along(node, 1, int(weight.shape[0])))
    return [first, second]


def _along(node: Node, axis: int, groups: int) -> dict[str, Any]:
    """The attributes of the convolution along one axis; what follows belongs to the second."""
    made: dict[str, Any] = {**node.attributes, "group": groups}
    made.pop("kernel_shape", None)
    for name in ("strides", "dilations"):
        if made.get(name):
            made[name] = tuple(value if i == axis else 1 for i, value in enumerate(made[name]))
    if made.get("pads"):
        made["pads"] = tuple(value if i % 2 == axis else 0 for i, value in enumerate(made["pads"]))
    if axis == 0:
        made.pop("activation", None)
    return made

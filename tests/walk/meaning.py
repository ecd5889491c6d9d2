"""The plain reference implementation of a graph: every node in order, by its operator's `run`, with no passes or kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fastlayers.ir.graph import Graph, Node
from fastlayers.operators import OPERATORS, Spec, View
from fastlayers.operators.control import CONTROL
from fastlayers.operators.meter import Meter
from fastlayers.operators.reference import run_operator

__all__ = ["meaning", "node_meaning"]


class _Bodies:
    """Runs the graphs of a loop, which see what is around them."""

    def __init__(self, around: Mapping[str, np.ndarray]) -> None:
        self.around = around

    def ready(self, graph: Graph) -> Callable[[Sequence[Any]], list[Any]]:
        """What gives the graph's outputs for its inputs."""

        def run(values: Sequence[Any]) -> list[Any]:
            given = dict(zip((v.name for v in graph.inputs), values, strict=True))
            found = meaning(graph, given, self.around)
            return [found[v.name] for v in graph.outputs]

        return run

    def specs(self, graph: Graph, values: Sequence[Any]) -> list[Spec]:
        """Nothing is known but the dtype."""
        return [Spec(None, v.dtype) for v in graph.outputs]


def meaning(graph: Graph, feeds: Mapping[str, np.ndarray], around: Mapping[str, np.ndarray] | None = None) -> dict[str, Any]:
    """Every value of the graph by name. `around`: values of the graph that this one is in."""
    values: dict[str, Any] = {**(around or {}), **graph.constants, **feeds}
    for node in graph.nodes:
        values.update(zip(node.outputs, node_meaning(node, values), strict=False))
    return values


def node_meaning(node: Node, values: Mapping[str, Any]) -> Sequence[Any]:
    """The results of one node."""
    if node.op == "If":
        taken = node.attributes["then_branch" if values[node.inputs[0]].any() else "else_branch"]  # type: ignore[index]
        inner = meaning(taken, {}, values)
        return [inner[v.name] for v in taken.outputs]
    given = [None if name is None else values[name] for name in node.inputs]
    specs = [None if a is None else Spec(a.shape, a.dtype) for a in given]
    view = View(node, specs, given)
    if node.op in CONTROL:
        return CONTROL[node.op](view, given, _Bodies(values), Meter())
    return [np.asarray(a) for a in run_operator(node, view, given, OPERATORS[node.op].infer(view))]

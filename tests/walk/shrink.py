"""The smallest part of a faulty graph: one value that differs when it alone is asked for, with what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastlayers.ir.graph import Graph, Node, Value

from .check import TOLERANCE, Step, Wrong, model_of, walk

__all__ = ["Found", "first_wrong", "part", "shown"]


class Found(NamedTuple):
    """A part of a graph that is wrong, and how."""

    graph: Graph
    fault: str
    steps: list[Step]


def part(graph: Graph, output: str) -> Graph:
    """The nodes that a value is made of."""
    wanted, nodes = {output}, []
    for node in reversed(graph.nodes):
        if wanted & set(node.outputs):
            nodes.append(node)
            wanted |= _read(node)
    constants = {name: array for name, array in graph.constants.items() if name in wanted}
    value = Value(output, None, np.dtype(np.void))
    return Graph(graph.inputs, (value,), tuple(reversed(nodes)), constants)


def _read(node: Node) -> set[str]:
    """What a node and the graphs within it read."""
    found = {name for name in node.inputs if name is not None}
    for attribute in node.attributes.values():
        if isinstance(attribute, Graph):
            found |= {v.name for v in attribute.outputs}.union(*map(_read, attribute.nodes))
    return found


def _wrong(graph: Graph, steps: Sequence[Step], tolerance: float) -> str:
    try:
        walk(model_of(graph), steps, tolerance=tolerance)
    except Wrong as fault:
        return str(fault)
    return ""


def first_wrong(graph: Graph, steps: Sequence[Step], tolerance: float = TOLERANCE) -> Found | None:
    """The first value that differs alone, with as few steps as show it; None if none does."""
    for node in graph.nodes:
        for output in node.outputs:
            small = part(graph, output)
            if fault := _wrong(small, steps, tolerance):
                few = list(steps)
                for i in reversed(range(len(few))):
                    fewer = few[:i] + few[i + 1 :]
                    if fewer and (found := _wrong(small, fewer, tolerance)):
                        few, fault = fewer, found
                return Found(small, fault, few)
    return None


def shown(found: Found, steps: Sequence[Step]) -> str:
    """The part as text, with what its constants are and what it is called with."""
    lines = [f"first: {found.fault[:300]}", *repr(found.graph).splitlines()]
    lines += [f"{name} = {_brief(array)}" for name, array in found.graph.constants.items()]
    for step in found.steps:
        lines.append("call " + ", ".join(f"{name} = {_brief(array)}" for name, array in step.feeds.items()))
    return "\n    ".join(lines)


def _brief(array: np.ndarray) -> str:
    return f"{array.dtype}{array.shape}" if array.size > 6 else f"{array.dtype}{array.tolist()}"

"""Recorded networks: frozen values, nodes and the graph of them. Knows no operation and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Reversible
from types import MappingProxyType
from typing import Any

import numpy as np

from .._tuples import NamedTuple

__all__ = ["Dim", "Graph", "Node", "Shape", "Value", "captured", "free", "needed"]

# A size, the name of a size that is known only when the graph runs, or None for an unknown one.
Dim = int | str | None
Shape = tuple[Dim, ...]


class Value(NamedTuple):
    """A named array of a graph: what is known of it before anything runs. `shape` is None if not even the rank is known.

    `kind` is "tensor", "sequence(tensor)" for a list of arrays, of whose elements the dtype is, "optional(tensor)" for one that
    may be None, or "optional(sequence(tensor))"; "map" for a dict of numbers or strings, "sequence(map)" for a list of those.
    Strings are arrays of the dtype object.
    """

    name: str
    shape: Shape | None
    dtype: np.dtype[Any]
    kind: str = "tensor"


class Node:
    """One operation: its name, its inputs (None: one that was left out), its outputs and its attributes.

    The name is one of `operators.OPERATORS`, or of the loops, branches and sequences that programs run in stages.
    """

    __slots__ = ("attributes", "inputs", "op", "outputs")

    op: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def __init__(self, op: str, inputs: tuple[str | None, ...], outputs: tuple[str, ...], attributes: Mapping[str, Any]) -> None:
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "inputs", tuple(inputs))
        object.__setattr__(self, "outputs", tuple(outputs))
        object.__setattr__(self, "attributes", MappingProxyType(dict(attributes)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Node: cannot set {name!r}: a graph is immutable")

    def __reduce__(self) -> tuple[type[Node], tuple[Any, ...]]:
        return Node, (self.op, self.inputs, self.outputs, dict(self.attributes))

    def __repr__(self) -> str:
        attributes = "".join(f", {k}={v!r}" for k, v in self.attributes.items())
        return f"{', '.join(self.outputs)} = {self.op}({', '.join(str(i) for i in self.inputs)}{attributes})"


class Graph:
    """Nodes in an order that can be run, between named inputs and outputs.

    Args:
        inputs: the values that a caller gives.
        outputs: the values that a caller gets.
        nodes: every node after those whose outputs it reads.
        constants: read-only arrays by name: weights and values that were part of the recorded function.
        values: what is known of every value that a node writes, by name.
    """

    __slots__ = ("constants", "inputs", "nodes", "outputs", "values")

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]
    values: Mapping[str, Value]

    def __init__(
        self,
        inputs: tuple[Value, ...],
        outputs: tuple[Value, ...],
        nodes: tuple[Node, ...],
        constants: Mapping[str, np.ndarray],
        values: Mapping[str, Value] | None = None,
    ) -> None:
        object.__setattr__(self, "inputs", tuple(inputs))
        object.__setattr__(self, "outputs", tuple(outputs))
        object.__setattr__(self, "nodes", tuple(nodes))
        object.__setattr__(self, "constants", MappingProxyType(dict(constants)))
        object.__setattr__(self, "values", MappingProxyType(dict(values or {})))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Graph: cannot set {name!r}: a graph is immutable")

    def __reduce__(self) -> tuple[type[Graph], tuple[Any, ...]]:
        return Graph, (self.inputs, self.outputs, self.nodes, dict(self.constants), dict(self.values))

    def __repr__(self) -> str:
        def line(word: str, values: tuple[Value, ...]) -> str:
            return f"{word} " + ", ".join(
                f"{v.name} {v.dtype.name}{list(v.shape) if v.shape is not None else ''}" for v in values
            )

        return "\n".join([line("in ", self.inputs), *(f"    {node!r}" for node in self.nodes), line("out", self.outputs)])


def captured(node: Node) -> set[str]:
    """Names of the graph around that the graphs among a node's attributes read."""
    found: set[str] = set()
    for attribute in node.attributes.values():
        if isinstance(attribute, Graph):
            found |= free(attribute)
    return found


def free(graph: Graph) -> set[str]:
    """Names that a graph reads and does not give itself."""
    found: set[str] = set()
    own = {v.name for v in graph.inputs} | set(graph.constants)
    for node in graph.nodes:
        found.update(name for name in node.inputs if name is not None and name not in own)
        found |= captured(node) - own
        own.update(node.outputs)
    found.update(v.name for v in graph.outputs if v.name not in own)
    return found


def needed(nodes: Reversible[Node | None], wanted: Iterable[str]) -> tuple[tuple[Node, ...], set[str]]:
    """The nodes, in their order, that lead to the values that are wanted; and the names of all values that these need."""
    names = set(wanted)
    kept: list[Node] = []
    for node in reversed(nodes):
        if node is not None and not names.isdisjoint(node.outputs):
            kept.append(node)
            names.update(name for name in node.inputs if name)
            names |= captured(node)
    return tuple(reversed(kept)), names

"""A graph that can be edited: who makes a value, who reads it, what is constant. Passes work on it; nodes themselves never
change.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node, captured, needed
from ..ir.names import Names
from ..kernels.table import Activation
from ..operators import Spec, Traits, traits_of
from ..operators.graphs import Values

__all__ = ["Net", "merged", "of_columns"]


class Net(Values):
    """Nodes by position (None where one was taken out), with maps from names to positions.

    `specs` holds what is known of values; a pass may rely on an entry, and must live without.
    """

    def __init__(self, graph: Graph, outer: Mapping[str, np.ndarray], specs: Mapping[str, Spec]) -> None:
        super().__init__(Names((*graph.constants, *outer, *(v.name for v in graph.inputs)), "~", 0))
        self.names.take(name for node in graph.nodes for name in node.outputs)
        self.source = graph
        self.constants.update(graph.constants)
        self.known: Mapping[str, np.ndarray] = ChainMap(self.constants, outer) if outer else self.constants  # type: ignore[arg-type]
        self.specs.update(specs)
        self.specs.update((v.name, Spec(v.shape, v.dtype)) for v in graph.inputs if v.kind == "tensor")
        self.nodes: list[Node | None] = []
        self.ops: set[str] = set()  # operators that nodes have, or have had
        self.made: dict[str, int] = {}
        self.readers: dict[str, list[int]] = {}
        self.kept: set[str] = {v.name for v in graph.outputs}

    # ---- asking -----------------------------------------------------------------------------------------------------

    def value(self, name: str | None) -> np.ndarray | None:
        """The array that a name stands for, if it is constant, in a graph around this one too."""
        return None if name is None else self.known.get(name)

    def scalar(self, name: str | None, beside: str | None) -> float | None:
        """A constant of one element as a float, if the value that it is combined with keeps its shape: it has no more axes than
        that, and none where that has an unknown number.
        """
        array = self.value(name)
        return None if array is None or array.ndim > (self.rank(beside) or 0) else self.parameter(name)

    def parameter(self, name: str | None) -> float | None:
        """A constant of one element as a float, whose axes make no difference: a bound or a filling, no operand."""
        array = self.value(name)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def producer(self, name: str | None) -> Node | None:
        """The node that makes a value, or None for inputs and constants."""
        at = self.made.get(name) if name is not None else None
        return None if at is None else self.nodes[at]

    def single(self, name: str | None) -> Node | None:
        """The one node that reads a value which nothing else needs; None if there are others or none."""
        if name is None or name in self.kept:
            return None
        readers = self.readers.get(name, [])
        return self.nodes[readers[0]] if len(readers) == 1 else None

    def each(self, *ops: str) -> Iterator[tuple[int, Node]]:
        """The nodes of these operators, in order; those that a change makes are not visited."""
        if ops and self.ops.isdisjoint(ops):
            return
        for i, node in enumerate(islice(self.nodes, len(self.nodes))):
            if node is not None and (not ops or node.op in ops):
                yield i, node

    def is_float32(self, name: str | None) -> bool:
        """Whether a value is known to be float32."""
        spec = self.spec(name)
        return spec is not None and spec.dtype == np.float32

    def traits(self, node: Node) -> Traits:
        """Traits of a node's operator."""
        return traits_of(node.op)

    def function(self, node: Node) -> Activation | None:
        """The elementwise function of its first input that a node computes, as kernels take it; None if it is none."""
        unary = traits_of(node.op).unary
        return None if unary is None or self.spec(node.inputs[0]) is None else unary(self.view(node))

    # ---- editing ----------------------------------------------------------------------------------------------------

    def append(self, node: Node) -> None:
        """Adds a node at the end."""
        self._enter(len(self.nodes), node)

    def _enter(self, at: int, node: Node) -> None:
        if at == len(self.nodes):
            self.nodes.append(node)
        else:
            self.nodes[at] = node
        self.ops.add(node.op)
        for name in node.inputs:
            if name is not None:
                readers = self.readers.setdefault(name, [])
                readers.append(at)
        for name in node.outputs:
            if name:
                self.made[name] = at
        self.names.take(node.outputs)
        self.kept.update(captured(node))

    def take_out(self, at: int) -> None:
        """Removes a node; its outputs have no maker any more."""
        node = self.nodes[at]
        assert node is not None
        for name in node.inputs:
            if name is not None:
                self.readers[name].remove(at)
        for name in node.outputs:
            if name and self.made.get(name) == at:
                del self.made[name]
        self.nodes[at] = None

    def replace(self, at: int, node: Node, *gone: Node) -> None:
        """Puts a node in place of the one at `at`; `gone` are nodes before it that it takes in."""
        for old in gone:
            self.take_out(self.made[next(name for name in old.outputs if name)])
        self.take_out(at)
        self._enter(at, node)

    def forget(self, name: str) -> None:
        """Lets go of a constant that no node reads any more: what comes after it may take its memory."""
        if not self.readers.get(name) and name not in self.kept:
            self.constants.pop(name, None)

    def restart(self, nodes: list[Node]) -> None:
        """Puts these nodes in place of all."""
        self.nodes, self.made, self.readers = [], {}, {}
        for node in nodes:
            self.append(node)

    def position(self, node: Node) -> int:
        """Position of a node."""
        return self.made[next(name for name in node.outputs if name)]

    def name(self, hint: str) -> str:
        """A name for a new value."""
        return self.names.numbered(hint)

    # ---- result -----------------------------------------------------------------------------------------------------

    def graph(self) -> Graph:
        """Builds the graph, without nodes and constants that nothing needs."""
        nodes, names = needed(self.nodes, self.kept)
        graph, constants = self.source, {name: array for name, array in self.constants.items() if name in names}
        return Graph(graph.inputs, graph.outputs, nodes, constants, graph.values)


def of_columns(bias: np.ndarray, count: int) -> bool:
    """Whether what Gemm adds to a matrix of so many columns is one number a column, or one number: the same for every row."""
    return bias.size in (1, count) and bias.shape[:-1] in ((), (1,))


def merged(node: Node, **changes: Any) -> dict[str, Any]:
    """A node's attributes with some changed."""
    return {**node.attributes, **changes}

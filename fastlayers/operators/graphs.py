"""Writing a graph: nodes, constants, unique names, and what is known of each value. Everything that makes or rewrites a graph,
readers of files, recording, passes and streams, is built on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node, Shape, Value
from ..ir.names import Names
from ._base import OPERATORS, Spec, View

__all__ = ["UNTOLD", "GraphBuilder", "Values", "inferred", "read_only", "trimmed"]

# What is said of a value of unknown dtype, such as most outputs of branches.
UNTOLD = np.dtype(np.void)


class Values:
    """The constants of a graph, and what is known of all its values.

    Args:
        names: makes names of new values; a graph and the graphs in it share it.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.constants: dict[str, np.ndarray] = {}
        self.specs: dict[str, Spec] = {}

    def name(self, hint: str) -> str:
        """A name for a new value."""
        return self.names(hint)

    def constant(self, array: Any, hint: str = "~constant") -> str:
        """A new constant; the array may be a view, which is not copied."""
        name = self.name(hint)
        self.constants[name] = made = read_only(array)
        self.specs[name] = Spec(made.shape, made.dtype)
        return name

    def ints(self, values: Sequence[int] | int, hint: str = "~numbers") -> str:
        """A new constant of int64."""
        return self.constant(np.array(values, np.int64), hint)

    def value(self, name: str | None) -> np.ndarray | None:
        """The array that a name stands for, if it is constant."""
        return None if name is None else self.constants.get(name)

    def spec(self, name: str | None) -> Spec | None:
        """Spec of a value, as far as it is known."""
        if name is None:
            return None
        array = self.value(name)
        return self.specs.get(name) if array is None else Spec(array.shape, array.dtype)

    def shape(self, name: str | None) -> tuple[Any, ...] | None:
        """Shape of a value, as far as it is known."""
        spec = self.spec(name)
        return None if spec is None else spec.shape

    def rank(self, name: str | None) -> int | None:
        """The number of axes of a value, if known."""
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def dtype(self, name: str | None) -> np.dtype[Any]:
        """The dtype of a value; `UNTOLD` if it is unknown."""
        spec = self.spec(name)
        return UNTOLD if spec is None else spec.dtype

    def view(self, node: Node) -> View:
        """A node with what is known of its inputs, as rules of operators take it."""
        return View(node, [self.spec(name) for name in node.inputs], [self.value(name) for name in node.inputs])


class GraphBuilder(Values):
    """A graph that is being written, its nodes in order. Shapes follow from the operators' rules, not from what a file claims.

    A subclass that has a budget counts where everything comes by: `name`, `constant` and `append`.

    Args:
        outer: what is known of values around the graph, which it may read.
        names: as `Values` has it.
    """

    def __init__(self, outer: Mapping[str, Spec] | None = None, names: Names | None = None) -> None:
        super().__init__(Names() if names is None else names)
        self.nodes: list[Node] = []
        self.specs.update(outer or {})

    def input(self, hint: str, shape: Shape | None, dtype: np.dtype[Any]) -> str:
        """A value that the caller gives."""
        name = self.name(hint)
        self.specs[name] = Spec(shape, dtype)
        return name

    def node(self, op: str, *inputs: str | None, out: str = "", **attributes: Any) -> str:
        """Writes a node with one result, and returns the result's name: `out`, or one that begins with "~"."""
        return self.many(op, inputs, (out,), attributes)[0]

    def many(self, op: str, inputs: Sequence[str | None], outs: Sequence[str], attributes: Mapping[str, Any]) -> tuple[str, ...]:
        """Writes a node with several results."""
        names = tuple(self.name(out or f"~{op.lower()}") for out in outs)
        self.append(Node(op, trimmed(inputs), names, attributes))
        return names

    def append(self, node: Node) -> None:
        """Writes a node as it is."""
        self.nodes.append(node)
        self.specs.update((name, s) for name, s in inferred(self.view(node)) if s.dtype != UNTOLD)

    def known(self, name: str) -> Value:
        """A value as an input or output of the graph."""
        return Value(name, self.shape(name), self.dtype(name))

    def graph(self, inputs: Iterable[str | Value], outputs: Iterable[str | Value]) -> Graph:
        """The graph between these inputs and outputs, what is known of its values with it."""
        first, last = (tuple(v if isinstance(v, Value) else self.known(v) for v in side) for side in (inputs, outputs))
        values = {name: Value(name, *self.specs[name]) for node in self.nodes for name in node.outputs if name in self.specs}
        return Graph(first, last, tuple(self.nodes), self.constants, values)


def inferred(view: View) -> Iterable[tuple[str, Spec]]:
    """Infers a node's results, by name, from the specs of its inputs; empty where an input is not known."""
    operator = OPERATORS.get(view.op)
    if operator is None or any(s is None and name is not None for s, name in zip(view.inputs, view.node.inputs, strict=True)):
        return ()
    return zip(view.node.outputs, operator.infer(view), strict=False)


def trimmed(inputs: Iterable[Any]) -> tuple[Any, ...]:
    """Inputs of a node without those at the end that are left out."""
    found = list(inputs)
    while found and found[-1] is None:
        found.pop()
    return tuple(found)


def read_only(array: Any) -> np.ndarray:
    """The array, or a view of it that cannot be written."""
    made = np.asarray(array)
    if made.flags.writeable:
        made = made.view()
        made.flags.writeable = False
    return made

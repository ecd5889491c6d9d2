"""Writing a graph while a file is read: nodes, constants, unique names, and what is known of each value. Reads no file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node, Shape, Value
from ..operators import OPERATORS, Spec, View

__all__ = ["Emit"]

# What is said of a value whose dtype nobody knows.
UNTOLD = np.dtype(np.void)


class Emit:
    """Nodes in the order in which they are written. Shapes follow from the operators' own rules, not from what a file claims.

    Args:
        outer: what is known of values around a branch, which it may read; their names are taken.
        names: the names taken so far, shared by a graph and its branches.
    """

    def __init__(self, outer: Mapping[str, Spec] | None = None, names: dict[str, int] | None = None) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.specs: dict[str, Spec] = dict(outer or {})
        self.names: dict[str, int] = {} if names is None else names

    # ---- names and constants ------------------------------------------------------------------------------------------

    def name(self, hint: str) -> str:
        """`hint`, with a number after it if some value is called so; taken from now on."""
        number = self.names.get(hint)
        if number is None:
            self.names[hint] = 1
            return hint
        name = hint
        while name in self.names:
            number += 1
            name = f"{hint}_{number}"
        self.names[hint] = number
        self.names[name] = 1
        return name

    def input(self, hint: str, shape: Shape | None, dtype: np.dtype[Any]) -> str:
        """A value that the caller gives."""
        name = self.name(hint)
        self.specs[name] = Spec(shape, dtype)
        return name

    def constant(self, array: Any, hint: str = "~constant") -> str:
        """A new constant; the array may be a view, which is not copied."""
        name = self.name(hint)
        made = np.asarray(array).view()
        made.flags.writeable = False
        self.constants[name] = made
        self.specs[name] = Spec(made.shape, made.dtype)
        return name

    def ints(self, values: Sequence[int] | int, hint: str = "~numbers") -> str:
        """A constant of int64."""
        return self.constant(np.array(values, np.int64), hint)

    def value(self, name: str | None) -> np.ndarray | None:
        """The array behind a name, if it is constant."""
        return None if name is None else self.constants.get(name)

    def shape(self, name: str | None) -> Shape | None:
        """What is known of a value's shape."""
        spec = None if name is None else self.specs.get(name)
        return None if spec is None else spec.shape

    def rank(self, name: str | None) -> int | None:
        """The number of axes of a value, if known."""
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def dtype(self, name: str | None) -> np.dtype[Any]:
        """The dtype of a value; `UNTOLD` if nobody knows it."""
        spec = None if name is None else self.specs.get(name)
        return UNTOLD if spec is None else spec.dtype

    # ---- nodes --------------------------------------------------------------------------------------------------------

    def node(self, op: str, *inputs: str | None, out: str = "", **attributes: Any) -> str:
        """Writes a node with one result, and returns the result's name: `out`, or one that begins with "~"."""
        return self.many(op, inputs, (out,), attributes)[0]

    def many(self, op: str, inputs: Sequence[str | None], outs: Sequence[str], attributes: Mapping[str, Any]) -> tuple[str, ...]:
        """Writes a node with several results."""
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        names = tuple(self.name(out or f"~{op.lower()}") for out in outs)
        node = Node(op, tuple(given), names, attributes)
        self.nodes.append(node)
        self._learn(node)
        return names

    def _learn(self, node: Node) -> None:
        operator = OPERATORS.get(node.op)
        specs = [None if name is None else self.specs.get(name) for name in node.inputs]
        if operator is None or any(s is None and n is not None for s, n in zip(specs, node.inputs, strict=True)):
            return
        found = operator.infer(View(node, specs, [self.value(name) for name in node.inputs]))
        self.specs.update({name: spec for name, spec in zip(node.outputs, found, strict=False) if spec.dtype != UNTOLD})

    def rename(self, old: str, new: str, since: int) -> str:
        """Calls the value `old` `new`, if one of the nodes from number `since` on makes it; returns its name now."""
        if not any(old in node.outputs for node in self.nodes[since:]):
            return old
        name = self.name(new)
        for i in range(since, len(self.nodes)):
            node = self.nodes[i]
            if old in node.outputs or old in node.inputs:
                inputs = tuple(name if given == old else given for given in node.inputs)
                self.nodes[i] = Node(node.op, inputs, tuple(name if o == old else o for o in node.outputs), node.attributes)
        if old in self.specs:
            self.specs[name] = self.specs.pop(old)
        return name

    # ---- the result ---------------------------------------------------------------------------------------------------

    def graph(self, inputs: Iterable[str], outputs: Iterable[Value]) -> Graph:
        """The graph between these inputs and outputs, every value's shape with it."""
        values = {
            name: Value(name, spec.shape, spec.dtype)
            for name, spec in ((name, self.specs.get(name)) for node in self.nodes for name in node.outputs)
            if spec is not None
        }
        given = tuple(Value(name, *self.specs[name]) for name in inputs)
        return Graph(given, tuple(outputs), tuple(self.nodes), self.constants, values)

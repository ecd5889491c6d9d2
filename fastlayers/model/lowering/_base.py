"""What the rules share: the graph of operators that they write into, and the list of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...functional._activation import IDENTITY
from ...graph.ir import Graph, Node
from ...graph.ops import OPS
from ...kernels.table import Activation

__all__ = ["LOWER", "Lowering", "Rule", "after", "alpha", "rule", "same"]

FLOAT32, INT64 = np.dtype(np.float32), np.dtype(np.int64)


class Lowering:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = dict(graph.constants)
        self.nodes: list[Node] = []
        self.shapes = {v.name: v.shape or () for v in (*graph.inputs, *graph.values.values())}
        self.shapes.update((name, array.shape) for name, array in graph.constants.items())
        self.ranks = {name: len(shape) for name, shape in self.shapes.items()}
        self.taken = {*self.ranks, *(v.name for v in graph.outputs)}
        self.casts: dict[tuple[str, Any], str] = {}
        # Of inputs, and of what operators that were recorded as they are have made.
        self.dtypes = {v.name: v.dtype for v in (*graph.inputs, *graph.values.values())}

    def run(self) -> Graph:
        for node in self.graph.nodes:
            if node.op not in OPS:  # an operator that was recorded as it is
                self.nodes.append(_with_bodies(node))
                continue
            op = OPS[node.op]
            kinds = op.kinds * len(node.inputs) if op.variadic else op.kinds
            LOWER[node.op](self, node, *(self.converted(name, kind) for name, kind in zip(node.inputs, kinds, strict=True)))
        graph = self.graph
        return Graph(graph.inputs, graph.outputs, tuple(self.nodes), self.constants, graph.values)

    def converted(self, name: str | None, kind: str) -> str | None:
        """The value as the operation takes it (see `graph.ops.Op`): values of other dtypes are converted once."""
        if name not in self.dtypes:
            return name
        dtype = self.dtypes[name]
        wanted = INT64 if kind == "int" else dtype if kind == "mask" and dtype == np.bool_ else FLOAT32
        if dtype == wanted:
            return name
        if (name, wanted) not in self.casts:
            self.casts[name, wanted] = self.add("Cast", (name,), self.name(name), to=7 if wanted == INT64 else 1)
        return self.casts[name, wanted]

    def rank(self, node: Node, i: int = 0) -> int:
        """How many axes input i of a recorded node has."""
        return self.ranks[node.inputs[i]]  # type: ignore[index]

    def size(self, node: Node, axis: int, i: int = 0) -> Any:
        """The size of input i of a recorded node along an axis: an int, a name or None."""
        return self.shapes[node.inputs[i]][axis]  # type: ignore[index]

    def dtype(self, name: str) -> Any:
        """The dtype of a value; what rules have made is float32."""
        return self.constants[name].dtype if name in self.constants else self.dtypes.get(name, FLOAT32)

    def name(self, hint: str) -> str:
        """A name that is not taken."""
        i = 0
        while f"{hint}~{i}" in self.taken:
            i += 1
        self.taken.add(f"{hint}~{i}")
        return f"{hint}~{i}"

    def ints(self, *values: int) -> str:
        """A constant of integers."""
        name = self.name("ints")
        self.constants[name] = np.array(values, np.int64)
        return name

    def scalar(self, value: float) -> str:
        """A constant number."""
        name = self.name("number")
        self.constants[name] = np.array(value, np.float32)
        return name

    def add(self, op: str, inputs: Sequence[str | None], output: str | Sequence[str], **attributes: Any) -> str:
        """Appends a node; returns its first output."""
        outputs = (output,) if isinstance(output, str) else tuple(output)
        self.nodes.append(Node(op, tuple(inputs), outputs, attributes))
        return outputs[0]


def _with_bodies(node: Node) -> Node:
    """The node with the graphs among its attributes, which were recorded too, lowered."""
    bodies = {key: Lowering(value).run() for key, value in node.attributes.items() if isinstance(value, Graph)}
    return Node(node.op, node.inputs, node.outputs, {**node.attributes, **bodies}) if bodies else node


Rule = Callable[..., Any]
LOWER: dict[str, Rule] = {}


def rule(function: Rule) -> Rule:
    """Registers a rule under the operation that it is named after, an underscore in front."""
    LOWER[function.__name__.lstrip("_")] = function
    return function


def same(op: str, **attributes: Any) -> Rule:
    """An operator that takes what the function takes."""
    return lambda s, node, *inputs: s.add(op, inputs, node.outputs, **attributes)


def alpha(op: str, **names: str) -> Rule:
    """An operator whose attributes are arguments of the function under other names."""
    return lambda s, node, x: s.add(op, (x,), node.outputs, **{to: float(node.attributes[name]) for to, name in names.items()})


def after(activation: Activation) -> dict[str, Any]:
    """The attribute that says what follows, where something does: passes may then put nothing else there."""
    return {} if activation.code == IDENTITY.code else {"activation": tuple(activation)}

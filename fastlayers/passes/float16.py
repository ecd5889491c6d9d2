"""Networks of float16 values are computed in float32, which is what kernels have; float16 is left at the edges.

before (all float16)                     after
y = Relu(Conv(x, W, b))                  y = Cast(Relu(Conv(Cast(x, float32), W32, b32)), float16)
y = Transpose(x), Gather(W, i)           the same: what only moves elements moves two bytes instead of four

What is rounded to float16: the graph's inputs and constants (which are float16 already), its outputs, what a Cast to float16
gives, what a loop, a branch or a user's operator takes. There, and there alone, a value beyond 65504 becomes infinite. Values
between two operators keep the precision of float32, as in ONNX Runtime's CPU provider, which puts Casts around each operator and
then takes out those between two. Two things differ from it: a Cast to float16 that the file itself has always rounds (ONNX
Runtime lets an operator after it read what was there before), but for results that are limited, such as softmax's, whose
rounding is of as little use as any other between operators; and an operator that moves elements rounds nothing.

With precision="strict" every operator's result is rounded to float16: it is computed in float32 and rounded once.

Arrays that stand for bfloat16 are float32 from the start (`operators.narrow`) and need nothing of this.
"""

from __future__ import annotations

import numpy as np

from ..errors import Error
from ..ir.graph import Graph, Node, captured
from ..ir.names import Names
from ..operators import FLOAT32, OPERATORS, UNDECIDED, Operator, Spec, View, traits_of
from ..operators.graphs import GraphBuilder
from ..operators.shapes import NUMBERS
from ._net import Net

__all__ = ["computed"]

HALF = np.dtype(np.float16)


def computed(net: Net, rounds: bool) -> Graph:
    """The net's graph, computed in float32. `rounds`: whether each result is rounded to float16."""
    return _Change(net, rounds).changed()


class _Change(GraphBuilder):
    """Makes the new graph node by node. A float16 value may have two names: its own, and that of the same in float32."""

    def __init__(self, net: Net, rounds: bool) -> None:
        self.source = net.graph()
        super().__init__(None, Names((*net.made, *net.known, *net.specs, *(v.name for v in self.source.inputs)), "~", 0))
        self.net, self.rounds = net, rounds
        self.outputs = {v.name for v in self.source.outputs}
        self.constants.update(self.source.constants)
        self.wide: dict[str, str] = {}  # float16 values that there are in float32
        self.missing: set[str] = set()  # of these, the ones that there are not in float16 yet

    def changed(self) -> Graph:
        """The whole graph, rewritten."""
        for node in self.source.nodes:
            self.visit(node)
        for value in self.source.outputs:
            self.narrow(value.name)
        source = self.source
        return Graph(source.inputs, source.outputs, tuple(self.nodes), self.constants, source.values)

    def visit(self, node: Node) -> None:
        """A node, and what it needs before it."""
        kept = self.net.known if node.attributes.get("half") else ()  # weights of 16 bits, which kernels take
        halves = [name for name in node.inputs if name is not None and self.is_half(name) and name not in kept]
        operator = OPERATORS.get(node.op)
        if halves and operator is not None and not self.moved(node, operator, halves) and self.widens(node, operator):
            self.widened(node)
            return
        same = None if self.rounds else self.unrounded(node)
        if same is not None:
            self.rename(node.outputs[0], same)
            return
        for name in (*halves, *captured(node)):
            self.narrow(name)
        self.nodes.append(node)

    def is_half(self, name: str) -> bool:
        """Whether a value is known to be float16."""
        spec = self.net.spec(name)
        return spec is not None and spec.dtype == HALF

    def moved(self, node: Node, operator: Operator, halves: list[str]) -> bool:
        """Whether the node moves elements that there are in float16: so it does, with half of the bytes. Results of the graph
        that something is appended to, as decoders' keys and values are, are such elements for the most part.
        """
        there = [name not in self.missing for name in halves]
        if operator.traits.moves and operator.traits.work == "elements":
            return all(there)
        joins = node.op == "Concat" and not self.outputs.isdisjoint(node.outputs)
        return joins and any(there)

    def widens(self, node: Node, operator: Operator) -> bool:
        """Whether its results in float32 are those in float16 but for the rounding."""
        net, traits = self.net, operator.traits
        if node.op == "CastLike" and node.inputs[1] is not None and self.is_half(node.inputs[1]):
            return False  # a Cast to float16
        if traits is UNDECIDED or traits.volatile or any(net.spec(name) is None for name in node.inputs if name is not None):
            return False
        given = [net.spec(name) for name in node.inputs]
        values = [net.value(name) for name in node.inputs]
        wider = [None if name is None or net.value(name) is None else self.array(name) for name in node.inputs]
        try:
            before = operator.infer(View(node, given, values))
            after = operator.infer(View(node, [None if s is None else _wide(s) for s in given], wider))
        except Error:
            return False
        return [_wide(spec) for spec in before] == after

    def widened(self, node: Node) -> None:
        """The node in float32."""
        inputs = tuple(None if name is None else self.widen(name) for name in node.inputs)
        outputs = []
        for name in node.outputs:
            half = bool(name) and self.is_half(name)
            outputs.append(self.name(f"{name}~float32") if half else name)
            if half:
                self.wide[name] = outputs[-1]
                self.missing.add(name)
        self.nodes.append(Node(node.op, inputs, tuple(outputs), node.attributes))
        if self.rounds:
            for name in [name for name in node.outputs if name in self.missing]:
                self.narrow(name)
                del self.wide[name]

    def unrounded(self, node: Node) -> str | None:
        """Finds the float32 value that a Cast to float16 may be replaced by because it need not round; None if it must.

        It casts what is limited, so that nothing can be too large, or what a Cast from float16 has made.
        """
        if node.op != "Cast" or node.attributes.get("to") != NUMBERS[HALF] or not self.is_half(node.outputs[0]):
            return None
        source, maker = node.inputs[0], self.net.producer(node.inputs[0])
        while source is not None and not self.is_half(source):
            spec = self.net.spec(source)
            if maker is None or spec is None or spec.dtype.kind != "f":
                return None
            if traits_of(maker.op).limited and spec.dtype == FLOAT32:
                return source
            if maker.op != "Cast":
                return None
            source, maker = maker.inputs[0], self.net.producer(maker.inputs[0])
        return None if source is None else self.widen(source)

    def rename(self, name: str, wide: str) -> None:
        """Remembers the float32 value `wide` that a float16 value has beside it, and that the float16 one is not made yet."""
        self.wide[name] = wide
        self.missing.add(name)

    def widen(self, name: str) -> str:
        """The name of a value in float32, if it is float16; else its own."""
        if not self.is_half(name):
            return name
        if name not in self.wide:
            constant, wide = self.net.value(name), f"{name}~float32"
            if constant is None:
                self.wide[name] = self.name(wide)
                self.nodes.append(Node("Cast", (name,), (self.wide[name],), {"to": NUMBERS[FLOAT32]}))
            else:
                self.wide[name] = self.constant(constant.astype(FLOAT32), wide)
        return self.wide[name]

    def array(self, name: str) -> np.ndarray:
        """A constant, in float32 if it is float16."""
        return self.constants[self.widen(name)] if self.is_half(name) else self.net.known[name]

    def narrow(self, name: str) -> None:
        """Sees to it that a value is there in float16."""
        if name in self.missing:
            self.nodes.append(Node("Cast", (self.wide[name],), (name,), {"to": NUMBERS[HALF]}))
            self.missing.remove(name)


def _wide(spec: Spec) -> Spec:
    return spec._replace(dtype=FLOAT32) if spec.dtype == HALF else spec

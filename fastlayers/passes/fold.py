"""Computes what does not depend on inputs, follows sizes, and takes out what does nothing.

before                                   after
c = Add(const, const)                    (a constant)
s = Shape(x)  [x is (1, 3, 8, 8)]        (a constant)
y = If(const, then, else)                the nodes of the branch taken
y = Identity(x), Dropout(x), Cast(x)     (x itself, where the dtype stays)

A few bytes of a file can stand for any amount of memory and work (ConstantOfShape, products of what it makes): beyond what the
graph's own constants account for, `Room` has little; what does not fit is computed when the model runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import Error
from ..ir.graph import Graph, Node
from ..operators import OPERATORS, Spec, View, traits_of
from ..operators.families import CONTROL
from ._net import Net

__all__ = ["apply"]

# Bytes that all folded results of a graph may take, and how many for each byte of its constants: 8-bit weights become four times
# as large, and may be transposed then.
LARGEST, _TIMES = 12 << 20, 8
# Elements that may be looked at or multiplied for them, and how many for each byte of its constants.
_WORK, _WORK_TIMES = 1 << 26, 64


def apply(net: Net, keep: frozenset[str] = frozenset(), room: Room | None = None) -> None:
    """Fills an empty net from its graph. Nodes of the operators `keep` stay, whatever is known of their inputs."""
    _Fold(net, keep, room or Room(net.source)).walk(net.source)


class Room:
    """Memory and time that folding a graph may still take."""

    def __init__(self, graph: Graph) -> None:
        own = sum(array.nbytes for array in graph.constants.values())
        self.bytes, self.work = LARGEST + _TIMES * own, _WORK + _WORK_TIMES * own

    def take(self, node: Node, inputs: list[Spec | None], results: list[Spec]) -> bool:
        """Whether results of these known sizes may be computed now; if so, they count toward the limit."""
        made = sum(_count(spec) for spec in results)
        given = [0 if spec is None else _count(spec) for spec in inputs]
        work = made + sum(given)
        kind = traits_of(node.op).work
        if kind == "products":  # of (m, k) and (k, n): m k n
            first, second = [*sorted(given, reverse=True), 0, 0][:2]
            work += math.isqrt(first * second * made)
        elif kind == "pairs":
            work *= work
        size = sum(_count(spec) * spec.dtype.itemsize for spec in results)
        if size > self.bytes or work > self.work:
            return False
        self.bytes -= size
        self.work -= work
        return True


def _count(spec: Spec) -> int:
    return math.prod(spec.shape) if spec.static else 0  # type: ignore[arg-type]


class _Fold:
    def __init__(self, net: Net, keep: frozenset[str], room: Room) -> None:
        self.net, self.keep, self.room = net, keep, room
        self.names: dict[str, str] = {}  # values that are other values
        self.outputs = {v.name for v in net.source.outputs}

    def name(self, name: str | None) -> str | None:
        while name in self.names:
            name = self.names[name]
        return name

    def walk(self, graph: Graph) -> None:
        for node in graph.nodes:
            if self.names:
                if not self.names.keys().isdisjoint(node.inputs):
                    node = Node(node.op, tuple(self.name(n) for n in node.inputs), node.outputs, node.attributes)
                if any(isinstance(value, Graph) for value in node.attributes.values()):
                    node = Node(node.op, node.inputs, node.outputs, _renamed_bodies(node, self.name))
            if node.op == "If":
                self.choice(node)
            else:
                self.node(node)

    def same(self, name: str, other: str) -> None:
        """Has value `other` stand for value `name`."""
        if name in self.outputs:
            self.net.append(Node("Identity", (other,), (name,), {}))
            known = self.net.spec(other)
            if known is not None:
                self.net.specs[name] = known
        else:
            self.names[name] = other

    def node(self, node: Node) -> None:
        net = self.net
        operator = OPERATORS.get(node.op)
        if operator is None:
            if node.op in CONTROL:
                self.known_of(node)
            net.append(node)
            return
        specs = [None if n is None else net.spec(n) for n in node.inputs]
        if any(spec is None and name is not None for spec, name in zip(specs, node.inputs, strict=True)):
            net.append(node)
            return
        view = View(node, specs, [net.value(n) for n in node.inputs])
        results = operator.infer(view)
        ready = all(n is None or v is not None for n, v in zip(node.inputs, view.values, strict=True))
        if operator.traits.shape_only and results and specs[0] is not None and specs[0].static:
            ready = True
        ready = ready and operator.run is not None and not operator.traits.volatile and node.op not in self.keep
        # Shape and Size look at no number.
        looked = [] if operator.traits.shape_only else specs
        # Strings are no constants of a graph, which are numeric; the node that gives them stays.
        ready = ready and all(spec.dtype.kind != "O" for spec in results)
        if ready and all(spec.static for spec in results) and self.room.take(node, looked, results):
            self.constants(node, view, results)
            return
        for name, spec in zip(node.outputs, results, strict=False):
            if name:
                net.specs[name] = spec
        if does_nothing(node, view, results) and node.inputs[0] is not None:
            self.same(node.outputs[0], node.inputs[0])
            return
        net.append(node)

    def constants(self, node: Node, view: View, results: list[Spec]) -> None:
        from ..operators.reference import run_operator

        try:
            arrays = run_operator(node, view, view.values, results)
        except Error:
            # Errors in a branch are deferred: it may never run.
            self.net.append(node)
            for name, spec in zip(node.outputs, results, strict=False):
                if name:
                    self.net.specs[name] = spec
            return
        for name, array, spec in zip(node.outputs, arrays, results, strict=False):
            if name:
                made = np.ascontiguousarray(array, spec.dtype).reshape(array.shape)
                made.flags.writeable = False
                target = name
                if name in self.outputs:
                    target = self.net.constant(made, name)
                    self.net.append(Node("Identity", (target,), (name,), {}))
                    self.net.specs[name] = spec
                else:
                    self.net.constants[name] = made

    def choice(self, node: Node) -> None:
        net = self.net
        condition = net.value(node.inputs[0])
        if condition is not None:
            graph: Graph = node.attributes["then_branch" if condition.reshape(-1)[:1].any() else "else_branch"]
            net.constants.update(graph.constants)
            net.names.take((*graph.constants, *(name for inner in graph.nodes for name in inner.outputs)))
            self.walk(graph)
            for name, value in zip(node.outputs, graph.outputs, strict=True):
                if name:
                    inner = self.name(value.name)
                    assert inner is not None
                    self.same(name, inner)
            return
        self.known_of(node)
        net.append(node)

    def known_of(self, node: Node) -> None:
        """Notes ranks and dtypes of what a node with graphs gives."""
        from ._bodies import control_infer

        for name, spec in zip(node.outputs, control_infer(node, self.net.spec), strict=False):
            if name and spec is not None:
                self.net.specs[name] = spec


def _renamed_bodies(node: Node, name: Callable[[str | None], str | None]) -> dict[str, Any]:
    return {k: _renamed(v, name) if isinstance(v, Graph) else v for k, v in node.attributes.items()}


def _renamed(graph: Graph, name: Callable[[str | None], str | None]) -> Graph:
    """A branch that reads values of the outer graph by the names that they have now."""
    nodes = []
    for node in graph.nodes:
        nodes.append(Node(node.op, tuple(name(n) for n in node.inputs), node.outputs, _renamed_bodies(node, name)))
    outputs = tuple(v._replace(name=name(v.name) or v.name) for v in graph.outputs)
    return Graph(graph.inputs, outputs, tuple(nodes), graph.constants, graph.values)


def does_nothing(node: Node, view: View, results: list[Spec]) -> bool:
    """Whether the node's only result is its first input."""
    nothing = traits_of(node.op).nothing
    if nothing is None or sum(bool(name) for name in node.outputs) != 1 or not node.outputs[0]:
        return False
    first = view.inputs[0] if view.inputs else None
    return first is not None and first.dtype == results[0].dtype and nothing(view, results[0])

"""From what a file says to a graph that can be run: every operator by its rule, all that is unsupported in one error."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...errors import FormatError, LimitError, UnsupportedError
from ...ir.graph import Graph, Node, Value
from ...operators.graphs import UNTOLD, GraphBuilder
from .._arrays import Array, Codec, count_bytes
from .._refused import times, unsupported
from ..budget import Budget
from ..source import quote
from . import control, layers, maths, movement, quantized, recurrent
from .call import Call
from .proto import Model, Operator, Subgraph, Tensor
from .schema import dtype_of, ignored
from .tensors import read

__all__ = ["Converter", "to_graph"]

Rule = Callable[[Call], str | tuple[str, ...]]
# Graphs may be called by several nodes; as many operators as this times those of the file are written in all.
_TIMES, _FREE = 8, 1000
_NO_NUMBERS = "that is not numeric (text, a resource, or less than a byte each)"


def to_graph(model: Model, budget: Budget, where: str) -> tuple[Graph, dict[str, str]]:
    """The graph of the file's first subgraph, and the file's metadata, with its signatures as JSON.

    Raises:
        UnsupportedError: lists every operator, or way of using one, that is not supported, each with the number of times.
        FormatError: the file contradicts itself.
        ShapeError, DTypeError: an operator cannot take what it gets.
    """
    converter = Converter(model, budget, where)
    graph = converter.main()
    return graph, {**model.metadata, **converter.signatures()}


class Converter:
    """Writes the graph of a model. Constants are read when the first operator wants them, once."""

    def __init__(self, model: Model, budget: Budget, where: str) -> None:
        self.model, self.budget, self.where = model, budget, where
        self.refused: Counter[str] = Counter()
        self.arrays: dict[tuple[int, int], Array] = {}
        self.active: list[int] = []  # the graphs that are being written, each called by the one before
        self.left = _TIMES * sum(len(g.operators) for g in model.subgraphs) + _FREE

    # ---- graphs -------------------------------------------------------------------------------------------------------

    def main(self) -> Graph:
        """The graph of subgraph 0."""
        e, graph = GraphBuilder(), self.model.subgraphs[0]
        given: dict[int, str] = {}
        for n in graph.inputs:
            dtype = self.dtype(graph.tensors[n], "an input")
            if n not in given:
                given[n] = e.input(_name(graph, n), graph.tensors[n].shape, dtype)
        found = self.subgraph(0, e, given)
        outputs: list[Value] = []
        for n, name in zip(graph.outputs, found, strict=True):
            outputs.append(self.output(e, graph, n, name, {v.name for v in outputs}))
        if self.refused:
            raise unsupported(self.where, times(self.refused))
        if not outputs:
            self.fail("the graph has no outputs")
        return e.graph(given.values(), outputs)

    def output(self, e: GraphBuilder, graph: Subgraph, n: int, name: str, others: set[str]) -> Value:
        """An output, which is no input, constant or other output."""
        tensor = graph.tensors[n]
        dtype = self.dtype(tensor, "an output")
        if name in others or name in e.constants or not any(name in node.outputs for node in e.nodes):
            name = e.node("Identity", name, out=_name(graph, n))
        shape, known = e.shape(name), e.dtype(name)
        return Value(name, tensor.shape if shape is None else shape, dtype if known == UNTOLD else known)

    def subgraph(self, number: int, e: GraphBuilder, given: dict[int, str]) -> list[str]:
        """Writes the operators of a graph whose inputs are `given`; returns the names of its outputs."""
        if number in self.active:
            self.fail(f"graph {number} calls itself")
        self.active.append(number)
        graph, scope = self.model.subgraphs[number], dict(given)
        for operator in graph.operators:
            self.operator(number, graph, operator, e, scope)
        found = [self.value(number, graph, n, e, scope) for n in graph.outputs]
        self.active.pop()
        return found

    def operator(self, number: int, graph: Subgraph, operator: Operator, e: GraphBuilder, scope: dict[int, str]) -> None:
        """Writes one operator."""
        self.left -= 1
        if self.left < 0:
            raise LimitError(
                f"{self.where}: graphs that call one another would become more than {_TIMES} times what the file has"
            )
        if not operator.outputs and (operator.name in RULES or operator.name in quantized.OWN):
            self.fail(f"{operator.name}: has no results")
        twice = [n for n in operator.outputs if n in scope or self.data(graph.tensors[n]) is not None]
        if twice or len(set(operator.outputs)) != len(operator.outputs):
            self.fail(f"{operator.name}: writes {quote([graph.tensors[n].name for n in twice])} a second time")
        tensors = tuple(None if n < 0 else graph.tensors[n] for n in operator.inputs)
        outputs = tuple(graph.tensors[n] for n in operator.outputs)
        since = len(e.nodes)
        try:
            inputs = tuple(None if n < 0 else self.value(number, graph, n, e, scope) for n in operator.inputs)
            self.all_read(operator, outputs, operator.unknown)
            made = self.written(Call(self, e, operator, inputs, tensors, outputs))
            words = operator.options.unread().items()
            self.all_read(operator, outputs, [f"{word}={v!r:.80}" for word, v in words if not ignored(operator.name, word)])
        except UnsupportedError as error:
            self.refused[str(error)] += 1
            # Stand-ins, so that the rest can be looked at.
            made = tuple(e.input("~refused", t.shape, dtype_of(t.type) or UNTOLD) for t in outputs)
        names = (made,) if isinstance(made, str) else made
        if len(outputs) > len(names):
            self.fail(f"{operator.name}: has {len(outputs)} results: expected at most {len(names)}")
        for n, name in zip(operator.outputs, names, strict=False):
            scope[n] = _renamed(e, name, self.path(number) + _name(graph, n), since)

    def all_read(self, operator: Operator, outputs: tuple[Tensor, ...], unread: Sequence[str]) -> None:
        """Raises if the file says something of an operator that its rule does not read, and that may change its results."""
        if unread:
            where = quote(outputs[0].name) if outputs else "-"
            raise UnsupportedError(f"operator {operator.name} ({where}) with {', '.join(unread)}, which is not read")

    def float_rule(self, name: str) -> Rule:
        """The rule of an operator on floats."""
        if name not in RULES:
            raise UnsupportedError(f"operator {name}")
        return RULES[name]

    def written(self, c: Call) -> str | tuple[str, ...]:
        """The results of an operator, by the rule for what it is given; see `quantized`."""
        if c.op in quantized.OWN:
            return quantized.OWN[c.op](c)
        rule = self.float_rule(c.op)
        if not any(quantized.is_quantized(t) for t in (*c.tensors, *c.outputs)):
            return rule(c)
        if c.op in quantized.MOVING and quantized.uniform(c):
            return rule(c)
        return quantized.RULES[c.op](c) if c.op in quantized.RULES else quantized.through_floats(c, rule)

    # ---- values -------------------------------------------------------------------------------------------------------

    def value(self, number: int, graph: Subgraph, n: int, e: GraphBuilder, scope: dict[int, str]) -> str:
        """The name of tensor n: an operator has made it, or it is constant."""
        if n not in scope:
            scope[n] = e.constant(self.array(number, graph, n), self.path(number) + _name(graph, n))
        return scope[n]

    def array(self, number: int, graph: Subgraph, n: int) -> Array:
        """The data of tensor n."""
        found = self.arrays.get((number, n))
        if found is None:
            tensor, data = graph.tensors[n], self.data(graph.tensors[n])
            dtype = dtype_of(tensor.type)
            if dtype is None:
                raise UnsupportedError(f"a value {_NO_NUMBERS}")
            if data is not None:
                found = read(tensor, data, self.budget, self.where)
            elif 0 in tensor.stored or tensor.variable:
                # What variables hold before the first run; no call leaves anything for the next.
                where = f"{self.where}: tensor {quote(tensor.name)}"
                count_bytes(tensor.stored, Codec(dtype), where)
                found = self.budget.empty(tensor.stored, dtype, where)
                found[...] = 0
            else:
                self.fail(f"tensor {quote(tensor.name)} is read, and no input, data or operator before gives it")
            self.arrays[number, n] = found
        return found

    def path(self, number: int) -> str:
        """Prefix of the names of a graph's values; empty for the first graph, whose names stay as they are."""
        return f"{self.model.subgraphs[number].name or f'graph_{number}'}/" if number else ""

    def name(self, number: int, n: int) -> str:
        """The name of a tensor in its graph."""
        return _name(self.model.subgraphs[number], n)

    def data(self, tensor: Tensor) -> memoryview | None:
        """The bytes that a tensor has in the file, None if there are none."""
        data = self.model.buffers[tensor.buffer] if tensor.buffer < len(self.model.buffers) else None
        return data if data is not None and len(data) else None

    def dtype(self, tensor: Tensor, what: str) -> np.dtype[Any]:
        """The dtype of a tensor, which must be numeric."""
        found = dtype_of(tensor.type)
        if found is None:
            self.refused[f"{what} {_NO_NUMBERS}"] += 1
        return UNTOLD if found is None else found

    def fail(self, text: str) -> NoReturn:
        """Raises a FormatError that names the file."""
        raise FormatError(f"{self.where}: {text}")

    def signatures(self) -> dict[str, str]:
        """{"signatures": JSON}: for each the names that a caller knows, with those of the graph."""
        found = {}
        for signature in self.model.signatures:
            graph = self.model.subgraphs[signature.subgraph]
            sides = (("inputs", signature.inputs), ("outputs", signature.outputs))
            found[signature.key] = {key: {name: _name(graph, n) for name, n in pairs} for key, pairs in sides}
        return {"signatures": json.dumps(found)} if found else {}


def _renamed(e: GraphBuilder, old: str, new: str, since: int) -> str:
    """Calls the value `old` `new`, if one of the nodes from number `since` on makes it; returns its name now."""
    if not any(old in node.outputs for node in e.nodes[since:]):
        return old
    name = e.name(new)
    for i in range(since, len(e.nodes)):
        node = e.nodes[i]
        if old in node.outputs or old in node.inputs:
            inputs = tuple(name if v == old else v for v in node.inputs)
            e.nodes[i] = Node(node.op, inputs, tuple(name if v == old else v for v in node.outputs), node.attributes)
    if old in e.specs:
        e.specs[name] = e.specs.pop(old)
    return name


def _name(graph: Subgraph, n: int) -> str:
    return graph.tensors[n].name or f"tensor_{n}"


RULES: dict[str, Rule] = {
    **layers.RULES,
    **maths.RULES,
    **movement.RULES,
    **control.RULES,
    **recurrent.RULES,
    # Sparse data has been spread out when it was read.
    "DENSIFY": lambda c: c.x(0),
}

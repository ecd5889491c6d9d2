"""Rules of operators that call other graphs of the file: IF, WHILE."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...ir.graph import Graph, Shape
from ...operators import Spec
from ...operators.graphs import GraphBuilder
from .call import Call
from .proto import Subgraph

__all__ = ["RULES"]

Rule = Callable[[Call], str | tuple[str, ...]]


def _called(c: Call, option: str, inputs: int, outputs: int) -> tuple[int, Subgraph]:
    """The graph that an option names, which must have so many inputs and outputs."""
    number, graphs = c.options[option], c.converter.model.subgraphs
    if not 0 <= number < len(graphs):
        c.fail(f"calls graph {number}, the file has {len(graphs)}")
    graph = graphs[number]
    if len(graph.inputs) != inputs or len(graph.outputs) != outputs or len(set(graph.inputs)) != inputs:
        c.fail(f"graph {number} has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs: expected {inputs} and {outputs}")
    return number, graph


def if_(c: Call) -> tuple[str, ...]:
    """Two graphs as branches, which read the inputs by their names."""
    branches: dict[str, Graph] = {}
    for key, option in (("then_branch", "then_subgraph_index"), ("else_branch", "else_subgraph_index")):
        number, graph = _called(c, option, len(c.inputs) - 1, len(c.outputs))
        inner = GraphBuilder(c.e.specs, c.e.names)
        found = c.converter.subgraph(number, inner, {n: c.x(1 + i) for i, n in enumerate(graph.inputs)})
        branches[key] = inner.graph((), found)
    names = c.e.many("If", (c.x(0),), [""] * len(c.outputs), branches)
    for name, a, b in zip(names, branches["then_branch"].outputs, branches["else_branch"].outputs, strict=True):
        if a.dtype != b.dtype:
            c.fail(f"its branches give {a.dtype} and {b.dtype}")
        c.e.specs[name] = Spec(_common(a.shape, b.shape), a.dtype)
    return names


def while_(c: Call) -> tuple[str, ...]:
    """As ONNX's Loop: the condition is asked before the first round, and at the end of each for the next."""
    count = len(c.inputs)
    asked, condition = _called(c, "cond_subgraph_index", count, 1)
    run, body = _called(c, "body_subgraph_index", count, count)
    given = [c.x(i) for i in range(count)]
    first = c.converter.subgraph(asked, c.e, dict(zip(condition.inputs, given, strict=True)))[0]
    inner = GraphBuilder(None, c.e.names)
    number, again = inner.input("~round", (), np.dtype(np.int64)), inner.input("~again", (), np.dtype(np.bool_))
    carried = []
    for name, n in zip(given, body.inputs, strict=True):
        shape = _common(body.tensors[n].shape, c.e.shape(name))
        carried.append(inner.input(f"{c.converter.path(run)}{c.converter.name(run, n)}", shape, c.e.dtype(name)))
    made = c.converter.subgraph(run, inner, dict(zip(body.inputs, carried, strict=True)))
    next_ = c.converter.subgraph(asked, inner, dict(zip(condition.inputs, made, strict=True)))[0]
    outputs = _distinct(inner, [next_, *made])
    graph = inner.graph([number, again, *carried], outputs)
    names = c.e.many("Loop", (None, first, *given), [""] * count, {"body": graph})
    for name, start, value in zip(names, given, graph.outputs[1:], strict=True):
        c.e.specs[name] = Spec(_common(c.e.shape(start), value.shape), value.dtype)
    return names


def _distinct(e: GraphBuilder, names: Sequence[str]) -> list[str]:
    """Values all made by nodes, none of them listed twice."""
    made = {name for node in e.nodes for name in node.outputs}
    found: list[str] = []
    for name in names:
        found.append(name if name in made and name not in found else e.node("Identity", name))
    return found


def _common(a: Shape | None, b: Shape | None) -> Shape | None:
    """Shape with the sizes in which two shapes agree."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(p if p == q else None for p, q in zip(a, b, strict=True))


RULES: dict[str, Rule] = {"IF": if_, "WHILE": while_}

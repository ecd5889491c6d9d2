"""Names of values: which ones nodes and graphs give and read, and giving them others. Checks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...ir.names import Names
from ..budget import Budget
from .proto import EMPTY, GraphProto, NodeProto, Reference, frozen, stored


class Fresh(Names):
    """Names within a budget."""

    def __init__(self, taken: Iterable[str], budget: Budget, where: object) -> None:
        super().__init__(taken)
        self._budget, self._where = budget, where

    def __call__(self, hint: str) -> str:
        name = super().__call__(hint)
        self._budget.take(300 + 8 * len(name), f"{self._where}: names made unique")
        return name


def subgraphs(node: NodeProto) -> list[tuple[str, GraphProto]]:
    """The graphs among a node's attributes, each with the attribute's name."""
    found: list[tuple[str, GraphProto]] = []
    if node.attributes is not EMPTY:
        for key, value in stored(node.attributes).items():
            if type(value) is GraphProto:
                found.append((key, value))
            elif type(value) is tuple and value and type(value[0]) is GraphProto:
                found.extend((key, graph) for graph in value)
    return found


def with_subgraphs(node: NodeProto, graphs: Iterable[GraphProto]) -> NodeProto:
    """The node with these graphs in place of its own, in the order of `subgraphs`."""
    new = iter(graphs)
    values = dict(stored(node.attributes))
    for key, value in values.items():
        if type(value) is GraphProto:
            values[key] = next(new)
        elif type(value) is tuple and value and type(value[0]) is GraphProto:
            values[key] = tuple([next(new) for _ in value])
    return node._replace(attributes=frozen(values))


def definitions(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """The names that nodes, and the graphs in them, give to values."""
    for node in nodes:
        for name in node.outputs:
            if name:
                yield name
        for _, graph in subgraphs(node):
            yield from graph_definitions(graph)


def graph_definitions(graph: GraphProto) -> Iterator[str]:
    """The names that a graph, and the graphs in it, give to values; an input with a default comes twice."""
    for info in graph.inputs:
        yield info.name
    yield from graph.initializers
    yield from definitions(graph.nodes)


def reads(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """The names that nodes, and the graphs in them, read."""
    for node in nodes:
        for name in node.inputs:
            if name:
                yield name
        for _, graph in subgraphs(node):
            yield from reads(graph.nodes)
            for info in graph.outputs:
                yield info.name


def renamed_node(node: NodeProto, names: Mapping[str, str], attributes: Mapping[str, Any] | None = None) -> NodeProto:
    """The node with `names` (old: new) applied, in its graphs too.

    If `attributes` are given, references to attributes are resolved from them; one that they lack is left out.
    """
    values = stored(node.attributes)
    if values:
        new: dict[str, Any] = {}
        for key, value in values.items():
            if type(value) is Reference and attributes is not None:
                if value.name in attributes:
                    new[key] = attributes[value.name]  # the caller's: a graph among them has the names of the caller already
            elif type(value) is GraphProto:
                new[key] = renamed_graph(value, names, attributes)
            elif type(value) is tuple and value and type(value[0]) is GraphProto:
                new[key] = tuple([renamed_graph(graph, names, attributes) for graph in value])
            else:
                new[key] = value
        values = frozen(new)
    return node._replace(
        inputs=tuple([names.get(name, name) for name in node.inputs]),
        outputs=tuple([names.get(name, name) for name in node.outputs]),
        attributes=values,
    )


def renamed_graph(graph: GraphProto, names: Mapping[str, str], attributes: Mapping[str, Any] | None = None) -> GraphProto:
    """The graph with `names` applied to all that is in it, and references resolved as `renamed_node` does."""
    infos = [info._replace(name=names.get(name, name)) for name, info in graph.value_info.items()]
    return graph._replace(
        nodes=tuple([renamed_node(node, names, attributes) for node in graph.nodes]),
        initializers=renamed_keys(graph.initializers, names),
        inputs=tuple([info._replace(name=names.get(info.name, info.name)) for info in graph.inputs]),
        outputs=tuple([info._replace(name=names.get(info.name, info.name)) for info in graph.outputs]),
        value_info=frozen({info.name: info for info in infos}),
        widened=renamed_keys(graph.widened, names),
    )


def renamed_keys(values: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """The mapping with `names` applied to its keys."""
    return frozen({names.get(name, name): value for name, value in stored(values).items()})

"""Checks which values nodes read and write, and puts the nodes in an order in which they can be run.

Afterwards every name stands for one value in the whole model: names that two graphs of it give are made different, so that what
is in an inner graph may be moved to an outer one as it is.
"""

from __future__ import annotations

from ..._tuples import NamedTuple
from ...errors import FormatError
from ..budget import Budget
from ..source import quote
from .names import Fresh, graph_definitions, renamed_graph, subgraphs, with_subgraphs
from .proto import GraphProto, NodeProto, Place


class _Survey(NamedTuple):
    """Names that a graph defines itself; names that it, or a graph in it, reads from outside; its nodes that have graphs."""

    graph: GraphProto  # held, so that its id stays its own
    own: set[str]
    free: set[str]
    holders: dict[int, list[tuple[str, GraphProto]]]  # by the id of the node


def arrange(graph: GraphProto, budget: Budget, where: str) -> GraphProto:
    """The same network, ordered and checked. Raises FormatError for anything that is defined twice, never, or by itself."""
    arranger = _Arranger(graph, budget, where)
    names = [info.name for info in graph.outputs]
    if len(set(names)) < len(names):
        raise FormatError(f"{where}: two outputs of the model have the name {quote(_twice(names))}")
    return arranger.graph(graph, set(), where)


class _Arranger:
    def __init__(self, main: GraphProto, budget: Budget, where: str) -> None:
        self._main = main
        self._budget = budget
        self._where = where
        self._surveys: dict[int, _Survey] = {}
        self._seen: set[str] = set()  # the names of all graphs that were looked at
        self._fresh: Fresh | None = None

    def graph(self, graph: GraphProto, visible: set[str], where: object) -> GraphProto:
        """The graph arranged; `visible` are the names of the graphs around it that may be read, as it is again afterwards."""
        survey = self._survey(graph, where)
        clashes = survey.own & self._seen
        if clashes:
            hidden = clashes & visible
            if hidden:
                raise FormatError(f"{where}: value {quote(min(hidden))} has the name of one of a graph around it")
            graph = renamed_graph(graph, {name: self._unused(name) for name in sorted(clashes)})
            survey = self._survey(graph, where)
        self._seen |= survey.own
        given = {info.name for info in graph.inputs} | graph.initializers.keys()
        nodes = graph.nodes
        if not self._in_order(nodes, given, survey, visible, where):
            nodes = tuple(self._sorted(nodes, survey, where))
        for info in graph.outputs:
            if info.name not in survey.own and info.name not in visible:
                raise FormatError(f"{where}: output {quote(info.name)} is written by no node")
        if survey.holders:
            nodes = self._with_inner(nodes, given, survey, visible, where)
        return graph if nodes is graph.nodes else graph._replace(nodes=nodes)

    def _survey(self, graph: GraphProto, where: object) -> _Survey:
        found = self._surveys.get(id(graph))
        if found is not None:
            return found
        names = [info.name for info in graph.inputs]
        if len(set(names)) < len(names):
            raise FormatError(f"{where}: two inputs have the name {quote(_twice(names))}")
        own = set(names)
        own.update(graph.initializers)
        free: set[str] = {info.name for info in graph.outputs}
        holders: dict[int, list[tuple[str, GraphProto]]] = {}
        for node in graph.nodes:
            for name in node.outputs:
                if name in own:
                    raise FormatError(f"{_place(where, node)}: writes {quote(name)} a second time")
                if name:
                    own.add(name)
            free.update(node.inputs)
            graphs = subgraphs(node)
            if graphs:
                holders[id(node)] = graphs
                for key, inner in graphs:
                    free |= self._survey(inner, Place(_place(where, node), "attribute", key)).free
        free -= own
        free.discard("")
        survey = self._surveys[id(graph)] = _Survey(graph, own, free, holders)
        return survey

    def _in_order(self, nodes: tuple[NodeProto, ...], given: set[str], survey: _Survey, visible: set[str], where: object) -> bool:
        """Whether each node comes after those that it reads from. Raises FormatError for names that nothing gives."""
        own, holders = survey.own, survey.holders
        known = {"", *given}
        in_order = True
        for node in nodes:
            if not node.opset:
                raise FormatError(f"{_place(where, node)}: is an operator of ONNX's own set, which the model does not import")
            for name in node.inputs:
                if name not in known:
                    if name in own:
                        in_order = False
                    elif name not in visible:
                        raise FormatError(f"{_place(where, node)}: reads {quote(name)}, which nothing writes")
            if id(node) in holders:
                # Names that nothing gives are found when the inner graph is looked at, by the node that reads them.
                for _, inner in holders[id(node)]:
                    in_order = in_order and own.isdisjoint(self._surveys[id(inner)].free - known)
            known.update(node.outputs)
        return in_order

    def _sorted(self, nodes: tuple[NodeProto, ...], survey: _Survey, where: object) -> list[NodeProto]:
        """The nodes in an order that can be run, as near to the file's as can be."""
        from heapq import heappop, heappush

        writers = {name: index for index, node in enumerate(nodes) for name in node.outputs if name}
        readers: list[list[int]] = [[] for _ in nodes]
        waiting = [0] * len(nodes)
        for index, node in enumerate(nodes):
            names = set(node.inputs)
            for _, inner in survey.holders.get(id(node), ()):
                names |= self._surveys[id(inner)].free
            for writer in {writers[name] for name in names if name in writers}:
                readers[writer].append(index)
                waiting[index] += 1
        ready = [index for index, count in enumerate(waiting) if not count]
        order: list[NodeProto] = []
        while ready:
            index = heappop(ready)
            order.append(nodes[index])
            for reader in readers[index]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    heappush(ready, reader)
        if len(order) < len(nodes):
            stuck = next(node for node, count in zip(nodes, waiting, strict=True) if count)
            raise FormatError(f"{_place(where, stuck)}: is part of a cycle: it reads, through other nodes, its own output")
        return order

    def _with_inner(
        self, nodes: tuple[NodeProto, ...], given: set[str], survey: _Survey, visible: set[str], where: object
    ) -> tuple[NodeProto, ...]:
        """The nodes with the graphs in them arranged; each sees what comes before its node."""
        new: list[NodeProto] = []
        visible |= given
        changed = False
        for node in nodes:
            graphs = survey.holders.get(id(node))
            if graphs:
                place = _place(where, node)
                arranged = [self.graph(inner, visible, Place(place, "attribute", key)) for key, inner in graphs]
                if any(new is not old for new, (_, old) in zip(arranged, graphs, strict=True)):
                    node = with_subgraphs(node, arranged)
                    changed = True
            visible.update(node.outputs)
            new.append(node)
        visible -= survey.own
        visible.discard("")
        return tuple(new) if changed else nodes

    def _unused(self, name: str) -> str:
        if self._fresh is None:
            self._fresh = Fresh(graph_definitions(self._main), self._budget, self._where)
        return self._fresh(name)


def _place(where: object, node: NodeProto) -> Place:
    return Place(where, node.op_type, node.name or ", ".join(node.outputs))


def _twice(names: list[str]) -> str:
    """The first name that occurs twice, or ""."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""

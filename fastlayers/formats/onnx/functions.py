"""Local functions: every node that calls one is replaced by the function's nodes, under their own names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from ..._tuples import NamedTuple
from ...errors import FormatError, LimitError
from ..budget import Budget
from ..source import quote
from .names import Fresh, definitions, graph_definitions, reads, renamed_keys, renamed_node, subgraphs, with_subgraphs
from .proto import EMPTY, FunctionProto, GraphProto, Model, NodeProto, Place, frozen, stored

MAX_CALLS = 64  # in one another
MAX_EXPANDED = 50_000  # nodes that come from functions: a few that call each other can stand for any number
_NODE_BYTES = 1000

_Key = tuple[str, str, str]  # domain, name, overload


class _Function(NamedTuple):
    """A function that was checked, with the names that its body gives to values, in order."""

    proto: FunctionProto
    names: tuple[str, ...]


def inline(model: Model, budget: Budget, where: str) -> GraphProto:
    """The model's graph without calls of the model's functions. Raises FormatError for recursion, LimitError for an explosion."""
    return _Inliner(model, budget, where).graph(model.graph, ())


class _Inliner:
    def __init__(self, model: Model, budget: Budget, where: str) -> None:
        self._where = where
        self._budget = budget
        self._opset = model.opsets.get("", 0)
        self._fresh = Fresh(graph_definitions(model.graph), budget, where)
        self._left = MAX_EXPANDED
        self._functions: dict[_Key, FunctionProto] = {}
        self._checked: dict[_Key, _Function] = {}
        for function in model.functions:
            key = function.domain, function.name, function.overload
            if not function.name or key in self._functions:
                raise FormatError(f"{where}: function {quote(':'.join(key))} is there twice, or has no name")
            self._functions[key] = function

    def graph(self, graph: GraphProto, calls: tuple[_Key, ...]) -> GraphProto:
        """The graph with its nodes expanded; `calls` are the functions being expanded, which may not call themselves."""
        widened: dict[str, str] = dict(graph.widened)
        nodes = self._expanded(graph.nodes, calls, widened)
        return graph._replace(nodes=tuple(nodes), widened=frozen(widened))

    def _expanded(self, nodes: Iterable[NodeProto], calls: tuple[_Key, ...], widened: dict[str, str]) -> list[NodeProto]:
        out: list[NodeProto] = []
        for node in nodes:
            graphs = subgraphs(node)
            if graphs:
                node = with_subgraphs(node, [self.graph(graph, calls) for _, graph in graphs])
            key = node.domain, node.op_type, node.overload
            if key in self._functions:
                out += self._called(node, key, calls, widened)
            else:
                out.append(node)
        return out

    def _called(self, node: NodeProto, key: _Key, calls: tuple[_Key, ...], widened: dict[str, str]) -> list[NodeProto]:
        """The nodes that do what a call does."""
        if key in calls:
            chain = " calls ".join(quote(name) for _, name, _ in (*calls[calls.index(key) :], key))
            raise FormatError(f"{self._where}: function {chain}: recursion is not allowed")
        if len(calls) >= MAX_CALLS:
            raise LimitError(f"{self._where}: functions call each other more than {MAX_CALLS} deep")
        function, internal = self._check(key)
        for kind, given, taken in (("inputs", node.inputs, function.inputs), ("outputs", node.outputs, function.outputs)):
            if len(given) > len(taken):
                place = Place(self._where, node.op_type, node.name)
                raise FormatError(f"{place}: has {len(given)} {kind}, the function has {len(taken)}")
        prefix = node.name or function.name
        names = dict(zip_longest(function.inputs, node.inputs, fillvalue=""))
        copies: list[NodeProto] = []
        for formal, actual in zip_longest(function.outputs, node.outputs, fillvalue=""):
            if formal not in names:
                names[formal] = actual or self._fresh(f"{prefix}/{formal}")
            elif actual:  # an input, or another output, is given back
                opset = function.opsets.get("", self._opset)
                copies.append(NodeProto("Identity", "", "", prefix, (names[formal],), (actual,), EMPTY, opset))
        for name in internal:
            if name not in names:
                names[name] = self._fresh(f"{prefix}/{name}")
        attributes = {**stored(function.defaults), **stored(node.attributes)}
        body: list[NodeProto] = []
        self._left -= 1 + len(function.nodes)  # the call too, since a function may have no nodes
        if self._left < 0:
            raise LimitError(f"{self._where}: its functions stand for more than {MAX_EXPANDED} nodes")
        for inner in function.nodes:
            label = f"{prefix}/{inner.name or inner.op_type}"
            self._budget.take(_NODE_BYTES + 4 * len(label), f"{self._where}: expanding functions")
            body.append(renamed_node(inner, names, attributes)._replace(name=label))
        widened.update(renamed_keys(function.widened, names))
        return self._expanded(body, (*calls, key), widened) + copies

    def _check(self, key: _Key) -> _Function:
        """The function, whose body must be complete in itself: a name that it does not give would be one of its caller."""
        if key in self._checked:
            return self._checked[key]
        function = self._functions[key]
        where = Place(self._where, "function", function.name)
        internal = dict.fromkeys(definitions(function.nodes))
        written = {name for node in function.nodes for name in node.outputs if name}
        inputs = set(function.inputs)
        if len(inputs) < len(function.inputs) or "" in inputs or inputs & written:
            raise FormatError(f"{where}: an input has no name, or the name of another value")
        for name in function.outputs:
            if name not in inputs and name not in written:
                raise FormatError(f"{where}: nothing writes its output {quote(name)}")
        for name in reads(function.nodes):
            if name not in inputs and name not in internal:
                raise FormatError(f"{where}: reads {quote(name)}, which is no input of it and which nothing in it writes")
        self._checked[key] = _Function(function, tuple(internal))
        return self._checked[key]

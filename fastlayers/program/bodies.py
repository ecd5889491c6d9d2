"""The graphs among a node's attributes as programs: what they read of the graphs around them become inputs and constants."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._locks import Lock
from ..ir.graph import Graph, Value, free, needed
from ..operators import Spec
from .binder import Prepare
from .segment import Segment

__all__ = ["UNTOLD", "Bodies", "Body", "Form", "Kind", "kind_of", "kind_of_spec", "through"]

UNTOLD = np.dtype(np.void)
KEPT = 16  # forms of one body, for inputs of other ranks

# An input: an array of this dtype and so many axes, or of another class (a list, None).
Kind = tuple[np.dtype, int] | type
# The program, and for each output the number of the input, or the constant, that it is, or -1 if the program makes it.
Form = tuple[Segment, list["int | np.ndarray"]]


class Body:
    """A graph in a node's attributes, made complete: what it reads of the graphs around it becomes its inputs and constants.

    Args:
        graph: as the attribute has it.
        constants: those of the graphs around it.
        lock: taken while a program is made.
        simplify: gives the form in which a graph, complete in itself, runs; None if it runs as it is.
        program: makes the program of a graph.
    """

    def __init__(
        self,
        graph: Graph,
        constants: Mapping[str, np.ndarray],
        lock: Lock,
        simplify: Prepare | None,
        program: Callable[..., Segment],
    ) -> None:
        names = sorted(free(graph))
        self._written = graph  # kept: a body is found by the identity of its graph
        self._lock, self._simplify, self._program = lock, simplify, program
        self.captured = tuple(name for name in names if name not in constants)
        own = {**graph.constants, **{name: constants[name] for name in names if name in constants}}
        inputs = (*graph.inputs, *(Value(name, None, UNTOLD) for name in self.captured))
        self.graph = Graph(inputs, graph.outputs, graph.nodes, own, graph.values)
        self._forms: OrderedDict[tuple[Kind, ...], Form] = OrderedDict()
        self.recent: tuple[tuple[Kind, ...], Segment | None, list[int | np.ndarray]] = ((), None, [])  # the form that ran last
        self.laid: Any = None  # and its segments in a loop (`stages.Laid`)

    @property
    def forms(self) -> list[Form]:
        """Those that are retained, the one that was made last at the end."""
        return list(self._forms.values())

    def form(self, kinds: tuple[Kind, ...]) -> Form:
        """The program for inputs (those of the graph, then what it reads from around it) of these kinds."""
        with self._lock:
            found = self._forms.get(kinds)
            if found is None:
                found = self._forms[kinds] = self._form(kinds)
                while len(self._forms) > KEPT:
                    self._forms.popitem(last=False)
            return found

    def missed(self, kinds: tuple[Kind, ...], program: Segment) -> Form:
        """The form that is to be bound where a program of these kinds has not met the values of its inputs yet: once most are
        new, one that is bound to sizes alone, for good.
        """
        with self._lock:
            found = self._forms.get(kinds) or self._form(kinds)
            if program.missed() and found[0] is program:
                found = self._program(program.graph, by_value=False), found[1]
            self._forms[kinds] = found
            return found

    def _form(self, kinds: tuple[Kind, ...]) -> Form:
        def value(v: Value, kind: Kind) -> Value:
            if isinstance(kind, tuple):
                return Value(v.name, (None,) * kind[1], kind[0])
            return Value(v.name, None, UNTOLD, "sequence(tensor)" if kind is list else "optional(tensor)")

        graph = self.graph
        inputs = tuple(map(value, graph.inputs, kinds))
        graph = Graph(inputs, graph.outputs, graph.nodes, graph.constants, graph.values)
        graph = graph if self._simplify is None else self._simplify(graph, {}, {})
        same = {node.outputs[0]: node.inputs[0] for node in graph.nodes if node.op == "Identity"}
        places = {v.name: i for i, v in enumerate(graph.inputs)}
        through: list[int | np.ndarray] = []
        outputs = []
        for output in graph.outputs:
            name: str | None = output.name
            while name in same:
                name = same[name]
            constant = graph.constants.get(name or "")
            through.append(places.get(name or "", -1) if constant is None else constant)
            if constant is None and name not in places:
                outputs.append(output)
        return self._program(_needed(Graph(graph.inputs, tuple(outputs), graph.nodes, graph.constants, graph.values))), through


class Bodies:
    """The bodies of a graph's nodes, each made ready once."""

    def __init__(self, lock: Lock, simplify: Prepare | None, program: Callable[..., Segment]) -> None:
        self._lock, self._simplify, self._program = lock, simplify, program
        self._found: dict[int, Body] = {}  # by the identity of their graphs

    def of(self, graph: Graph, constants: Mapping[str, np.ndarray]) -> Body:
        """The body of a graph, made if it is not there."""
        with self._lock:
            found = self.get(graph)
            if found is None:
                found = self._found[id(graph)] = Body(graph, constants, self._lock, self._simplify, self._program)
            return found

    def get(self, graph: Graph) -> Body | None:
        """The body of a graph that has been made ready."""
        return self._found.get(id(graph))

    def values(self) -> list[Body]:
        """All that have been made ready."""
        return list(self._found.values())


def kind_of(value: object) -> Kind:
    """The kind of an input of a body."""
    return (value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value)


def kind_of_spec(spec: Spec) -> Kind:
    """The kind of an input of a body that will have these sizes."""
    return spec.dtype, len(spec.shape or ())


def _needed(graph: Graph) -> Graph:
    """The graph without nodes whose results nothing reads."""
    nodes, _ = needed(graph.nodes, (v.name for v in graph.outputs))
    return Graph(graph.inputs, graph.outputs, nodes, graph.constants, graph.values)


def through(form: Sequence[int | np.ndarray], given: Sequence[object], results: Sequence[object]) -> list[object]:
    """A body's outputs: its program's results, and what it hands on as it is."""
    if len(results) == len(form):
        return list(results)
    made = iter(results)
    return [i if not isinstance(i, int) else next(made) if i < 0 else given[i] for i in form]

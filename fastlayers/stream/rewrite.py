"""From a graph over whole sequences to one over pieces of them: every state is an input and an output of it.

The graph is walked once. Each value is followed along time (`_times`), and each node that reads earlier steps gets its history or
its state from a new input and gives it to a new output (`operators.stream`). The nodes themselves, their weights and the order of
their sums stay as they are, so the pieces of the result are those of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from .._tuples import NamedTuple
from ..errors import Error, ShapeError, UnsupportedError, ours
from ..ir.graph import Graph, Node, Value, captured
from ..ir.names import Names
from ..operators import OPERATORS, Spec, View, traits_of
from ..operators.graphs import UNTOLD, GraphBuilder, inferred
from ..operators.reference import run_operator
from ._times import LATEST, Kind, Sizes, Time

__all__ = ["RULES", "SIZED", "Rewriter", "Rewritten", "Rule", "State", "by_steps"]


class State(NamedTuple):
    """A state: the names of its input and its output, the sizes that it has once it has begun, where they are known, and along
    which axis it has any number of steps up to `most`.
    """

    before: str
    after: str
    shape: tuple[Any, ...]
    axis: int | None = None
    most: int = 0

    def check(self, shape: tuple[int, ...]) -> None:
        """Raises unless the state may have this shape."""
        sizes = list(zip(self.shape, shape, strict=False))
        fits = len(shape) == len(self.shape) and all(not isinstance(d, int) or d == size for d, size in sizes)
        if not fits or (self.axis is not None and shape[self.axis] > self.most):
            told = tuple("any" if d is None else d for d in self.shape)
            if self.axis is not None:
                told = (*told[: self.axis], f"at most {self.most}", *told[self.axis + 1 :])
            raise ShapeError(f"stream: state {self.before!r} has shape {shape}: expected {told}")


class Rewritten(NamedTuple):
    """The graph, its states, and which outputs have time, along which axis."""

    graph: Graph
    states: tuple[State, ...]
    times: dict[str, int]


Rule = Callable[["Rewriter", Node, Sequence[Kind]], Sequence[Kind]]
# By what operators' traits call them: of steps (`time`), and of vectors of sizes (`sizes`).
RULES: dict[str, Rule] = {}
SIZED: dict[str, Rule] = {}


class Rewriter(GraphBuilder):
    """A graph that is being made of another."""

    def __init__(self, graph: Graph, times: Mapping[str, int]) -> None:
        ends = (v.name for v in (*graph.inputs, *graph.outputs))
        super().__init__(
            {name: Spec(a.shape, a.dtype) for name, a in graph.constants.items()},
            Names((*graph.constants, *ends, *(name for node in graph.nodes for name in node.outputs)), "~", 0),
        )
        self.source = graph
        self.constants.update(graph.constants)
        self.states: list[tuple[State, np.dtype[Any]]] = []
        self.kinds: dict[str, Kind] = {}
        self.whole: dict[str, Spec] = {}  # what is known of values of the whole sequence, if the graph says how long it is
        self.numbers: dict[str, np.ndarray] = {}  # what is computed of sizes that are known
        self.inputs = []
        for value in graph.inputs:
            if value.name in times:
                axis = times[value.name]
                shape = tuple(value.shape or ())
                self.kinds[value.name] = Time(axis)
                self.whole[value.name] = Spec(shape, value.dtype)
                value = value._replace(shape=(*shape[:axis], None, *shape[axis + 1 :]))
            self.inputs.append(value)
            self.specs[value.name] = Spec(value.shape, value.dtype)
        self.whole = {**self.specs, **self.whole}

    # ---- for rules --------------------------------------------------------------------------------------------------

    def value(self, name: str | None) -> np.ndarray | None:
        """The array that a name stands for, if it is constant, or computed of sizes that are known."""
        found = super().value(name)
        return self.numbers.get(name) if found is None and name else found

    def ints(self, values: Sequence[int] | int, hint: str = "ints") -> str:
        """A new constant of integers, a vector of a single one too."""
        return self.constant(np.array(values, np.int64).reshape(-1), hint)

    def rank_of(self, node: Node, name: str | None) -> int:
        """The number of axes of a value; the node is refused if it is unknown."""
        rank = self.rank(name)
        if rank is None:
            self.refuse(node, f"reads {name!r}, whose number of axes is not known")
        return rank

    def length(self, name: str | None, time: Time) -> Any:
        """The number of steps of a value of the whole sequence, if the graph says it."""
        spec = self.whole.get(name) if name else None
        return spec.shape[time.axis] if spec is not None and spec.shape is not None else None

    def dtype_of(self, node: Node, name: str | None) -> np.dtype[Any]:
        """The dtype of a value; the node is refused if it is unknown."""
        dtype = self.dtype(name)
        if dtype == UNTOLD:
            self.refuse(node, f"reads {name!r}, whose dtype is not known")
        return dtype

    def add(self, op: str, inputs: Sequence[str | None], *outputs: str, **attributes: Any) -> str:
        """Appends a node; returns the name of its first output, a new one if none is given."""
        made = outputs or (self.name(f"{inputs[0]}~{op}"),)
        self.append(Node(op, tuple(inputs), made, attributes))
        return made[0]

    def append(self, node: Node) -> None:
        """Appends a node as it is."""
        try:
            super().append(node)
        except Error as error:
            raise ShapeError(f"stream: {error}") from error

    def state(
        self, node: Node, hint: str, dtype: np.dtype[Any], shape: Sequence[Any], axis: int | None = None, most: int = 0
    ) -> tuple[str, str]:
        """A new state: the names of its input and its output. For the rest see `State`."""
        before, after = self.name(f"{node.outputs[0] or node.op}~{hint}"), self.name(f"{node.outputs[0] or node.op}~{hint}~next")
        known = tuple(d if isinstance(d, int) and i != axis else None for i, d in enumerate(shape))
        self.states.append((State(before, after, known, axis, most), dtype))
        self.specs[before] = Spec(None, dtype)
        return before, after

    def refuse(self, node: Node, why: str) -> NoReturn:
        """The error for a node that cannot run piece by piece."""
        raise UnsupportedError(f"stream: {where(node)} {why}")

    def together(self, node: Node, *kinds: Kind) -> Time:
        """The pace that values share; the axis is the first one's."""
        times = [k for k in kinds if isinstance(k, Time)]
        if len({t.pace for t in times}) > 1:
            self.refuse(node, "joins values whose steps come at different times: expected the same padding and strides for both")
        return times[0]

    # ---- the walk ---------------------------------------------------------------------------------------------------

    def run(self) -> Rewritten:
        for node in self.source.nodes:
            self._go_on(node)
        times, outputs = {}, []
        for value in self.source.outputs:
            kind = self.kinds.get(value.name)
            if isinstance(kind, Time):
                if kind.late:
                    raise UnsupportedError(f"stream: {kind.culprit}")
                times[value.name] = kind.axis
                if value.shape is not None:
                    value = value._replace(shape=(*value.shape[: kind.axis], None, *value.shape[kind.axis + 1 :]))
            elif isinstance(kind, Sizes) and kind.timed:
                raise UnsupportedError(f"stream: output {value.name!r} is the number of steps: only the whole sequence has it")
            outputs.append(value)
        before = [Value(state.before, None, dtype) for state, dtype in self.states]
        after = [Value(state.after, None, dtype) for state, dtype in self.states]
        graph = self.graph((*self.inputs, *before), (*outputs, *after))
        return Rewritten(graph, tuple(state for state, _ in self.states), times)

    def _go_on(self, node: Node) -> None:
        with ours(lambda: f"stream: {where(node)}"):
            made = self._visit(node, [self.kinds.get(name) if name else None for name in node.inputs])
            self.kinds.update((name, kind) for name, kind in zip(node.outputs, made, strict=False) if name)
            with suppress(Error):
                view = View(node, [self.whole.get(name) if name else None for name in node.inputs], self.view(node).values)
                self.whole.update(inferred(view))

    def _visit(self, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
        if any(self.kinds.get(name) is not None for name in captured(node)):
            self.refuse(node, "has subgraphs that read values which change over time: such a network cannot run piece by piece")
        found = [k for k in kinds if k is not None and not (isinstance(k, Sizes) and not k.timed)]
        sizes = traits_of(node.op).sizes
        if sizes and any(isinstance(k, Sizes) for k in kinds):
            return SIZED[sizes](self, node, kinds)
        if not found:
            self.append(node)
            self._compute(node, kinds)
            return (None,) * len(node.outputs)
        if all(k is LATEST for k in found):
            self.append(node)
            return (LATEST,) * len(node.outputs)
        if any(k is LATEST for k in found):
            self.refuse(node, "joins a value that is known after the last step with single steps: it needs the whole sequence")
        if any(isinstance(k, Sizes) for k in found):
            self.refuse(node, "computes with the number of steps: only the whole sequence has it")
        kinds = [None if isinstance(k, Sizes) else k for k in kinds]
        return by_steps(self, node, kinds)

    def _compute(self, node: Node, kinds: Sequence[Kind]) -> None:
        """The results of a node for sizes that are known, such as the product of two."""
        operator = OPERATORS.get(node.op)
        sized = any(isinstance(k, Sizes) or name in self.numbers for name, k in zip(node.inputs, kinds, strict=True))
        if operator is None or operator.run is None or not sized:
            return
        values: list[np.ndarray | None] = []
        for name, kind in zip(node.inputs, kinds, strict=True):
            array = self.value(name)
            if isinstance(kind, Sizes) and all(isinstance(e, int) for e in kind.entries):
                shape = self.shape(name)
                array = np.array(kind.entries, np.int64).reshape(() if shape == () else (-1,))
            if array is None:
                return
            values.append(array)
        specs = [None if a is None else Spec(a.shape, a.dtype) for a in values]
        made = run_operator(node, View(node, specs, values), values)
        self.numbers.update((name, np.asarray(array)) for name, array in zip(node.outputs, made, strict=False))


def where(node: Node) -> str:
    """The name of a node in errors."""
    return f"{node.op} ({next((name for name in node.outputs if name), '-')})"


def by_steps(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """The results of a node for values of which one has time, at least."""
    rule = RULES.get(traits_of(node.op).time)
    if rule is None:
        rw.refuse(node, f"looks at the whole sequence, or is not known to go step by step{why(node)}")
    return rule(rw, node, kinds)


def why(node: Node) -> str:
    """The effect of a node on all steps, if that can be said."""
    verb = traits_of(node.op).whole
    return f": it {verb} all steps" if verb else ""


def sizes_of(rw: Rewriter, name: str, kind: Kind) -> Sizes | None:
    """The entries of a vector of sizes, constant ones too."""
    if isinstance(kind, Sizes):
        return kind
    array = rw.value(name)
    if array is None:
        # Whatever it is, it has nothing to do with time.
        shape = rw.shape(name)
        if kind is not None or shape is None or len(shape) > 1 or not all(isinstance(d, int) for d in shape):
            return None
        return Sizes(tuple(f"{name}:{i}" for i in range(shape[0] if shape else 1)), Time(0))
    if array.dtype.kind not in "iu":
        return None
    return Sizes(tuple(int(v) for v in array.reshape(-1)), Time(0))

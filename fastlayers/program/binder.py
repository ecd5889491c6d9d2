"""From a graph and the sizes of its inputs to a plan: every node's shapes, what is known beforehand, and the calls that
remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import Error, LimitError, ShapeError, UnsupportedError, ours
from ..graph.ir import Graph, Node
from ..operators import OPERATORS, Spec, View
from ..operators._calls import copy, has, movable
from ..operators.control import CONTROL
from ..operators.sequence import SEQUENCES
from .arena import layout
from .builder import ARENA, INPUT, OUTPUT, Buffer, Builder, Call, NativeCall, PythonCall, Ref
from .memory import LARGEST, result_bytes, too_much

__all__ = ["Interpret", "Pack", "Placed", "Plan", "Prepare", "as_written", "bind", "run_operator", "value_inputs"]

# Results of constant expressions up to this size are computed when a model is bound; larger ones in every run.
FOLD_BYTES = 1 << 16


class Interpret(Exception):
    """Sizes depend on numbers that are there only when the model runs. `position`: of the node in the graph that is bound."""

    position = 0


class Placed(NamedTuple):
    """A node that is left, with all sizes known; `weights` are the sizes of the inputs that are constants."""

    node: Node
    inputs: tuple[Spec | None, ...]
    outputs: tuple[Spec, ...]
    weights: tuple[int | None, ...]


class Plan(NamedTuple):
    """The calls of a model for one set of sizes. Outputs are (shape, dtype) in the order of the graph's; a call names its
    node's position.
    """

    calls: list[Call | PythonCall | NativeCall]
    outputs: list[tuple[tuple[int, ...], np.dtype[Any]]]
    arena: int
    nodes: list[Placed]


Pack = Callable[[Any, str, Callable[[], tuple[Any, ...]]], Any]


Prepare = Callable[[Graph, Mapping[str, np.ndarray], Mapping[str, Spec]], Graph]


def as_written(graph: Graph, constants: Mapping[str, np.ndarray], specs: Mapping[str, Spec]) -> Graph:
    """A branch as it is."""
    return graph


def bind(
    graph: Graph,
    inputs: Sequence[Spec],
    values: Sequence[np.ndarray | None],
    pack: Pack,
    prepare: Prepare = as_written,
    most: int = LARGEST,
) -> Plan:
    """The plan for inputs of these shapes, some of whose values may be known. `prepare` gives the form of a branch that is to
    be walked; `most` is how many bytes a run may take.

    Raises:
        Interpret: the sizes do not settle everything.
        ShapeError, DTypeError, UnsupportedError: a node cannot take what it gets.
        LimitError: a run would take more than `most` bytes.
    """
    binder = _Binder(pack, prepare, most)
    with ours(lambda: _where(graph, binder.at)):
        return binder.run(graph, inputs, values)


def _where(graph: Graph, at: int) -> str:
    return View(graph.nodes[at], [], []).where if graph.nodes else "run"


class _Binder:
    def __init__(self, pack: Pack, prepare: Prepare, most: int) -> None:
        self.prepare, self.most = prepare, most
        self.constants: dict[str, np.ndarray] = {}
        self.specs: dict[str, Spec] = {}
        self.known: dict[str, np.ndarray] = {}
        self.builder = Builder(pack)
        self.nodes: list[Placed] = []
        self.at = 0  # the position in the outermost graph

    def run(self, graph: Graph, inputs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> Plan:
        for i, (value, spec, array) in enumerate(zip(graph.inputs, inputs, values, strict=True)):
            self.specs[value.name] = spec
            nbytes = math.prod(spec.shape) * spec.dtype.itemsize  # type: ignore[arg-type]
            self.builder.refs[value.name] = Ref(Buffer(INPUT, nbytes, i), 0, spec.shape, spec.dtype)  # type: ignore[arg-type]
            if array is not None:
                self.known[value.name] = array
        try:
            self.walk(graph, True)
        except Interpret as reason:
            reason.position = self.at
            raise
        outputs = [self.output(i, value.name) for i, value in enumerate(graph.outputs)]
        calls = self.builder.calls
        arena = layout(calls)
        total = arena + sum(math.prod(shape) * dtype.itemsize for shape, dtype in outputs)
        if total > self.most:
            node, *_, made, _ = max(self.nodes, key=lambda placed: result_bytes(View(placed.node, [], []), placed.outputs))
            text = f"intermediate results and outputs would take {total} bytes at once ({math.prod(made[0].shape or ())} numbers"  # type: ignore[arg-type]
            raise too_much("run", f"{text} in that of {View(node, [], []).where})", self.most)
        return Plan(calls, outputs, arena, self.nodes)

    def walk(self, graph: Graph, outermost: bool = False) -> None:
        self.constants.update(graph.constants)
        for name, array in graph.constants.items():
            self.known[name] = array
            self.specs[name] = Spec(array.shape, array.dtype)
        for i, node in enumerate(graph.nodes):
            if outermost:
                self.at = i
            if node.op == "If":
                self.branch(node)
            else:
                self.node(node)

    def node(self, node: Node) -> None:
        operator = OPERATORS.get(node.op)
        if operator is None:
            where = f"{node.op} ({', '.join(node.outputs)})"
            if node.op in CONTROL or node.op in SEQUENCES:
                raise Interpret(f"{where}: has no place in a program of fixed sizes")
            raise UnsupportedError(f"{where}: there is no such operator")
        specs, known = self.specs, self.known
        view = View(node, [None if n is None else specs[n] for n in node.inputs], [known.get(n) for n in node.inputs])  # type: ignore[arg-type]
        results = operator.infer(view)
        if not all(spec.static for spec, name in zip(results, node.outputs, strict=False) if name):
            raise Interpret(f"{view.where}: its result's size depends on numbers")
        nbytes = result_bytes(view, results, self.most)
        for name, spec in zip(node.outputs, results, strict=False):
            if name:
                specs[name] = spec
        ready = operator.shape_only or all(n is None or n in known for n in node.inputs)
        if ready and operator.run is not None and not operator.volatile and nbytes <= FOLD_BYTES:
            self.fold(node, view, results)
            return
        number = len(self.nodes)
        weights = tuple(None if v is None else v.size for v in view.values)
        self.nodes.append(Placed(node, tuple(view.inputs), tuple(results), weights))
        builder = self.builder
        builder.begin(number, id(node), view, results)
        if operator.lower is not None and operator.lower(view, builder) is not False:
            return
        if operator.run is None:
            raise UnsupportedError(f"{view.where}: these inputs are not supported: {[str(s.dtype) for s in view.inputs if s]}")
        inputs = [builder.optional(i) for i in range(len(node.inputs))]
        outputs = [builder.output(i) if name else None for i, name in enumerate(node.outputs)]
        builder.python(_Numpy(view, results), inputs, outputs)

    def fold(self, node: Node, view: View, results: Sequence[Spec]) -> None:
        arrays = run_operator(node, view, view.values, results)
        for name, array, spec in zip(node.outputs, arrays, results, strict=False):
            if name:
                # A copy: what is known may be kept for as long as the model lives, and a view would keep more.
                self.known[name] = np.array(array, spec.dtype, order="C")

    def branch(self, node: Node) -> None:
        condition = self.known.get(node.inputs[0])  # type: ignore[arg-type]
        if condition is None:
            raise Interpret(f"If ({node.outputs[0]}): its condition depends on numbers")
        chosen: Graph = node.attributes["then_branch" if condition.reshape(-1)[:1].any() else "else_branch"]
        graph = self.prepare(chosen, self.constants, self.specs)
        self.walk(graph)
        for name, value in zip(node.outputs, graph.outputs, strict=True):
            if name:
                self.specs[name] = self.specs[value.name]
                if value.name in self.known:
                    self.known[name] = self.known[value.name]
                if value.name in self.builder.refs:
                    self.builder.refs[name] = self.builder.refs[value.name]

    def output(self, i: int, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Lets the calls write output i where the caller wants it, or appends a copy."""
        builder, spec = self.builder, self.specs[name]
        if name not in builder.refs:
            builder.refs[name] = builder.constant(self.known[name])
        ref = builder.refs[name]
        buffer = ref.buffer
        if buffer.space == ARENA and buffer.parent is None and ref.nbytes == buffer.nbytes and buffer.first >= 0:
            buffer.space, buffer.index = OUTPUT, i
        else:
            out = Ref(Buffer(OUTPUT, ref.nbytes, i), 0, ref.shape, ref.dtype)
            builder.begin(len(self.nodes), None, None, ())  # type: ignore[arg-type]
            if has("copy") and movable(ref.dtype):
                copy(builder, ref, out, (ref.size,), 0, (1,), 0, (1,))
            else:
                builder.python(_identity, [ref], [out])
        return spec.shape, spec.dtype  # type: ignore[return-value]


def _identity(array: np.ndarray) -> tuple[np.ndarray]:
    return (array,)


class _Numpy:
    """A node as a function of arrays."""

    def __init__(self, view: View, specs: Sequence[Spec]) -> None:
        self.view, self.specs = view, specs

    def __call__(self, *arrays: np.ndarray | None) -> Sequence[np.ndarray]:
        return run_operator(self.view.node, self.view, arrays, self.specs)


def run_operator(node: Node, view: View, arrays: Sequence[np.ndarray | None], specs: Sequence[Spec] = ()) -> Sequence[np.ndarray]:
    """Runs a node's numpy meaning; numpy's warnings about infinity and NaN are silent, its errors are ours. `specs`: what the
    rule has said of the results, which others believe.
    """
    run = OPERATORS[node.op].run
    if run is None:
        raise UnsupportedError(f"{view.where}: has no meaning in numpy")
    with np.errstate(all="ignore"):
        try:
            made = run(view, *arrays)
            for array, spec in zip(made, specs, strict=False):
                if spec.static and np.shape(array) != spec.shape:
                    raise view.fail(f"its inputs give a result of shape {np.shape(array)}: expected {spec.shape}")
            return made
        except Error:
            raise
        except MemoryError as error:
            raise LimitError(f"{view.where}: no memory for its result: {error}") from error
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise ShapeError(f"{view.where}: cannot be computed from these inputs: {error}") from error


def value_inputs(graph: Graph) -> tuple[int, ...]:
    """Positions of the graph's integer and boolean inputs whose numbers decide sizes or branches."""
    wanted: set[str] = set()
    _steering(graph, wanted)
    return tuple(i for i, value in enumerate(graph.inputs) if value.name in wanted and value.dtype.kind in "iub")


def _steering(graph: Graph, wanted: set[str]) -> None:
    for node in reversed(graph.nodes):
        if node.op == "If":
            for key in ("then_branch", "else_branch"):
                branch = node.attributes[key]
                if any(name in wanted for name in node.outputs):
                    wanted.update(v.name for v in branch.outputs)
                _steering(branch, wanted)
            wanted.add(node.inputs[0])  # type: ignore[arg-type]
            continue
        operator = OPERATORS.get(node.op)
        if operator is None:
            continue
        wanted.update(node.inputs[i] for i in operator.steers if i < len(node.inputs) and node.inputs[i])  # type: ignore[misc]
        if any(name in wanted for name in node.outputs) and not operator.shape_only:
            wanted.update(name for name in node.inputs if name)

"""A graph made ready to run under one kernel variant: weights packed once, one binding a set of input sizes."""

from __future__ import annotations

import copy
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import LimitError, UnsupportedError, ours
from ..graph.ir import Graph, Node
from ..kernels._dispatch import Variant
from ..operators import Spec
from ..operators.control import MAX_ROUNDS, Meter
from . import plain
from .binder import Interpret, Plan, Prepare, bind, value_inputs
from .builder import CONSTANT, INPUT, OUTPUT, POSITIONS, Call, NativeCall, PythonCall, Ref
from .memory import LARGEST, counted
from .stages import Stages

__all__ = ["PACKED_FORMAT", "Binding", "Program"]

_log = logging.getLogger("fastlayers")

# Raise it when packed weights lie differently than before: those stored in files are then packed anew.
PACKED_FORMAT = 1

# Bindings kept; the one that has not been used for longest goes first. Models with lengths of every size must not grow.
KEPT = 64
# Inputs whose numbers decide sizes are part of a binding's key up to this many elements.
LARGEST_KEY = 256
MOST_OPERANDS = 16  # of a native step
USERS_WORK = 2e6  # nobody knows what a user's function costs: enough for the GIL to be given up
_FIRST = 2  # spaces of kernels.aot.run: arena, constants, then inputs and outputs


class Binding:
    """A program for one set of input sizes. `plan` is None if sizes do not settle everything: then the graph runs in stages, and
    `stuck` is the first node that says so. `bound` is the compiled engine's form.
    """

    __slots__ = ("bound", "plan", "program", "stuck")

    def __init__(self, program: Program, plan: Plan | None, bound: Any, stuck: int = 0) -> None:
        self.program, self.plan, self.bound, self.stuck = program, plan, bound, stuck

    def run(self, inputs: list[Any], outputs: Sequence[np.ndarray] | None = None, threads: int = 0) -> Sequence[Any]:
        """Fresh outputs (or the given ones, filled) for contiguous inputs of the bound shapes. Inputs on the GPU, of a program
        for it, give outputs there.
        """
        if self.bound is not None:
            return self.bound.run(inputs, outputs, threads)  # type: ignore[no-any-return]
        with counted(self.program.most):
            return self._run(inputs, outputs, threads)

    def _run(self, inputs: list[Any], outputs: Sequence[np.ndarray] | None, threads: int) -> Sequence[Any]:
        program = self.program
        if program.device is not None:
            on_host = all(isinstance(a, np.ndarray) for a in inputs)
            if self.plan is not None:
                made: Sequence[np.ndarray] = program.device.run(self.plan, inputs, outputs, on_host)
                return made
            if not on_host:  # in stages, values between them are on the host
                inputs = [np.asarray(a) for a in inputs]
                return program.device.uploaded(fresh(program.evaluate(inputs, program.meter(), threads), inputs))  # type: ignore[no-any-return]
        with program.variant.bound():
            if self.plan is None:
                results = fresh(program.evaluate(inputs, program.meter(), threads), inputs)
                if outputs is None:
                    return results
                plain.store(results, outputs)
                return outputs
            if outputs is None:
                try:
                    outputs = [np.empty(shape, dtype) for shape, dtype in self.plan.outputs]
                except MemoryError:
                    raise LimitError(f"run: no memory for outputs of the shapes {[s for s, _ in self.plan.outputs]}") from None
            plain.execute(self.plan, program.variant.kernels, inputs, outputs)
            return outputs


class Program:
    """A graph, a variant, and what was made of them so far. May be used from any number of threads at once.

    Args:
        graph: with operators of `operators.OPERATORS`.
        variant: whose kernels run, whatever is `use`d later.
        native: whether a numpy step is an error (`require_native`).
        stored: weights that have been packed before, as `packed_arrays` named them.
        optimise: simplifies a branch before it is first walked: takes it, the constants around it, and the specs of values
        around it.
        bodies: simplifies what a Loop and its kin run, in the same way.
        rounds: the most that the loops of one run may take together.
        most: the most bytes that one run may take; see `memory`.
    """

    def __init__(
        self,
        graph: Graph,
        variant: Variant,
        native: bool = False,
        stored: Mapping[str, np.ndarray] | None = None,
        optimise: Prepare | None = None,
        bodies: Prepare | None = None,
        rounds: int = MAX_ROUNDS,
        most: int = LARGEST,
    ) -> None:
        self.graph, self.variant, self.native = graph, variant, native
        self._stored = stored or {}
        self._optimise, self._bodies = optimise, bodies
        self.rounds, self.most = rounds, most
        self._branches: dict[int, tuple[Graph, Graph]] = {}  # as written, and as it runs, by the identity of the former
        self._places = _places(graph) if stored else {}
        self.by_value = value_inputs(graph)
        self._bindings: OrderedDict[Any, Binding] = OrderedDict()
        self._packed: dict[Any, Any] = {}
        self.lock = threading.RLock()
        self._stages: Stages | None = None
        self._lists = any(value.kind != "tensor" for value in graph.inputs)
        self.device: Any = None
        if variant.name == "cuda":
            from .on_device import Runner

            self.device = Runner(variant.kernels, graph.constants.values())

    def binding(self, inputs: Sequence[Any]) -> Binding:
        """The binding for these inputs' shapes (and numbers, where they decide sizes), made if it is not there."""
        if self._lists:
            return self._unbound("an input is no array", 0)
        key = (
            *[(a.shape, a.dtype.char) for a in inputs],
            *[inputs[i].tobytes() for i in self.by_value if inputs[i].size <= LARGEST_KEY],
        )
        with self.lock:
            found = self._bindings.get(key)
            if found is None:
                specs = [Spec(a.shape, a.dtype) for a in inputs]
                values: list[np.ndarray | None] = [None] * len(inputs)
                for i in self.by_value:
                    if inputs[i].size <= LARGEST_KEY:
                        values[i] = inputs[i].copy()
                found = self._bindings[key] = self.bind(specs, values)
                while len(self._bindings) > KEPT:
                    self._bindings.popitem(last=False)
            else:
                self._bindings.move_to_end(key)
            return found

    def bind(self, specs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> Binding:
        """A new binding, which is not kept."""
        with self.variant.bound(), counted(self.most):
            try:
                plan = bind(self.graph, specs, values, self.pack, self.branch, self.most)
            except Interpret as reason:
                return self._unbound(reason, reason.position)
            if self.variant.steps:
                plan.calls[:] = map(_native, plan.calls)
            found = _numpy_steps(plan)
            if found and self.native:
                raise UnsupportedError(f"require_native: these steps would run in numpy: {', '.join(found)}")
            if found:
                _log.info("these steps run in numpy: %s", ", ".join(found))
            with ours(lambda: "run: a kernel refuses what the graph says"):
                bound = _bound(plan, self.variant.steps, len(self.graph.inputs), self.most) if self.variant.steps else None
        return Binding(self, plan, bound)

    def _unbound(self, reason: object, position: int) -> Binding:
        if self.native:
            raise UnsupportedError(f"require_native: the model must run in stages: {reason}")
        _log.info("the model runs in stages: %s", reason)
        return Binding(self, None, None, position)

    def meter(self) -> Meter:
        """What one run may still do."""
        return Meter(self.rounds, self.most)

    # ---- in stages --------------------------------------------------------------------------------------------------

    def evaluate(self, values: Sequence[Any], meter: Meter, threads: int = 0) -> Sequence[Any]:
        """The outputs for arrays, lists and None; they may share memory with what was given."""
        if all(isinstance(value, np.ndarray) for value in values):
            arrays = [a if a.flags.c_contiguous and a.flags.aligned else a.copy() for a in values]
            binding = self.binding(arrays)
            if binding.plan is not None:
                return binding.run(arrays, None, threads)
        try:
            return self.stages.run(values, meter, threads)
        except RecursionError:
            raise LimitError("run: graphs lie in graphs too deeply for what is left of the stack") from None

    @property
    def stages(self) -> Stages:
        """The graph in stretches."""
        with self.lock:
            if self._stages is None:
                self._stages = Stages(self)
            return self._stages

    def part(self, graph: Graph) -> Program:
        """A program of some of the nodes, with what has been packed and simplified of the whole."""
        made = copy.copy(self)
        made.graph, made.by_value, made._bindings, made._stages, made._lists = (
            graph,
            value_inputs(graph),
            OrderedDict(),
            None,
            False,
        )
        return made

    def inner(self, graph: Graph) -> Program:
        """A program of a graph within this one's."""
        return Program(graph, self.variant, self.native, None, self._bodies, self._bodies, self.rounds, self.most)

    def simplified(self, graph: Graph) -> Graph:
        """A graph within this one's, complete in itself, in the form in which it runs."""
        return graph if self._bodies is None else self._bodies(graph, {}, {})

    def branch(self, graph: Graph, constants: Mapping[str, np.ndarray], specs: Mapping[str, Spec]) -> Graph:
        """The form in which a branch runs, made when it is first taken: what is never taken costs nothing."""
        if self._optimise is None:
            return graph
        with self.lock:
            found = self._branches.get(id(graph))
            if found is None:
                # Later bindings may have other sizes, so only ranks and dtypes may be relied on.
                ranks = {name: Spec(None if s.shape is None else (None,) * len(s.shape), s.dtype) for name, s in specs.items()}
                found = self._branches[id(graph)] = (graph, self._optimise(graph, constants, ranks))
            return found[1]

    def whole_graph(self, graph: Graph | None = None) -> Graph:
        """The graph with every branch that has been taken in the form in which it runs."""
        graph = self.graph if graph is None else graph
        nodes = []
        for node in graph.nodes:
            branches = {name: value for name, value in node.attributes.items() if isinstance(value, Graph)}
            if branches:
                taken = {
                    name: self.whole_graph(self._branches.get(id(value), (None, value))[1]) for name, value in branches.items()
                }
                node = Node(node.op, node.inputs, node.outputs, {**node.attributes, **taken})
            nodes.append(node)
        return Graph(graph.inputs, graph.outputs, tuple(nodes), graph.constants, graph.values)

    def pack(self, key: Any, kernel: str, arguments: Callable[[], tuple[Any, ...]]) -> Any:
        """Packed weights, made once."""
        with self.lock:
            found = self._packed.get(key)
            if found is None:
                stored = self._stored.get(_stored_name(self._places, key)) if self._stored else None
                given = [_contiguous(argument) for argument in arguments()]
                if stored is not None and kernel in self.variant.restores:
                    found = self.variant.restores[kernel](*given, stored)
                else:
                    found = self.variant.kernels[kernel](*given)
                self._packed[key] = found
            return found

    def packed_arrays(self) -> dict[str, np.ndarray]:
        """Every weight that has been packed so far and can be stored, by a name that says where it belongs."""
        places = _places(self.whole_graph())
        with self.lock:
            panels = {key: getattr(packed, "panels", None) for key, packed in self._packed.items()}
        return {_stored_name(places, key): found.array() for key, found in panels.items() if found is not None}


def fresh(results: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """The results as arrays, and lists of arrays, that nobody else holds."""
    held = {id(array) for value in inputs for array in (value if isinstance(value, list) else [value])}

    def own(value: Any) -> Any:
        if isinstance(value, list):
            return [own(v) for v in value]
        if value is None or (id(value) not in held and value.base is None and value.flags.c_contiguous and value.flags.writeable):
            held.add(id(value))
            return value
        return np.array(value, order="C")

    return [own(value) for value in results]


def _contiguous(argument: Any) -> Any:
    """What kernels take: a file's weights may be views of them with their axes in another order."""
    strided = isinstance(argument, np.ndarray) and not argument.flags.c_contiguous
    return np.ascontiguousarray(argument) if strided else argument


def _places(graph: Graph, prefix: str = "") -> dict[int, str]:
    """Where each node is: its number, after that of the node and the name of the branch that it belongs to."""
    found = {}
    for i, node in enumerate(graph.nodes):
        found[id(node)] = f"{prefix}{i}"
        for name, attribute in node.attributes.items():
            if isinstance(attribute, Graph):
                found.update(_places(attribute, f"{prefix}{i}.{name}."))
    return found


def _stored_name(places: Mapping[int, str], key: Any) -> str:
    node, kernel, more = key
    return f"packed/{places.get(node, '-')}/{kernel}" + (f"/{more}" if more is not None else "")


def _numpy_steps(plan: Plan) -> list[str]:
    """The nodes that no kernel covers; a copy to an output belongs to none."""
    numbers = (call.node for call in plan.calls if isinstance(call, PythonCall))
    nodes = (plan.nodes[number].node for number in numbers if number < len(plan.nodes))
    return list(dict.fromkeys(f"{node.op} ({node.outputs[0]})" for node in nodes))


def _native(call: Call | PythonCall | NativeCall) -> Call | PythonCall | NativeCall:
    """A numpy step as a call of a C function, where there is one."""
    if isinstance(call, PythonCall) and call.native is not None and len(call.inputs) + len(call.outputs) <= MOST_OPERANDS:
        compiled = call.native()
        if compiled is not None:
            return NativeCall(call, compiled)
    return call


def _bound(plan: Plan, steps: Mapping[str, Callable[..., Any]], inputs: int, most: int) -> Any:
    """The plan as the compiled engine runs it."""
    from ..kernels.aot._step import foreign_step  # type: ignore[import-not-found, unused-ignore]
    from ..kernels.aot.run import Bound, PythonStep, UsersStep  # type: ignore[import-not-found, unused-ignore]

    calls = []
    keep: list[np.ndarray] = []

    def place(ref: Ref) -> tuple[int, int]:
        root, offset = ref.buffer.root()
        offset += ref.offset
        if root.space == INPUT:
            return _FIRST + root.index, offset
        if root.space == OUTPUT:
            return _FIRST + inputs + root.index, offset
        if root.space == CONSTANT:
            keep.append(root.array)  # type: ignore[arg-type]
            return 1, root.array.ctypes.data + offset  # type: ignore[union-attr]
        return 0, root.offset + offset

    for call in plan.calls:
        if isinstance(call, Call):
            step = steps[call.kernel](*[a.shape if isinstance(a, Ref) else a for a in call.args])
            refs: Sequence[Any] = [call.args[i] for i in POSITIONS[call.kernel]]
        else:
            native = call if isinstance(call, NativeCall) else None
            specs = [tuple(None if r is None else (r.shape, r.dtype) for r in group) for group in (call.inputs, call.outputs)]
            step = PythonStep(call.function, plain.store, *specs)
            if native is not None:
                sizes = np.array([d for r in (*call.inputs, *call.outputs) for d in r.shape], np.int64)  # type: ignore[union-attr]
                operands = len(call.inputs) + len(call.outputs)
                step = UsersStep(foreign_step(native.compiled.address, sizes.tobytes(), operands, USERS_WORK, native), step)
            refs = (*call.inputs, *call.outputs)
        calls.append((step, tuple(None if r is None else place(r) for r in refs)))
    return Bound(calls, tuple(keep), inputs, tuple(plan.outputs), plan.arena, most)

"""A graph made ready to run under one kernel variant: weights packed once, one binding a set of input sizes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _log
from .._held import held_by
from .._locks import Lock
from ..errors import LimitError, UnsupportedError, ours
from ..ir.graph import Graph, Node, captured, free
from ..kernels import dispatch
from ..kernels.dispatch import Variant
from ..operators import MAX_ROUNDS, Spec, traits_of
from ..operators.builder import Call, PythonCall, contiguous
from ..operators.families import NESTED
from .binder import Interpret, Prepare, bind, check_total, plan, rebind, value_inputs
from .bindings import LARGEST_KEY, Binding, Bindings, keeping
from .compiled import bound, native
from .memory import LARGEST, counted
from .trace import Plan, Trace

if TYPE_CHECKING:
    from ..operators.control import Meter
    from .bodies import Body
    from .stages import Stages

__all__ = ["PACKED_FORMAT", "Binding", "Program"]

# Raise it when packed weights are differently than before: those stored in files are then packed again.
PACKED_FORMAT = 1

# Earlier bindings that new ones may be made of: callers that alternate, such as a prompt and the tokens after it, have one each.
TRACES = 4
# In as many bodies may a body be that is part of a binding; those within it run in stages, which say how deep graphs may be.
DEEPEST = 16


class Program:
    """A graph, a variant, and what was made of them so far. May be used from any number of threads at once.

    Args:
        graph: with operators of `operators.OPERATORS`.
        variant: whose kernels run, whatever is `use`d later.
        native: whether a NumPy fallback is an error (`require_native`).
        stored: weights that have been packed before, as `packed_arrays` named them.
        optimize: simplifies a branch before it is first walked: takes it, the constants around it, and the specs of values
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
        optimize: Prepare | None = None,
        bodies: Prepare | None = None,
        rounds: int = MAX_ROUNDS,
        most: int = LARGEST,
    ) -> None:
        graph = _aligned(graph)
        self.variant, self.native = variant, native
        self._stored = stored or {}
        self._optimize, self._bodies = optimize, bodies
        self.rounds, self.most = rounds, most
        # A branch as written, and as it runs for values around it of some ranks and dtypes, by the identity of the former.
        self._branches: dict[int, tuple[Graph, tuple[str, ...], dict[Any, Graph]]] = {}
        # What loops and branches run that are part of a binding, by the identity of their graphs.
        self._nested: dict[int, Body] = {}
        self._whole = weakref.ref(self)  # of which this may be a part
        self._depth = 0  # in so many bodies
        self._places = _places(graph) if stored else {}
        self._packed: dict[Any, Any] = {}
        self.lock = Lock()
        held_by(self)
        self.gpu: Any = None
        if variant.name == "cuda":
            from .on_device import Runner

            self.gpu = Runner(variant.kernels, graph.constants.values())
        self._begin(graph)

    def _begin(self, graph: Graph) -> None:
        """Sets what belongs to this graph alone."""
        self.graph = graph
        self.by_value = value_inputs(graph)
        self._lists = any(value.kind != "tensor" for value in graph.inputs)
        self._stages: Stages | None = None
        self._traces: tuple[Trace, ...] = ()  # of the bindings that were made last, the newest first
        self.runner: Any = None
        ledger = None
        if self.variant.steps:
            from ..kernels.aot import Ledger
            from ..kernels.aot.run import Runner

            ledger = Ledger()
            self.runner = Runner(
                tuple(v.name for v in graph.inputs), tuple(v.name for v in graph.outputs), self.by_value, LARGEST_KEY
            )
        weights = sum(array.nbytes for array in graph.constants.values())
        self._bindings = Bindings(weights, ledger, bool if self.runner is None else self.runner.forget)

    def binding(self, inputs: Sequence[Any]) -> Binding:
        """The binding for these inputs' shapes (and values, where they decide sizes), made if it is not there."""
        if self._lists:
            return self._unbound("an input is no array", 0, ()).of(self)
        values: list[np.ndarray | None] = [None] * len(inputs)
        if self.by_value:
            # A copy first: others may change the values between a look at them and the next.
            inputs = list(inputs)
            for i in self.by_value:
                if inputs[i].size <= LARGEST_KEY:
                    values[i] = inputs[i] = inputs[i].copy()
        key = None if self.runner is None else self.runner.key(inputs)
        if key is None:
            key = (*[(a.shape, a.dtype.char) for a in inputs], *[v.tobytes() for v in values if v is not None])
        found = self._bindings.get(key)
        if found is None:
            # Outside of any lock, which known sizes would wait for; two threads may do it at once, and one result is retained.
            found = self.bind([Spec(a.shape, a.dtype) for a in inputs], values)
            self._bindings.add(key, found)
            if found.bound is not None and isinstance(key, bytes):
                self.runner.remember(key, found.bound)
        return found.of(self)

    def known_work(self, inputs: Sequence[Any]) -> float | None:
        """How much a run on these inputs computes, if that is known before it begins: they are bound, every step is compiled, and
        none repeats as often as values say. In multiply-adds of one core, about: 1e5 take a microsecond. Else None.
        """
        key = None if self.runner is None else self.runner.key(list(inputs))
        found = None if key is None else self._bindings.get(key)
        bound = None if found is None else found.bound
        return None if bound is None or bound.loops or bound.code is None else float(bound.work)

    def bind(self, specs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> Binding:
        """A new binding, which is not retained."""
        variant, between = self.variant, dispatch.give_way()
        with variant.bound(), counted(self.most):
            traces = self._traces
            before = max(traces, key=lambda t: _equal_inputs(t, specs), default=None)
            trace = None if before is None else rebind(self.graph, before, specs, values, self.pack, self.most, between)
            if trace is None:
                before = None
            try:
                if trace is None:
                    trace = bind(self.graph, specs, values, self.pack, self.branch, self.nest, self.most, between)
            except Interpret as reason:
                return self._unbound(reason, reason.position, specs)
            found = self._made_native(trace, between)
            if found and self.native:
                raise UnsupportedError(f"require_native: these steps would run in numpy: {', '.join(found)}")
            if found:
                _log.info("these steps run in numpy: %s", ", ".join(found))
            if not variant.steps:
                made = plan(trace)
                check_total(trace, made.arena, self.most)
                return Binding(weakref.ref(self), (specs, values), made, None, False)
            with ours(lambda: "run: a kernel refuses what the graph says"):
                ledger, nbytes = self._bindings.ledger, keeping((specs, values))
                done = bound(trace, variant.steps, len(self.graph.inputs), self.most, self.rounds, ledger, nbytes, between)
            check_total(trace, done.arena, self.most)
            # It takes the place of the one that it was made of: who binds often leaves the others theirs.
            self._traces = (trace, *[t for t in traces if t is not before][: TRACES - 1])
        return Binding(weakref.ref(self), (specs, values), None, done, False)

    def _made_native(self, trace: Trace, between: Callable[[], object] = bool) -> list[str]:
        """Puts C functions in place of NumPy fallbacks that have some, and names the nodes that still run in numpy; those that
        were lowered again, and not the copies to outputs, which belong to no node.
        """
        found = []
        for at in trace.fresh:
            record = trace.records[at]
            # What is repeated has kernel calls alone, and of these it makes no more than it must.
            if record is None or record.repeat is not None or all(isinstance(call, Call) for call in record.calls):
                continue
            if self.variant.steps:
                record.calls = [native(call) for call in record.calls]
            if any(isinstance(call, PythonCall) for call in record.calls):
                found.append(f"{record.placed.node.op} ({record.placed.node.outputs[0]})")  # type: ignore[union-attr]
            between()
        return list(dict.fromkeys(found))

    def plan(self, specs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> Plan:
        """The calls for these inputs, made again."""
        with self.variant.bound(), counted(self.most):
            trace = bind(self.graph, specs, values, self.pack, self.branch, self.nest, self.most)
            self._made_native(trace)
            return plan(trace)

    def _unbound(self, reason: object, position: int, specs: Sequence[Spec]) -> Binding:
        if self.native:
            raise UnsupportedError(f"require_native: the model must run in stages: {reason}")
        _log.info("the model runs in stages: %s", reason)
        return Binding(weakref.ref(self), (specs, ()), None, None, True, position)

    def meter(self) -> Meter:
        """What one run may still do."""
        from ..operators.control import Meter

        return Meter(self.rounds, self.most)

    # ---- in stages --------------------------------------------------------------------------------------------------

    def evaluate(self, values: Sequence[Any], meter: Meter, threads: int = 0) -> Sequence[Any]:
        """The outputs for arrays, lists and None; they may share memory with what was given."""
        if all(isinstance(value, np.ndarray) for value in values):
            arrays = [a if a.flags.c_contiguous and a.flags.aligned else a.copy() for a in values]
            binding = self.binding(arrays)
            if not binding.staged:
                return binding.run(arrays, None, threads, meter)
        try:
            return self.stages.run(values, meter, threads)
        except RecursionError:
            raise LimitError("run: subgraphs are nested too deeply: the stack is exhausted") from None

    @property
    def stages(self) -> Stages:
        """The graph in segments."""
        with self.lock:
            if self._stages is None:
                from .stages import Stages  # most networks have none

                self._stages = Stages(self)
            return self._stages

    def part(self, graph: Graph) -> Program:
        """A program of some of the nodes, with what has been packed and simplified of the whole."""
        made = Program.__new__(Program)
        made.__dict__.update(self.__dict__)
        made._begin(graph)
        return made

    def inner(self, graph: Graph) -> Program:
        """A program of a graph within this one's."""
        made = Program(graph, self.variant, self.native, None, self._bodies, self._bodies, self.rounds, self.most)
        made._depth = self._depth + 1
        return made

    def nest(self, node: Node, constants: Mapping[str, np.ndarray]) -> Any:
        """What binds a loop or a branch whose sizes do not depend on values; None where it must run in stages."""
        if not self.variant.steps or node.op not in NESTED or self._depth >= DEEPEST:
            return None
        from .bodies import Body  # most networks have neither
        from .nested import nested

        def body(graph: Graph) -> Body:
            whole = self._whole()
            assert whole is not None, "a part outlives its program"
            with self.lock:
                found = self._nested.get(id(graph))
                if found is None:
                    found = self._nested[id(graph)] = Body(whole, graph, constants)
                return found

        return nested(node, body)

    def simplified(self, graph: Graph) -> Graph:
        """A graph within this one's, complete in itself, in the form in which it runs."""
        return graph if self._bodies is None else self._bodies(graph, {}, {})

    def branch(self, graph: Graph, constants: Mapping[str, np.ndarray], specs: Mapping[str, Spec]) -> Graph:
        """The form in which a branch runs, made when it is first taken: what is never taken costs nothing."""
        if self._optimize is None:
            return graph
        with self.lock:
            found = self._branches.get(id(graph))
            if found is None:
                found = self._branches[id(graph)] = (graph, tuple(sorted(free(graph))), {})
            _, names, forms = found
            # Later bindings may have other sizes, so only ranks and dtypes may be relied on.
            ranks = {
                name: Spec(None if s.shape is None else (None,) * len(s.shape), s.dtype)
                for name in names
                if (s := specs.get(name)) is not None
            }
            key = tuple(ranks.items())
            form = forms.get(key)
            if form is None:
                form = forms[key] = self._optimize(graph, constants, ranks)
            return form

    def whole_graph(self, graph: Graph | None = None) -> Graph:
        """The graph with every branch that has been taken in the form in which it runs, if that is the only one that it can
        have.
        """
        one = all(value.shape is not None for value in self.graph.inputs)
        graph = self.graph if graph is None else graph
        nodes = []
        for node in graph.nodes:
            branches = {name: value for name, value in node.attributes.items() if isinstance(value, Graph)}
            if branches:
                taken = {}
                for name, value in branches.items():
                    forms = list(self._branches[id(value)][2].values()) if id(value) in self._branches else []
                    taken[name] = self.whole_graph(forms[0] if one and len(forms) == 1 else value)
                node = Node(node.op, node.inputs, node.outputs, {**node.attributes, **taken})
            nodes.append(node)
        return Graph(graph.inputs, graph.outputs, tuple(nodes), graph.constants, graph.values)

    def pack(self, key: Any, kernel: str, arguments: Callable[[], tuple[Any, ...]]) -> Any:
        """Packed weights, made once for a key; with None made again and not retained."""
        if key is None:
            return self.variant.kernels[kernel](*[_prepared(argument) for argument in arguments()])
        found = self._packed.get(key)
        if found is not None:
            return found
        with self.lock:
            found = self._packed.get(key)  # another thread may have made it meanwhile
            if found is None:
                name = _stored_name(self._places, key)
                stored = None if name is None else self._stored.get(name)
                given = [_prepared(argument) for argument in arguments()]
                if stored is not None and kernel in self.variant.restores:
                    found = self.variant.restores[kernel](*given, stored)
                else:
                    found = self.variant.kernels[kernel](*given)
                self._packed[key] = found
            return found

    def adopt(self, node: Node, kernel: str, packed: Any) -> None:
        """Takes what a pack kernel has made of a node's weights already, so that it is not in memory twice."""
        self._packed.setdefault((id(node), kernel, None), packed)

    def held(self) -> tuple[int, int]:
        """Bytes of packed weights, and of what is retained for sets of sizes, for `fastlayers.memory`."""
        packed = list(self._packed.values())
        return sum(_bytes_of(p) for p in packed), self._bindings.nbytes + (0 if self._stages is None else self._stages.nbytes)

    @property
    def ran(self) -> bool:
        """Whether it was bound to some sizes."""
        return len(self._bindings) > 0

    def packed_arrays(self) -> dict[str, np.ndarray]:
        """Every weight that has been packed so far and can be stored, by a name that says where it belongs."""
        places = _places(self.whole_graph())
        with self.lock:
            panels = {key: getattr(packed, "panels", None) for key, packed in self._packed.items()}
        named = {_stored_name(places, key): found for key, found in panels.items() if found is not None}
        return {name: found.array() for name, found in named.items() if name is not None}


def _bytes_of(packed: Any) -> int:
    """What packed weights take; those in panels do where these are not in a mapped file."""
    panels = getattr(packed, "panels", None)
    return int(getattr(packed if panels is None else panels, "nbytes", 0))


def _prepared(argument: Any) -> Any:
    """What pack kernels take."""
    return contiguous(argument) if isinstance(argument, np.ndarray) else argument


def _aligned(graph: Graph) -> Graph:
    """The graph, whose constants that are read in every run are aligned; those that are only packed are not copied before."""
    odd = {name for name, array in graph.constants.items() if not array.flags.aligned}
    if not odd:
        return graph
    packed: set[str | None] = set()
    others: set[str | None] = {value.name for value in graph.outputs}
    for node in graph.nodes:
        weights = traits_of(node.op).weights
        for i, name in enumerate(node.inputs):
            if name in odd:
                (packed if i in weights else others).add(name)
        others |= captured(node)
    odd -= packed - others
    constants = {name: contiguous(array) if name in odd else array for name, array in graph.constants.items()}
    return Graph(graph.inputs, graph.outputs, graph.nodes, constants, graph.values)


def _places(graph: Graph, prefix: str = "") -> dict[int, str]:
    """Where each node is: its number, after that of the node and the name of the branch that it belongs to."""
    found = {}
    for i, node in enumerate(graph.nodes):
        found[id(node)] = f"{prefix}{i}"
        for name, attribute in node.attributes.items():
            if isinstance(attribute, Graph):
                found.update(_places(attribute, f"{prefix}{i}.{name}."))
    return found


def _stored_name(places: Mapping[int, str], key: Any) -> str | None:
    """Where packed weights are in a file; None if their node is none of the file's."""
    node, kernel, more = key
    return None if node not in places else f"packed/{places[node]}/{kernel}" + (f"/{more}" if more is not None else "")


def _equal_inputs(trace: Trace, specs: Sequence[Spec]) -> int:
    return sum(trace.specs[number] == spec for number, spec in zip(trace.route.inputs, specs, strict=True))

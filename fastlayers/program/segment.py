"""A graph, or some nodes of one, that is bound to the sizes of its inputs when they are there, and a binding, which runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _log
from ..errors import LimitError, UnsupportedError, ours
from ..ir.graph import Graph
from ..kernels import dispatch
from ..operators import Spec
from ..operators.builder import Call, PythonCall
from ..operators.meter import Meter
from .binder import Interpret, bind, check_total, plan, rebind, value_inputs
from .bindings import LARGEST_KEY, Bindings, Kept, keeping
from .compiled import bound, native
from .known import Known
from .memory import counted
from .steps import ways
from .trace import Plan, Trace

__all__ = ["Binding", "Segment"]

# Earlier bindings that new ones may be made of: callers that alternate, such as a prompt and the tokens after it, have one each.
TRACES = 4
# Sets of values of its inputs that a part of a graph is bound to before that is given up, if no more are met again.
MOST_MISSES = 64


class Binding:
    """A graph for one set of input sizes, which it keeps for as long as it lives. If those do not settle everything it is
    `staged`: then the graph runs in stages. `bound` is the compiled engine's form, `outputs` are shapes and dtypes.
    """

    __slots__ = ("__weakref__", "bound", "kept", "program")

    def __init__(self, program: Segment, kept: Kept) -> None:
        self.program, self.kept, self.bound = program, kept, kept.bound

    @property
    def staged(self) -> bool:
        """Whether the graph runs in stages."""
        return self.kept.staged

    @property
    def outputs(self) -> Sequence[tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shapes and dtypes; none if the graph runs in stages. Where sizes are `counted`, the most that they may be."""
        return self.kept.outputs

    @property
    def counted(self) -> bool:
        """Whether every run says how large some of its outputs are."""
        return self.bound is not None and bool(self.bound.counting)

    @property
    def plan(self) -> Plan | None:
        """The calls, of which the compiled engine keeps its own form alone; None if the graph runs in stages."""
        return self.kept.plan if self.bound is None else self.program.plan(*self.kept.made_for)

    def run(
        self, inputs: list[Any], outputs: Sequence[np.ndarray] | None = None, threads: int = 0, meter: Meter | None = None
    ) -> Sequence[Any]:
        """Fresh outputs (or the given ones, filled) for contiguous inputs of the bound shapes. Inputs on the GPU, of a program
        for it, give outputs there. `meter`: that of the run that this is a part of.
        """
        if self.bound is not None:
            return self.bound.run(inputs, outputs, threads, meter)  # type: ignore[no-any-return]
        with counted(self.program.known.most):
            return self._run(inputs, outputs, threads)

    def _run(self, inputs: list[Any], outputs: Sequence[np.ndarray] | None, threads: int) -> Sequence[Any]:
        from . import plain

        program, plan = self.program, self.kept.plan
        if program.gpu is not None:
            on_host = all(isinstance(a, np.ndarray) for a in inputs)
            if plan is not None:
                made: Sequence[np.ndarray] = program.gpu.run(plan, inputs, outputs, on_host)
                return made
            if not on_host:  # in stages, values between them are on the host
                inputs = [np.asarray(a) for a in inputs]
                made = plain.fresh(program.evaluate(inputs, program.meter(), threads), inputs)
                return program.gpu.uploaded(made)  # type: ignore[no-any-return]
        with program.variant.bound():
            if plan is None:
                results = plain.fresh(program.in_stages(inputs, program.meter(), threads), inputs)
                if outputs is None:
                    return results
                plain.store(results, outputs)
                return outputs
            if outputs is None:
                try:
                    outputs = [np.empty(shape, dtype) for shape, dtype in plan.outputs]
                except MemoryError:
                    raise LimitError(f"run: no memory for outputs of the shapes {[s for s, _ in plan.outputs]}") from None
            plain.execute(plan, program.variant.kernels, inputs, outputs)
            return outputs


class Segment:
    """A graph with what is known of it whatever the sizes, and its bindings. May be used from any number of threads at once."""

    def __init__(self, graph: Graph, known: Known, by_value: bool = True) -> None:
        self.graph, self.known, self.variant, self.gpu = graph, known, known.variant, known.gpu
        self.by_value = value_inputs(graph) if by_value else ()
        self.hits = self._misses = 0  # of values, as a part of another
        self._lists = any(value.kind != "tensor" for value in graph.inputs)
        self._traces: tuple[Trace, ...] = ()  # of the bindings that were made last, the newest first
        self.runner: Any = None
        self.made_stages: Any = None
        ledger = None
        if self.variant.steps:
            from ..kernels.aot import Ledger
            from ..kernels.aot.run import Runner

            ledger = Ledger()
            self.runner = Runner(
                tuple(v.name for v in graph.inputs), tuple(v.name for v in graph.outputs), self.by_value, LARGEST_KEY
            )
        weights = sum(array.nbytes for array in graph.constants.values())
        self.bindings = Bindings(weights, ledger, bool if self.runner is None else self.runner.forget)

    def binding(self, inputs: Sequence[Any]) -> Binding:
        """The binding for these inputs' shapes (and values, where they decide sizes), made if it is not there."""
        if self._lists:
            return Binding(self, self._unbound("an input is no array", 0, ()))
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
        found = self.bindings.get(key)
        if found is None:
            # Outside of any lock, which known sizes would wait for; two threads may do it at once, and one result is retained.
            found = self._bind([Spec(a.shape, a.dtype) for a in inputs], values)
            self.bindings.add(key, found, dispatch.give_way())
            if found.bound is not None and isinstance(key, bytes):
                self.runner.remember(key, found.bound)
        return Binding(self, found)

    def missed(self) -> bool:
        """Counts values of inputs that it has not been bound to yet; returns whether too many are new."""
        self._misses += 1
        return self._misses > max(MOST_MISSES, self.hits)

    def known_work(self, inputs: Sequence[Any]) -> float | None:
        """Work of a run on these inputs, if that is known before it begins: they are bound, every step is compiled, and none
        repeats as often as values say. In multiply-adds of one core, about: 1e5 take a microsecond. Else None.
        """
        key = None if self.runner is None else self.runner.key(list(inputs))
        found = None if key is None else self.bindings.get(key)
        bound = None if found is None else found.bound
        return None if bound is None or bound.loops or bound.code is None else float(bound.work)

    def bind(self, specs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> Binding:
        """A new binding, which is not retained."""
        return Binding(self, self._bind(specs, values))

    def _bind(self, specs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> Kept:
        known, variant, between = self.known, self.variant, dispatch.give_way()
        most = known.most
        with variant.bound(), counted(most):
            traces = self._traces
            before = max(traces, key=lambda t: _equal_inputs(t, specs), default=None)
            trace, pack = None, known.weights.pack
            if before is not None:
                trace = rebind(self.graph, before, specs, values, pack, most, between, variant.kernels, bool(variant.steps))
            if trace is None:
                before = None
            try:
                if trace is None:
                    trace = self._traced(specs, values, between)
            except Interpret as reason:
                return self._unbound(reason, reason.position, specs)
            found = self._made_native(trace, between)
            if found and known.native:
                raise UnsupportedError(f"require_native: these steps would run in numpy: {', '.join(found)}")
            if found:
                _log.info("these steps run in numpy: %s", ", ".join(found))
            if not variant.steps:
                made = plan(trace)
                check_total(trace, made.arena, most)
                return Kept((specs, values), made, None)
            with ours(lambda: "run: a kernel refuses what the graph says"):
                ledger, nbytes = self.bindings.ledger, keeping((specs, values))
                done = bound(trace, variant.steps, len(self.graph.inputs), most, known.rounds, ledger, nbytes, between)
            check_total(trace, done.arena, most)
            # It takes the place of the one that it was made of: who binds often leaves the others theirs.
            self._traces = (trace, *[t for t in traces if t is not before][: TRACES - 1])
        return Kept((specs, values), None, done)

    def _traced(self, specs: Sequence[Spec], values: Sequence[np.ndarray | None], between: Callable[[], object] = bool) -> Trace:
        known = self.known
        form, kernels = known.branches.form, known.variant.kernels
        counting = bool(self.variant.steps)
        return bind(self.graph, specs, values, known.weights.pack, form, known.nest, known.most, between, kernels, counting)

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
        with self.variant.bound(), counted(self.known.most):
            trace = self._traced(specs, values)
            self._made_native(trace)
            made = plan(trace)
            return made._replace(ways=ways(made.calls, self.variant.steps))

    def _unbound(self, reason: object, position: int, specs: Sequence[Spec]) -> Kept:
        if self.known.native:
            raise UnsupportedError(f"require_native: the model must run in stages: {reason}")
        _log.info("the model runs in stages: %s", reason)
        return Kept((specs, ()), None, None, position)

    def meter(self) -> Meter:
        """The limits of one run, with what is used of them."""
        return Meter(self.known.rounds, self.known.most)

    def evaluate(self, values: Sequence[Any], meter: Meter, threads: int = 0) -> Sequence[Any]:
        """The outputs for arrays, lists and None; they may share memory with what was given."""
        if all(isinstance(value, np.ndarray) for value in values):
            arrays = [a if a.flags.c_contiguous and a.flags.aligned else a.copy() for a in values]
            binding = self.binding(arrays)
            if not binding.staged:
                return binding.run(arrays, None, threads, meter)
        return self.in_stages(values, meter, threads)

    def in_stages(self, values: Sequence[Any], meter: Meter, threads: int = 0) -> Sequence[Any]:
        """The same for inputs whose sizes do not settle everything."""
        raise NotImplementedError  # what is between two nodes that run alone gets one more instead


def _equal_inputs(trace: Trace, specs: Sequence[Spec]) -> int:
    return sum(trace.specs[number] == spec for number, spec in zip(trace.route.inputs, specs, strict=True))

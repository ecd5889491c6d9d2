"""From a graph and the sizes of its inputs to a plan: every node's shapes, what is known beforehand, and the calls that
remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Error, UnsupportedError, ours
from ..ir.graph import Graph, Node, captured
from ..operators import INT64, OPERATORS, Spec, View
from ..operators.builder import ARENA, COUNTER, INPUT, OUTPUT, Buffer, Builder, Parts, Ref
from ..operators.calls import copy, has, movable
from ..operators.families import CONTROL, SEQUENCES
from ..operators.reference import numpy_step, run_operator
from .memory import LARGEST, result_bytes, too_much
from .trace import Entry, Placed, Plan, Record, Route, Trace, settled

if TYPE_CHECKING:
    from .alike import Pattern
    from .blocks import Copies, Region

__all__ = ["Interpret", "Nest", "Pack", "Prepare", "as_written", "bind", "check_total", "plan", "rebind", "value_inputs"]

# Results of constant expressions up to this size are computed when a model is bound; larger ones in every run.
FOLD_BYTES = 1 << 16
# Results whose size is counted take room for the most that they may be: so many bytes, and a quarter of what a run may take.
COUNTED_BYTES = 1 << 24
MOST_COUNTERS = 16  # that the engine has for a program


class Interpret(Exception):
    """Sizes depend on values that are there only when the model runs. `position`: of the node in the graph that is bound."""

    position = 0


Pack = Callable[[Any, str, Callable[[], tuple[Any, ...] | Parts]], Any]


Prepare = Callable[[Graph, Mapping[str, np.ndarray], Mapping[str, Spec]], Graph]

# For a branch or a loop, and the constants around it: what binds it, if it can be bound at all.
Nest = Callable[[Node, Mapping[str, np.ndarray]], Any]


def as_written(graph: Graph, constants: Mapping[str, np.ndarray], specs: Mapping[str, Spec]) -> Graph:
    """A branch as it is."""
    return graph


def unnested(node: Node, constants: Mapping[str, np.ndarray]) -> None:
    """Branches and loops run in stages."""


def bind(
    graph: Graph,
    inputs: Sequence[Spec],
    values: Sequence[np.ndarray | None],
    pack: Pack,
    prepare: Prepare = as_written,
    nest: Nest = unnested,
    most: int = LARGEST,
    between: Callable[[], object] = bool,
    kernels: Mapping[str, Callable[..., Any]] | None = None,
    counting: bool = False,
) -> Trace:
    """The calls for inputs of these shapes, some of whose values may be known. `prepare` gives the form of a branch that is to
    be walked, `nest` what binds a loop, or both branches; `most` is how many bytes a result may take; `between` is called after
    each node; `kernels` are the variant's; `counting`: whether kernels may count the sizes of results that nothing else reads.

    Raises:
        Interpret: the sizes do not settle everything.
        ShapeError, DTypeError, UnsupportedError: a node cannot take what it gets.
        LimitError: a result would take more than `most` bytes.
    """
    binder = _Binder(Builder(pack, kernels), prepare, nest, most, between, counting)
    with ours(lambda: _where(graph, binder.at)):
        return binder.run(graph, inputs, values)


def rebind(
    graph: Graph,
    before: Trace,
    inputs: Sequence[Spec],
    values: Sequence[np.ndarray | None],
    pack: Pack,
    most: int = LARGEST,
    between: Callable[[], object] = bool,
    kernels: Mapping[str, Callable[..., Any]] | None = None,
    copying: bool = False,
) -> Trace | None:
    """As `bind`, but everything of an earlier binding is reused that these inputs leave as it was. None where `bind` must do it:
    another branch is taken, ranks have changed, values are elsewhere, or there is something to be raised. `copying`: blocks of
    nodes that are alike may have no records of their own (see `blocks`).
    """
    binder = _Binder(Builder(pack, kernels), as_written, unnested, most, between)
    binder.copying = copying
    try:
        return binder.again(graph, before, inputs, values)
    except (Interpret, Error, ArithmeticError, LookupError, TypeError, ValueError, MemoryError):
        return None


def plan(trace: Trace) -> Plan:
    """The plan of a fresh trace, whose buffers become the plan's."""
    from .arena import layout

    calls = settled(trace.lowered, trace.ends)
    return Plan(calls, trace.outputs, layout(calls), trace.nodes, trace.links)


def check_total(trace: Trace, arena: int, most: int) -> None:
    """Raises if a run takes more than `most` bytes."""
    total = arena + sum(math.prod(shape) * dtype.itemsize for shape, dtype in trace.outputs)
    if total > most:
        node, *_, made, _ = max(trace.nodes, key=lambda placed: result_bytes(View(placed.node, [], []), placed.outputs))
        text = f"intermediate results and outputs would take {total} bytes at once ({math.prod(made[0].shape or ())} values"  # type: ignore[arg-type]
        raise too_much("run", f"{text} in that of {View(node, [], []).where})", most)


def _where(graph: Graph, at: int) -> str:
    return View(graph.nodes[at], [], []).where if graph.nodes else "run"


_NONE = -1  # the number of an input or output that was left out


class _Binder:
    """One binding. Values of the graph, and of the branches that are taken, are numbered: a name may be used in each branch."""

    def __init__(
        self, builder: Builder, prepare: Prepare, nest: Nest, most: int, between: Callable[[], object], counting: bool = False
    ) -> None:
        self.counting = counting
        self.graph: Graph | None = None  # the outermost one, while its own nodes are bound
        self.prepare, self.nest, self.most, self.between = prepare, nest, most, between
        self.route = Route()
        self.specs: list[Spec] = []
        self.known: list[np.ndarray | None] = []
        self.fixed: list[bool] = []  # known whatever the sizes: constants, and what is computed from them alone
        self.records: list[Record | None] = []
        self.builder = builder
        self.at = 0  # the position in the outermost graph
        self.lowered = 0
        # Of nodes that were lowered in `again`, by their kind.
        self.patterns: dict[Any, Pattern | None] = {}
        self.anew = True  # not in `again`
        self.copying = False
        self.copies: dict[Region, Copies] = {}
        self.followed: Set[int] | None = None  # entries that others are like, if that is known

    # ---- the whole graph --------------------------------------------------------------------------------------------

    def run(self, graph: Graph, inputs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> Trace:
        """Binds every node."""
        scope: dict[str, int] = {}
        for i, (value, spec, array) in enumerate(zip(graph.inputs, inputs, values, strict=True)):
            number = scope[value.name] = self.value(spec, array, False)
            self.route.inputs.append(number)
            self.builder.refs[number] = _input(i, spec)
        try:
            self.walk(graph, scope, {}, True)
        except Interpret as reason:
            reason.position = self.at
            raise
        self.route.outputs = [scope[value.name] for value in graph.outputs]
        return self.trace(range(len(self.records)))

    def value(self, spec: Spec, known: np.ndarray | None, fixed: bool) -> int:
        """The number of a new value."""
        self.specs.append(spec)
        self.known.append(known)
        self.fixed.append(fixed)
        return len(self.specs) - 1

    def walk(self, graph: Graph, scope: dict[str, int], constants: Mapping[str, np.ndarray], outermost: bool = False) -> None:
        """Binds the nodes of a graph; its values join the `scope`. `constants` are those of the graphs around it."""
        for name, array in graph.constants.items():
            scope[name] = self.value(Spec(array.shape, array.dtype), array, True)
        constants = {**constants, **graph.constants} if constants else graph.constants
        for i, node in enumerate(graph.nodes):
            self.graph = graph if outermost else None
            if outermost:
                self.at = i
            if node.op == "If" and self.known[scope[node.inputs[0]]] is not None:  # type: ignore[index]
                self.branch(node, scope, constants)
                continue
            nested = self.nest(node, constants) if node.op in CONTROL else None
            if nested is not None:
                node = nested.node  # which reads what its bodies do
            ins = tuple([_NONE if name is None else scope[name] for name in node.inputs])
            outs = []
            for name in node.outputs:
                outs.append(self.value(_UNSEEN, None, False) if name else _NONE)
                if name:
                    scope[name] = outs[-1]
            self.route.entries.append(Entry(node, ins, tuple(outs), self.at, None, nested))
            self.records.append(None)
            self.node(len(self.records) - 1)
            self.between()

    def branch(self, node: Node, scope: dict[str, int], constants: Mapping[str, np.ndarray]) -> None:
        number = scope[node.inputs[0]]  # type: ignore[index]
        chosen = _chosen(node, self.known[number])  # type: ignore[arg-type]
        graph = self.prepare(chosen, constants, {name: self.specs[i] for name, i in scope.items()})
        self.route.branches = True
        self.route.entries.append(Entry(node, (number,), (), self.at, chosen))
        self.records.append(None)
        within = dict(scope)
        self.walk(graph, within, constants)
        for name, value in zip(node.outputs, graph.outputs, strict=True):
            if name:
                # Another branch may give another constant.
                made = within[value.name]
                if self.fixed[made] and not self.fixed[number]:
                    made = self.value(self.specs[made], self.known[made], False)
                scope[name] = made

    # ---- what another binding leaves to be done ---------------------------------------------------------------------

    def again(self, graph: Graph, before: Trace, inputs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> Trace | None:
        """Binds the nodes again that these inputs, or what others make of them, reach."""
        from heapq import heappop, heappush

        route = self.route = before.route
        self.anew = False
        self.specs, self.known, self.fixed = before.specs[:], before.known[:], before.fixed[:]
        self.records, self.builder.refs = before.records[:], dict(before.refs)
        self.copies = {made.region: made for made in before.copies}
        builder, records, entries = self.builder, self.records, route.entries
        blocks = route.blocks
        self.followed = None if blocks is None else blocks.followed
        bound: dict[Region, bool] = {}  # whether its copies are what is to be done
        waiting: list[int] = []
        seen: set[int] = set()

        def changed(number: int) -> None:
            for reader in route.readers.get(number, ()):
                if reader not in seen:
                    seen.add(reader)
                    heappush(waiting, reader)

        for i, (number, spec, array) in enumerate(zip(route.inputs, inputs, values, strict=True)):
            same = spec == self.specs[number]
            if same and _alike(array, self.known[number]):
                continue
            if len(spec.shape or ()) != len(self.specs[number].shape or ()) or spec.dtype != self.specs[number].dtype:
                return None
            self.specs[number], self.known[number] = spec, array
            if not same:
                builder.refs[number] = _input(i, spec)
            changed(number)
        self.between()
        placing = iter([(at, record) for at, record in enumerate(records) if record is not None and record.effects])
        ahead = next(placing, None)
        fresh: list[int] = []
        gone: set[Buffer] = set()  # that are no longer parts of others
        come: set[Buffer] = set()
        while waiting:
            at = heappop(waiting)
            while ahead is not None and ahead[0] < at:
                if not self.effects(ahead[1]):
                    return None
                ahead = next(placing, None)
            if ahead is not None and ahead[0] == at:
                ahead = next(placing, None)
            region = None if blocks is None else blocks.inside.get(at)
            if region is not None:
                if region not in bound:
                    bound[region] = self.copied(region)
                    if bound[region]:
                        for number in region.after:
                            changed(number)
                        self.between()
                if bound[region]:
                    continue
            entry, old = entries[at], records[at]
            if entry.chosen is not None:
                condition = self.known[entry.ins[0]]
                if condition is None or _chosen(entry.node, condition) is not entry.chosen:
                    return None
                continue
            held = [(self.specs[n], self.known[n], builder.refs.pop(n, None)) for n in entry.outs if n >= 0]
            self.at = entry.top
            for number in entry.outs:
                if number >= 0:
                    self.known[number] = None
            own = {} if old is None else old.own
            if not self.like_another(at, own, old):
                self.node(at, own, old)
            new = records[at]
            was, parts = _parts(old), _parts(new)
            if was or parts:
                gone |= was - parts
                come |= parts - was
            fresh.append(at)
            for number, (spec, known, ref) in zip((n for n in entry.outs if n >= 0), held, strict=True):
                now = self.specs[number]
                if self.known[number] is not None and known is not None and _alike(self.known[number], known):
                    self.known[number] = known
                    if ref is not None:
                        builder.refs[number] = ref
                if len(now.shape or ()) != len(spec.shape or ()) or now.dtype != spec.dtype:
                    return None
                if now != spec or not _alike(self.known[number], known) or builder.refs.get(number) != ref:
                    changed(number)
            self.between()
        while ahead is not None:
            if not self.effects(ahead[1]):
                return None
            ahead = next(placing, None)
        # Who reads a part may have been lowered otherwise because it is one: all do so anew only if the buffer is another.
        if (gone and not gone.isdisjoint(_buffers(builder.refs))) or (come and not come.isdisjoint(_buffers(before.refs))):
            return None
        made = self.trace(fresh)
        if self.copying:
            if blocks is None:
                from .blocks import Blocks  # not before sizes change for the second time

                blocks = route.blocks = Blocks(made)
            blocks.learn(made)
        return made

    def copied(self, region: Region) -> bool:
        """Binds all blocks of a region but the first as copies of that one, if they are."""
        like = self.route.blocks.likes.get(region) if self.copying else None  # type: ignore[union-attr]
        made = None
        if like is not None:
            from .blocks import copies

            made = copies(region, like, self.builder, self.specs, self.known, self.records)
        before = self.copies.pop(region, None)
        if made is not None:
            self.copies[region] = made
        elif before is not None:
            before.expand(self.route, self.records, self.builder.refs)
        return made is not None

    def effects(self, record: Record) -> bool:
        """Does to buffers what a record that is retained has done; False if another one has been there."""
        for part, whole, offset in record.effects:
            if part.number in self.builder.parents:
                return False
            self.builder.parents[part.number] = whole, offset
        return True

    # ---- a node -----------------------------------------------------------------------------------------------------

    def node(self, at: int, own: Mapping[int, Buffer] = MappingProxyType({}), old: Record | None = None) -> None:
        """Binds a node. `own`: the buffers of its outputs in the earlier binding, of which `old` is the record."""
        node, ins, outs, _, _, nested = self.route.entries[at]
        operator = OPERATORS.get(node.op) if nested is None else nested()
        if operator is None:
            where = f"{node.op} ({', '.join(node.outputs)})"
            if node.op in CONTROL or node.op in SEQUENCES:
                raise Interpret(f"{where}: it depends on input values")
            raise UnsupportedError(f"{where}: there is no such operator")
        specs, known, fixed = self.specs, self.known, self.fixed
        view = View(node, [None if n < 0 else specs[n] for n in ins], [None if n < 0 else known[n] for n in ins])
        results = operator.infer(view)
        for spec in (*view.inputs, *results):
            if spec is not None and spec.dtype.kind == "O":
                raise Interpret(f"{view.where}: reads or gives strings")
        for spec, number in zip(results, outs, strict=False):
            if number >= 0 and not spec.static:
                results = self.counted(at, view, results)
                break
        nbytes = result_bytes(view, results, self.most)
        for number, spec in zip(outs, results, strict=False):
            if number >= 0:
                specs[number] = spec
        builder = self.builder
        ready, keep = True, True
        for n in ins:
            if n >= 0:
                if known[n] is None:
                    ready = False
                elif not fixed[n]:
                    keep = False
        ready = ready or operator.traits.shape_only
        if ready and operator.run is not None and not operator.traits.volatile and nbytes <= FOLD_BYTES:
            whatever = all(n < 0 or fixed[n] for n in ins)
            arrays = run_operator(node, view, view.values, results)
            for number, array, spec in zip(outs, arrays, results, strict=False):
                if number >= 0:
                    # A copy: what is known may be retained for as long as the model lives, and a view would keep more.
                    known[number], fixed[number] = np.array(array, spec.dtype, order="C"), whatever
            self.records[at] = None
            return
        self.between()
        builder.begin(self.lowered, view, results, ins, outs, keep, own)
        counter = self.route.counters.get(at)
        builder.counter = None if counter is None else Ref(Buffer(COUNTER, 8, counter), 0, (1,), INT64)
        self.lowered += 1
        if operator.lower is None or operator.lower(view, builder) is False:
            numpy_step(view, results, builder, ins, [i for i, number in enumerate(outs) if number >= 0])
        weights = tuple([None if v is None else v.size for v in view.values])
        made = self.records[at] = self.record(Placed(node, tuple(view.inputs), tuple(results), weights))
        self.between()
        key = self.kind(at) if self.followed is None or at in self.followed else None
        if key is not None:
            from .alike import pattern

            self.patterns[key] = pattern(builder, made, self.variables(ins), outs, old)

    def variables(self, ins: Sequence[int]) -> list[int]:
        """The inputs of a node, without those that are constants."""
        return [_NONE if n >= 0 and self.fixed[n] else n for n in ins]

    def counted(self, at: int, view: View, results: Sequence[Spec]) -> Sequence[Spec]:
        """The most that results may be whose sizes the node's kernels count, where nothing but the caller reads them."""
        node, ins, outs, *_ = self.route.entries[at]
        unknown = any(n >= 0 and self.known[n] is None for n in ins)  # else there would be no step
        open_ = {i: spec for i, spec in enumerate(results) if i < len(outs) and outs[i] >= 0 and not spec.static}
        counts, counters = OPERATORS[node.op].traits.counts, self.route.counters
        found = counts(view) if unknown and counts is not None and (at in counters or self._counts(node, open_)) else None
        if found is None or sum(_bytes(spec) for spec in found) > min(COUNTED_BYTES, self.most // 4):
            raise Interpret(f"{view.where}: its output shape depends on input values")
        counter = counters.setdefault(at, len(counters))
        for i, spec in open_.items():
            self.route.counted[outs[i]] = spec.shape.index(None), counter  # type: ignore[union-attr]
        return found

    def _counts(self, node: Node, open_: Mapping[int, Spec]) -> bool:
        """Whether the sizes of these results may be counted."""
        graph, names = self.graph, {node.outputs[i] for i in open_}
        if not self.counting or graph is None or len(self.route.counters) == MOST_COUNTERS:
            return False
        if any(spec.shape is None or spec.shape.count(None) != 1 for spec in open_.values()):
            return False
        outputs = [value.name for value in graph.outputs]
        reads = (name for other in graph.nodes for name in (*other.inputs, *captured(other)))
        return all(outputs.count(name) <= 1 for name in names) and names.isdisjoint(reads)

    def kind(self, at: int) -> Any:
        """The key of nodes that are lowered alike, in `again`; None if that cannot be told, or an input is known whose values say
        how.
        """
        number = -1 if self.anew or at in self.route.counters else self.route.kinds[at]
        if number < 0:
            return None
        specs, known = self.specs, self.known
        key: list[Any] = [number]
        for n in self.route.entries[at].ins:
            if n < 0 or known[n] is None:
                key.append(specs[n] if n >= 0 else None)
            elif self.fixed[n] and OPERATORS[self.route.entries[at].node.op].traits.by_sizes:
                key.append((specs[n],))
            else:
                return None
        return tuple(key)

    def like_another(self, at: int, own: Mapping[int, Buffer], old: Record | None) -> bool:
        """Binds a node as one that is like it, if there has been one. `old`: its record in the earlier binding."""
        key = self.kind(at)
        like = None if key is None else self.patterns.get(key)
        if like is None:
            return False
        node, ins, outs, *_ = self.route.entries[at]
        _, *sizes = like.record.placed  # type: ignore[misc]
        placed = Placed(node, *sizes)
        from .alike import repeated

        made = self.records[at] = repeated(self.builder, like, placed, self.variables(ins), outs, own, old)
        if made is None:
            return False
        for number, spec in zip(outs, placed.outputs, strict=False):
            if number >= 0:
                self.specs[number] = spec
        return True

    def record(self, placed: Placed | None) -> Record:
        """All that the builder has got since its last `begin`."""
        builder = self.builder
        effects = [(part, *builder.parents[part.number]) for part in builder.placed]
        made = Record(builder.calls, effects, builder.overs, builder.own, builder.nbytes, placed)
        made.refused = builder.refused
        return made

    # ---- outputs ----------------------------------------------------------------------------------------------------

    def trace(self, fresh: Sequence[int]) -> Trace:
        """The findings so far."""
        made = Trace(self.route, self.specs, self.known, self.fixed, self.builder.refs, self.records)
        builder = self.builder
        builder.begin(self.lowered, None, (), (), ())  # type: ignore[arg-type]
        made.ends, made.fresh, made.copies = {}, fresh, tuple(self.copies.values())
        made.outputs = [self.output(i, number, made.ends) for i, number in enumerate(self.route.outputs)]
        made.last = self.record(None)
        self.between()
        return made

    def output(self, i: int, number: int, ends: dict[int, int]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Lets the calls write output i where the caller wants it, or appends a copy."""
        builder, spec = self.builder, self.specs[number]
        ref = builder.refs.get(number)
        if ref is None:
            ref = builder.refs[number] = builder.constant(self.known[number])  # type: ignore[arg-type]
        buffer = ref.buffer
        whole = buffer.space == ARENA and buffer.number not in builder.parents and ref.nbytes == buffer.nbytes
        if whole and buffer.made and buffer.number not in ends:
            ends[buffer.number] = i
        else:
            out = Ref(Buffer(OUTPUT, ref.nbytes, i), 0, ref.shape, ref.dtype)
            if has("copy") and movable(ref.dtype):
                copy(builder, ref, out, (ref.size,), 0, (1,), 0, (1,))
            else:
                builder.python(_identity, [ref], [out])
        return spec.shape, spec.dtype  # type: ignore[return-value]


_UNSEEN = Spec(None, np.dtype(np.void))


def _input(i: int, spec: Spec) -> Ref:
    return Ref(Buffer(INPUT, _bytes(spec), i), 0, spec.shape, spec.dtype)  # type: ignore[arg-type]


def _bytes(spec: Spec) -> int:
    return math.prod(spec.shape) * spec.dtype.itemsize  # type: ignore[arg-type]


def _chosen(node: Node, condition: np.ndarray) -> Graph:
    chosen: Graph = node.attributes["then_branch" if condition.reshape(-1)[:1].any() else "else_branch"]
    return chosen


def _alike(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    """Whether two values that may be known are the same, bit for bit."""
    if a is None or b is None:
        return a is b
    return a is b or (a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


def _parts(record: Record | None) -> set[Buffer]:
    """The buffers that a record puts into others."""
    return {part for part, *_ in record.effects} if record is not None and record.effects else set()


def _buffers(refs: Mapping[int, Ref]) -> set[Buffer]:
    return {ref.buffer for ref in refs.values()}


def _identity(array: np.ndarray) -> tuple[np.ndarray]:
    return (array,)


def value_inputs(graph: Graph) -> tuple[int, ...]:
    """Positions of the graph's integer and boolean inputs whose values decide sizes or branches."""
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
        wanted.update(node.inputs[i] for i in operator.traits.steers if i < len(node.inputs) and node.inputs[i])  # type: ignore[misc]
        if any(name in wanted for name in node.outputs) and not operator.traits.shape_only:
            wanted.update(name for name in node.inputs if name)

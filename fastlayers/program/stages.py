"""Runs a graph that no sizes can settle: segments of nodes as their own programs, and single nodes between them.

A *cut* is a node that runs alone: it has its own graphs, works on lists, or its result's size depends on values. Cuts of the
last sort are found when a segment is bound, and then known for good. What is between two cuts is bound to the sizes that are
there by then, and cached by them; it runs as any program does, with the packed weights of the whole. The graphs of Loop, Scan and
branches are programs too, each with the constants that it reads of the graphs around it, made once for inputs of its ranks.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._deadline import check
from .._tuples import NamedTuple
from ..errors import Error, LimitError, ShapeError, ours
from ..ir.graph import Graph, Value, captured
from ..operators import FLOAT32, Spec, View, traits_of
from ..operators.control import CONTROL, inferred
from ..operators.families import NESTED, SIZED
from ..operators.meter import Meter
from ..operators.reference import run_operator
from ..operators.sequence import SEQUENCES, Anything
from .bodies import UNTOLD, Bodies, Body, kind_of, through
from .interpret import run_node
from .known import Known
from .order import by_levels
from .segment import Segment

__all__ = ["Stages"]

# Graphs of more than MANY cuts that only binding finds are tried in segments of at most SHORT nodes: an attempt costs its nodes.
MANY, SHORT = 64, 256


class _Part(NamedTuple):
    """The nodes between two cuts, and the names that it reads and gives."""

    program: Segment
    stop: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    done: tuple[str, ...]  # values that nothing needs afterwards


class Stages:
    """A graph in segments, with what is known of it, and the bodies that its nodes run. May be used from any number of threads
    at once.
    """

    def __init__(self, graph: Graph, known: Known, bodies: Bodies, by_value: bool = True) -> None:
        self.known, self.bodies, self._by_value = known, bodies, by_value
        self._by_size: set[int] = set()  # where segments begin whose inputs have ever new values
        graph = self.graph = by_levels(graph)
        self.cuts = {
            i for i, node in enumerate(graph.nodes) if node.op in SEQUENCES or (node.op in CONTROL and node.op not in NESTED)
        }
        self._reads = [{name for name in node.inputs if name} | captured(node) for node in graph.nodes]
        kept = {v.name for v in graph.outputs}
        self.makes = len(kept) == len(graph.outputs) and kept <= {name for node in graph.nodes for name in node.outputs}
        self._last = {name: i for i, names in enumerate(self._reads) for name in names if name not in kept}
        self._wanted = kept | self._last.keys()
        self._seen: dict[int, tuple[list[Any], list[Spec | None]]] = {}  # inputs of a cut that counts: sizes, and specs
        self._order = sorted(self.cuts)
        self._given = len(self._order)
        self.parts: dict[int, _Part] = {}  # by where they begin

    @property
    def nbytes(self) -> int:
        """Bytes that the bindings of the segments take, about."""
        return sum(part.program.bindings.nbytes for part in list(self.parts.values()))

    def run(self, values: Sequence[Anything], meter: Meter, threads: int = 0) -> list[Anything]:
        """The graph's outputs; they may share memory with the inputs, with constants and with each other."""
        return self.go_on({v.name: value for v, value in zip(self.graph.inputs, values, strict=True)}, 0, meter, threads)

    def go_on(self, env: dict[str, Anything], at: int, meter: Meter, threads: int) -> list[Anything]:
        """The same, from a node on, with the values that are needed from there on."""
        count = len(self.graph.nodes)
        try:
            while at < count:
                check()
                at = (self._single if at in self.cuts else self._stretch)(at, env, meter, threads)
            return [self._value(env, v.name) for v in self.graph.outputs]
        except RecursionError:
            raise LimitError("run: subgraphs are nested too deeply: the stack is exhausted") from None
        except KeyError as error:  # a node gives fewer results than it has names
            if isinstance(error, Error):
                raise
            raise ShapeError(f"run: no node gives a value for {error}") from error

    def begin(self, env: dict[str, Anything], meter: Meter, threads: int) -> int:
        """Runs the segments before the first node that needs more than a look at sizes; returns where. `env`: the inputs."""
        at = 0
        while (part := self.parts.get(at)) is not None and part.program.runner.step(env, part.done, threads, meter):
            part.program.hits += 1
            at = part.stop
        return at

    def steps(self) -> list[tuple[int, Segment]]:
        """Its segments, and where they begin, if it has nothing else; empty if it has, or did not run yet."""
        at, found = 0, []
        while (part := self.parts.get(at)) is not None:
            found.append((at, part.program))
            at = part.stop
        return found if at == len(self.graph.nodes) else []

    def body(self, graph: Graph) -> Body:
        """A graph among a node's attributes, made ready once."""
        return self.bodies.of(graph, self.graph.constants)

    def _value(self, env: Mapping[str, Anything], name: str) -> Anything:
        return env[name] if name in env else self.graph.constants[name]

    # ---- a segment --------------------------------------------------------------------------------------------------

    def _stretch(self, at: int, env: dict[str, Anything], meter: Meter, threads: int) -> int:
        """Runs the nodes from `at` to the next cut; returns where that is, or `at` if a new cut was found on the way."""
        part = self.parts.get(at) or self._part(at, env)
        if part is None:
            return at
        quick = part.program.runner
        if quick is not None and quick.step(env, part.done, threads, meter):
            part.program.hits += 1
            return part.stop
        arrays = []
        for name in part.inputs:
            array = env[name]
            if not isinstance(array, np.ndarray):
                return self._cut(at, part.stop, name)
            arrays.append(array if array.flags.c_contiguous else array.copy())
        if part.program.by_value and self.graph.nodes[at].op not in SIZED and part.program.missed():
            self._by_size.add(at)
            self.parts.pop(at, None)
            return at
        binding = part.program.binding(arrays)
        if binding.staged:
            stuck = at + binding.kept.stuck
            node = self.graph.nodes[stuck]
            if stuck > at and node.op in SIZED:
                return self._split(at, stuck)
            if traits_of(node.op).counts is not None:  # what counts may end a segment
                reads = (i for i in range(stuck + 1, part.stop) if not self._reads[i].isdisjoint(node.outputs))
                reader = next(reads, part.stop)
                if reader < part.stop:
                    return self._split(at, reader)
            return self._cut(at, part.stop, stuck)
        return self._after(part, binding.run(arrays, None, threads, meter), env)

    def _after(self, part: _Part, made: Sequence[Anything], env: dict[str, Anything]) -> int:
        """Puts a segment's results among the values, and takes out what nothing reads any more; returns what is next."""
        env.update(zip(part.outputs, made, strict=True))
        for name in part.done:
            env.pop(name, None)
        return part.stop

    def _cut(self, at: int, stop: int, where: int | str) -> int:
        """Makes a node a cut: the one at a position, or the first from `at` on that reads a name. Returns `at`."""
        with self.known.lock:
            if isinstance(where, str):
                where = next(i for i in range(at, stop) if where in self._reads[i])
            if where not in self.cuts:
                self.cuts.add(where)
                insort(self._order, where)
            self.parts.pop(at, None)
        return at

    def _split(self, at: int, where: int) -> int:
        """Ends a segment before a node, which the next one begins with: it knows the values of what it is given. Returns `at`."""
        with self.known.lock:
            if where not in self._order:
                insort(self._order, where)
            self.parts.pop(at, None)
        return at

    def _inputs(self, at: int, stop: int) -> list[str]:
        """The names that nodes read of what was there before them, except constants."""
        names = dict.fromkeys(name for i in range(at, stop) for name in sorted(self._reads[i]))
        made = {name for node in self.graph.nodes[at:stop] for name in node.outputs}
        return [name for name in names if name not in made and name not in self.graph.constants]

    def _part(self, at: int, env: Mapping[str, Anything]) -> _Part | None:
        """The segment from `at` on; None if a cut had to be made before."""
        with self.known.lock:
            graph = self.graph
            after = bisect_right(self._order, at)
            stop = self._order[after] if after < len(self._order) else len(graph.nodes)
            if len(self._order) - self._given > MANY:
                stop = min(stop, at + SHORT)
            inputs = self._inputs(at, stop)
            for name in inputs:
                if not isinstance(env[name], np.ndarray):
                    self._cut(at, stop, name)
                    return None
            reads = set().union(*self._reads[at:stop])
            kept = {v.name for v in graph.outputs}
            made_here = (name for node in graph.nodes[at:stop] for name in node.outputs)
            outputs = [name for name in made_here if name in kept or self._last.get(name, -1) >= stop]
            made = Graph(
                tuple(Value(name, (None,) * env[name].ndim, env[name].dtype) for name in inputs),
                tuple(Value(name, None, UNTOLD) for name in outputs),
                graph.nodes[at:stop],
                {name: graph.constants[name] for name in sorted(reads) if name in graph.constants},
            )
            done = tuple(name for name in inputs if at <= self._last.get(name, -1) < stop)
            by_value = graph.nodes[at].op in SIZED or (self._by_value and at not in self._by_size)
            program = Segment(made, self.known, by_value)
            part = self.parts[at] = _Part(program, stop, tuple(inputs), tuple(outputs), done)
            return part

    # ---- a single node ----------------------------------------------------------------------------------------------

    def _single(self, at: int, env: dict[str, Anything], meter: Meter, threads: int) -> int:
        node = self.graph.nodes[at]
        values = [None if name is None else self._value(env, name) for name in node.inputs]
        key = [(v.shape, v.dtype) if isinstance(v, np.ndarray) else None for v in values]
        seen = self._seen.get(at)
        if seen is not None and seen[0] == key:
            # The rules have seen these sizes, and look at nothing else.
            return self._gave(at, run_operator(node, View(node, seen[1], values), values), env)
        specs = [Spec(v.shape, v.dtype) if isinstance(v, np.ndarray) else None for v in values]
        view = View(node, specs, [v if isinstance(v, np.ndarray) else None for v in values])
        made: Sequence[Anything]
        if node.op in SEQUENCES:
            with ours(lambda: view.where):
                made = _sequence(view, values, meter)
        elif node.op in CONTROL:
            meter.enter(view)
            with ours(lambda: view.where):
                made = CONTROL[node.op](view, values, _Around(self, env, meter, threads), meter)
            meter.leave()
        elif all(name is None or isinstance(v, np.ndarray) for name, v in zip(node.inputs, values, strict=True)):
            known, constants, traits = self.known, self.graph.constants, traits_of(node.op)
            fixed = [name in constants for name in node.inputs]
            made = [np.asarray(a) for a in run_node(node, values, fixed, known.variant, known.weights.pack, known.most)]
            if traits.counts is not None and not traits.steers and all(s is None or s.dtype.kind != "O" for s in specs):
                self._seen[at] = key, specs
        elif node.op == "Identity":
            made = values
        else:
            raise view.wrong_dtype("an input is a sequence, or None: expected arrays")
        return self._gave(at, made, env)

    def _gave(self, at: int, made: Sequence[Anything], env: dict[str, Anything]) -> int:
        """Puts a node's results among the values, and takes out what nothing reads any more; returns what is next."""
        named = zip(self.graph.nodes[at].outputs, made, strict=False)
        env.update((name, value) for name, value in named if name in self._wanted)
        for name in self._reads[at]:
            if self._last.get(name) == at:
                env.pop(name, None)
        return at + 1


def _sequence(view: View, values: Sequence[Anything], meter: Meter) -> Sequence[Anything]:
    made = SEQUENCES[view.op](view, *values)
    if view.op == "SequenceInsert":
        meter.keep(view, values[1].nbytes)
    elif view.op == "SequenceErase":
        meter.keep(view, sum(a.nbytes for a in made[0]) - sum(a.nbytes for a in values[0]))
    return made


class _Around:
    """The values around a node with graphs, which it runs them with."""

    def __init__(self, stages: Stages, env: Mapping[str, Anything], meter: Meter, threads: int) -> None:
        self.stages, self.env, self.meter, self.threads = stages, env, meter, threads

    def ready(self, graph: Graph) -> _Ready:
        """A function that gives the graph's outputs for its inputs."""
        body = self.stages.body(graph)
        return _Ready(body, [self.env[name] for name in body.captured], self.meter, self.threads)

    def specs(self, graph: Graph, values: Sequence[Anything]) -> list[Spec]:
        """Specs of the outputs, as the rules, or else the file, have them."""
        body = self.stages.body(graph)
        given = [*values, *(self.env[name] for name in body.captured)]
        names = (v.name for v in body.graph.inputs)
        known = {name: Spec(v.shape, v.dtype) for name, v in zip(names, given, strict=True) if isinstance(v, np.ndarray)}
        found = inferred(body.graph, known)
        told = (Spec(v.shape, FLOAT32 if v.dtype == UNTOLD else v.dtype) for v in graph.outputs)
        return [declared if spec is None or spec.shape is None else spec for spec, declared in zip(found, told, strict=True)]


class _Ready:
    """A body with the values around it. What the last run was bound to is tried first."""

    def __init__(self, body: Body, around: list[Anything], meter: Meter, threads: int) -> None:
        self.body, self.around, self.meter, self.threads = body, around, meter, threads
        self.kinds, self.program, self.handed = body.recent

    def __call__(self, values: Sequence[Anything]) -> list[Anything]:
        body, meter, threads = self.body, self.meter, self.threads
        given = [*values, *self.around]
        program, handed = self.program, self.handed
        made: Sequence[Anything] | None
        if program is not None and program.runner is not None:
            made = program.runner.call(tuple(given), threads, meter)
            if made is not None:
                program.hits += 1
                return through(handed, given, made)
        kinds = tuple(map(kind_of, given))
        if program is None or kinds != self.kinds:
            program, handed = body.form(kinds)
        elif program.by_value:
            program, handed = body.missed(kinds, program)
        self.kinds, self.program, self.handed = body.recent = kinds, program, handed
        return through(handed, given, program.evaluate(given, meter, threads) if program.graph.outputs else ())

    def rounds(self, given: list[Anything], parts: list[list[np.ndarray]], at: int, most: int, n: View) -> tuple[int, Any]:
        """Iterations of a loop that ran before, and the results of the last one if they are not among `given` and `parts` yet;
        see `kernels.aot.run.rounds`. `given`: without the values around it.
        """
        program, meter, threads = self.program, self.meter, self.threads
        if program is None or program.runner is None:
            return 0, None
        stages: Stages | None = None if program.hits else program.made_stages
        found = [(0, program)] if stages is None else stages.steps()
        if not found:
            return 0, None
        if self.body.laid is None or self.body.laid.found != found:
            self.body.laid = _laid(program, found, self.handed)
        rounds, _, runners, names, handed, constants = self.body.laid
        env: dict[Any, Any] = {**dict(zip(names, (*given, *self.around), strict=True)), **constants}
        own = names[: len(given)]
        count, results, step = rounds(runners, own, env, handed, parts, at, most, threads, meter, n)
        for _, segment in found:
            segment.hits += count
        given[:] = [env[name] for name in own]
        if step >= 0:
            count += 1
            if stages is None:
                results = self(given)
            else:
                results = through(self.handed, [*given, *self.around], stages.go_on(env, found[step][0], meter, threads))
        return count, results


class _Laid(NamedTuple):
    """The segments of a body as `kernels.aot.run.rounds` takes them."""

    rounds: Callable[..., Any]
    found: list[tuple[int, Segment]]
    runners: list[Any]
    names: list[str]
    handed: list[Any]
    constants: dict[int, np.ndarray]


def _laid(program: Segment, found: list[tuple[int, Segment]], form: Sequence[int | np.ndarray]) -> _Laid:
    from ..kernels.aot.run import rounds

    names = [v.name for v in program.graph.inputs]
    made = iter([v.name for v in program.graph.outputs])
    constants = {i: source for i, source in enumerate(form) if not isinstance(source, int)}
    handed = [i if not isinstance(source, int) else next(made) if source < 0 else names[source] for i, source in enumerate(form)]
    return _Laid(rounds, found, [segment.runner for _, segment in found], names, handed, constants)

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
from ..errors import Error, ShapeError, ours
from ..ir.graph import Graph, Value, captured
from ..operators import FLOAT32, Spec, View, traits_of
from ..operators.control import CONTROL, Meter, inferred
from ..operators.families import NESTED, SIZED
from ..operators.reference import run_operator
from ..operators.sequence import SEQUENCES, Anything
from .bodies import UNTOLD, Bodies, Body, Kind, kind_of, through
from .interpret import run_node
from .known import Known
from .order import by_levels
from .segment import Binding, Segment

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
        env: dict[str, Anything] = {v.name: value for v, value in zip(self.graph.inputs, values, strict=True)}
        at, count = 0, len(self.graph.nodes)
        try:
            while at < count:
                check()
                at = (self._single if at in self.cuts else self._stretch)(at, env, meter, threads)
            return [self._value(env, v.name) for v in self.graph.outputs]
        except KeyError as error:  # a node gives fewer results than it has names
            if isinstance(error, Error):
                raise
            raise ShapeError(f"run: no node gives a value for {error}") from error

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
        made = None if quick is None else quick.call(tuple([env[name] for name in part.inputs]), threads, meter)
        if made is not None:
            part.program.hits += 1
            return self._after(part, made, env)
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
            with ours(lambda: view.where), meter.within(view):
                made = CONTROL[node.op](view, values, _Around(self, env, meter, threads), meter)
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

    def ready(self, graph: Graph) -> Callable[[Sequence[Anything]], list[Anything]]:
        """A function that gives the graph's outputs for its inputs."""
        body = self.stages.body(graph)
        around = [self.env[name] for name in body.captured]
        meter, threads = self.meter, self.threads
        last: Any = None
        kinds: tuple[Kind, ...] = ()
        program: Segment
        binding: Binding
        handed: list[int | np.ndarray]

        def run(values: Sequence[Anything]) -> list[Anything]:
            # Most iterations are like the one before: then there is nothing to look up.
            nonlocal last, kinds, program, binding, handed
            given = [*values, *around]
            key = [(v.shape, v.dtype) if isinstance(v, np.ndarray) and v.flags.c_contiguous else None for v in given]
            if key != last:
                last = None
                kinds = tuple(map(kind_of, given))
                program, handed = body.form(kinds)
                if None in key or not program.graph.outputs:
                    return through(handed, given, program.evaluate(given, meter, threads) if program.graph.outputs else ())
                binding, last = program.binding(given), key
            elif program.by_value:
                made = None if program.runner is None else program.runner.call(tuple(given), threads, meter)
                if made is not None:
                    program.hits += 1
                    return through(handed, given, made)
                program, handed = body.missed(kinds, program)
                binding = program.binding(given)
            if binding.staged:
                return through(handed, given, program.in_stages(given, meter, threads))
            return through(handed, given, binding.run(given, None, threads, meter))

        return run

    def specs(self, graph: Graph, values: Sequence[Anything]) -> list[Spec]:
        """Specs of the outputs, as the rules, or else the file, have them."""
        body = self.stages.body(graph)
        given = [*values, *(self.env[name] for name in body.captured)]
        names = (v.name for v in body.graph.inputs)
        known = {name: Spec(v.shape, v.dtype) for name, v in zip(names, given, strict=True) if isinstance(v, np.ndarray)}
        found = inferred(body.graph, known)
        told = (Spec(v.shape, FLOAT32 if v.dtype == UNTOLD else v.dtype) for v in graph.outputs)
        return [declared if spec is None or spec.shape is None else spec for spec, declared in zip(found, told, strict=True)]

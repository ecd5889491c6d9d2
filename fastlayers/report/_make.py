"""Reports of programs: what is known before it runs, and what is measured."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import DeviceError, Error
from ..ir.graph import Node
from ..operators.builder import NestedCall
from ..program.parts import Part, parts, times_run
from ..program.segment import Binding
from ..program.steps import Step, steps, timed
from ..program.trace import Plan
from ._limits import Limits, limits
from .data import Report, StepReport, ValueReport

__all__ = ["STAGED", "measured", "planned"]

STAGED = "runs in stages: sizes or branches depend on values that are known only when it runs, or there are lists"
ROUNDS = "sizes are those of the last round of each body; one line per node, bodies set off"
ZEROS = (
    "its parts are timed one by one, on zeros of the sizes that they had last, and count as often as they ran; "
    "nodes that run alone, and what loops and branches cost, are in the time of the whole run only"
)
Values = tuple[ValueReport, ...]


def planned(binding: Binding, inputs: Values, outputs: Values, arrays: Sequence[Any], threads: int) -> Report:
    """The report of a binding's steps. A network that runs in stages runs once for it, since its parts are known only then."""
    made, notes, arena = _steps(binding, arrays, threads)
    variant = binding.program.variant.name
    return Report(variant, threads, inputs, outputs, tuple(made), arena, binding.staged, tuple(notes))


def measured(
    binding: Binding,
    inputs: Values,
    outputs: Values,
    arrays: Sequence[np.ndarray],
    threads: int,
    limit: int,
    runs: int,
    top: Limits | None = None,
) -> Report:
    """The same with times: those of whole runs, then those of every step. `top`: the machine's limits, measured if None.

    Raises:
        DeviceError: there is no compiled engine.
    """
    top = limits() if top is None else top
    given = list(arrays)
    whole = []
    made, notes, arena = _steps(binding, given, limit)
    before = _runs(binding)
    for _ in range(runs):
        start = time.perf_counter()
        binding.run(given, None, limit)
        whole.append(time.perf_counter() - start)
    if binding.staged:
        made = _staged(binding, given, limit, runs)
        notes = [*notes, ZEROS]
    else:
        made = _timed(binding, given, limit, runs, _since(before, _runs(binding), runs))
    variant = binding.program.variant.name
    return Report(variant, threads, inputs, outputs, tuple(made), arena, binding.staged, tuple(notes), tuple(whole), top)


def _steps(binding: Binding, arrays: Sequence[Any], threads: int) -> tuple[list[StepReport], list[str], int | None]:
    program = binding.program
    away = program.gpu.away if program.gpu is not None else ()
    plan = binding.plan
    if not binding.staged:
        assert plan is not None
        return _rows(plan, away), [], plan.arena
    ran = _run_once(binding, arrays, threads)
    found = []
    for number, part in enumerate(parts(program)):
        plan = None if part.binding is None else part.binding.plan
        alone = [StepReport(_alone(part), part.depth, 0, number)]
        found += alone if plan is None else _rows(plan, away, part.depth, 0, number)
    return found, [STAGED, ROUNDS, *ran], None


def _run_once(binding: Binding, arrays: Sequence[Any], threads: int) -> list[str]:
    """A line if it cannot be done."""
    try:
        binding.run([np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in arrays], None, threads)
    except Error as error:
        return [f"it could not be run to the end on what was given: {error}"]
    return []


def _alone(part: Part) -> Step:
    """A node that runs alone, or did not run: what is known of it."""
    node = part.node or Node("", (), ("",), {})
    sizes = [part.constants[name].size for name in node.inputs if name is not None and name in part.constants]
    weights = sum(size for size in sizes if size > 1)
    return Step(node.op, next(filter(None, node.outputs), ""), (), "", weights, 0, 0, (part.note,), ())


def _rows(plan: Plan, away: Collection[str] = (), depth: int = 0, rounds: int = 1, stretch: int = 0) -> list[StepReport]:
    """The steps of a plan, those of bodies after the branch or loop whose they are."""
    found = []
    for step in steps(plan, away):
        found.append(StepReport(step, depth, rounds, stretch))
        for inner, often in _bodies(plan, step):
            found += _rows(_planned(inner), away, depth + 1, rounds * often, stretch)
    return found


def _bodies(plan: Plan, step: Step) -> list[tuple[Binding, int]]:
    """The bindings of a step's bodies, and how often each runs (0: unknown)."""
    calls = [plan.calls[i] for i in step.calls]
    return [
        (inner, often) for call in calls if isinstance(call, NestedCall) for inner, _, often in call.bodies if inner is not None
    ]


def _planned(binding: Binding) -> Plan:
    plan = binding.plan
    assert plan is not None, "a body that runs in stages is no step"
    return plan


def _inner(bound: Any) -> list[Any]:
    """The bound programs of all branches and loops, in the order of `_bodies`."""
    return [inner for nested in bound.nested for inner in nested.bodies]


def _runs(binding: Binding) -> dict[int, int]:
    """The number of runs so far of each bound program among the bodies, by its identity."""
    waiting = [binding.bound] if binding.bound is not None else []
    if binding.staged:
        waiting = [part.binding.bound for part in parts(binding.program) if part.binding is not None and part.binding.bound]
    found = {}
    while waiting:
        bound = waiting.pop()
        found[id(bound)] = int(bound.runs)
        waiting += _inner(bound)
    return found


def _since(before: Mapping[int, int], after: Mapping[int, int], runs: int) -> dict[int, int]:
    return {key: round((count - before.get(key, 0)) / runs) for key, count in after.items()}


def _timed(
    binding: Binding,
    arrays: list[Any],
    threads: int,
    runs: int,
    often: Mapping[int, int],
    depth: int = 0,
    rounds: int = 1,
    stretch: int = 0,
    bound: Any = None,
) -> list[StepReport]:
    """The steps of a binding with the times of each. Those of bodies are timed alone, on zeros; what they take is not in the
    time of the branch or loop. `often`: how often each bound program runs; `bound`: that of the binding itself.
    """
    bound = binding.bound if bound is None else bound
    if bound is None:
        raise DeviceError("profile: needs the compiled engine: see `fastlayers doctor`")
    times = bound.profile(arrays, runs, threads) / 1e9
    plan = _planned(binding)
    bodies = iter(_inner(bound))
    found = []
    for step, calls in zip(steps(plan), timed(bound), strict=False):
        inside: list[StepReport] = []
        for inner, _ in _bodies(plan, step):
            body = next(bodies)
            count = often.get(id(body), 0)
            inside += _timed(inner, _zeros(inner), threads, runs, often, depth + 1, count, stretch, body)
        row = StepReport(step, depth, rounds, stretch)
        if calls:
            begins, seconds = times[:, calls[0], 0], times[:, calls, 1].sum(1)
            spent = sum(row.total for row in inside if row.rounds) / max(rounds, 1)
            row = row._replace(seconds=tuple(np.maximum(seconds - spent, 0).tolist()), begins=tuple(begins.tolist()))
        found += [row, *inside]
    return found


def _zeros(binding: Binding) -> list[Any]:
    """Inputs of the sizes that a binding was made for, with the values that are known."""
    pairs = zip(*binding.kept.made_for, strict=True)
    return [np.zeros(s.shape or (), s.dtype) if v is None else np.ascontiguousarray(v) for s, v in pairs]


def _staged(binding: Binding, arrays: list[Any], threads: int, runs: int) -> list[StepReport]:
    """The steps of all parts, each timed alone on zeros."""
    before = {id(part.program): times_run(part.program) for part in parts(binding.program) if part.program is not None}
    inner = _runs(binding)
    binding.run(arrays, None, threads)
    after = [
        (part, 0 if part.program is None else times_run(part.program) - before.get(id(part.program), 0))
        for part in parts(binding.program)
    ]
    often = _since(inner, _runs(binding), 1)
    found: list[StepReport] = []
    for number, (part, rounds) in enumerate(after):
        if part.binding is None:
            found.append(StepReport(_alone(part), part.depth, 0, number))
            continue
        plan: Plan | None = part.binding.plan
        made = [] if plan is None else _rows(plan, (), part.depth, rounds, number)
        with suppress(Error):  # a part of Python's that zeros are wrong for
            made = _timed(part.binding, _zeros(part.binding), threads, runs, often, part.depth, rounds, number)
        found += made
    return found


def values_of(values: Sequence[Any]) -> Values:
    """Inputs or outputs, as specs of a model or values of a graph have them."""
    return tuple(ValueReport(v.name, v.dtype.name, None if v.shape is None else tuple(v.shape)) for v in values)

"""Reports of programs: what is known before it runs, and what is measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import DeviceError, Error
from ..ir.graph import Node
from ..program.bindings import Binding
from ..program.parts import Part, parts, times_run
from ..program.steps import Step, steps
from ..program.trace import Plan
from ._limits import limits
from .data import Report, StepReport, ValueReport

__all__ = ["STAGED", "measured", "planned"]

STAGED = "runs in stages: sizes or branches depend on values that are known only when it runs, or there are loops or lists"
ROUNDS = "sizes are those of the last round of each body; one line a node, bodies set off"
ZEROS = (
    "its parts are timed one by one, on zeros of the sizes that they had last, and count as often as they ran; "
    "nodes that run alone, and what loops and branches cost, are in the time of the whole run only"
)
Values = tuple[ValueReport, ...]


def planned(binding: Binding, inputs: Values, outputs: Values, arrays: Sequence[Any], threads: int) -> Report:
    """What a binding will do. A network that runs in stages runs once for it, since its parts are known only then."""
    made, notes, arena = _steps(binding, arrays, threads)
    variant = binding.program.variant.name
    return Report(variant, threads, inputs, outputs, tuple(made), arena, binding.staged, tuple(notes))


def measured(
    binding: Binding, inputs: Values, outputs: Values, arrays: Sequence[np.ndarray], threads: int, limit: int, runs: int
) -> Report:
    """The same with times: those of whole runs, then those of every step.

    Raises:
        DeviceError: there is no compiled engine.
    """
    top = limits()
    given = list(arrays)
    whole = []
    made, notes, arena = _steps(binding, given, limit)
    for _ in range(runs):
        start = time.perf_counter()
        binding.run(given, None, limit)
        whole.append(time.perf_counter() - start)
    if binding.staged:
        made = _staged(binding, given, limit, runs)
        notes = [*notes, ZEROS]
    else:
        made = _timed(binding, made, given, runs)
    variant = binding.program.variant.name
    return Report(variant, threads, inputs, outputs, tuple(made), arena, binding.staged, tuple(notes), tuple(whole), top)


def _steps(binding: Binding, arrays: Sequence[Any], threads: int) -> tuple[list[StepReport], list[str], int | None]:
    program = binding.program
    away = program.gpu.away if program.gpu is not None else ()
    plan = binding.plan
    if not binding.staged:
        assert plan is not None
        return [StepReport(step) for step in steps(plan, away)], [], plan.arena
    ran = _run_once(binding, arrays, threads)
    found = []
    for number, part in enumerate(parts(program)):
        plan = None if part.binding is None else part.binding.plan
        made = [_alone(part)] if plan is None else steps(plan, away)
        found += [StepReport(step, part.depth, 0, number) for step in made]
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


def _timed(binding: Binding, made: Sequence[StepReport], arrays: list[Any], runs: int) -> list[StepReport]:
    """The steps of a binding with the times of each."""
    if binding.bound is None:
        raise DeviceError("profile: needs the compiled engine: see `fastlayers doctor`")
    times = binding.bound.profile(arrays, runs) / 1e9
    found = []
    for step in made:
        calls = list(step.step.calls)
        if calls:
            begins, seconds = times[:, calls[0], 0], times[:, calls, 1].sum(1)
            step = step._replace(seconds=tuple(seconds.tolist()), begins=tuple(begins.tolist()))
        found.append(step)
    return found


def _staged(binding: Binding, arrays: list[Any], threads: int, runs: int) -> list[StepReport]:
    """The steps of all parts, each timed alone on zeros."""
    before = {id(part.program): times_run(part.program) for part in parts(binding.program) if part.program is not None}
    binding.run(arrays, None, threads)
    after = [
        (part, 0 if part.program is None else times_run(part.program) - before.get(id(part.program), 0))
        for part in parts(binding.program)
    ]
    found: list[StepReport] = []
    for number, (part, rounds) in enumerate(after):
        if part.binding is None:
            found.append(StepReport(_alone(part), part.depth, 0, number))
            continue
        plan: Plan | None = part.binding.plan
        made = [] if plan is None else [StepReport(step, part.depth, rounds, number) for step in steps(plan)]
        pairs = zip(*part.binding.made_for, strict=True)
        zeros: list[Any] = [np.zeros(s.shape or (), s.dtype) if v is None else v for s, v in pairs]
        with suppress(Error):  # a part of Python's that zeros are wrong for
            made = _timed(part.binding, made, zeros, runs)
        found += made
    return found


def values_of(values: Sequence[Any]) -> Values:
    """Inputs or outputs, as specs of a model or values of a graph have them."""
    return tuple(ValueReport(v.name, v.dtype.name, None if v.shape is None else tuple(v.shape)) for v in values)

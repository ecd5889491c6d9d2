"""The table that `Model.summary` returns and ``fastlayers inspect`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Error, ShapeError
from ..graph.ir import Node
from ..program.program import Binding
from ..program.steps import Step, steps
from .parts import Part, parts

if TYPE_CHECKING:
    from .model import Model

__all__ = ["STAGED", "alone", "bound", "count", "described", "ran", "short", "summary", "table"]

WIDEST = 40  # characters of a name in a table
STAGED = "runs in stages: sizes or branches depend on numbers that are there only when it runs, or there are loops or lists"


def bound(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None) -> Binding:
    """The binding for these sizes; those of the model's own inputs if they are all numbers."""
    return model._main.binding(_arrays(model, shapes))


def _arrays(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None) -> list[Any]:
    if shapes is None:
        open_sizes = [
            f"{s.name} {s.shape}" for s in model.inputs if s.shape is None or not all(isinstance(d, int) for d in s.shape)
        ]
        if open_sizes:
            raise ShapeError(f"summary: sizes are open: {', '.join(open_sizes)}: give the shape of every input")
        shapes = [s.shape for s in model.inputs]
    return model._placeholders(shapes, "summary")


def count(number: float) -> str:
    """A number with a suffix: 1.2 k, 3.4 M, 5.6 G."""
    for suffix in ("", " k", " M", " G"):
        if abs(number) < 1000 or suffix == " G":
            return f"{number:.0f}{suffix}" if suffix == "" else f"{number:.3g}{suffix}"
        number /= 1000
    raise AssertionError


def short(name: str) -> str:
    """The end of a name, which tells more than its beginning, with dots for what is left out."""
    return name if len(name) <= WIDEST else f"...{name[3 - WIDEST :]}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Columns of text; the first `left` are aligned to the left."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()

    return "\n".join([line(head), line(["-" * w for w in widths]), *map(line, rows)])


def summary(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """See `Model.summary`."""
    return f"{model!r}\n{described(model, shapes)}"


def described(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """The table and the line of totals, without what the model is called with."""
    arrays = _arrays(model, shapes)
    binding = model._main.binding(arrays)
    away = binding.program.gpu.away if binding.program.gpu is not None else ()
    head = ["operator", "result", "shape", "parameters", "multiply-adds", "bytes", "runs in"]
    if not binding.staged:
        plan = binding.plan
        assert plan is not None
        found = steps(plan, away)
        return f"{table(head, [_row(s, 0) for s in found], 3)}\n{_totals(found, plan.arena)}"
    note = ran(model, binding, arrays)
    rows, known = [], []
    for part in parts(model._main):
        plan = None if part.binding is None else part.binding.plan
        made = [alone(part)] if plan is None else steps(plan, away)
        rows += [_row(step, part.depth) for step in made]
        known += made
    lines = [STAGED, "sizes are those of the last round of each body; one line a node, bodies set off"]
    return "\n".join([*lines, *note, table(head, rows, 3), _totals(known, None)])


def ran(model: Model, binding: Binding, arrays: list[Any]) -> list[str]:
    """Runs a network in stages once, since its parts are known only then; a line about it if it could not be done."""
    try:
        binding.run([np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in arrays], None, model.num_threads)
    except Error as error:
        return [f"it could not be run to the end on what was given: {error}"]
    return []


def _row(step: Step, depth: int) -> list[str]:
    return [
        "  " * depth + step.op,
        short(step.name),
        "x".join(map(str, step.shape)) or "-",
        count(step.parameters),
        count(step.multiply_adds),
        count(step.bytes),
        " ".join(step.kernels) or "(view)",
    ]


def alone(part: Part) -> Step:
    """A node that runs alone, or did not run, as a line of the table: what is known of it."""
    node = part.node or Node("", (), ("",), {})
    sizes = [part.constants[name].size for name in node.inputs if name is not None and name in part.constants]
    weights = sum(size for size in sizes if size > 1)
    return Step(node.op, next(filter(None, node.outputs), ""), (), "", weights, 0, 0, (part.note,), ())


def _totals(found: Iterable[Step], arena: int | None) -> str:
    found = list(found)
    numpy_steps = [s for s in found if "numpy" in s.kernels and s.name]
    parameters, work = sum(s.parameters for s in found), sum(s.multiply_adds for s in found)
    names = ", ".join(dict.fromkeys(s.op for s in numpy_steps)) or "nothing"
    memory = "" if arena is None else f", {count(arena)}B of intermediate results"
    return f"{len(found)} steps, {count(parameters)} parameters, {count(work)} multiply-adds{memory}; in numpy: {names}"

"""The table that `Model.summary` returns and ``fastlayers inspect`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ShapeError
from ..program.program import Binding
from ..program.steps import Step, steps

if TYPE_CHECKING:
    from .model import Model

__all__ = ["bound", "count", "summary", "table"]


def bound(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None) -> Binding:
    """The binding for these sizes; those of the model's own inputs if they are all numbers."""
    if shapes is None:
        open_sizes = [
            f"{s.name} {s.shape}" for s in model.inputs if s.shape is None or not all(isinstance(d, int) for d in s.shape)
        ]
        if open_sizes:
            raise ShapeError(f"summary: sizes are open: {', '.join(open_sizes)}: give the shape of every input")
        shapes = [s.shape for s in model.inputs]
    arrays = model._placeholders(shapes)
    return model._main.binding(arrays)


def count(number: float) -> str:
    """A number with a suffix: 1.2 k, 3.4 M, 5.6 G."""
    for suffix in ("", " k", " M", " G"):
        if abs(number) < 1000 or suffix == " G":
            return f"{number:.0f}{suffix}" if suffix == "" else f"{number:.3g}{suffix}"
        number /= 1000
    raise AssertionError


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
    binding = bound(model, shapes)
    lines = [repr(model)]
    if binding.plan is None:
        lines.append(
            "runs in stages: sizes or branches depend on numbers that are there only when it runs, or there are loops or lists"
        )
        return "\n".join(lines)
    found = steps(binding.plan, binding.program.device.away if binding.program.device is not None else ())
    rows = [
        [
            s.op,
            s.name[-40:],
            "x".join(map(str, s.shape)) or "-",
            count(s.parameters),
            count(s.multiply_adds),
            count(s.bytes),
            " ".join(s.kernels) or "(view)",
        ]
        for s in found
    ]
    lines.append(table(["operator", "result", "shape", "parameters", "multiply-adds", "bytes", "runs in"], rows, 3))
    lines.append(_totals(found, binding))
    return "\n".join(lines)


def _totals(found: Sequence[Step], binding: Binding) -> str:
    plan = binding.plan
    assert plan is not None
    numpy_steps = [s for s in found if "numpy" in s.kernels and s.name]
    parameters, work = sum(s.parameters for s in found), sum(s.multiply_adds for s in found)
    names = ", ".join(dict.fromkeys(s.op for s in numpy_steps)) or "nothing"
    return (
        f"{len(found)} steps, {count(parameters)} parameters, {count(work)} multiply-adds, {count(plan.arena)}B of intermediate "
        f"results; in numpy: {names}"
    )

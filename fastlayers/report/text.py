"""A report as a table of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .data import Report, StepReport


__all__ = ["about", "cells", "chosen", "count", "head", "limit", "plural", "short", "table", "text", "three"]

WIDEST = 40  # characters of a name in a table


ROUNDS_UP = 999.5  # to 1000, of which three digits are 1e+03


def three(number: float) -> str:
    """A number with three digits, or all those before its point."""
    return f"{number:.3g}" if abs(number) < ROUNDS_UP else f"{number:.0f}"


def count(number: float) -> str:
    """A number with a suffix: 1.2 k, 3.4 M, 5.6 G."""
    for suffix in ("", " k", " M", " G", " T"):
        if abs(number) < ROUNDS_UP or suffix == " T":
            return f"{number:.0f}{suffix}" if suffix == "" else f"{three(number)}{suffix}"
        number /= 1000
    raise AssertionError


def plural(number: int, word: str) -> str:
    """A number of things: 1 step, 2 steps."""
    return f"{number} {word}{'s' * (number != 1)}"


def limit(report: Report, row: StepReport) -> tuple[float, str]:
    """The part of the machine's limit that a step reaches, and which limit that is; no part where it passes it."""
    if not (row.best > 0 and row.step.kernels and report.limits is not None):
        return 0.0, ""
    share, kind = report.least(row) / row.best, report.limits.kind(row.step)
    return (share, kind) if share <= 1 else (0.0, "cache" if kind == "memory" else "fewer")


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


def head(report: Report) -> list[str]:
    """The names of the columns."""
    if not report.measured:
        return ["operator", "result", "shape", "parameters", "multiply-adds", "bytes", "runs in"]
    rounds = ["times"] if report.inner else []
    return ["operator", "result", "shape", "us", *rounds, "of all", "of limit", "limit", "runs in"]


def cells(report: Report, row: StepReport) -> list[str]:
    """A step's columns."""
    step = row.step
    first = ["  " * row.depth + step.op, short(step.name), row.shape]
    if not report.measured:
        return [
            *first,
            count(step.parameters),
            count(step.multiply_adds),
            count(step.bytes),
            row.where + (f": {step.why}" if step.why else ""),
        ]
    rounds = [str(row.rounds) if row.rounds else ""] if report.inner else []
    share, kind = limit(report, row)
    return [
        *first,
        f"{row.best * 1e6:.1f}",
        *rounds,
        f"{report.share(row):.1%}",
        f"{share:.0%}" if share else "",
        kind,
        " ".join(step.kernels),
    ]


def about(report: Report) -> list[str]:
    """The lines below the table."""
    numpy_steps = [s for s in report.numpy_steps if s.step.name]
    names = ", ".join(dict.fromkeys(s.step.op for s in numpy_steps)) or "nothing"
    memory = "" if report.arena is None else f", {count(report.arena)}B of intermediate results"
    lines = [
        f"{plural(len(report.steps), 'step')}, {count(report.parameters)} parameters, {count(report.multiply_adds)} multiply-adds"
        f"{memory}; in numpy: {names}"
    ]
    if report.measured:
        runs = sorted(report.runs)
        best = f"{report.total * 1e6:.1f} us in all {'parts' if report.staged else 'steps'}, each step at its best of {len(runs)}"
        lines.append(f"{runs[0] * 1e6:.1f} us a run at best, {runs[len(runs) // 2] * 1e6:.1f} in the middle; {best}")
    if report.limits is not None:
        lines.append(
            f"one core: {count(report.limits.multiply_adds)} multiply-adds and {count(report.limits.read)}B read a second"
        )
        passed = {limit(report, row)[1] for row in report.steps}
        lines += ["limit cache: what such a step reads comes sooner than from memory"] * ("cache" in passed)
        lines += ["limit fewer: such a step computes the same with fewer multiply-adds"] * ("fewer" in passed)
    return lines


def text(report: Report, top: int) -> str:
    """See `Report.text`."""
    rows = [cells(report, row) for row in chosen(report, top)]
    last = [f"variant={report.variant}, {plural(report.threads, 'thread')}"] if report.measured else []
    return "\n".join([*report.notes, table(head(report), rows, 3), *about(report), *last])


def chosen(report: Report, top: int) -> Sequence[StepReport]:
    """All steps in order, or the `top` that cost most."""
    if top <= 0:
        return report.steps
    return sorted(report.steps, key=lambda s: (-s.total, -s.step.multiply_adds))[:top]

"""A profile as a Chrome trace: one row for each run, an event for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .json import dumps

if TYPE_CHECKING:
    from .data import Report, StepReport

__all__ = ["trace"]

MOST_RUNS = 10  # rows


def trace(report: Report) -> str:
    """See `Report.trace`. The part of a network that runs in stages is put after the part before it: they were timed alone."""
    if not report.measured:
        raise ArgumentError("trace: the report has no times: expected one of Model.profile")
    shown = min(MOST_RUNS, len(report.runs))
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": f"fastlayers {report.variant}"}}
    ]
    for run in range(shown):
        label = f"run {run + 1}"
        events.append({"ph": "M", "pid": 1, "tid": run + 1, "name": "thread_name", "args": {"name": label}})
        events += _run(report, run)
    return dumps({"traceEvents": events, "displayTimeUnit": "ns"})


def _run(report: Report, run: int) -> list[dict[str, Any]]:
    events, shift, end, stretch = [], 0.0, 0.0, -1
    for row in report.steps:
        if not row.seconds:
            continue
        if row.stretch != stretch:
            stretch, shift = row.stretch, end
        begin = shift + row.begins[run]
        # Clocks have nanoseconds; a step that ends when the next begins must not overlap it by a rounding.
        begin = max(begin, end)
        end = begin + row.seconds[run]
        events.append(_event(report, row, run, begin))
    return events


def _event(report: Report, row: StepReport, run: int, begin: float) -> dict[str, Any]:
    step = row.step
    return {
        "ph": "X",
        "pid": 1,
        "tid": run + 1,
        "name": step.op,
        "cat": "numpy" if row.in_numpy else "kernel",
        "ts": round(begin * 1e6, 3),
        "dur": round(row.seconds[run] * 1e6, 3),
        "args": {
            "result": step.name,
            "shape": row.shape,
            "kernels": row.where,
            "multiply_adds": step.multiply_adds,
            "bytes": step.bytes,
            "least_us": round(report.least(row) * 1e6, 3),
            "rounds": row.rounds,
        },
    }

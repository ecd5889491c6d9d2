"""A report as JSON: a documented form for scripts."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data import Report, StepReport, ValueReport


__all__ = ["as_dict", "as_json", "dumps"]

FORMAT = 1  # of `Report.dict`: raised when a key goes or changes its meaning


def dumps(value: Any) -> str:
    """JSON that every reader takes: ASCII, no NaN or infinity (null in their place), keys in the order given."""
    return json.dumps(_plain(value), indent=1, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _value(value: ValueReport) -> dict[str, Any]:
    return {"name": value.name, "dtype": value.dtype, "shape": None if value.shape is None else list(value.shape)}


def _step(report: Report, row: StepReport) -> dict[str, Any]:
    step = row.step
    found: dict[str, Any] = {
        "operator": step.op,
        "result": step.name,
        "shape": list(step.shape),
        "dtype": step.dtype,
        "parameters": step.parameters,
        "multiply_adds": step.multiply_adds,
        "bytes": step.bytes,
        "kernels": list(step.kernels),
        "numpy": row.in_numpy,
        "depth": row.depth,
        "rounds": row.rounds,
    }
    if report.measured:
        found["seconds"] = {"best": row.best, "median": row.median} if row.seconds else None
        found["share"] = report.share(row)
        found["share_of_limit"] = report.least(row) / row.best if row.best > 0 and step.kernels else None
        found["limit"] = None if report.limits is None else report.limits.kind(step)
    return found


def as_dict(report: Report) -> dict[str, Any]:
    """See `Report.dict`."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "variant": report.variant,
        "threads": report.threads,
        "staged": report.staged,
        "notes": list(report.notes),
        "inputs": [_value(v) for v in report.inputs],
        "outputs": [_value(v) for v in report.outputs],
        "parameters": report.parameters,
        "multiply_adds": report.multiply_adds,
        "bytes": report.bytes,
        "arena_bytes": report.arena,
        "numpy_steps": len(report.numpy_steps),
        "steps": [_step(report, row) for row in report.steps],
    }
    if report.measured:
        runs = sorted(report.runs)
        found["seconds"] = {"best": runs[0], "median": runs[len(runs) // 2], "of_steps": report.total, "runs": list(report.runs)}
    if report.limits is not None:
        found["limits"] = {"multiply_adds_per_second": report.limits.multiply_adds, "bytes_per_second": report.limits.read}
    return found


def as_json(report: Report) -> str:
    """See `Report.json`."""
    return dumps(as_dict(report))

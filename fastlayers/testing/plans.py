"""The plan of a model as something to store: which step runs in which kernel, and what all of it costs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from ..report import Report

__all__ = ["plan_differences", "plan_of"]

# What is compared as a number. Less of each is a gain, but a change all the same.
TOTALS = ("multiply_adds", "bytes", "parameters", "numpy_steps", "arena_bytes")
Plan = dict[str, Any]


def plan_of(report: Report) -> Plan:
    """Extracts the parts of a report that do not depend on the machine's pace: a line for every step, and totals."""
    found: Plan = {
        "variant": report.variant,
        "staged": report.staged,
        "multiply_adds": report.multiply_adds,
        "bytes": report.bytes,
        "parameters": report.parameters,
        "numpy_steps": len(report.numpy_steps),
        "arena_bytes": report.arena,
    }
    found["steps"] = [
        f"{'. ' * row.depth}{row.step.op} {row.step.name} {row.shape} {row.step.dtype}: {row.where}" for row in report.steps
    ]
    return found


def plan_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Lists the changes between two plans: steps by their names, then totals. Plans of different variants are not compared.

    >>> old = {"variant": "a", "steps": ["Conv c 1x8: winograd"], "numpy_steps": 0}
    >>> plan_differences(old, {"variant": "a", "steps": ["Conv c 1x8: conv"], "numpy_steps": 0})
    ['Conv c 1x8: winograd -> conv']
    """
    if before["variant"] != now["variant"]:
        return [f"variant: {before['variant']} -> {now['variant']}"]
    lines = [*_steps(before["steps"], now["steps"])]
    for key in ("staged", *TOTALS):
        if before.get(key) != now.get(key):
            lines.append(f"{key}: {before.get(key)} -> {now.get(key)}")
    return lines


def _steps(old: list[str], new: list[str]) -> list[str]:
    found = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        gone, come = list(old[a:b]), list(new[c:d])
        for line in gone[:]:
            name, _, _ = line.rpartition(": ")
            same = [other for other in come if other.rpartition(": ")[0] == name]
            if same:
                found.append(f"{line} -> {same[0].rpartition(': ')[2]}")
                gone.remove(line)
                come.remove(same[0])
        found += [f"gone: {line}" for line in gone] + [f"new: {line}" for line in come]
    return found

"""A bound program as people want to see it: one line per node, with its shapes, its costs, what runs it, and how to run it
alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .._tuples import NamedTuple
from ..operators.builder import AnyCall, Call, NativeCall, NestedCall
from .cost import moved, multiply_adds, parameters, why
from .trace import Plan

__all__ = ["Step", "steps", "timed"]


class Step(NamedTuple):
    """A node of a bound program. `kernels` are those that run it, "numpy" for a NumPy fallback; none if it is another view of its
    input. `reads` and `makes` are the indices of values in the plan.
    """

    op: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    parameters: int
    multiply_adds: int
    bytes: int
    kernels: tuple[str, ...]
    calls: tuple[int, ...]  # positions in the plan
    reads: tuple[int, ...] = ()
    makes: tuple[int, ...] = ()
    why: str = ""  # what decided which of several algorithms the kernels run


def steps(plan: Plan, away: Collection[str] = ()) -> list[Step]:
    """The steps of a plan, in order, and one more for copies to outputs where there are any. Of kernels that are `away`, it is
    said that they run on the host.
    """
    found = []
    calls: dict[int, list[int]] = {}
    for number, call in enumerate(plan.calls):
        calls.setdefault(call.node, []).append(number)

    def runs_in(call: AnyCall) -> str:
        if isinstance(call, Call):
            return f"{call.kernel} (host)" if call.kernel in away else call.kernel
        return call.name if isinstance(call, NestedCall) else "numba" if isinstance(call, NativeCall) else "numpy"

    def kernels(node: int) -> tuple[str, ...]:
        made = (plan.calls[i] for i in calls.get(node, ()))
        return tuple(dict.fromkeys(map(runs_in, made)))

    for number, (node, inputs, outputs, weights) in enumerate(plan.nodes):
        out = outputs[0]
        (reads, makes), names = plan.links[number], kernels(number)
        found.append(
            Step(
                node.op, node.outputs[0], tuple(out.shape or ()), out.dtype.name, parameters(node, weights),  # type: ignore[arg-type]
                multiply_adds(node, inputs, outputs), moved(inputs, outputs), names, tuple(calls.get(number, ())),
                reads, makes, "" if "numpy" in names else why(node, inputs),
            )
        )  # fmt: skip
    rest = len(plan.nodes)
    if rest in calls:
        found.append(Step("(copies to outputs)", "", (), "", 0, 0, 0, kernels(rest), tuple(calls[rest])))
    return found


def timed(bound: Any) -> list[list[int]]:
    """For each of `steps`, its places in what the compiled engine's `profile` measures, where calls may have become one step."""
    found, at = [], 0
    for count in bound.counts:
        found.append(list(range(at, at + count)))
        at += count
    return found

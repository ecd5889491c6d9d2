"""A bound program as people want to see it: one line per node, with its shapes, its costs, what runs it, and how to run it
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .._tuples import NamedTuple
from ..calls.conv_choice import WALKS
from ..ir.graph import Node
from ..operators import Spec
from ..operators.builder import AnyCall, Call, NativeCall, NestedCall, Ref
from .trace import Plan

__all__ = ["Step", "steps", "timed", "ways"]


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
    from .cost import moved, multiply_adds, parameters, why

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

    def reason(node: Node, inputs: Sequence[Spec | None], own: Sequence[int]) -> str:
        way = next((words for at, words in plan.ways if at in own), "")
        return "; ".join(filter(None, (why(node, inputs), way)))

    for number, (node, inputs, outputs, weights) in enumerate(plan.nodes):
        out = outputs[0]
        (reads, makes), names = plan.links[number], kernels(number)
        found.append(
            Step(
                node.op, node.outputs[0], tuple(out.shape or ()), out.dtype.name, parameters(node, weights),  # type: ignore[arg-type]
                multiply_adds(node, inputs, outputs), moved(inputs, outputs), names, tuple(calls.get(number, ())),
                reads, makes, "" if "numpy" in names else reason(node, inputs, calls.get(number, ())),
            )
        )  # fmt: skip
    rest = len(plan.nodes)
    if rest in calls:
        found.append(Step("(copies to outputs)", "", (), "", 0, 0, 0, kernels(rest), tuple(calls[rest])))
    return found


def ways(calls: Sequence[AnyCall], makers: Mapping[str, Callable[..., Any]]) -> tuple[tuple[int, str], ...]:
    """The ways of the engine's direct convolutions, in words, by the positions of their calls. `makers` make the steps of the
    variant that is in use.
    """
    if not makers:
        return ()
    from ..kernels.aot.conv import walk_of

    found = []
    for at, call in enumerate(calls):
        if isinstance(call, Call) and call.kernel == "conv":
            step = makers["conv"](*[a.shape if isinstance(a, Ref) else a for a in call.args])
            found.append((at, WALKS[walk_of(step)]))
    return tuple(found)


def timed(bound: Any) -> list[list[int]]:
    """For each of `steps`, its places in what the compiled engine's `profile` measures, where calls may have become one step."""
    found, at = [], 0
    for count in bound.counts:
        found.append(list(range(at, at + count)))
        at += count
    return found

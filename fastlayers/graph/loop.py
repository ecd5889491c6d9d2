"""Records a loop whose number of steps is not known: its body is recorded once, as its own graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.graph import Dim, Graph
from ._trace import body_graph
from .record import record
from .symbol import Call, Symbol, now

__all__ = ["loop"]

# Takes the iteration's number and the carried values; returns whether to go on (None: always), the values for the next
# iteration, and the parts of results that grow by one part an iteration.
Body = Callable[..., tuple[Any, Sequence[Any], Sequence[Any]]]


def loop(
    body: Body, carried: Sequence[Any], count: Any, going: Any = None, steps: Dim = None
) -> tuple[list[Symbol], list[Symbol]]:
    """The carried values after the last iteration, and the results that have grown, along a new first axis.

    Args:
        body: recorded once; it may use symbolic values from outside, which are passed in by themselves.
        carried: symbolic values or arrays, whose shapes and dtypes stay as they are.
        count: the most iterations: a symbolic integer, or an array of one.
        going: whether there is a first iteration: a symbolic boolean; None: there is.
        steps: how many iterations there are: a size, or its name, if that is known.
    """
    before = now()
    inner = [Symbol(v.shape, v.dtype, f"carried_{i}") for i, v in enumerate(carried)]
    number, condition = Symbol((), np.dtype(np.int64), "iteration"), Symbol((), np.dtype(np.bool_), "condition")
    on, after, parts = body(number, *inner)
    for old, new in zip(inner, after, strict=True):
        if len(old.shape) != len(new.shape) or old.dtype != new.dtype:
            raise ShapeError(f"trace: a step is given {old!r} and hands on {new!r}: expected the same number of axes and dtype")
    graph, outside = _graph([number, condition, *inner], [condition if on is None else on, *after], parts, before)
    given = (count, going, *carried, *outside)
    finals = [(v.shape, v.dtype) for v in (*carried, *outside)]
    made = Call("Loop", given, {"body": graph}).give([*finals, *(((steps, *p.shape), p.dtype) for p in parts)])
    return list(made[: len(carried)]), list(made[len(finals) :])


def _graph(inputs: list[Symbol], results: list[Any], parts: Sequence[Any], before: int) -> tuple[Graph, list[Symbol]]:
    """The body as a graph, and the symbolic values from outside that it uses: further values that it carries."""
    outside: dict[int, Symbol] = {}
    known = {id(symbol) for symbol in inputs}
    waiting: list[Any] = [*results, *parts]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Symbol) or id(value) in known or id(value) in outside:
            continue
        if value.call is None or value.call.order < before:
            outside[id(value)] = value
        elif value.call.order not in seen:
            seen.add(value.call.order)
            waiting += value.call.inputs
    through = list(outside.values())
    named = [(str(v.name), v) for v in inputs] + [(f"outside_{i}", v) for i, v in enumerate(through)]
    outputs = [v if isinstance(v, Symbol) else record("Identity", v) for v in (*results, *through, *parts)]
    return body_graph(named, outputs), through

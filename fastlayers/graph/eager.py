"""Functions called with arrays: a call whose sizes have come before runs a program, that of the function recorded and compiled.

The first calls of some sizes run the function itself, which needs no plan. What comes again is recorded and bound, and found from
then on by its plain arguments and the shapes of its arrays: a call of microseconds spends most of them on checking arguments.
Plans are made of operations alone whose programs give the function's own bits; `ops.op` has the others say so. Only the compiled
engine has any: elsewhere a program would call the same kernels one by one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from .._lazy import imported
from ..errors import Error, UnsupportedError
from ..kernels import dispatch
from .symbol import Input, Symbol

__all__ = ["Worth", "planned"]

F = TypeVar("F", bound=Callable[..., Any])
Worth = Callable[[Sequence[np.ndarray]], bool]
# Calls of the same sizes before there is a plan for them: to make it takes as long as ten of them, about.
BEFORE = 3
# Of all functions together: sizes with plans; sizes that are remembered as seen; and how many calls must have gone without a plan
# before other sizes may take the place of those that are there, so that many sizes in turn do not undo each other's plans.
MOST, SEEN, PATIENCE = 1024, 4096, 65536
# Calls without a plan before the first one is made: what makes programs takes as long to import as some thousand calls.
COLD = 1000
_PROGRAM = "fastlayers.program"


class _Plans:
    """The plans under one variant of the kernels. Each change is a single step.

    Attributes:
        generation: of the variant.
        quick: runs a call that has one, see `kernels.aot.calls`; None before there is any.
        runners: what runs a function's calls with some plain arguments and arrays of some shapes, whether their result is one
            array, and the program; None where there is to be no plan.
        seen: how often calls have come that have no plan.
        count: how many sizes have one.
        missed: how many calls have gone without one since there are as many as there may be; or before the first is made.
    """

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.quick: Callable[..., Any] | None = None
        self.runners: dict[Any, tuple[Any, bool, Any] | None] = {}
        self.seen: dict[Any, int] = {}
        self.count = self.missed = 0


_plans = _Plans(-1)


def planned(function: F, looked_at: Sequence[str] = (), worth: Worth | None = None) -> F:
    """The function, which runs on arrays or is recorded on symbolic values, with plans for what it is called with again.

    There are none where an array of integers is given, or one of the arguments `looked_at`: of these the function checks values,
    which no program does; nor for arrays that would not be `worth` it.
    """
    names = function.__wrapped__.__code__.co_varnames  # type: ignore[attr-defined]
    without = [(name, names.index(name)) for name in looked_at]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        plans = _plans
        for name, at in without:
            if kwargs.get(name) is not None or (len(args) > at and args[at] is not None):
                return function(*args, **kwargs)
        if plans.quick is not None and plans.generation == dispatch.generation:
            found = plans.quick(plans.runners, function, args, kwargs)
            if found is NotImplemented:
                return function(*args, **kwargs)
            if found is not None:
                return found
        result = function(*args, **kwargs)
        _came(function, worth, args, kwargs)
        return result

    return call  # type: ignore[return-value]


def _came(function: Any, worth: Worth | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Counts a call that had no plan; makes one if it has come often enough."""
    global _plans
    plans = _plans
    if plans.generation != dispatch.generation:
        plans = _plans = _Plans(dispatch.generation)
    if plans.quick is None:
        plans.missed += 1
        if plans.missed < COLD and _PROGRAM not in sys.modules:
            return
        if not dispatch.variant().steps:
            return
        plans.missed, plans.quick = 0, imported("fastlayers.kernels.aot.calls").quick
    if plans.count >= MOST:
        plans.missed += 1
        if plans.missed > PATIENCE:
            _plans = _Plans(plans.generation)
        return
    found = imported("fastlayers.kernels.aot.calls").key_of(function, args, kwargs)
    if found is None:
        return
    key, arrays = found
    if not all(a.flags.c_contiguous and a.flags.aligned for a in arrays):
        return  # where a copy is needed, it is needed in each call
    times = plans.seen.get(key, 0) + 1
    if times < BEFORE:
        if len(plans.seen) >= SEEN:
            plans.seen = {}
        plans.seen[key] = times
        return
    plans.seen.pop(key, None)
    plans.count += 1
    made = None
    if worth is None or worth(arrays):
        with suppress(Error):  # recorded it refuses something, or it would run in numpy
            made = _program(function, arrays, args, kwargs)
    if plans.generation == dispatch.generation:
        plans.runners[key] = made


def _program(function: Any, arrays: Sequence[np.ndarray], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool, Any]:
    """What runs the function on arrays of these shapes in compiled kernels alone, whether it returns one array, and the program.

    Sizes are known as they are recorded: with open ones a function may record what is not right for all.

    Raises:
        UnsupportedError: there is no such program.
    """
    single = False

    def recorded(*symbols: Symbol) -> Any:
        nonlocal single
        waiting = iter(symbols)
        result = function(*[_filled(v, waiting) for v in args], **{name: _filled(v, waiting) for name, v in kwargs.items()})
        single = result.__class__ is Symbol
        if not single and not (result.__class__ is tuple and all(part.__class__ is Symbol for part in result)):
            raise UnsupportedError("eager: expected one result, or a tuple of them")
        return result

    from ..passes import optimize  # as long as the import of programs
    from .trace import trace

    graph = trace(recorded, *(Input(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)))
    program = imported(_PROGRAM).Program(optimize(graph), dispatch.variant(), native=True)
    program.binding(list(arrays))
    return program.runner, single, program


def _filled(value: Any, symbols: Iterator[Symbol]) -> Any:
    """An argument with the next symbols in place of its arrays, which may be in a sequence."""
    if value.__class__ is np.ndarray:
        return next(symbols)
    if value.__class__ in (tuple, list):
        return value.__class__(next(symbols) if part.__class__ is np.ndarray else part for part in value)
    return value

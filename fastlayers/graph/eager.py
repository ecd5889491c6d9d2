"""Functions called with arrays: a call whose sizes have come before runs a program, that of the function recorded and compiled.

The first calls of some sizes run the function itself, which needs no plan. What comes again is recorded and bound, and found from
then on by its plain arguments and the shapes of its arrays: a call of microseconds spends most of them on checking arguments.
Plans are made of operations alone whose programs give the function's own bits; `ops.op` has the others say so. Only the compiled
engine has any: elsewhere a program would call the same kernels one by one.

Weights, which a program packs, are constants of a plan: it keeps a copy of them, and runs where a call's are equal, bit for bit.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .._lazy import imported
from .._tuples import NamedTuple
from ..errors import SHORTAGE, Error, UnsupportedError, is_shortage
from ..ir.graph import Graph, Node
from ..kernels import dispatch
from .symbol import Input, Symbol

__all__ = ["Plan", "Worth", "planned"]

F = TypeVar("F", bound=Callable[..., Any])
Worth = Callable[[Sequence[np.ndarray]], bool]
Place = tuple[str, int]
# Calls of the same sizes before there is a plan for them: to make it takes as long as ten of them, about.
BEFORE = 3
# Of all functions together: sizes with plans; sizes that are remembered as seen; and how many calls must have gone without a plan
# before other sizes may take the place of those that are there, so that many sizes in turn do not undo each other's plans.
MOST, SEEN, PATIENCE = 1024, 4096, 65536
# Of plans with constants: as many for calls alike but for their values, the newest; bytes of all their constants together; and
# how many values of an array tell calls apart until there is a plan.
MOST_ALIKE, MOST_BYTES, SAMPLED = 32, 1 << 26, 64
# Calls without a plan before the first one is made: what makes programs takes as long to import as some thousand calls.
COLD = 1000
_PROGRAM = "fastlayers.program"


class Plan(NamedTuple):
    """A program for a call of known sizes: `kernels.aot.calls` reads it by position.

    Attributes:
        runner: of the program, which takes the arrays that are no constants.
        single: whether the result is one array.
        constants: positions among the call's arrays, and copies of those that the program was made with; None: it has none.
        program: retained.
    """

    runner: Any
    single: bool
    constants: tuple[tuple[int, np.ndarray], ...] | None
    program: Any


class _Plans:
    """The plans under one variant of the kernels. Each change is a single step.

    Attributes:
        generation: of the variant.
        quick: runs a call that has one, see `kernels.aot.calls`; None before there is any.
        runners: the plans for a function's calls with some plain arguments and arrays of some shapes, several where they have
            constants; None where there is to be no plan.
        seen: how often calls have come that have no plan.
        count: how many sizes have one.
        missed: how many calls have gone without one since there are as many as there may be; or before the first is made.
        bytes: of the constants of all plans.
    """

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.quick: Callable[..., Any] | None = None
        self.runners: dict[Any, tuple[Plan, ...] | None] = {}
        self.seen: dict[Any, int] = {}
        self.count = self.missed = self.bytes = 0


_plans = _Plans(-1)


def planned(function: F, without: Sequence[Place], packed: Sequence[Place], worth: Worth | None) -> F:
    """The function, which runs on arrays or is recorded on symbolic values, with plans for what it is called with again.

    There are none where an array of integers is given, or one of the arguments `without`: of these the function checks values,
    which no program does; nor for arrays that would not be `worth` it. The arguments `packed` are constants of the plans. Both
    are arguments' names, and their positions.
    """

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
        try:
            _came(function, worth, packed, args, kwargs)
        except SHORTAGE as error:  # the result is there; a later call may have its plan
            if not is_shortage(error):
                raise
        return result

    return call  # type: ignore[return-value]


def _came(function: Any, worth: Worth | None, packed: Sequence[Place], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
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
    for array in arrays:
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            return  # where a copy is needed, it is needed in each call
    constant = {id(args[at] if at < len(args) else kwargs.get(name)) for name, at in packed}
    at = [i for i, array in enumerate(arrays) if id(array) in constant]
    size = sum([arrays[i].nbytes for i in at])
    if plans.bytes + size > MOST_BYTES:
        plans.missed += size < MOST_BYTES
        return
    sort = (key, *[arrays[i].reshape(-1)[:: max(arrays[i].size // SAMPLED, 1)].tobytes() for i in at]) if at else key
    times = plans.seen.get(sort, 0) + 1
    if times < BEFORE:
        if len(plans.seen) >= SEEN:
            plans.seen = {}
        plans.seen[sort] = times
        return
    plans.seen.pop(sort, None)
    plans.count += 1
    made = None
    if worth is None or worth(arrays):
        try:
            made = _plan(function, arrays, at, args, kwargs)
        except Error as error:  # recorded it refuses something, or it would run in numpy
            if is_shortage(error):
                plans.count -= 1
                return
    if plans.generation == dispatch.generation:
        plans.bytes += size if made else 0
        plans.runners[key] = made and (made, *_others(plans, key))


def _others(plans: _Plans, key: Any) -> tuple[Plan, ...]:
    """The plans that are kept when a call gets a further one, with other constants; those beyond the limit are dropped."""
    here = plans.runners.get(key) or ()
    for old in here[MOST_ALIKE - 1 :]:
        plans.count -= 1
        plans.bytes -= sum(array.nbytes for _, array in old.constants or ())
    return here[: MOST_ALIKE - 1]


def _plan(function: Any, arrays: Sequence[np.ndarray], at: Sequence[int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    """A plan for arrays of these shapes; those `at` some positions are its constants."""
    copies = {i: arrays[i].copy() for i in at}
    runner, single, program = _program(function, arrays, copies, args, kwargs)
    return Plan(runner, single, tuple(copies.items()) or None, program)


def _program(
    function: Any,
    arrays: Sequence[np.ndarray],
    constants: Mapping[int, np.ndarray],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, bool, Any]:
    """A runner of the function on arrays of these shapes by kernels alone, whether it returns one array, and its program.

    Sizes are known as they are recorded: with open ones a function may record what is not right for all. `constants` are arrays
    by their positions; kernels are those that the function chooses, which packs them in every call.

    Raises:
        UnsupportedError: there is no such program.
    """
    single = False

    def recorded(*symbols: Symbol) -> Any:
        nonlocal single
        free = iter(symbols)
        waiting = iter([constants[i] if i in constants else next(free) for i in range(len(arrays))])
        result = function(*[_filled(v, waiting) for v in args], **{name: _filled(v, waiting) for name, v in kwargs.items()})
        single = result.__class__ is Symbol
        if not single and not (result.__class__ is tuple and all(part.__class__ is Symbol for part in result)):
            raise UnsupportedError("eager: expected one result, or a tuple of them")
        return result

    from ..passes import optimize  # as long as the import of programs
    from ._trace import trace

    free = [i for i in range(len(arrays)) if i not in constants]
    if not free:
        raise UnsupportedError("eager: expected an array that is no weight")
    graph = optimize(trace(recorded, *(Input(f"x{i}", arrays[i].shape, arrays[i].dtype) for i in free)))
    if constants:
        nodes = tuple([_once(node) for node in graph.nodes])
        graph = Graph(graph.inputs, graph.outputs, nodes, graph.constants, graph.values)
    program = imported(_PROGRAM).Program(graph, dispatch.variant(), native=True)
    program.binding([arrays[i] for i in free])
    return program.runner, single, program


def _once(node: Node) -> Node:
    """A convolution that runs the kernel which suits weights that are packed for one call."""
    return Node(node.op, node.inputs, node.outputs, {**node.attributes, "packs": True}) if node.op == "Conv" else node


def _filled(value: Any, symbols: Iterator[Any]) -> Any:
    """An argument with the next symbols, or constants, in place of its arrays, which may be in a sequence."""
    if value.__class__ is np.ndarray:
        return next(symbols)
    if value.__class__ in (tuple, list):
        return value.__class__(next(symbols) if part.__class__ is np.ndarray else part for part in value)
    return value

"""Functions that can be recorded: called with a symbolic value, they write operators of `operators.OPERATORS` into a graph.

To add one: (1) write the public function in ``functional/``, which calls its shape rule first; (2) put ``@op(...)`` on it, with
what it records; (3) give an example in ``tests/graph/examples``. A test fails while one has no example.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .._arguments import checker
from ..errors import SHORTAGE, DTypeError, refuse_shortage
from ..ir.graph import Shape
from .arrays import as_float32, as_int64, as_mask
from .eager import Worth, planned
from .record import converted
from .symbol import Label, Symbol, now

__all__ = ["DECLARED", "Op", "op"]

F = TypeVar("F", bound=Callable[..., Any])
FLOAT32, INT64 = np.dtype(np.float32), np.dtype(np.int64)
_CONVERT: dict[str, Callable[..., np.ndarray]] = {"": as_float32, "int": as_int64, "mask": as_mask}
_STARRED = 4  # of a function's code: it takes any number of arguments


class Op:
    """The declaration of a function that can be recorded.

    Args:
        name: its name.
        tensors: the arguments that are tensors, in order; one that begins with ``*`` is a sequence of them, and the only one.
            What follows a colon says what becomes of its values: float32 without one, int64 for ``:int`` (reals are refused),
            and for ``:mask`` booleans stay, all else becomes float32.
        rule: takes the function's arguments, each tensor replaced by its shape; returns the shape of the result, or a list of
            shapes if there are several results; raises what the function would raise. Sizes may be names or None.
        records: takes the tensors by position, as symbols and arrays in the dtypes that they are computed in, and the other
            arguments by name; records operators and returns the result, or a tuple of the results.
        normal: takes the arguments that are no tensors as a dict and changes what must become plain data; before `records`.

    Attributes:
        raw: the function on arrays alone.
        function: what runs it on arrays, or records it if one of its tensors is a `Symbol`.
    """

    __slots__ = ("function", "kinds", "name", "normal", "raw", "records", "rule", "tensors")

    def __init__(
        self, name: str, raw: Any, tensors: tuple[str, ...], rule: Callable[..., Any], records: Callable[..., Any], normal: Any
    ) -> None:
        parts = [tensor.partition(":") for tensor in tensors]
        self.tensors, self.kinds = tuple(p[0] for p in parts), tuple(p[2] for p in parts)
        self.name, self.raw, self.rule, self.records, self.normal = name, raw, rule, records, normal
        self.function: Callable[..., Any] = raw

    @property
    def variadic(self) -> bool:
        """Whether the operation takes a sequence of tensors."""
        return self.tensors[0].startswith("*")

    def record(self, *args: Any, **kwargs: Any) -> Any:
        """Checks shapes and dtypes and returns symbols for the results; runs no kernel."""
        start, label = now(), Label(self.name)
        if self.raw.__code__.co_flags & _STARRED:
            values: dict[str, Any] = {**dict.fromkeys(self.tensors), **dict(zip(self.tensors, args, strict=False)), **kwargs}
        else:
            bound = _signature(self.raw).bind(*args, **kwargs)
            bound.apply_defaults()
            values = dict(bound.arguments)
        values.pop("inplace", None)  # torch's argument, which changes nothing
        if self.variadic:
            name = self.tensors[0][1:]
            inputs = tuple(_operand(self.name, f"{name}[{i}]", v, self.kinds[0]) for i, v in enumerate(values.pop(name)))
            shapes: dict[str, Any] = {name: [v.shape for v in inputs]}
        else:
            inputs = tuple(
                _operand(self.name, name, values.pop(name), kind) for name, kind in zip(self.tensors, self.kinds, strict=True)
            )
            shapes = {name: None if v is None else v.shape for name, v in zip(self.tensors, inputs, strict=True)}
        found = self.rule(**shapes, **values)
        if self.normal is not None:
            self.normal(values)
        made = self.records(*inputs, **values)
        results = made if isinstance(found, list) else (made,)
        _label(results, start, label)
        for i, (result, shape) in enumerate(zip(results, found if isinstance(found, list) else [found], strict=True)):
            result.call.settle(result, shape, i if isinstance(found, list) else -1)
        return made


# All operations declared so far, by name.
DECLARED: dict[str, Op] = {}


def _label(results: tuple[Symbol, ...], start: int, label: Label) -> None:
    """Labels what has been recorded since the start."""
    waiting: list[Any] = list(results)
    while waiting:
        value = waiting.pop()
        call = value.call if isinstance(value, Symbol) else None
        if call is not None and call.order > start and call.label is None:
            call.label = label
            waiting += call.inputs


def op(
    name: str,
    tensors: str,
    rule: Callable[..., Shape | list[Shape]],
    records: Callable[..., Any],
    normal: Callable[[dict[str, Any]], None] | None = None,
    plans: bool | str | Worth = True,
    weights: str = "",
) -> Callable[[F], F]:
    """Declares how a function is recorded; `tensors` are the names of its tensor arguments, separated by spaces. See `Op`.

    Calls with arrays that come again run what is recorded (see `eager`); not those with integers, whose values functions check,
    nor with the tensors that `plans` names, or arrays that it refuses, and none if it is False: where that would be slower, or
    gives other bits. `weights` are names of tensors that a program packs: constants of plans. A function of ``*tensors`` has
    no defaults but None for these.
    """

    def declare(function: F) -> F:
        entry = Op(name, function, tuple(tensors.split()), rule, records, normal)
        first, check = checker(name, function)

        if entry.variadic:

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                if kwargs or len(args) > first:
                    args, kwargs = check(args, kwargs)
                values = args[0] if args else kwargs.get(entry.tensors[0][1:])
                if isinstance(values, (list, tuple)) and any(v.__class__ is Symbol for v in values):
                    return entry.record(*args, **kwargs)
                try:
                    return function(*args, **kwargs)
                except SHORTAGE as error:
                    refuse_shortage(error, name)
                    raise

        else:

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                if kwargs or len(args) > first:
                    args, kwargs = check(args, kwargs)
                for value in args:
                    if value.__class__ is Symbol:
                        return entry.record(*args, **kwargs)
                for value in kwargs.values():
                    if value.__class__ is Symbol:
                        return entry.record(*args, **kwargs)
                try:
                    return function(*args, **kwargs)
                except SHORTAGE as error:
                    refuse_shortage(error, name)
                    raise

        code, checks = function.__code__, plans if isinstance(plans, str) else ""
        order = entry.tensors if code.co_flags & _STARRED else code.co_varnames
        looked_at, packed = [[(name, order.index(name)) for name in names.split()] for names in (checks, weights)]
        entry.function = planned(call, looked_at, packed, plans if callable(plans) else None) if plans else call
        DECLARED[name] = entry
        return entry.function  # type: ignore[return-value]

    return declare


@functools.cache
def _signature(function: Callable[..., Any]) -> Any:
    import inspect

    return inspect.signature(function)


def _operand(op_name: str, argument: str, value: Any, kind: str) -> Any:
    """A tensor argument as a symbol, an array (which becomes a constant) or None."""
    if value is None:
        return None
    if isinstance(value, Symbol):
        if value.dtype.kind not in ("iu" if kind == "int" else "fiub"):
            wanted = "an integer dtype" if kind == "int" else "a boolean, an integer or a real dtype"
            raise DTypeError(f"{op_name}: {argument} has dtype {value.dtype}: expected {wanted}")
        if kind == "mask" and value.dtype == np.bool_:
            return value
        return converted(value, INT64 if kind == "int" else FLOAT32)
    return _CONVERT[kind](value, op_name, argument)

"""The vocabulary: every operation that can be recorded, each declared once, at its function. Holds no operation itself.

To add an operation: (1) write the public function in ``functional/``, which calls its shape rule first; (2) put ``@op(...)`` on
it; (3) give an example in ``tests/graph/examples.py``. A test fails while an operation has no example.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from .._arguments import checker, no_memory
from .._lazy import Registry, by_name, imported
from ..errors import DTypeError, Error
from ..functional._exports import HOMES
from .ir import Shape
from .symbol import Call, Symbol

__all__ = ["OPS", "Op", "op"]

F = TypeVar("F", bound=Callable[..., Any])
FLOAT32 = np.dtype(np.float32)


class Op:
    """One operation.

    Args:
        name: its name in a graph.
        function: what runs it on arrays, or records it if one of its tensors is a `Symbol`.
        tensors: the arguments that are tensors, in order; one that begins with ``*`` is a sequence of them, and the only one.
            What follows a colon says what becomes of its numbers: float32 without one, int64 for ``:int`` (reals are refused),
            and for ``:mask`` booleans stay, all else becomes float32.
        rule: takes the function's arguments, each tensor replaced by its shape; returns the shape of the result, or a list of
            shapes if there are several results; raises what the function would raise. Sizes may be names or None.
        normal: takes the attributes (the arguments that are no tensors) as a dict and changes what must become plain data.
    """

    __slots__ = ("function", "kinds", "name", "normal", "raw", "rule", "tensors")

    def __init__(self, name: str, raw: Any, tensors: tuple[str, ...], rule: Callable[..., Any], normal: Any) -> None:
        parts = [tensor.partition(":") for tensor in tensors]
        self.tensors, self.kinds = tuple(p[0] for p in parts), tuple(p[2] for p in parts)
        self.name, self.raw, self.rule, self.normal = name, raw, rule, normal
        self.function: Callable[..., Any] = raw

    @property
    def variadic(self) -> bool:
        """Whether the operation takes a sequence of tensors."""
        return self.tensors[0].startswith("*")

    def record(self, *args: Any, **kwargs: Any) -> Any:
        """Checks shapes and dtypes and returns symbols for the results; runs no kernel."""
        bound = _signature(self.raw).bind(*args, **kwargs)
        bound.apply_defaults()
        values: dict[str, Any] = dict(bound.arguments)
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
        call = Call(self.name, inputs, values)
        results = found if isinstance(found, list) else [found]
        made = call.give([(shape, FLOAT32) for shape in results])
        return made if isinstance(found, list) else made[0]

    def run(self, inputs: list[Any], attributes: Mapping[str, Any]) -> tuple[Any, ...]:
        """Runs the operation on arrays given in the order of `tensors`."""
        given = {self.tensors[0][1:]: inputs} if self.variadic else dict(zip(self.tensors, inputs, strict=False))
        result = self.function(**given, **attributes)
        return result if isinstance(result, tuple) else (result,)


def _find(name: str) -> Op | None:
    """The operation that the function of this name declares where it is defined, if it declares one."""
    getattr(imported("fastlayers.functional"), name)
    return OPS.found(name)


OPS: Registry[Op] = Registry(by_name(HOMES), _find)


def op(
    name: str, tensors: str, rule: Callable[..., Shape | list[Shape]], normal: Callable[[dict[str, Any]], None] | None = None
) -> Callable[[F], F]:
    """Declares a function as an operation; `tensors` are the names of its tensor arguments, separated by spaces. See `Op`."""

    def declare(function: F) -> F:
        entry = Op(name, function, tuple(tensors.split()), rule, normal)
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
                except MemoryError as error:
                    raise error if isinstance(error, Error) else no_memory(name) from error

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
                except MemoryError as error:
                    raise error if isinstance(error, Error) else no_memory(name) from error

        entry.function = call
        OPS[name] = entry
        return call  # type: ignore[return-value]

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
        return value
    from ..functional import _arrays

    convert = {"": _arrays.as_float32, "int": _arrays.as_int64, "mask": _arrays.as_mask}[kind]
    return convert(value, op_name, argument)

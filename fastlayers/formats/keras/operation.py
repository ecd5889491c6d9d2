"""The table of keras.ops, and how an operation's arguments are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .build import Build, Tensor

__all__ = ["OPERATIONS", "Operation", "as_tensor", "integer", "listed", "literal", "put"]

Operation = Callable[..., Any]
OPERATIONS: dict[str, Operation] = {}


def put(*names: str) -> Callable[[Operation], Operation]:
    """Puts a function into the table."""

    def add(function: Operation) -> Operation:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return add


def listed(value: Any) -> list[int]:
    """Axes as a list."""
    return [value] if isinstance(value, int) else list(value)


def integer(value: Any) -> int:
    """A number, also where the file has it as an array of one."""
    return int(np.asarray(value).reshape(()))


def literal(value: Any) -> Any:
    """Lists of values as arrays."""
    if isinstance(value, (list, tuple)):
        array = np.array(value)
        return array.astype(np.float32 if array.dtype.kind == "f" else np.int32) if array.dtype.kind in "fi" else array
    return value


def as_tensor(b: Build, value: Any) -> Tensor:
    """A tensor as it is; scalars and lists of them as constants."""
    return b.operand(literal(value))

"""Interface through which one text of kernel calls runs them: at once, on arrays, or later, on memory of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tuples import NamedTuple
from . import dispatch

__all__ = ["ARRAYS", "Machine"]


class Machine(NamedTuple):
    """Caller of kernels: at once, on arrays, or later, in a program. `view` gives the same memory another shape."""

    call: Callable[..., Any]
    view: Callable[[Any, tuple[int, ...]], Any]
    temp: Callable[[tuple[int, ...]], Any]


ARRAYS = Machine(
    lambda kernel, *args: dispatch.kernel(kernel)(*args),
    lambda x, shape: x.reshape(shape),
    dispatch.empty,
)

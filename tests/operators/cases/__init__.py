"""Examples of every operator: inputs, attributes, and what comes out, by hand.

A file next to this one is a family. A test fails while a registered operator has no example.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Case", "all_cases", "array", "case", "numbers"]


class Case(NamedTuple):
    """One node.

    `inputs` has None for one that is left out. `want` has None for an output of which only shape and dtype are checked.
    `data`: how many of the inputs are data; those after are parameters (axes, shapes, bounds), which models have as constants.
    `native`: whether kernels do it all, with the parameters constant. `ulp`: how far kernels may be from `run`,
         in float32 roundings.
    """

    op: str
    label: str
    inputs: tuple[np.ndarray | None, ...]
    want: tuple[np.ndarray | None, ...]
    attributes: dict[str, Any]
    data: int
    native: bool
    ulp: float

    @property
    def id(self) -> str:
        """The name of the test."""
        return f"{self.op}-{self.label}"


def array(values: Any, dtype: Any = np.float32) -> np.ndarray:
    """An array; whatever is one already stays as it is."""
    return values if isinstance(values, np.ndarray) else np.array(values, dtype)


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """0, 1, 2, … in a shape."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def case(
    op: str, label: str, inputs: Sequence[Any], *want: Any, data: int = 1, native: bool = False, ulp: float = 0, **attributes: Any
) -> Case:
    """A case; lists among the inputs become float32 (data) or int64 (parameters), and outputs the dtype of the first input."""
    made = tuple(None if v is None else array(v, np.float32 if i < data else np.int64) for i, v in enumerate(inputs))
    dtype = next((v.dtype for v in made if v is not None), np.dtype(np.float32))
    return Case(op, label, made, tuple(None if w is None else array(w, dtype) for w in want), attributes, data, native, ulp)


@cache
def all_cases() -> tuple[Case, ...]:
    """Those of every file next to this one."""
    return tuple(_collected())


def _collected() -> Iterator[Case]:
    for module in pkgutil.iter_modules(__path__):
        yield from importlib.import_module(f"{__name__}.{module.name}").CASES

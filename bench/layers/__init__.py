"""Calls of layers and functions on shapes of real networks, next to torch where torch has the like: one file a family.

A module of this package has ``ROWS``, a list of `Row`; a new file is found by itself. A test fails while a public function or
layer is in no row.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench.cases import normal

__all__ = ["Pair", "Row", "all_rows", "load", "normal"]


class Pair(NamedTuple):
    """The same computation twice, made ready; each call gives its first result as something that numpy takes.

    `theirs` takes the module torch and returns the call that is timed; None where torch has nothing of the kind.
    """

    ours: Callable[[], Any]
    theirs: Callable[[Any], Callable[[], Any]] | None = None
    flops: float = 0.0  # a multiply-add is two


class Row(NamedTuple):
    """One line of the table: which public names it times (of `fl.functional` or `fl`), on what, and how it is made."""

    names: tuple[str, ...]
    label: str
    make: Callable[[], Pair]
    tolerance: float = 1e-4  # of the largest result: two correct float32 sums in different orders differ by far less

    @property
    def id(self) -> str:
        return f"{self.names[0]} {self.label}"


def load(layer: Any, fan_in: int = 64) -> dict[str, np.ndarray]:
    """Gives a layer of ours random tensors; returns them by name."""
    rng = np.random.default_rng(0)
    state = {name: normal(rng, *shape, fan_in=fan_in) for name, shape in layer.tensor_shapes().items()}
    layer.load_state_dict(state)
    return state


def all_rows() -> list[Row]:
    """Every row of every family."""
    files = [m.name for m in pkgutil.iter_modules(__path__)]
    return [row for file in files for row in importlib.import_module(f"{__name__}.{file}").ROWS]

"""A model's report for given sizes: what `Model.summary`, `Model.report` and `Model.profile` return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import threads
from ..errors import ArgumentError
from ..program.segment import Binding
from ..report import Report, measured, planned, values_of

if TYPE_CHECKING:
    from .model import Model

__all__ = ["bound", "profile", "report", "summary"]

MOST_RUNS = 10_000


def bound(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None) -> Binding:
    """The binding for these sizes; those of the model's own inputs if they are all known."""
    return model._main.binding(_arrays(model, shapes, "summary"))


def _arrays(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None, what: str) -> list[Any]:
    if shapes is None:
        open_sizes = [
            f"{s.name} {s.shape}" for s in model.inputs if s.shape is None or not all(isinstance(d, int) for d in s.shape)
        ]
        if open_sizes:
            raise ArgumentError(f"{what}: sizes are open: {', '.join(open_sizes)}: give the shape of every input")
        shapes = [s.shape for s in model.inputs]
    return model._placeholders(shapes, what)


def _threads(model: Model) -> int:
    return min(model.num_threads or threads.get_num_threads(), threads.get_num_threads())


def report(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None, what: str = "report") -> Report:
    """See `Model.report`."""
    arrays = _arrays(model, shapes, what)
    sides = values_of(model.inputs), values_of(model.outputs)
    return planned(model._main.binding(arrays), *sides, arrays, _threads(model))


def profile(model: Model, feeds: Any, runs: int) -> Report:
    """See `Model.profile`."""
    if not isinstance(runs, (int, np.integer)) or isinstance(runs, bool) or not 1 <= runs <= MOST_RUNS:
        raise ArgumentError(f"profile: runs is {runs!r}: expected an int from 1 to {MOST_RUNS}")
    arrays = [np.ascontiguousarray(array) for array in model._converted(feeds)]
    binding = model._main.binding(list(arrays))
    return measured(
        binding, values_of(model.inputs), values_of(model.outputs), arrays, _threads(model), model.num_threads, int(runs)
    )


def summary(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """See `Model.summary`."""
    return f"{model!r}\n{report(model, shapes, 'summary').text()}"

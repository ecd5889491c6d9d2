"""A model's report for given sizes: what `Model.summary`, `Model.report` and `Model.profile` return."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import threads
from .._arguments import listed, shown
from .._lazy import imported
from .._tuples import NamedTuple
from ..errors import ArgumentError
from ..ir.graph import Graph
from ..operators import traits_of
from ..program.segment import Binding
from ..report import Report, measured, planned, values_of
from ..report.text import count, short, table

if TYPE_CHECKING:
    from .model import Model

__all__ = ["bound", "profile", "report", "summary"]

MOST_RUNS = 10_000


def bound(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None) -> Binding:
    """The binding for these sizes; by default for the sizes of the model's inputs, if all are known."""
    return model._main.binding(_arrays(model, shapes, "summary"))


def _arrays(model: Model, shapes: Mapping[str, Any] | Sequence[Any] | None, what: str) -> list[Any]:
    if shapes is None:
        open_sizes = [
            f"{s.name} {s.shape}" for s in model.inputs if s.shape is None or not all(isinstance(d, int) for d in s.shape)
        ]
        if open_sizes:
            guess = {s.name: tuple(d if isinstance(d, int) else 1 for d in s.shape or ()) for s in model.inputs}
            told = f"such as model.{what}({shown(guess)})"
            raise ArgumentError(f"{what}: sizes are open: {listed(open_sizes, 4)}: give the shape of every input, {told}")
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
    told = report(model, shapes, "summary").text()
    rows = list(_changed(model._main.whole_graph()))
    return "\n".join([repr(model), told, *([] if not rows else ["", *_table(rows)])])


class _Row(NamedTuple):
    name: str
    stored: str
    before: int
    after: int
    relative: float
    largest: float


_STORED = {1: "float16", 2: "bfloat16"}


def _changed(graph: Graph, around: Mapping[str, np.ndarray] = MappingProxyType({})) -> Iterator[_Row]:
    """Weights that are stored in fewer bits than they had, by node."""
    known = ChainMap(dict(graph.constants), dict(around))
    for node in graph.nodes:
        for value in node.attributes.values():
            if isinstance(value, Graph):
                yield from _changed(value, known)
        half, found = node.attributes.get("half"), node.attributes.get("rounded")
        if half in _STORED and found is None:
            found = imported("fastlayers.passes.half").rounding(node, known)
        if not isinstance(found, tuple) or len(found) != 2 or not all(isinstance(v, float) for v in found):
            continue
        few = imported("fastlayers.passes.few_bits")
        if node.op in few.FEW and (sizes := few.sizes_of(node, known)) is not None:
            name, before, after = sizes
            yield _Row(name, f"int{node.attributes.get('bits', 4)}", before, after, *found)
        elif half in _STORED:
            names = [str(name) for i, name in enumerate(node.inputs) if i in traits_of(node.op).halves and name in known]
            count = sum(known[name].size for name in names)
            if names:
                yield _Row(names[0], _STORED[half], 4 * count, 2 * count, *found)


def _table(rows: Sequence[_Row]) -> list[str]:
    cells = [[short(r.name), r.stored, count(r.before), count(r.after), f"{r.relative:.2e}", f"{r.largest:.2e}"] for r in rows]
    before, after = sum(r.before for r in rows), sum(r.after for r in rows)
    head = ["weights", "stored as", "bytes before", "after", "relative error", "largest"]
    return [table(head, cells, 2), f"{len(rows)} matrices: {count(before)}B before, {count(after)}B after"]

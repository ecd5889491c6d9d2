"""`Model.batch_axes`: the axis of the batch through a model's graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._arguments import as_mapping
from ..batch.axes import batch_axes, named_axes
from ..errors import UnsupportedError, ours
from ..passes import optimize
from ..program.memory import counted

if TYPE_CHECKING:
    from .model import Model

__all__ = ["of"]


def of(model: Model, axes: Mapping[str, int] | None) -> dict[str, int]:
    """See `Model.batch_axes`."""
    graph = model._graph
    if model._options.optimize:
        with ours(lambda: "batch_axes: simplifying the graph"), counted(model._options.most):
            graph = optimize(graph, strict=True)  # folds constants alone, among them shapes computed of known sizes
    given = named_axes(graph) if axes is None else dict(as_mapping("batch_axes", "axes", axes))
    if not given:
        raise UnsupportedError("batch_axes: no input has a named first size: say with axes which axis is the batch's")
    return {**given, **batch_axes(graph, given)}

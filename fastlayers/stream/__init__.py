"""Networks over sequences that come in pieces.

``stream`` has `Stream`, which feeds states back. Where a network has its states as inputs and outputs, ``_pairs`` finds them by
their names; where it has not, ``_axes`` finds the axis of time and ``_rewrite`` makes a graph of it that has: rules for
operators are in ``_steps`` (each step for itself, recurrent layers), ``_windows`` (convolutions and pools) and ``_shapes``.
``windows`` has `WindowStream`, for networks that take windows of one length, cut from pieces of any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._arguments import shown
from ..errors import ArgumentError, ShapeError
from .stream import Stream

if TYPE_CHECKING:
    from ..model.model import Model

__all__ = ["Stream", "make"]


def make(
    model: Model,
    state: Mapping[str, str] | None,
    axis: int | str | None,
    input: str | Sequence[str] | None,
    initial: Mapping[str, Any] | None,
    size: int | None = None,
    overlap: int = 0,
) -> Stream:
    """See `Model.stream`."""
    from . import _axes, _pairs

    if size is not None:
        from .windows import WindowStream

        pairs = _pairs.find(model.inputs, model.outputs) if state is None else _pairs.check(state, model.inputs, model.outputs)
        return WindowStream(model, pairs, initial, size, overlap, axis, input)
    if type(overlap) is not int or overlap:
        raise ArgumentError(
            f"stream: overlap is {shown(overlap)}, and there is no size: expected the new steps of a window, size="
        )
    if state is not None and (axis is not None or input is not None):
        raise ShapeError("stream: state and axis or input were given: expected the names of states, or the axis of time")
    if axis is None and input is None:
        pairs = _pairs.find(model.inputs, model.outputs) if state is None else _pairs.check(state, model.inputs, model.outputs)
        if pairs or state is not None:
            return Stream(model, pairs, initial)
    return _rewritten(model, _axes.times(model.inputs, axis, input), initial)


def _rewritten(model: Model, times: Mapping[str, int], initial: Mapping[str, Any] | None) -> Stream:
    from ..graph.passes.direct import direct
    from ._rewrite import rewritten

    made = rewritten(direct(model._main.graph), times)
    return Stream(model._like(made.graph), dict(made.states), initial, own=True)

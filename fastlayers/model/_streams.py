"""`Model.stream`: which kind of stream a model needs, by what its inputs and outputs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._arguments import shown
from ..errors import ArgumentError
from ..stream import axes
from ..stream import pairs as states
from .stream import Stream

if TYPE_CHECKING:
    from .model import Model

__all__ = ["make"]


def make(
    model: Model,
    state: Mapping[str, str] | None,
    axis: int | str | None,
    input: str | Sequence[str] | None,
    initial: Mapping[str, Any] | None,
    size: int | None = None,
    overlap: int = 0,
    batch: int | None = None,
) -> Stream:
    """See `Model.stream`."""
    if size is not None:
        from .stream_windows import WindowStream

        pairs = states.find(model.inputs, model.outputs) if state is None else states.check(state, model.inputs, model.outputs)
        return WindowStream(model, pairs, initial, size, overlap, axis, input, batch)
    for name, value, none in (("overlap", overlap, 0), ("batch", batch, None)):
        if type(value) is not type(none) or value != none:
            raise ArgumentError(
                f"stream: {name} is {shown(value)}, and there is no size: expected the new steps of a window, size="
            )
    if state is not None and (axis is not None or input is not None):
        raise ArgumentError("stream: state and axis or input were given: expected the names of states, or the axis of time")
    if axis is None and input is None:
        pairs = states.find(model.inputs, model.outputs) if state is None else states.check(state, model.inputs, model.outputs)
        if pairs or state is not None:
            return Stream(model, pairs, initial)
    return _rewritten(model, axes.times(model.inputs, axis, input), initial)


def _rewritten(model: Model, times: Mapping[str, int], initial: Mapping[str, Any] | None) -> Stream:
    from ..passes.conv_direct import direct
    from ..stream.network import rewritten

    made = rewritten(direct(model._main.graph), times)
    return Stream(model._like(made.graph), {s.before: s.after for s in made.states}, initial, own=made.states)

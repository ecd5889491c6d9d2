"""The axis of time of each input: what the caller says, else what the sizes are called, else the only one that is open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .._arguments import as_names, shown
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ir.checks import integer

__all__ = ["times"]

_NAMES = re.compile(
    r"(^|.*[_\- ])(t|times?|time_?steps?|steps?|seq|sequence|seq_?len|length|frames?|samples?|n_?frames|n_?samples)($|[_\- ].*)",
    re.IGNORECASE,
)


def times(inputs: Sequence[Any], axis: int | str | None, name: str | Sequence[str] | None) -> dict[str, int]:
    """The axis of time of each input that has one."""
    chosen = list(inputs)
    if name is not None:
        wanted = [name] if isinstance(name, str) else as_names("stream", "input", name)
        known = [v.name for v in inputs]
        if unknown := [n for n in wanted if n not in known]:
            raise ArgumentError(f"stream: input is {name!r}, but there is no {unknown[0]!r}: expected some of {known}")
        chosen = [v for v in inputs if v.name in wanted]
    if axis is None:
        return _found(chosen, len(inputs))
    if isinstance(axis, str):
        found = {v.name: v.shape.index(axis) for v in chosen if v.shape is not None and axis in v.shape}
        if not found:
            raise ArgumentError(
                f"stream: axis is {axis!r}, no size of {_told(chosen)} has this name: expected one of its names, or a number"
            )
        return found
    try:
        axis = integer("stream", "axis", axis)
    except DTypeError:
        raise ArgumentError(f"stream: axis is {shown(axis)}: expected the number of an axis or the name of its size") from None
    if len(chosen) > 1 and name is None:
        raise ArgumentError(f"stream: axis={axis} is ambiguous for several inputs, {_told(chosen)}: pass input=")
    found = {}
    for value in chosen:
        if value.shape is None or not -len(value.shape) <= axis < len(value.shape):
            raise ShapeError(f"stream: axis is {axis}, but input {value.name!r} has the shape {value.shape}")
        found[value.name] = axis % len(value.shape)
    return found


def _found(chosen: Sequence[Any], count: int) -> dict[str, int]:
    """The one axis that can be meant."""
    named = {v.name: [i for i, d in enumerate(v.shape or ()) if isinstance(d, str) and _NAMES.fullmatch(d)] for v in chosen}
    named = {name: axes for name, axes in named.items() if axes}
    sizes = {v.name: v.shape for v in chosen}
    if named and all(len(axes) == 1 for axes in named.values()):
        if len({sizes[name][axes[0]] for name, axes in named.items()}) == 1:
            return {name: axes[0] for name, axes in named.items()}
    elif not named:
        still = {v.name: [i for i, d in enumerate(v.shape or ()) if i and not isinstance(d, int)] for v in chosen}
        still = {name: axes for name, axes in still.items() if axes}
        if len(still) == 1 and len(next(iter(still.values()))) == 1:
            return {name: axes[0] for name, axes in still.items()}
    raise ArgumentError(
        f"stream: the time axis of {_told(chosen)} is ambiguous: name it, for example axis=1"
        + (", input='" + chosen[0].name + "'" if count > 1 and chosen else "")
        + "; if the network takes its state as an input, name that: state={input: output}"
    )


def _told(values: Sequence[Any]) -> str:
    return ", ".join(f"input {v.name!r} of shape {v.shape}" for v in values)

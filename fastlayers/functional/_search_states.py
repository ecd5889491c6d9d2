"""States of decoders: nested tuples, lists and dicts of arrays or symbolic values, opened and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["opened"]


def opened(state: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The arrays of a state in their order, and what makes a state of the same form of others."""
    found: list[Any] = []
    _open(state, found)
    return found, lambda values: _closed(state, iter(values))


def _open(state: Any, found: list[Any]) -> None:
    if isinstance(state, dict):
        state = tuple(state.values())
    if isinstance(state, (tuple, list)):
        for part in state:
            _open(part, found)
    elif state is not None:
        found.append(state)


def _closed(state: Any, values: Iterator[Any]) -> Any:
    if state is None:
        return None
    if isinstance(state, dict):
        return {key: _closed(part, values) for key, part in state.items()}
    if isinstance(state, (tuple, list)):
        parts = [_closed(part, values) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return next(values)

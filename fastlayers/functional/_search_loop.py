"""`greedy_search` recorded: a loop whose body is one step, which goes on until every sequence has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..graph.loop import loop
from ..graph.record import cast, record, where
from ..graph.symbol import Symbol
from ..ir.checks import integer
from ._search_states import opened

__all__ = ["recorded_greedy"]

_NAME = "greedy_search"


def recorded_greedy(
    step: Callable[..., Any], state: Any, start: Any, end: int, max_length: int, axis: int
) -> tuple[Symbol, Symbol, Symbol]:
    """Tokens (n, length), lengths and scores (n,). What a step returns is not checked for being log-probabilities."""
    end, max_length = integer(_NAME, "end", end, 0), integer(_NAME, "max_length", max_length, 1)
    leaves, again = opened(state)
    tokens = _first(leaves, start, integer(_NAME, "state_axis", axis))
    zeros = record("Sub", tokens, tokens)
    done = zeros != 0
    first = [tokens, done, cast(zeros, np.float64), zeros, *leaves]

    def body(_: Symbol, tokens: Any, done: Any, scores: Any, lengths: Any, *carried: Any) -> tuple[Any, list[Any], list[Any]]:
        result = step(tokens, again(carried))
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], Symbol):
            raise DTypeError(f"{_NAME}: step returned {type(result).__name__}: expected a pair (log-probabilities, state)")
        logs = result[0]
        if logs.ndim != 2 or (isinstance(logs.shape[1], int) and logs.shape[1] <= end):
            raise ShapeError(f"{_NAME}: step returned shape {logs.shape}: expected (n, more than end={end})")
        best = record("ArgMax", logs, axis=1, keepdims=0)
        value = cast(record("ReduceMax", logs, np.array([1]), keepdims=0), np.float64)
        scores = record("Add", scores, where(done, 0.0, value))
        chosen = where(done, end, best)
        over = done | (chosen == end)
        lengths = record("Add", lengths, cast(~over, np.int64))
        return _any(~over), [chosen, over, scores, lengths, *opened(result[1])[0]], [chosen]

    (_, _, scores, lengths, *_), (chosen,) = loop(body, first, np.array(max_length), _any(~done))
    return chosen.swapaxes(0, 1), lengths, scores


def _any(mask: Symbol) -> Any:
    """Whether one of some booleans is true; a symbolic boolean of no axes."""
    return record("ReduceSum", cast(mask, np.int64), keepdims=0) > 0


def _first(leaves: list[Any], start: Any, axis: int) -> Any:
    """The tokens to begin with, int64 (n,)."""
    if isinstance(start, Symbol):
        if start.dtype.kind not in "iu" or start.ndim > 1:
            raise DTypeError(f"{_NAME}: start is {start!r}: expected integers, one or (n,)")
        tokens: Any = cast(start, np.int64)
    else:
        from ..graph.arrays import as_int64

        tokens = as_int64(start, _NAME, "start")
    if tokens.ndim == 1:
        return tokens
    found = next((leaf for leaf in leaves if isinstance(leaf, Symbol)), None)
    if found is None or tokens.ndim or not -found.ndim <= axis < found.ndim:
        raise ShapeError(f"{_NAME}: start has shape {tokens.shape}: expected (n,), or one token and a state with axis {axis}")
    rows = record("AxisPositions", found, axis=axis)
    return record("Add", record("Sub", rows, rows), tokens)

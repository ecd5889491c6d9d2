"""Decoding token by token over a step function: the most probable token each time, or the most probable sequences by beams."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._arguments import checked
from .._tuples import NamedTuple
from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..graph.arrays import as_array, as_float32, as_int64
from ..graph.symbol import symbolic
from ..ir.checks import fits, integer, number
from ._search_states import opened

__all__ = ["SearchResult", "beam_search", "greedy_search"]

# Tokens (n,) and the state before them, to log-probabilities (n, vocabulary) of what follows, and the state after them.
Step = Callable[[np.ndarray, Any], tuple[Any, Any]]
# By how much a log-probability may be above 0: float32's rounding.
_ABOVE = 1e-3


class SearchResult(NamedTuple):
    """The result of a search.

    Attributes:
        tokens: int64 ``(n, length)``, or ``(n, beams, length)`` with the best first: without the token they began with, filled up
            with the end token.
        lengths: int64 ``(n,)`` or ``(n, beams)``: how many tokens come before the end token.
        scores: float64 of the shape of `lengths`: the sum of the log-probabilities of the tokens and of the end token, if one
            was met; of beams divided as `length_penalty` says, and ``-inf`` where there is no such sequence.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    scores: np.ndarray


@checked
def greedy_search(step: Step, state: Any, start: Any, end: int, max_length: int, *, state_axis: int = 0) -> SearchResult:
    """Decodes with the most probable token each time, the first of equal ones: ``token = argmax(log p(token | tokens so far))``.

    With a symbolic state it is recorded as a loop, of which `step` becomes the body; what a recorded step returns is not checked
    for being log-probabilities.

    Args:
        step: takes int64 tokens ``(n,)`` and the state before them; returns the log-probabilities ``(n, vocabulary)`` of the
            tokens that follow, and the state after them. It runs until all n sequences have ended.
        state: the state before the first step: an array, or tuples, lists and dicts of arrays, as `step` takes it; None.
        start: the token to begin with; an int if the state has arrays, which then say what n is, or ``(n,)``.
        end: the token that ends a sequence.
        max_length: the most tokens of a sequence, the end token included.
        state_axis: the axis of the state's arrays that counts the sequences; 1 for the state of a recurrent layer.

    Returns:
        `SearchResult`: tokens, lengths and scores.

    Raises:
        ShapeError: the sizes do not fit, or what `step` returns are no log-probabilities (NaN, or above 0).
        DTypeError: tokens are no integers.

    >>> import numpy as np, fastlayers as fl
    >>> table = np.log([[0.1, 0.6, 0.3], [0.2, 0.1, 0.7], [1.0, 1e-9, 1e-9]])
    >>> found = fl.functional.greedy_search(lambda tokens, state: (table[tokens], state), None, [0, 1], end=2, max_length=5)
    >>> found.tokens, found.lengths
    (array([[1, 2],
           [2, 2]]), array([1, 0]))
    """
    if symbolic(start, *opened(state)[0]):
        from ._search_loop import recorded_greedy

        return SearchResult(*recorded_greedy(step, state, start, end, max_length, state_axis))  # type: ignore[arg-type]
    tokens, end, max_length = _begin("greedy_search", step, state, start, end, max_length, state_axis)
    n = len(tokens)
    fits("greedy_search", n * max_length, np.int64, f"{n} sequences of {max_length} tokens")
    done, scores, lengths = np.zeros(n, bool), np.zeros(n), np.zeros(n, np.int64)
    chosen: list[np.ndarray] = []
    while len(chosen) < max_length and not done.all():
        logs, state = _step("greedy_search", step, tokens, state, end)
        best = logs.argmax(axis=1)
        scores += np.where(done, 0.0, logs[np.arange(n), best])
        tokens = np.where(done, end, best)
        done = done | (tokens == end)
        lengths += ~done
        chosen.append(tokens)
    return SearchResult(np.stack(chosen, axis=1) if chosen else np.zeros((n, 0), np.int64), lengths, scores)


@checked
def beam_search(
    step: Step, state: Any, start: Any, end: int, max_length: int, beams: int, *, length_penalty: float = 0.0, state_axis: int = 0
) -> SearchResult:
    """Decodes the most probable sequences by beams: ``score = sum(log p(token | tokens so far)) / length ** length_penalty``.

    At each step all continuations of the beams that have not ended are looked at. Those that end are set aside, the best `beams`
    of them; the `beams` most probable of the others go on, unless none can become better than what is kept. Of equal ones the
    earlier beam, then the smaller token comes first, so that the same input always gives the same result. The search itself
    cannot be recorded: compile the step, and search over the program.

    Args:
        step: takes int64 tokens ``(n beams,)``, all beams of a sequence next to each other, and the state before them; returns
            the log-probabilities ``(n beams, vocabulary)`` of the tokens that follow, and the state after them.
        state: the state before the first step, of n sequences: an array, or tuples, lists and dicts of arrays, as `step` takes
            it; None. Its arrays are repeated for the beams, and put in order as beams are chosen: so what differs from sequence
            to sequence must be in it, the keys of an attention for example.
        start: the token to begin with; an int if the state has arrays, which then say what n is, or ``(n,)``.
        end: the token that ends a sequence.
        max_length: the most tokens of a sequence, the end token included; one that has not ended by then counts as it is.
        beams: how many sequences are followed and returned.
        length_penalty: 0 or more: the score is divided by the number of tokens, the end token included, to this power; 0: it is
            the log-probability of the sequence, which prefers short ones.
        state_axis: the axis of the state's arrays that counts the sequences; 1 for the state of a recurrent layer.

    Returns:
        `SearchResult`: tokens, lengths and scores, with an axis of beams, the best first.

    Raises:
        ShapeError: the sizes do not fit, or what `step` returns are no log-probabilities (NaN, or above 0).
        DTypeError: tokens are no integers.

    >>> import numpy as np, fastlayers as fl
    >>> table = np.log([[0.1, 0.6, 0.3], [0.4, 0.4, 0.2], [1.0, 1e-9, 1e-9]])
    >>> found = fl.functional.beam_search(lambda tokens, state: (table[tokens], state), None, [0], end=2, max_length=5, beams=2)
    >>> found.tokens[0].tolist(), np.exp(found.scores).round(4).tolist()
    ([[2, 2], [1, 2]], [[0.3, 0.12]])
    """
    name = "beam_search"
    if symbolic(start, *opened(state)[0]):
        raise UnsupportedError(
            f"{name}: cannot be recorded, since it goes on by the values that it finds: compile what makes the first state, and "
            "the step, and search over the two programs"
        )
    first, end, max_length = _begin(name, step, state, start, end, max_length, state_axis)
    k, n = integer(name, "beams", beams, 1), len(first)
    power = number(name, "length_penalty", length_penalty)
    if not power >= 0:
        raise ArgumentError(f"{name}: length_penalty is {power}: expected at least 0")
    if power * math.log(max(max_length, 2)) > 700:
        raise ArgumentError(f"{name}: length_penalty is {power}: {max_length} tokens to that power are no finite number")
    fits(name, 2 * n * k * max_length, np.int64, f"{n} sequences, {k} beams of each, of {max_length} tokens")
    state = _moved(state, np.repeat(np.arange(n), k), state_axis)
    tokens = np.repeat(first, k)
    # Beams that go on: their log-probabilities (only the first exists) and tokens; the best that ended: scores, lengths, tokens.
    live = np.where(np.arange(k) == 0, 0.0, -np.inf) * np.ones((n, 1))
    paths = np.full((n, k, max_length), end, np.int64)
    kept = SearchResult(paths.copy(), np.zeros((n, k), np.int64), np.full((n, k), -np.inf))
    for t in range(max_length):
        if not _can_improve(live, kept.scores, t + 1, max_length, power).any():
            break
        logs, state = _step(name, step, tokens, state, end)
        sums = live[:, :, None] + logs.reshape(n, k, -1)
        kept = _keep(kept, SearchResult(paths, np.full((n, k), t, np.int64), sums[:, :, end] / float(t + 1) ** power), k)
        sums[:, :, end] = -np.inf
        live, beam, token = _best(sums, k)
        paths = np.take_along_axis(paths, beam[:, :, None], axis=1)
        paths[:, :, t] = np.where(live > -np.inf, token, end)
        tokens = paths[:, :, t].reshape(-1)
        state = _moved(state, (np.arange(n)[:, None] * k + beam).reshape(-1), state_axis)
    else:
        if max_length:
            kept = _keep(kept, SearchResult(paths, np.full((n, k), max_length), live / float(max_length) ** power), k)
        else:
            kept = kept._replace(scores=live)
    gone = kept.scores == -np.inf
    kept = SearchResult(np.where(gone[:, :, None], end, kept.tokens), np.where(gone, 0, kept.lengths), kept.scores)
    longest = min(max_length, int(kept.lengths.max(initial=-1)) + 1)
    return kept._replace(tokens=np.ascontiguousarray(kept.tokens[:, :, :longest]))


def _can_improve(live: np.ndarray, kept: np.ndarray, shortest: int, longest: int, power: float) -> np.ndarray:
    """Flags of sequences whose beams may be selected: log-probabilities only fall, and are divided by a length in between."""
    best = live.max(axis=1)
    reachable = np.maximum(best / float(shortest) ** power, best / float(longest) ** power)
    result: np.ndarray = (best > -np.inf) & (reachable > kept.min(axis=1))
    return result


def _keep(kept: SearchResult, new: SearchResult, k: int) -> SearchResult:
    """The best k of both, the older first where scores are equal."""
    scores = np.concatenate([kept.scores, new.scores], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    tokens = np.take_along_axis(np.concatenate([kept.tokens, new.tokens], axis=1), order[:, :, None], axis=1)
    lengths = np.take_along_axis(np.concatenate([kept.lengths, new.lengths], axis=1), order, axis=1)
    return SearchResult(tokens, lengths, np.take_along_axis(scores, order, axis=1))


def _best(sums: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k largest of (n, beams, vocabulary), falling, the earlier first where they are equal: values, beams, tokens."""
    n, _, vocabulary = sums.shape
    flat = sums.reshape(n, -1)
    values, places = np.full((n, k), -np.inf), np.zeros((n, k), np.int64)
    count = min(k, flat.shape[1])
    for row, (value, place) in zip(flat, zip(values, places, strict=True), strict=True):
        least = np.partition(row, len(row) - count)[len(row) - count]
        candidates = np.flatnonzero(row >= least)
        chosen = candidates[np.argsort(-row[candidates], kind="stable")[:count]]
        value[:count], place[:count] = row[chosen], chosen
    return values, places // vocabulary, places % vocabulary


# ---- arguments and states ----------------------------------------------------------------------------------------------------


def _begin(name: str, step: Any, state: Any, start: Any, end: Any, max_length: Any, axis: Any) -> tuple[np.ndarray, int, int]:
    """The first tokens, the end token and the most tokens, checked."""
    if not callable(step):
        raise DTypeError(
            f"{name}: step is of type {type(step).__name__}: expected a function of tokens and the state before them"
        )
    axis = integer(name, "state_axis", axis)
    tokens = as_int64(start, name, "start")
    if tokens.ndim > 1:
        raise ShapeError(f"{name}: start has shape {tokens.shape}: expected one token, or (n,)")
    sizes = {_size(name, a, axis) for a in _leaves(name, state)}
    if len(sizes) > 1 or (sizes and tokens.ndim and sizes != {len(tokens)}):
        raise ShapeError(
            f"{name}: the state's arrays have {sorted(sizes)} sequences along axis {axis}, start {tokens.size}: expected the same"
        )
    if not tokens.ndim:
        if not sizes:
            raise ShapeError(f"{name}: start is one token and the state has no arrays: expected (n,) tokens")
        tokens = np.full(sizes.pop(), tokens)
    return tokens, integer(name, "end", end, 0), integer(name, "max_length", max_length, 0)


def _size(name: str, array: np.ndarray, axis: int) -> int:
    if not -array.ndim <= axis < array.ndim:
        raise ShapeError(f"{name}: state_axis is {axis}, an array of the state has shape {array.shape}")
    return int(array.shape[axis])


def _leaves(name: str, state: Any) -> list[np.ndarray]:
    if state is None:
        return []
    if isinstance(state, dict):
        return [leaf for part in state.values() for leaf in _leaves(name, part)]
    if isinstance(state, (tuple, list)):
        return [leaf for part in state for leaf in _leaves(name, part)]
    return [as_array(state, name, "state")]


def _moved(state: Any, rows: np.ndarray, axis: int) -> Any:
    """The state with other sequences in it."""
    if state is None:
        return None
    if isinstance(state, dict):
        return {key: _moved(part, rows, axis) for key, part in state.items()}
    if isinstance(state, (tuple, list)):
        parts = [_moved(part, rows, axis) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return np.take(np.asarray(state), rows, axis=axis)


def _step(name: str, step: Step, tokens: np.ndarray, state: Any, end: int) -> tuple[np.ndarray, Any]:
    """One step, its result checked."""
    result = step(tokens, state)
    if not isinstance(result, Sequence) or len(result) != 2:
        raise DTypeError(f"{name}: step returned {type(result).__name__}: expected a pair (log-probabilities, state)")
    logs = as_float32(result[0], name, "what step returned")
    if logs.ndim != 2 or len(logs) != len(tokens) or logs.shape[1] <= end:
        raise ShapeError(
            f"{name}: step returned log-probabilities of shape {logs.shape}: expected ({len(tokens)}, more than end={end})"
        )
    if logs.size and not logs.max() <= _ABOVE:  # also where there are NaN
        raise ArgumentError(f"{name}: step returned {logs.max()}: expected log-probabilities, at most 0 (see log_softmax)")
    return logs, result[1]

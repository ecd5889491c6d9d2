"""Sequences that grow token by token: chosen in one thread, and made text of in another."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from .._tuples import NamedTuple
from ._pieces import Pieces
from ._sampling import Sampling, choose, log_probabilities

__all__ = ["Event", "Growing", "Limits"]

AHEAD = 16  # tokens that a sequence may be ahead of its owner, who may be slow to take them
PATIENCE = 0.2  # seconds that it keeps its place then, if others wait for one


class Limits(NamedTuple):
    """Limits of a sequence.

    Attributes:
        tokens: the most that follow the prompt.
        ends: ids at which it ends, which are not part of it.
        stops: texts at which it ends.
        logprobs: how many of the most probable tokens are told each time; None: not even that of the token.
    """

    tokens: int
    ends: frozenset[int]
    stops: tuple[str, ...] = ()
    logprobs: int | None = None


class Event(NamedTuple):
    """A step of a sequence: its number, the text that is certain now, the token (None: the end), and its probabilities."""

    number: int
    text: str
    token: int | None
    logprob: float | None
    top: dict[int, float]
    finish: str | None


class _Chosen(NamedTuple):
    token: int
    logprob: float | None
    top: dict[int, float]


class Growing:
    """A prompt and what follows it.

    One thread at a time chooses tokens (`choose`, `settle`); its owner takes them (`events`), perhaps another one meanwhile. What
    passes between them changes in single steps.

    Args:
        number: what its events are called.
        prompt: ids.
        sampling, limits: how it goes on, and how long.
        pieces: makes text of ids; None: there is no text.
    """

    def __init__(self, number: int, prompt: Sequence[int], sampling: Sampling, limits: Limits, pieces: Pieces | None) -> None:
        self.number, self.sampling, self.limits, self.pieces = number, sampling, limits, pieces
        self.ids, self.prompt = list(prompt), len(prompt)
        self.most = self.prompt + limits.tokens  # ids that there may be
        self.owner: object = None  # the same for sequences of one request
        self.process = 0  # the one that it grows in
        self._since = 0.0  # when its owner was seen to be slow
        self.finish: str | None = None
        self.gone = False  # no more of it is wanted
        self.error: BaseException | None = None
        self._chosen: list[_Chosen] = []
        self._told = 0

    # ---- who runs the network ----------------------------------------------------------------------------------------

    def choose(self, logits: np.ndarray) -> None:
        """Chooses the next token by its logits."""
        limits = self.limits
        token = choose(logits, self.ids, self.sampling, len(self.ids))
        self._chosen.append(
            _Chosen(token, None, {})
            if limits.logprobs is None
            else _Chosen(token, *log_probabilities(logits, token, limits.logprobs))
        )

    def settle(self) -> bool:
        """Takes up what was chosen; whether more is to follow."""
        at = len(self.ids) - self.prompt
        for one in self._chosen[at:]:
            if one.token in self.limits.ends:
                return False
            self.ids.append(one.token)
        return not (self.gone or self.error or len(self.ids) >= self.most)

    @property
    def ahead(self) -> bool:
        """Whether its owner has as much to take as may be."""
        if len(self._chosen) - self._told < AHEAD:
            self._since = 0.0
            return False
        self._since = self._since or time.monotonic()
        return True

    @property
    def left(self) -> bool:
        """Whether its owner has taken nothing for a while."""
        return self.ahead and time.monotonic() - self._since > PATIENCE

    # ---- its owner ---------------------------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether there is nothing to take."""
        return self._told == len(self._chosen) and self.error is None

    def events(self) -> Iterator[Event]:
        """Events since the last time; raises the error that ended it, after the last token."""
        while self.finish is None and self._told < len(self._chosen):
            one = self._chosen[self._told]
            self._told += 1
            yield self._event(one)
        if self.finish is None and self.error is not None:
            raise self.error

    def _event(self, one: _Chosen) -> Event:
        pieces = self.pieces
        if one.token in self.limits.ends:
            self._end("stop")
            return Event(self.number, pieces.finish() if pieces else "", None, None, {}, self.finish)
        text = pieces.push(one.token) if pieces else ""
        if pieces and pieces.stopped:
            self._end("stop")
        elif self._told >= self.limits.tokens:
            text += pieces.finish() if pieces else ""
            self._end("stop" if pieces and pieces.stopped else "length")
        return Event(self.number, text, one.token, one.logprob, one.top, self.finish)

    def _end(self, finish: str) -> None:
        self.finish, self.gone = finish, True

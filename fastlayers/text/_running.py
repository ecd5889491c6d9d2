"""Sequences that grow token by token, several at once.

Those of equal length that began together run as one batch; others one after the other. Each row of a batch has the bits that it
has alone, so neither the others nor when they begin and end changes a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._tuples import NamedTuple
from ._decoder import Decoder
from ._pieces import Pieces
from ._prefixes import Prefixes
from ._sampling import Sampling, choose, log_probabilities

__all__ = ["Event", "Growing", "Limits", "Running"]


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


class Growing:
    """A prompt and what follows it.

    Args:
        number: what its events are called.
        prompt: ids.
        sampling, limits: how it goes on, and how long.
        pieces: makes text of ids; None: there is no text.
    """

    def __init__(self, number: int, prompt: Sequence[int], sampling: Sampling, limits: Limits, pieces: Pieces | None) -> None:
        self.number, self.sampling, self.limits, self.pieces = number, sampling, limits, pieces
        self.ids, self.prompt = list(prompt), len(prompt)
        self.finish: str | None = None

    def step(self, logits: np.ndarray) -> Event:
        """Chooses the next token by its logits."""
        limits = self.limits
        token = choose(logits, self.ids, self.sampling, len(self.ids))
        logprob, top = (None, {}) if limits.logprobs is None else log_probabilities(logits, token, limits.logprobs)
        if token in limits.ends:
            self.finish = "stop"
            return Event(self.number, self.pieces.finish() if self.pieces else "", None, None, {}, self.finish)
        self.ids.append(token)
        text = self.pieces.push(token) if self.pieces else ""
        if self.pieces and self.pieces.stopped:
            self.finish = "stop"
        elif len(self.ids) - self.prompt >= limits.tokens:
            self.finish = "length"
            text += self.pieces.finish() if self.pieces else ""
            if self.pieces and self.pieces.stopped:
                self.finish = "stop"
        return Event(self.number, text, token, logprob, top, self.finish)


class _Group:
    """Sequences of equal length, the cache of all of them, and the logits of their next tokens."""

    def __init__(self, members: list[Growing], cache: list[np.ndarray], logits: np.ndarray) -> None:
        self.members, self.cache, self.logits = members, cache, logits


class Running:
    """Sequences that run at once. For one thread; several may each have one of the same decoder.

    Args:
        decoder: the network.
        prefixes: caches of earlier sequences, which may be shared; None: every prompt is computed.
    """

    def __init__(self, decoder: Decoder, prefixes: Prefixes | None) -> None:
        self._decoder, self._prefixes = decoder, None if decoder.alone else prefixes
        self._groups: list[_Group] = []

    def __len__(self) -> int:
        return sum(len(group.members) for group in self._groups)

    def add(self, sequences: Sequence[Growing]) -> None:
        """Computes prompts. Those of equal length become one batch."""
        by_length: dict[int, list[Growing]] = {}
        for one in sequences:
            by_length.setdefault(one.prompt, []).append(one)
        for members in by_length.values():
            made = [self._begun(one.ids) for one in members]
            if self._decoder.alone:
                self._groups += [_Group([one], cache, logits) for one, (logits, cache) in zip(members, made, strict=True)]
                continue
            logits = np.concatenate([logits for logits, _ in made])
            caches = [cache for _, cache in made]
            cache = caches[0] if len(caches) == 1 else [np.concatenate(parts) for parts in zip(*caches, strict=True)]
            self._groups.append(_Group(members, cache, logits))

    def _begun(self, ids: list[int]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Logits and cache after a prompt, of which the beginning may be known."""
        known = None if self._prefixes is None else self._prefixes.find(ids)
        at, cache = (0, self._decoder.empty()) if known is None else known
        logits, cache = self._decoder.prefill(ids, cache, at)
        if self._prefixes is not None:
            self._prefixes.add(ids, cache)
        return logits, cache

    def remove(self, number: int) -> None:
        """Ends a sequence before its time."""
        for group in self._groups:
            self._keep(group, [one.number != number for one in group.members])
        self._groups = [group for group in self._groups if group.members]

    def step(self) -> Iterator[Event]:
        """One token of every sequence; those that end are gone afterwards."""
        for group in self._groups:
            events = [one.step(row) for one, row in zip(group.members, group.logits, strict=True)]
            self._keep(group, [event.finish is None for event in events])
            yield from events
            if group.members:
                ids = np.array([[one.ids[-1]] for one in group.members], np.int64)
                group.logits, group.cache = self._decoder(ids, group.cache, len(group.members[0].ids) - 1)
        self._groups = [group for group in self._groups if group.members]

    def _keep(self, group: _Group, kept: list[bool]) -> None:
        """Takes sequences out of a batch; what they had computed is kept for others that begin so."""
        if all(kept):
            return
        for i, one in enumerate(group.members):
            if not kept[i] and self._prefixes is not None:
                ids = one.ids[: group.cache[0].shape[2]]
                alone = len(group.members) == 1
                self._prefixes.add(ids, group.cache if alone else [part[i : i + 1].copy() for part in group.cache])
        at = np.flatnonzero(kept)
        group.members = [group.members[i] for i in at]
        group.logits, group.cache = group.logits[at], [part[at] for part in group.cache] if len(at) else []

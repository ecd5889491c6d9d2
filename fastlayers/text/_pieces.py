"""Text out of ids that come one by one: in pieces that never hold half a character, and end before a stop string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Pieces"]

_BEFORE = 6  # ids of the prompt that the first piece is decoded with: a space between words may depend on them
_INCOMPLETE = "\ufffd"  # stands for bytes that are no whole character, so far


class Pieces:
    """The text that follows a prompt. Called for each id; never shared between threads.

    Args:
        tokenizer: decodes ids.
        prompt: the ids before.
        stops: texts at which the sequence ends; they may be of any number of tokens, and are left out.
    """

    def __init__(self, tokenizer: Any, prompt: Sequence[int], stops: Sequence[str]) -> None:
        self._tokenizer, self._stops = tokenizer, stops
        self._ids = list(prompt[-_BEFORE:])
        self._told = len(self._ids)  # ids whose text is told, of those that are decoded together
        self._sent = -1  # characters of that text that are told; -1: not yet known
        self._held = ""  # text that may be the beginning of a stop string
        self.stopped = False

    def push(self, token: int) -> str:
        """The text that is certain now and was not before."""
        self._ids.append(token)
        return self._out(self._text(whole=False), end=False)

    def finish(self) -> str:
        """The rest, when no more ids come."""
        return self._out(self._text(whole=True), end=True)

    def _text(self, whole: bool) -> str:
        if self._sent < 0:
            self._sent = len(self._tokenizer.decode(self._ids[: self._told]))
        now = self._tokenizer.decode(self._ids)
        certain = now if whole else now.rstrip(_INCOMPLETE)
        new: str = certain[self._sent :]
        self._sent = max(self._sent, len(certain))
        if certain == now and new:
            # From here on these ids are what the next are decoded with, and the ones before are not needed.
            self._ids, self._sent = self._ids[self._told :], -1
            self._told = len(self._ids)
        return new

    def _out(self, new: str, end: bool) -> str:
        if self.stopped:
            return ""
        text = self._held + new
        found = [at for at in (text.find(stop) for stop in self._stops) if at >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        keep = 0 if end else max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """The most characters that are the end of the text and the beginning of a stop string."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)

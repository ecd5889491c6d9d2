"""Text models as they are served: what is asked of them, in the scheduler's threads."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._deadline import Asked, Deadline
from .._locks import Lock
from ..errors import TimeoutError
from .fields import Invalid
from .served import late

__all__ = ["Growth", "Work", "embedded", "ranked", "tokens_of"]

SLICE = 0.01  # seconds: tokens of that time are one job, after which others run


class Work:
    """A function that a job calls, which ends when its time is over, or its client gone.

    Args:
        function: does it.
        seconds: what the time was, for the error.
    """

    def __init__(self, function: Callable[[], Any], seconds: float) -> None:
        self._function, self._seconds = function, seconds
        self.gone = False

    def _still(self) -> None:
        if self.gone:
            raise TimeoutError("the client has gone")

    def __call__(self, left: float) -> Any:
        """Calls it."""
        try:
            with Deadline(left), Asked(self._still):
                return self._function()
        except TimeoutError:
            raise late(self._seconds) from None


def tokens_of(model: Any, texts: Sequence[Any]) -> int:
    """The number of tokens of texts, pairs of texts, or ids."""
    count = sum(len(text) for text in texts if isinstance(text, list))
    left = [text for text in texts if not isinstance(text, list)]
    return count + sum(len(one.ids) for one in model._tokenizer.encode(left)) if left else count


def embedded(encoder: Any, texts: Sequence[Any], prompt_name: str | None, as_text: bool) -> tuple[np.ndarray, list[str], int]:
    """The vectors of texts, each in JSON, as numbers or as text (their bytes in base64); and the number of tokens."""
    vectors = np.ascontiguousarray(encoder.encode(texts, prompt_name=prompt_name), "<f4")
    before = encoder.prompts[prompt_name] if prompt_name is not None else encoder._prompt
    count = tokens_of(encoder, [before + text if isinstance(text, str) else text for text in texts])
    # One call of the JSON writer each: meanwhile no other thread runs.
    if as_text:
        return vectors, [f'"{base64.b64encode(row).decode()}"' for row in vectors], count
    return vectors, [json.dumps(row.tolist(), separators=(",", ":")) for row in vectors], count


def ranked(encoder: Any, query: str, texts: Sequence[str], most: int | None) -> tuple[list[dict[str, Any]], int]:
    """As `CrossEncoder.rank`, and the number of tokens."""
    return encoder.rank(query, texts, most), tokens_of(encoder, [(query, text) for text in texts])


class Growth:
    """Prompts and what follows them, of which some tokens are made at a time. Its steps may run in any thread, one at a time.

    Args:
        generator: a `Generator`.
        prompts: texts, ids, or messages as tuples.
        variables: for the template of messages.
        how: arguments of `Generator.generate`.
        most: the most tokens of all prompts.
    """

    def __init__(
        self, generator: Any, prompts: Sequence[Any], variables: Mapping[str, Any], how: Mapping[str, Any], most: int
    ) -> None:
        self._generator, self._prompts, self._variables, self._how, self._most = generator, prompts, variables, how, most
        self._lock = Lock()
        self._events: Any = None
        self.tokens = 0  # of the prompts
        self.done = False

    def step(self) -> list[Any]:
        """The next events: at least one, unless all has ended."""
        with self._lock:
            if self.done:
                return []
            if self._events is None:
                self._begin()
            found, until = [], time.monotonic() + SLICE
            for event in self._events:
                found.append(event)
                if time.monotonic() > until:
                    return found
            self.done = True
            return found

    def _begin(self) -> None:
        generator, prompts = self._generator, []
        for prompt in self._prompts:
            prompts.append(generator.encode(prompt, **(self._variables if isinstance(prompt, tuple) else {})))
            self.tokens += len(prompts[-1])
            longest = generator._longest
            if longest is not None and len(prompts[-1]) >= longest:
                raise self._long(f"has {len(prompts[-1])} tokens: the network takes {longest}, one of which is to follow")
            if self.tokens > self._most:
                raise self._long(f"has {self.tokens} tokens or more: expected at most {self._most} (--max-prompt)")
        how = generator._how(**self._how)
        sequences = [generator._sequence(i, ids, *how, True) for i, ids in enumerate(prompts)]
        self._events = generator._events(sequences)

    def _long(self, message: str) -> Invalid:
        return Invalid("messages" if isinstance(self._prompts[0], tuple) else "prompt", message, "context_length_exceeded")

    def close(self) -> None:
        """Ends it, after the step that runs now; nothing is computed for it any more."""
        with self._lock:
            self.done = True
            if self._events is not None:
                self._events.close()

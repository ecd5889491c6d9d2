"""Text models as they are served: what is asked of them, in the scheduler's threads."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._deadline import Asked, Deadline
from ..errors import TimeoutError
from .served import late

__all__ = ["Work", "embedded", "ranked", "tokens_of"]


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

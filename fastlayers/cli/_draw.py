"""A recording as two lines of text: its level, and under it the speech. Returns text, prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from .._tuples import NamedTuple
from ._segments import Segment

__all__ = ["draw", "printable"]

RANGE_DB = 48.0  # from the lowest step to the loudest column


class Symbols(NamedTuple):
    """Characters of the lines: steps of the level from silence up, and the mark of speech."""

    steps: str
    speech: str


BLOCKS = Symbols(" ▁▂▃▄▅▆▇█", "━")
ASCII = Symbols(" .,:;+*%#", "=")


def draw(samples: np.ndarray, segments: Sequence[Segment], width: int, encoding: str) -> tuple[str, str]:
    """Two lines of at most `width` columns: the level of `samples` (n,), and marks under the segments. ASCII if need be."""
    symbols = BLOCKS if printable("".join(BLOCKS), encoding) == "".join(BLOCKS) else ASCII
    columns = min(width, len(samples))  # so that each has at least one sample
    edges = np.arange(columns + 1) * len(samples) // columns
    return _level(samples, edges, symbols.steps), _marks(segments, edges, symbols.speech)


def printable(text: str, encoding: str) -> str:
    """`text` with a question mark for what `encoding` cannot express, and for what a terminal would obey: names are of files."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown.encode(encoding, "replace").decode(encoding)


def _level(samples: np.ndarray, edges: np.ndarray, steps: str) -> str:
    power = np.array([np.mean(np.square(samples[a:b], dtype=np.float64)) for a, b in pairwise(edges)])
    loudest = power.max()
    if not loudest > 0.0:
        return steps[0] * len(power)
    decibels = 10.0 * np.log10(np.maximum(power / loudest, 1e-30))
    # The loudest column gets the highest step; what is RANGE_DB or more below it, the lowest; nothing but zeros, a space.
    top = len(steps) - 1
    step = np.clip(np.ceil((decibels / RANGE_DB + 1.0) * top), 1, top).astype(int)
    return "".join(steps[s] for s in np.where(power > 0.0, step, 0))


def _marks(segments: Sequence[Segment], edges: np.ndarray, speech: str) -> str:
    """A column is marked when at least half of it is speech, and a segment always has one."""
    marks = [" "] * (len(edges) - 1)
    for segment in segments:
        covered = np.minimum(edges[1:], segment.end) - np.maximum(edges[:-1], segment.start)
        for column in {*np.flatnonzero(2 * covered >= np.diff(edges)).tolist(), int(covered.argmax())}:
            marks[column] = speech
    return "".join(marks)

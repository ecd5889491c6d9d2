"""Facts of a value of a graph that is to run piece by piece: whether it has an axis of time, and when its steps come."""

from __future__ import annotations

from typing import Any

from .._tuples import NamedTuple

__all__ = ["LATEST", "TIME", "Kind", "Sizes", "Time"]


class Time(NamedTuple):
    """A value with one entry a step along `axis`.

    After n steps of the input there are floor((n + lead) / step) of them, and none before that is above 0. The whole run has
    `late` more at the end than a stream ever gets; `culprit` is the node that is to blame.
    """

    axis: int
    lead: int = 0
    step: int = 1
    late: int = 0
    culprit: str = ""

    def after(self, reach: int, step: int, before: int) -> Time:
        """The steps of windows over it, with `before` entries put before it."""
        lead = self.lead + self.step * (before - reach + step)
        return self._replace(lead=lead, step=self.step * step)

    @property
    def pace(self) -> tuple[int, int, int]:
        """The key of values that belong together step by step."""
        return self.lead, self.step, self.late


class _Word:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


LATEST = _Word("LATEST")  # a value that belongs to the last step: a stream gives the one of its last step so far
TIME = _Word("TIME")  # among sizes: the number of steps


class Sizes(NamedTuple):
    """A vector of sizes: ints, names or TIME, which is the number of steps of a value of this pace."""

    entries: tuple[Any, ...]
    time: Time

    @property
    def timed(self) -> bool:
        """Whether one of them is the number of steps."""
        return any(e is TIME for e in self.entries)


# None: the same at every step.
Kind = Time | Sizes | _Word | None

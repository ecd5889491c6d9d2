"""Stopwatch of the benchmarks: contestants take turns in short bursts, so what else the machine does meets all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Times", "take_turns"]


class Times(NamedTuple):
    """Seconds a call: the fastest and the median of all measurements, and all of them in the order of time."""

    best: float
    median: float
    samples: list[float]


def take_turns(
    calls: dict[str, Callable[[], object]], rounds: int, burst: float = 0.01, sample: float = 2e-4
) -> dict[str, Times]:
    """Times every call: `rounds` times in turn, each a burst of about `burst` seconds after one call that is not counted.

    With `burst` 0 a turn is one measurement, so that neighbours in time can be compared one by one. Calls much shorter than
    `sample` seconds are timed several at once, so that reading the clock does not count.
    """
    repeat = {name: max(1, round(sample / _once(call))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    clock = time.perf_counter
    for _ in range(rounds):
        for name, call in calls.items():
            call()  # brings its data and code back into the caches
            times = range(repeat[name])
            end = clock() + burst
            while True:
                begin = clock()
                for _ in times:
                    call()
                now = clock()
                samples[name].append((now - begin) / len(times))
                if now >= end:
                    break
    return {name: Times(min(values), statistics.median(values), values) for name, values in samples.items()}


def _once(call: Callable[[], object]) -> float:
    """Seconds of one call, roughly: the best of a few, after one to warm up."""
    call()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        if sum(times) > 0.05:
            break
    return max(min(times), 1e-8)

"""A stopwatch: contestants alternate in short bursts, so what else the machine does meets all of them alike."""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._tuples import NamedTuple
from ..kernels import dispatch
from ..report import Limits
from ..report.json import dumps
from ..threads import get_num_threads

__all__ = ["Times", "Watch", "as_json", "machine", "take_turns", "times_of"]


FORMAT = 1  # of `as_json`


class Times(NamedTuple):
    """Seconds a call: the fastest and the median of all measurements, and all of them in the order of time."""

    best: float
    median: float
    samples: list[float]

    def percentile(self, share: float) -> float:
        """The time that so much of the measurements, from 0 to 1, do not exceed."""
        ordered = sorted(self.samples)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def dict(self) -> dict[str, Any]:
        """The figures by their names, in seconds."""
        return {
            "best": self.best, "median": self.median, "p95": self.percentile(0.95), "p99": self.percentile(0.99),
            "rounds": len(self.samples),
        }  # fmt: skip


def times_of(samples: Sequence[float]) -> Times:
    """Summarizes measurements, of which there is at least one."""
    return Times(min(samples), statistics.median(samples), list(samples))


class Watch:
    """Times what is no call to repeat: a block of `with` is one measurement, also if it ends with an exception. `samples` are
    seconds, in the order of time; each thread has a watch of its own.

    >>> watch = Watch()
    >>> with watch:
    ...     _ = sum(range(10))
    >>> len(watch.samples), watch.last == watch.times().best
    (1, True)
    """

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._begin = 0.0

    def __enter__(self) -> Watch:
        self._begin = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.samples.append(time.perf_counter() - self._begin)

    @property
    def last(self) -> float:
        """The last measurement."""
        return self.samples[-1]

    def times(self) -> Times:
        """All of them."""
        return times_of(self.samples)


def take_turns(
    calls: Mapping[str, Callable[[], object]], rounds: int, burst: float = 0.01, sample: float = 2e-4
) -> dict[str, Times]:
    """Times every call: `rounds` times in turn, each a burst of about `burst` seconds after one call that is not counted.

    With `burst` 0 a turn is one measurement, so that neighbours in time can be compared one by one. Calls much shorter than
    `sample` seconds are timed several at once, so that reading the clock does not count; with 0 every call is timed alone.
    """
    repeat = {name: max(1, round(sample / _once(call))) if sample > 0 else 1 for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    collecting = gc.isenabled()
    gc.disable()
    try:
        _turns(calls, rounds, burst, repeat, samples)
    finally:
        if collecting:
            gc.enable()
    return {name: times_of(values) for name, values in samples.items()}


def _turns(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    burst: float,
    repeat: Mapping[str, int],
    samples: Mapping[str, list[float]],
) -> None:
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


def machine(limits: Limits | None = None) -> dict[str, Any]:
    """Context of figures: kernels, threads, the processor, and its limits if they were measured."""
    found: dict[str, Any] = {
        "variant": dispatch.current(),
        "threads": get_num_threads(),
        "processor": processor(),
        "python": platform.python_version(),
    }
    if limits is not None:
        found["limits"] = {"multiply_adds_per_second": limits.multiply_adds, "bytes_per_second": limits.read}
    return found


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def as_json(times: Mapping[str, Times], about: Mapping[str, Any] | None = None) -> str:
    """Figures in the one form in which commands and benchmarks store them."""
    found = {name: time.dict() for name, time in times.items()}
    return dumps({"format": FORMAT, "machine": machine(), **(about or {}), "times": found})


def _once(call: Callable[[], object]) -> float:
    """Seconds of one call, roughly: the best of a few, after one to warm up."""
    call()
    watch = Watch()
    for _ in range(5):
        with watch:
            call()
        if sum(watch.samples) > 0.05:
            break
    return max(min(watch.samples), 1e-8)

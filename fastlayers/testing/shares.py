"""A time as a share of what this machine can do, measured in the same seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..errors import DeviceError
from ..kernels import dispatch
from .timing import Watch

__all__ = ["Share", "share_of_limit"]

PRODUCTS = 20_000
BUFFER = 1 << 22  # elements
TIMES = 4  # that a call must be too slow, of a machine that kept its pace, to be called slow
TRIES = 20  # to measure that: with two busy neighbours every other measurement keeps its pace
DRIFT = 0.05  # of the best times of the thirds, of the probe's and of the call's
PARTS = 3


class Share(NamedTuple):
    """The least possible time of a call, as a share of its own: `share` by the best of both, `shares` by those of thirds of the
    turns. `drift`: the spread of the best times of the thirds, of the probe or of the call.
    """

    share: float
    shares: tuple[float, ...]
    drift: float

    @property
    def sure(self) -> bool:
        """Whether the machine kept its pace while this was measured."""
        return self.drift <= DRIFT

    def low(self, least: float) -> bool:
        """Whether the call is slower than that, by all of the time and by each of its thirds."""
        return max(self.share, *self.shares) < least

    def below(self, least: float) -> bool:
        """The same, but never if the machine did not keep its pace."""
        return self.sure and self.low(least)

    def __str__(self) -> str:
        told = "" if self.sure else f"; unsure: the machine's own pace changed by {self.drift:.0%}"
        return f"{self.share:.1%} of the machine's limit ({min(self.shares):.1%} to {max(self.shares):.1%}){told}"


def share_of_limit(
    call: Callable[[], Any], multiply_adds: float, nbytes: float = 0.0, seconds: float = 1.0, least: float | None = None
) -> Share:
    """Times a call in turns with a probe of the engine: products that stay in registers, or reading memory, whichever limits it.

    Args:
        call: what is timed, on one thread.
        multiply_adds: that it does.
        nbytes: that it reads and writes; 0 if they stay in a cache.
        seconds: how long, about.
        least: what is below it is measured again, for twice as long, until it is not, or was four times on a machine that kept
            its pace: what a neighbour does goes by, and what is slow stays slow.

    Raises:
        DeviceError: there is no compiled engine, or it is not what runs.
    """
    found = _measured(call, multiply_adds, nbytes, seconds)
    slow, unsure = 0, found
    for _ in range(TRIES):
        if least is None or not found.low(least):
            return found
        slow += found.sure
        if slow == TIMES:
            return found
        unsure = unsure if found.sure else found
        found = _measured(call, multiply_adds, nbytes, 2 * seconds)
    return unsure._replace(drift=max(unsure.drift, 2 * DRIFT))  # whatever it was at last


def _measured(call: Callable[[], Any], multiply_adds: float, nbytes: float, seconds: float) -> Share:
    engine: Any = dispatch.engine()
    if engine is None or not dispatch.current().startswith("aot/"):
        raise DeviceError("share_of_limit: needs the compiled engine: see `fastlayers doctor`")
    data = np.ones(BUFFER, np.float32)  # written: see limits
    products = _least(lambda: engine.probe_fma(PRODUCTS), 5) / engine.probe_fma(PRODUCTS)
    reading = _least(lambda: engine.probe_read(data), 5) / data.nbytes
    fma = multiply_adds * products >= nbytes * reading
    probe: Callable[[], Any] = (lambda: engine.probe_fma(PRODUCTS)) if fma else (lambda: engine.probe_read(data))
    unit, work = (float(engine.probe_fma(PRODUCTS)), multiply_adds) if fma else (float(data.nbytes), nbytes)
    call()
    probes: list[float] = []
    calls: list[float] = []
    end = time.monotonic() + seconds
    while len(probes) < 4 * PARTS or time.monotonic() < end:
        probes.append(_least(probe, 2) / unit)
        calls.append(_least(call, 2))
    size = len(probes) // PARTS
    parts = [(min(probes[i * size : (i + 1) * size]), min(calls[i * size : (i + 1) * size])) for i in range(PARTS)]
    paces = [pace for pace, _ in parts]
    least = min(probes)
    shares = tuple(pace * work / taken for pace, taken in parts)
    taken = [least for _, least in parts]
    drift = max(max(paces) / min(paces), max(taken) / min(taken)) - 1.0
    return Share(least * work / min(calls), shares, drift)


def _least(call: Callable[[], Any], times: int) -> float:
    watch = Watch()
    for _ in range(times):
        with watch:
            call()
    return max(min(watch.samples), 1e-9)

"""Limits of one core of this machine, measured by the engine's own probes."""

from __future__ import annotations

import time

import numpy as np

from .._tuples import NamedTuple
from ..errors import DeviceError
from ..kernels import dispatch
from ..program.steps import Step

__all__ = ["Limits", "limits"]

PRODUCTS = 20_000  # of a probe: tens of microseconds
BUFFER = 1 << 24  # elements that are read: more than a last-level cache holds


class Limits(NamedTuple):
    """The limits of one core: multiply-adds a second, and bytes read from memory a second."""

    multiply_adds: float
    read: float

    def least(self, step: Step, threads: int = 1) -> float:
        """Seconds that a step takes at least: whichever limit asks for more time. Bytes that are in a cache may pass it."""
        return max(step.multiply_adds / self.multiply_adds, step.bytes / self.read) / max(threads, 1)

    def kind(self, step: Step) -> str:
        """The limit that holds: "multiply-adds" or "memory"."""
        return "multiply-adds" if step.multiply_adds / self.multiply_adds > step.bytes / self.read else "memory"


def limits(rounds: int = 5, read: bool = True) -> Limits:
    """The best of some probes.

    Raises:
        DeviceError: there is no compiled engine, or it is not what runs.
    """
    engine = dispatch.engine()
    if engine is None or not dispatch.current().startswith("aot/"):
        raise DeviceError("profile: needs the compiled engine: see `fastlayers doctor`")
    fma = bandwidth = 0.0
    data = np.ones(BUFFER if read else 0, np.float32)  # written: pages of zeros that never were are one page, in a cache
    for _ in range(rounds):
        start = time.perf_counter()
        done = engine.probe_fma(PRODUCTS)
        fma = max(fma, done / (time.perf_counter() - start))
        if read:
            start = time.perf_counter()
            engine.probe_read(data)
            bandwidth = max(bandwidth, data.nbytes / (time.perf_counter() - start))
    return Limits(fma, bandwidth)

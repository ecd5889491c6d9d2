"""Processor time of idle seconds after threaded use: ``python -m bench.idle [10]`` sleeps that long and prints it.

It asks for processor time, which the stopwatch does not measure: the clock of the wall is what it sleeps by.
"""

from __future__ import annotations

import sys
import time

from fastlayers.kernels.aot import _engine


def idle_cost(seconds: float, threads: int = 4) -> float:
    """Seconds of processor time that all other threads used while this one slept, right after `threads` threads have worked."""
    _engine.parallel_probe(64, threads, 20_000, 0, 50)
    time.sleep(0.01)  # workers may look for more to do for 50 us
    before = time.process_time() - time.thread_time()
    time.sleep(seconds)
    return time.process_time() - time.thread_time() - before


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    used = idle_cost(seconds)
    workers = _engine.pool_workers()
    print(f"{seconds:g} idle seconds after threaded use, {workers} workers alive: {used * 1e3:.3f} ms of processor time")


if __name__ == "__main__":
    main()

"""Runs the tasks of a kernel, on several threads where there is enough work. Results do not depend on it: tasks are cut by
shapes."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..._locks import Lock
from ...threads import get_num_threads

__all__ = ["address", "aligned", "scratch", "spread"]

# Multiply-adds (or values, weighted) below which a call stays on its thread: handing tasks over takes about 50 microseconds.
LEAST_WORK = 4e6

_pool: tuple[int, int, ThreadPoolExecutor] | None = None  # process, threads, and the pool of both
_busy = Lock(again=False)  # a task that spreads further tasks finds the pool busy too


# An array is an object's header and then its data's address, as numpy's C interface has it; asking the array takes twenty times
# as long, and a call of a kernel asks for a dozen.
_number_at = ctypes.c_size_t.from_address
_HEADER = object.__basicsize__


def _asked(array: np.ndarray | None) -> int:
    return 0 if array is None else int(array.__array_interface__["data"][0])


def address(array: np.ndarray | None) -> int:
    """Address of an array's data; 0 for None."""
    return 0 if array is None else _number_at(id(array) + _HEADER).value


def _plain(probe: np.ndarray) -> bool:
    return sys.implementation.name == "cpython" and address(probe) == _asked(probe)


if not _plain(np.empty(1)):
    address = _asked


def scratch(floats: int) -> np.ndarray:
    """Memory of a task's own, aligned to lines of the cache."""
    memory = np.empty(floats + 16, np.float32)
    return memory[(-address(memory) % 64) // 4 :][:floats]


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins where a line of the cache does, or vectors of it would be in two of them; read-only."""
    copy = scratch(array.size).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = False
    return copy


def spread(tasks: int, work: float, run: Callable[[int, int], None]) -> None:
    """Calls ``run(first, last)`` for ranges that make up 0 .. tasks - 1. A pool that is busy makes the caller run alone."""
    threads = min(get_num_threads(), tasks) if work >= LEAST_WORK else 1
    if threads <= 1 or not _busy.acquire(blocking=False):
        if tasks > 0:
            run(0, tasks)
        return
    try:
        pool = _executor(threads - 1)
        cuts = [tasks * i // threads for i in range(threads + 1)]
        others = [pool.submit(run, cuts[i], cuts[i + 1]) for i in range(1, threads)]
        try:
            run(0, cuts[1])
        finally:
            errors = [other.exception() for other in others]  # waits for them: they work on the caller's arrays
        for error in errors:
            if error is not None:
                raise error
    finally:
        _busy.release()


def _executor(threads: int) -> ThreadPoolExecutor:
    """The pool, made at first need, and again where a fork has left none of its threads or more are wanted."""
    global _pool
    if _pool is None or _pool[0] != os.getpid() or _pool[1] < threads:
        if _pool is not None and _pool[0] == os.getpid():
            _pool[2].shutdown(wait=False)
        _pool = os.getpid(), threads, ThreadPoolExecutor(threads, "fastlayers-jit")
    return _pool[2]

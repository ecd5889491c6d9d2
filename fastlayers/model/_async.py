"""Runs that a coroutine waits for: in threads of their own, as many as one call may use, made when the first is needed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._deadline import Deadline
from .._locks import Lock
from ..errors import TimeoutError
from ..threads import get_num_threads

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["in_thread"]

_lock = Lock()
# The process's executor, by the number of its threads: another is made where that has changed, or a child has none of them.
_made: dict[int, ThreadPoolExecutor] = {}


def _executor() -> ThreadPoolExecutor:
    count = get_num_threads()
    with _lock:
        found = _made.get(count)
        if found is None:
            from concurrent.futures import ThreadPoolExecutor

            for old in _made.values():
                old.shutdown(wait=False)  # what was begun, or waits, is done
            _made.clear()
            found = _made[count] = ThreadPoolExecutor(count, "fastlayers")
        return found


async def in_thread(run: Callable[[float | None], Any], timeout: float | None) -> Any:
    """The result of `run`, called in another thread with the seconds that are left of `timeout`.

    Raises:
        TimeoutError: it is not there after `timeout` seconds, the wait for a thread among them.
    """
    import asyncio

    until = None if timeout is None else time.monotonic() + Deadline(timeout).seconds

    def work() -> Any:
        return run(None if until is None else max(until - time.monotonic(), 0.0))

    future = asyncio.get_running_loop().run_in_executor(_executor(), work)
    try:
        await asyncio.wait([future], timeout=timeout)
    except asyncio.CancelledError:
        future.cancel()  # one that waits for a thread never begins
        raise
    if not future.done():
        future.cancel()
        raise TimeoutError(f"run: it is not done after timeout={timeout:g} seconds; its results so far are discarded")
    return future.result()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_made.clear)

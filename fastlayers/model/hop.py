"""Runs that somebody waits for elsewhere: in their own threads, at most what one call may use, started when they are needed.

A hop to such a thread and back is all that `Model.arun` adds to a run, so it is as short as can be: one queue, and one call of
the event loop when the result is there. An executor of `concurrent.futures` has a future and three locks more on the way.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from _queue import SimpleQueue
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .._deadline import Asked, Deadline
from .._locks import Lock
from ..errors import TimeoutError, refuse_shortage
from ..threads import get_num_threads

if TYPE_CHECKING:
    import asyncio
    import threading

__all__ = ["in_thread", "submit"]

_lock = Lock()
# The process's threads, by how many there may be: others are made where that has changed, or a child has none of them.
_made: dict[int, _Threads] = {}


class _Threads:
    """At most `count` threads, which take what is put into one queue."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.waiting = 0  # for a thread, or in one; counted by `put` and by the threads, under the lock

    def put(self, work: Callable[[], object]) -> None:
        """Does `work` in one of the threads. Called with the lock held."""
        if self.waiting >= len(self.threads) < self.count:
            import threading

            # A daemon, or the interpreter would wait for it before `_end` tells it to end.
            thread = threading.Thread(target=self._go, daemon=True, name=f"fastlayers_{len(self.threads)}")
            try:
                thread.start()
                self.threads.append(thread)
            except RuntimeError as error:  # one that is there takes it, when it is free
                if not self.threads:
                    refuse_shortage(error, "run")
                    raise
        self.waiting += 1
        self.queue.put(work)

    def _go(self) -> None:
        while (work := self.queue.get()) is not None:
            try:
                work()
            except BaseException:  # it cannot be caught: it is shown, as that of any thread, and the thread goes on
                import threading

                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
            del work  # its arrays are its caller's
            with _lock:
                self.waiting -= 1

    def end(self) -> list[threading.Thread]:
        """Its threads, which end once they have done what was begun, or waits. Called with the lock held."""
        for _ in self.threads:
            self.queue.put(None)
        return self.threads


def submit(work: Callable[[], object]) -> None:
    """Does `work` in one of the threads as soon as one is free; what it raises is shown."""
    count = get_num_threads()
    with _lock:
        found = _made.get(count)
        if found is None:
            for old in _made.values():
                old.end()
            _made.clear()
            atexit.unregister(_end)
            atexit.register(_end)
            found = _made[count] = _Threads(count)
        found.put(work)


def _end() -> None:
    """At exit: what was begun, or waits, is done."""
    with _lock:
        ending = [thread for made in _made.values() for thread in made.end()]
        _made.clear()
    for thread in ending:
        thread.join()


class _GivenUp(BaseException):
    """The run is abandoned: it ends, and its result is dropped."""


class _Job:
    """A run whose result an event loop waits for."""

    __slots__ = ("future", "loop", "over", "run", "until")

    def __init__(self, run: Callable[[float | None], Any], timeout: float | None, loop: asyncio.AbstractEventLoop) -> None:
        self.run, self.loop = run, loop
        self.until = None if timeout is None else time.monotonic() + timeout
        self.future: asyncio.Future[Any] = loop.create_future()
        self.over = False  # nothing waits any more: what waits for a thread never begins

    def __call__(self) -> None:
        if self.over:
            return
        result: Any = None
        error: BaseException | None = None
        try:
            with Asked(self.ask):
                result = self.run(None if self.until is None else max(self.until - time.monotonic(), 0.0))
        except StopIteration as stop:  # which no future can hold
            error = RuntimeError(f"run: raised {stop!r}")
        except BaseException as raised:  # the waiting thread must hear of it, whatever it is
            error = raised
        if not self.over:
            with suppress(RuntimeError):  # the loop is closed: nothing waits
                self.loop.call_soon_threadsafe(self.settle, result, error)

    def ask(self) -> None:
        """Ends the run if nothing waits any more."""
        if self.over:
            raise _GivenUp

    def settle(self, result: Any, error: BaseException | None) -> None:
        """Gives the result to who waits, if anybody still does. Called by the loop."""
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)

    def expire(self, timeout: float) -> None:
        """Gives up waiting. Called by the loop."""
        self.over = True
        self.settle(
            None, TimeoutError(f"run: it is not done after timeout={timeout:g} seconds; its results so far are discarded")
        )


async def in_thread(run: Callable[[float | None], Any], timeout: float | None) -> Any:
    """The result of `run`, called in another thread with the seconds that are left of `timeout`.

    Raises:
        TimeoutError: it is not there after `timeout` seconds, the wait for a thread among them.
    """
    from asyncio import get_running_loop

    seconds = None if timeout is None else Deadline(timeout).seconds
    loop = get_running_loop()
    job = _Job(run, seconds, loop)
    submit(job)
    handle = None if seconds is None else loop.call_later(seconds, job.expire, seconds)
    try:
        return await job.future
    finally:
        job.over = True
        if handle is not None:
            handle.cancel()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_made.clear)

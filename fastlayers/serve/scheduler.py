"""Schedules runs: requests wait in one queue per signature, and as many runs go on at once as there are threads.

All of it but the runs happens in the event loop's thread, without locks. Runs that are known to be short before they begin happen
there too: to hand 0.1 ms of work to another thread and back takes longer. Earlier runs prove nothing: values may decide sizes.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import Error, TimeoutError
from . import logs
from .failures import RETRY, Refused
from .metrics import Metrics
from .served import INLINE_BYTES, Served, late

__all__ = ["Job", "Scheduler"]

SWEEP = 0.05


class Job:
    """A request that waits, runs, or is done."""

    __slots__ = ("arrived", "began", "ended", "feeds", "future", "rows", "run", "seconds", "served", "signature", "until")

    def __init__(
        self,
        served: Served,
        feeds: Mapping[str, np.ndarray],
        seconds: float,
        until: float,
        run: Callable[[float], Any] | None = None,
    ) -> None:
        """`run`: what is called with the seconds left, in place of the model."""
        self.served, self.feeds, self.seconds, self.until, self.run = served, feeds, seconds, until, run
        self.signature: Any = None
        self.rows = 1
        if run is None:
            self.signature, self.rows = served.signature(feeds)
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.arrived = time.monotonic()
        self.began = self.ended = 0.0


class Scheduler:
    """The queue of one process."""

    def __init__(self, threads: int, queue: int, metrics: Metrics) -> None:
        self._threads, self._queue, self._metrics = threads, queue, metrics
        self._pool = ThreadPoolExecutor(threads, "fastlayers-serve")
        self._groups: dict[Any, deque[Job]] = {}
        self._running = self.count = 0
        self._pumping = False
        self._timer: asyncio.TimerHandle | None = None

    def admit(self) -> None:
        """Raises if the queue is full; asked before a body is read."""
        if self.count >= self._queue:
            raise Refused(503, f"{self.count} requests are waiting or running: try again later", "queue full", RETRY)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Meanwhile a request has a place in the queue, and may run any number of jobs."""
        self.admit()
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1

    async def do(self, job: Job) -> Any:
        """The job's result: a dict of arrays, or what its `run` gives."""
        with self.place():
            return await self.part(job)

    async def part(self, job: Job) -> Any:
        """The same for one of the jobs of a request that has a place."""
        self._groups.setdefault((job.served, job.signature), deque()).append(job)
        self._soon()
        return await job.future

    # ---- choosing ---------------------------------------------------------------------------------------------------

    def _soon(self) -> None:
        """Looks at the queue once all that has arrived by now is in it, so that it may run together."""
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        now = time.monotonic()
        wait = SWEEP
        while self._groups and self._running < self._threads:
            key, due = self._next(now)
            if key is None:
                wait = min(wait, max(due - now, 0.0))
                break
            batch = self._take(key, now)
            if batch:
                self._begin(batch)
                now = time.monotonic()
        if self._groups:
            self._sweep(now)
            if self._groups:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = asyncio.get_running_loop().call_later(wait, self._soon)

    def _next(self, now: float) -> tuple[Any, float]:
        """The group whose first request waits longest of those that may begin; or when the first of the others may."""
        best, oldest, due = None, now + 1e9, now + 1e9
        for key, group in self._groups.items():
            first = group[0]
            ready = first.arrived
            if first.served.delay and first.signature is not None and sum(job.rows for job in group) < first.served.most:
                ready += first.served.delay
            if ready <= now and first.arrived < oldest:
                best, oldest = key, first.arrived
            due = min(due, ready)
        return best, due

    def _take(self, key: Any, now: float) -> list[Job]:
        """As many of a group as one batch may have."""
        group = self._groups[key]
        batch: list[Job] = []
        rows = 0
        while group and (not batch or (batch[0].signature is not None and rows + group[0].rows <= batch[0].served.most)):
            job = group.popleft()
            if job.future.done():
                continue
            if job.until <= now:
                job.future.set_exception(late(job.seconds))
                continue
            batch.append(job)
            rows += job.rows
        if not group:
            del self._groups[key]
        return batch

    def _sweep(self, now: float) -> None:
        """Answers those that have waited too long, and drops those whose clients are gone."""
        for key, group in list(self._groups.items()):
            for job in group:
                if job.until <= now and not job.future.done():
                    job.future.set_exception(late(job.seconds))
            if any(job.future.done() for job in group):
                kept = deque(job for job in group if not job.future.done())
                if kept:
                    self._groups[key] = kept
                else:
                    del self._groups[key]

    # ---- running ----------------------------------------------------------------------------------------------------

    def _begin(self, batch: list[Job]) -> None:
        feeds = _small(batch)
        if feeds is not None and batch[0].served.quick(feeds):
            self._done(batch, _outcome(batch, feeds))
            return
        self._running += 1
        loop = asyncio.get_running_loop()

        def work() -> None:
            outcome = _outcome(batch, feeds)
            loop.call_soon_threadsafe(ended, outcome)

        def ended(outcome: list[Any]) -> None:
            self._running -= 1
            self._done(batch, outcome)
            self._soon()

        self._pool.submit(work)

    def _done(self, batch: list[Job], outcome: list[Any]) -> None:
        first = batch[0]
        seconds = first.ended - first.began
        self._metrics.ran(first.served, sum(job.rows for job in batch), seconds)
        for job, result in zip(batch, outcome, strict=True):
            job.began, job.ended = first.began, first.ended
            if job.future.done():
                continue
            if isinstance(result, BaseException):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    def close(self) -> None:
        """Waits for nothing; what has begun goes on to its end."""
        self._pool.shutdown(wait=False)


def _small(batch: list[Job]) -> Mapping[str, np.ndarray] | None:
    """The inputs of a batch, joined; None of a stream's piece, or where to join them would keep others waiting."""
    if batch[0].run is not None or sum(array.nbytes for job in batch for array in job.feeds.values()) > INLINE_BYTES:
        return None
    return batch[0].feeds if len(batch) == 1 else batch[0].served.joined([job.feeds for job in batch])


def _outcome(batch: list[Job], feeds: Mapping[str, np.ndarray] | None) -> list[Any]:
    """The result of each of a batch, or the error that it ends with. In any thread."""
    first = batch[0]
    first.began = time.monotonic()
    try:
        if len(batch) > 1:
            left = max(job.until for job in batch) - first.began
            try:
                feeds = first.served.joined([job.feeds for job in batch]) if feeds is None else feeds
                results = first.served.run(feeds, max(left, 0.0))
                found = first.served.apart(results, [job.rows for job in batch])
            except TimeoutError as error:
                return [error] * len(batch)
            except Exception as error:  # one of them spoils it for the others: each for itself
                found = None
                if not isinstance(error, Error):
                    logs.failed("a batch failed", error)
            if found is not None:
                return found
        return [_alone(job) for job in batch]
    finally:
        first.ended = time.monotonic()


def _alone(job: Job) -> Any:
    left = job.until - time.monotonic()
    try:
        if left <= 0:
            raise late(job.seconds)
        return job.served.run(job.feeds, left) if job.run is None else job.run(left)
    except Exception as error:
        if not isinstance(error, (Error, Refused)):
            logs.failed("a run failed", error)
        return error

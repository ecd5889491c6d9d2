"""One request for inference, from its body to its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .body import Bodies, Gone
from .failures import refusal
from .forward import forward
from .metrics import Metrics
from .scheduler import Job, Scheduler
from .sequences import Sequences
from .served import Served
from .settings import Settings
from .shared import Shared
from .wire import Asked, answer, feeds_of, outputs_of, read

if TYPE_CHECKING:
    from .app import Request, Response

__all__ = ["Inference"]

T = TypeVar("T")
FEW = 1 << 15  # bytes that are read or written in the event loop's thread


class Inference:
    """Endpoint of inference of one worker."""

    def __init__(self, settings: Settings, metrics: Metrics, bodies: Bodies, scheduler: Scheduler, shared: Shared | None) -> None:
        self._settings, self._metrics, self._bodies, self._shared = settings, metrics, bodies, shared
        self._scheduler = scheduler
        self._sequences = Sequences(settings.sequences, settings.sequence_idle)
        self._receiving = 0

    @property
    def sequences(self) -> int:
        """Open sequences."""
        return len(self._sequences)

    async def answer(self, request: Request, served: Served) -> Response:
        """The answer.

        Raises:
            Refused: it cannot be answered, with what the client is told.
            Gone: the client has left.
        """
        try:
            self._scheduler.admit()  # a full queue is no reason to read a body
            body = await self._bodies.read(request.receive, request.headers)
            request.size = len(body)
            try:
                return await self._understood(request, served, body)
            finally:
                self._bodies.free(request.size)
        except Gone:
            raise
        except Exception as error:
            self._metrics.failed(served, time.monotonic() - request.began, refusal(error).reason)
            raise

    async def _understood(self, request: Request, served: Served, body: bytes) -> Response:
        received = time.monotonic()
        header = request.headers.get(b"inference-header-content-length")
        length = None if header is None else header.decode("latin-1")
        asked = await _beside(len(body), read, body, length, self._settings.max_json)
        seconds = min(self._settings.timeout, asked.parameters.timeout or self._settings.timeout)
        if asked.parameters.sequence is not None:
            return await self._piece(request, served, asked, body, received, seconds)
        wanted = outputs_of(asked, served.model.outputs.names)
        feeds = await _beside(len(body), feeds_of, asked, served.model.inputs)
        job = Job(served, feeds, seconds, received + seconds)
        request.rows = job.rows
        results = await self._scheduler.do(job)
        return await self._answered(request, served, asked, wanted, results, received, job)

    async def _piece(
        self, request: Request, served: Served, asked: Asked, body: bytes, received: float, seconds: float
    ) -> Response:
        """The next piece of a sequence, by the worker that keeps it."""
        parameters, shared = asked.parameters, self._shared
        if shared is not None and parameters.sequence is not None and not request.inner:
            owner = shared.owner(served.name, served.version, parameters.sequence)
            if owner != shared.worker:
                return await forward(shared.socket_of(owner), request.path, request.headers, body, seconds)
        if parameters.start and not served.streams:
            await asyncio.to_thread(served.stream)
        sequence = self._sequences.enter(served, parameters)
        try:
            stream = sequence.stream
            wanted = outputs_of(asked, stream.outputs.names)
            feeds = await _beside(len(body), feeds_of, asked, stream.inputs)
            async with sequence.lock:

                def run(left: float) -> dict[str, np.ndarray]:
                    return sequence.run(feeds, parameters.end, left)

                job = Job(served, feeds, seconds, received + seconds, run)
                request.rows = job.rows
                results = await self._scheduler.do(job)
        finally:
            self._sequences.leave(served, parameters, sequence)
        return await self._answered(request, served, asked, wanted, results, received, job)

    async def _answered(
        self,
        request: Request,
        served: Served,
        asked: Asked,
        wanted: list[tuple[str, bool]],
        results: Mapping[str, Any],
        received: float,
        job: Job,
    ) -> Response:
        before = time.monotonic()
        size = sum(16 * results[name].size if results[name].dtype.kind == "O" else results[name].nbytes for name, _ in wanted)
        headers, body = await _beside(size, answer, served.name, served.version, asked, wanted, results, self._settings.max_json)
        now = time.monotonic()
        parts = (job.began - job.arrived, job.arrived - received, job.ended - job.began, now - before)
        self._metrics.answered(served, job.rows, now - request.began, parts)
        return 200, headers, body

    def tick(self) -> None:
        """Forgets idle sequences."""
        self._sequences.drop_idle()


async def _beside(size: int, work: Callable[..., T], *arguments: Any) -> T:
    """The result of a function that reads or writes so many bytes: in another thread if they are many."""
    return work(*arguments) if size <= FEW else await asyncio.to_thread(work, *arguments)

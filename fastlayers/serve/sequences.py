"""Streams of the sequence extension: each keeps its state between the requests that name it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np

from ..model.stream_windows import WindowStream
from .failures import RETRY, Refused
from .served import Served
from .wire import Parameters

__all__ = ["Sequence", "Sequences"]


class Sequence:
    """One stream. Its requests run in the order in which they came."""

    def __init__(self, served: Served) -> None:
        self.stream = served.stream()
        self.lock = asyncio.Lock()
        self.users = 0
        self.used = time.monotonic()

    def run(self, feeds: dict[str, np.ndarray], end: bool, timeout: float) -> dict[str, np.ndarray]:
        """The results of the next piece; with those of what still waited, if it is the last.

        A stream that cuts windows gives one result a window: they are stacked along a new first axis, which may have none.
        """
        stream = self.stream
        if not isinstance(stream, WindowStream):
            found: dict[str, np.ndarray] = stream.run(feeds, timeout=timeout)
            return found
        until = time.monotonic() + timeout
        windows: list[Any] = [tuple(results.values()) for results in stream.run(feeds, timeout=timeout)]
        if end:
            rest = stream.flush(timeout=max(until - time.monotonic(), 0.0))
            windows += [result if isinstance(result, tuple) else (result,) for result in rest]
        made = {}
        for i, spec in enumerate(stream.outputs):
            empty = np.zeros((0, *[size if isinstance(size, int) else 1 for size in spec.shape or ()]), spec.dtype)
            made[spec.name] = np.stack([window[i] for window in windows]) if windows else empty
        return made


class Sequences:
    """All streams of one process, by model and id."""

    def __init__(self, most: int, idle: float) -> None:
        self._most, self._idle = most, idle
        self._found: dict[tuple[Served, Any], Sequence] = {}

    def __len__(self) -> int:
        return len(self._found)

    def enter(self, served: Served, parameters: Parameters) -> Sequence:
        """The stream that a request belongs to; one that starts gets a new one."""
        key = (served, parameters.sequence)
        found = self._found.get(key)
        if parameters.start:
            if found is None and len(self._found) >= self._most:
                self.drop_idle()
                if len(self._found) >= self._most:
                    raise Refused(503, f"{len(self._found)} sequences are open: expected fewer", "sequences", RETRY)
            found = self._found[key] = Sequence(served)
        if found is None:
            raise Refused(
                400,
                f"sequence {parameters.sequence!r} is not open: it never began, has ended, or was idle for {self._idle:g} s: "
                "begin it with sequence_start",
            )
        found.used = time.monotonic()
        found.users += 1
        return found

    def leave(self, served: Served, parameters: Parameters, sequence: Sequence) -> None:
        """After the request; the last one closes the stream."""
        sequence.users -= 1
        sequence.used = time.monotonic()
        if parameters.end and self._found.get((served, parameters.sequence)) is sequence:
            del self._found[(served, parameters.sequence)]

    def drop_idle(self) -> int:
        """Closes those that have been idle for long, or whose model is unloaded; how many."""
        before = time.monotonic() - self._idle
        old = [key for key, s in self._found.items() if not s.users and (s.used < before or key[0].closed)]
        for key in old:
            del self._found[key]
        return len(old)

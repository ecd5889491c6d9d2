"""Text models as they are served: what is asked of them, in the scheduler's threads."""

from __future__ import annotations

import asyncio
import base64
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._deadline import Asked, Deadline
from ..errors import TimeoutError
from .fields import Invalid
from .scheduler import Job, Scheduler
from .served import Served, late
from .wire import written

__all__ = ["Batch", "Growth", "Work", "embedded", "ranked"]

SLICE = 0.01  # seconds: steps of that time are one job, after which others run


class Work:
    """A function that a job calls, which ends when its time is over, or its client gone.

    Args:
        function: does it.
        seconds: what the time was, for the error.
    """

    def __init__(self, function: Callable[[], Any], seconds: float) -> None:
        self._function, self._seconds = function, seconds
        self.gone = False

    def _still(self) -> None:
        if self.gone:
            raise TimeoutError("the client has gone")

    def __call__(self, left: float) -> Any:
        """Calls it."""
        try:
            with Deadline(left), Asked(self._still):
                return self._function()
        except TimeoutError:
            raise late(self._seconds) from None


def embedded(encoder: Any, texts: Sequence[Any], prompt_name: str | None, as_text: bool) -> tuple[np.ndarray, list[str], int]:
    """The vectors of texts, each in JSON, as numbers or as text (their bytes in base64); and the number of tokens."""
    found, count = encoder._counted(texts, prompt_name=prompt_name)
    vectors = np.ascontiguousarray(found, "<f4")
    # One call of the JSON writer each: meanwhile no other thread runs.
    if as_text:
        return vectors, [f'"{base64.b64encode(row).decode()}"' for row in vectors], count
    return vectors, [written(row.tolist()) for row in vectors], count


def ranked(encoder: Any, query: str, texts: Sequence[str], most: int | None) -> tuple[list[dict[str, Any]], int]:
    """As `CrossEncoder.rank`, and the number of tokens."""
    found: tuple[list[dict[str, Any]], int] = encoder._ranked(query, texts, most)
    return found


class Growth:
    """Prompts and what follows them, as a part of a model's batch.

    Args:
        generator: a `Generator`.
        prompts: texts, ids, or messages as tuples.
        variables: for the template of messages.
        how: arguments of `Generator.generate`.
        most: the most tokens of all prompts.
    """

    def __init__(
        self, generator: Any, prompts: Sequence[Any], variables: Mapping[str, Any], how: Mapping[str, Any], most: int
    ) -> None:
        self._generator, self._prompts, self._variables, self._how, self._most = generator, prompts, variables, how, most
        self.sequences: list[Any] = []
        self.tokens = 0  # of the prompts
        self.ran = 0.0  # seconds of steps of the batch
        self.waiting: asyncio.Future[list[Any]] | None = None  # for the next events; of the event loop's thread

    @property
    def done(self) -> bool:
        """Whether all has ended."""
        return bool(self.sequences) and all(one.finish is not None for one in self.sequences)

    @property
    def waits(self) -> bool:
        """Whether its next events are waited for."""
        return self.waiting is not None and not self.waiting.done()

    def begin(self) -> None:
        """Makes sequences of the prompts, which may take long."""
        generator, prompts = self._generator, []
        for prompt in self._prompts:
            prompts.append(generator.encode(prompt, **(self._variables if isinstance(prompt, tuple) else {})))
            self.tokens += len(prompts[-1])
            longest = generator._longest
            if longest is not None and len(prompts[-1]) >= longest:
                raise self._long(f"has {len(prompts[-1])} tokens: the network takes {longest}, one of which is to follow")
            if self.tokens > self._most:
                raise self._long(f"has {self.tokens} tokens or more: expected at most {self._most} (--max-prompt)")
        how = generator._how(**self._how)
        self.sequences = [generator._sequence(i, ids, *how, True) for i, ids in enumerate(prompts)]

    def _long(self, message: str) -> Invalid:
        return Invalid("messages" if isinstance(self._prompts[0], tuple) else "prompt", message, "context_length_exceeded")

    def take(self) -> list[Any] | Exception:
        """Events that have come; or the error that ended it, after the last of them."""
        found: list[Any] = []
        try:
            for one in self.sequences:
                found += one.events()
        except Exception as error:
            return found or error
        return found


class Batch:
    """Completions of one model that grow together. All but its steps happens in the event loop's thread.

    Args:
        served: the model.
        scheduler: runs a step, or some that are short, as a job among others.
    """

    def __init__(self, served: Served, scheduler: Scheduler) -> None:
        self._served, self._scheduler = served, scheduler
        self._growths: list[Growth] = []
        self._runs = self._asked = False

    def join(self, growth: Growth) -> None:
        """One more, which has begun."""
        self._growths.append(growth)
        self._served.text._running.join(growth.sequences)

    def leave(self, growth: Growth) -> None:
        """No more of it is wanted."""
        for one in growth.sequences:
            one.gone = True
        if growth in self._growths:
            self._growths.remove(growth)
            self._go()  # frees its rows

    async def next(self, growth: Growth) -> list[Any]:
        """The next events of one: at least one."""
        growth.waiting = asyncio.get_running_loop().create_future()
        self._go()
        return await growth.waiting

    def _go(self) -> None:
        self._asked = True
        if not self._runs:
            self._runs = True
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        """Steps for as long as any sequence can go on, or somebody asks."""
        try:
            moved = False
            while moved or self._asked or any(growth.waits for growth in self._growths):
                if not (moved or self._asked):
                    await asyncio.sleep(SLICE)  # all others wait for clients that read slowly
                self._asked = False
                growths = [*self._growths]
                job = Job(self._served, {}, 0.0, math.inf, partial(self._step, growths))
                job.rows = max(1, sum(len(growth.sequences) for growth in growths))
                moved, found = await self._scheduler.part(job)
                for growth, events in zip(growths, found, strict=True):
                    growth.ran += job.ended - job.began
                    _told(growth, events)
        except Exception as error:
            for growth in self._growths:
                _told(growth, error)
        finally:
            self._runs = False

    def _step(self, growths: Sequence[Growth], left: float) -> tuple[bool, list[list[Any] | Exception]]:
        """Tokens of some milliseconds, and the events of those that wait. In any thread."""
        step, until = self._served.text._running.step, time.monotonic() + SLICE
        found: list[Any] = [[] for _ in growths]
        moved = True
        while moved and time.monotonic() < until:
            moved = step()
            for i, growth in enumerate(growths):
                if growth.waits and isinstance(found[i], list):
                    events = growth.take()
                    found[i] = found[i] + events if isinstance(events, list) else found[i] or events
        return moved, found


def _told(growth: Growth, events: list[Any] | Exception) -> None:
    """Hands over what has come to who waits for it."""
    waiting = growth.waiting
    if waiting is None or waiting.done() or events == []:  # the client has gone, or there is nothing
        return
    if isinstance(events, Exception):
        waiting.set_exception(events)
    else:
        waiting.set_result(events)

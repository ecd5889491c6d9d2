"""When a run is to end early: set for the calling thread by who starts it, and asked by every executor between its steps.

The compiled engine asks for itself, also between the tasks of a step (`kernels/aot/_stop.pyx`).
"""

from __future__ import annotations

import math
import sys
import time
from _thread import TIMEOUT_MAX, _local  # `threading` has the same, and takes a millisecond to import
from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import ArgumentError, DTypeError, TimeoutError

__all__ = ["Asked", "Deadline", "check", "late"]

_ENGINE = "fastlayers.kernels.aot._stop"


class _Here(_local):
    until = math.inf  # in the time of time.monotonic
    seconds = math.inf  # what `timeout` was
    asked: Callable[[], object] | None = None  # raises once the run is to end


_here = _Here()


class Deadline:
    """Meanwhile runs of this thread end with TimeoutError once `timeout` seconds are over, or once an earlier deadline is.

    Raises:
        DTypeError: `timeout` is no number.
        ShapeError: `timeout` is negative or NaN.
    """

    def __init__(self, timeout: Any) -> None:
        if isinstance(timeout, (bool, np.bool_)) or not isinstance(timeout, (int, float, np.integer, np.floating)):
            raise DTypeError(f"run: timeout is of type {type(timeout).__name__}: expected a number of seconds, or None")
        if not timeout >= 0:
            raise ArgumentError(f"run: timeout is {timeout}: expected a number of seconds of at least 0")
        self.seconds = float(min(timeout, TIMEOUT_MAX))

    def __enter__(self) -> Deadline:
        self.before = _here.until, _here.seconds
        until = time.monotonic() + self.seconds
        if until < _here.until:
            _set(until, self.seconds)
        return self

    def __exit__(self, *exception: object) -> None:
        _set(*self.before)


class Asked:
    """Meanwhile long runs of this thread ask `function` every 20 milliseconds, and end with what it raises; so does one around
    them.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function

    def __enter__(self) -> None:
        self.before = _here.asked
        _ask(self.function if self.before is None else self._both)

    def _both(self) -> None:
        if self.before is not None:
            self.before()
        self.function()

    def __exit__(self, *exception: object) -> None:
        _ask(self.before)


def _ask(function: Callable[[], object] | None) -> None:
    engine: Any = sys.modules.get(_ENGINE)
    if engine is not None:
        engine.set_asked(function)
    _here.asked = function  # lets go of the one before, which the engine has no more


def _set(until: float, seconds: float) -> None:
    _here.until, _here.seconds = until, seconds
    engine: Any = sys.modules.get(_ENGINE)
    if engine is not None:
        engine.set_deadline(-1 if until == math.inf else max(0, int((until - time.monotonic()) * 1e9)))


def check() -> None:
    """Raises TimeoutError if the run of this thread has had its time, or what tells it to end."""
    if _here.asked is not None:
        _here.asked()
    if time.monotonic() >= _here.until:
        raise late()


def late() -> TimeoutError:
    """The error of a run that has had its time."""
    return TimeoutError(f"run: it is not done after timeout={_here.seconds:g} seconds; its results so far are discarded")

"""Limits the number of threads of one call: the number that was set, or the one that the machine grants this process. The
threads are in kernels/aot."""

from __future__ import annotations

import operator
import os
import sys
import time
from typing import Any

import numpy as np

from . import _threadpools
from ._arguments import shown
from ._lazy import imported
from .errors import ArgumentError, DTypeError

__all__ = ["get_num_threads", "set_num_threads"]

VARIABLE = "FASTLAYERS_NUM_THREADS"
SHARED_VARIABLE = "OMP_NUM_THREADS"
MOST = 256  # FL_MAX_THREADS of kernels/aot/csrc/pool.h
KEPT_SECONDS = 1.0
_ENGINE = "fastlayers.kernels.aot._engine"

_count: int | None = None  # what was set, by `set_num_threads` or the environment
_quota: tuple[float, int] | None = None  # when it was read, and what it is
_shared: int | None = None  # the bound that other libraries' variable sets, once it was read
_granted: int | None = None  # what the machine granted when it was last asked
_limited: int | None = None  # what it had granted when threadpoolctl set a number, which gives it back so


def get_num_threads() -> int:
    """The most threads that one call may use.

    Unless `set_num_threads` has chosen, it is ``FASTLAYERS_NUM_THREADS``, read when a number is first needed, or the number of
    processors that this process may use: its affinity, and the quota of its control group. If these change while it runs, so
    does the number, within about a second. ``OMP_NUM_THREADS``, which Ray, Dask and joblib set for their workers, is an upper
    bound of it, if it is a positive integer, or a list that begins with one.

    Raises:
        ArgumentError: ``FASTLAYERS_NUM_THREADS`` is not an integer from 1 to 256.
    """
    global _count, _granted
    if _count is None:
        text = os.environ.get(VARIABLE, "").strip() if _granted is None else ""
        if not text:
            _granted = _ask()
            return _granted
        _count = _from_text(text)
    return _count


def refresh() -> None:
    """Follows the machine, where no number was set; for the compiled engine, about once a second."""
    global _granted
    offer()
    if _count is None and _granted is not None:
        _granted = _ask()
        _tell(_granted)


def offer() -> None:
    """Lets threadpoolctl know of the engine: when it is loaded, and from then on with every `refresh`."""
    _threadpools.offer(get_num_threads, _limit)


def _limit(n: int) -> None:
    """Sets the number for threadpoolctl, and resets it: then it follows the machine again if it did before."""
    global _count, _limited
    n = min(max(int(n), 1), MOST)
    if _count is None:
        _limited = get_num_threads()
    _count = None if n == _limited else n
    if _count is None:
        _limited = None
    _tell(n)


def _ask() -> int:
    """The affinity as it is, and the quota as it was within the last second: that takes files to read."""
    cpus = imported(f"{__package__}._cpus")  # pathlib takes milliseconds to import

    global _quota, _shared
    if _shared is None:
        _shared = shared_limit()
    now = time.monotonic()
    if _quota is None or now - _quota[0] >= KEPT_SECONDS:
        try:
            _quota = now, cpus.quota_cpus()
        except OSError:  # no file handle is left: what was known, or nothing, until there is one
            _quota = _quota or (now - KEPT_SECONDS, MOST)
    return min(int(cpus.bound_cpus()), _quota[1], _shared, MOST)


def shared_limit() -> int:
    """Upper bound by ``OMP_NUM_THREADS``; a text that is no number is ignored."""
    text = os.environ.get(SHARED_VARIABLE, "").partition(",")[0].strip()
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) > 0 else MOST


def _tell(count: int) -> None:
    # If the engine is loaded later, its loader sets the number.
    engine: Any = sys.modules.get(_ENGINE)
    if engine is not None:
        engine.set_threads(count)


def set_num_threads(n: int) -> None:
    """Sets the most threads that one call may use, for all calls of the process from now on.

    Results do not depend on it, bit for bit. A call that finds the pool of threads busy with another call runs on its own thread.

    Args:
        n: an integer from 1 to 256.

    Raises:
        DTypeError: n is not an integer.
        ArgumentError: n is out of range.

    >>> import fastlayers as fl
    >>> fl.set_num_threads(2)
    >>> fl.get_num_threads()
    2
    """
    global _count, _limited
    _count, _limited = _checked(n), None
    _tell(_count)


def _from_text(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST):
        raise ArgumentError(f"{VARIABLE}: expected an integer from 1 to {MOST}, got {text!r}")
    return int(text)


def _checked(n: Any) -> int:
    rule = f"expected an integer from 1 to {MOST}"
    if isinstance(n, bool | np.bool_):  # numpy 1 lets its booleans be an index, with a warning
        raise DTypeError(f"set_num_threads: n is a {type(n).__name__}: {rule}, got {n}")
    try:
        count = operator.index(n)
    except Exception:  # a third-party type may raise anything
        raise DTypeError(f"set_num_threads: n is a {type(n).__name__}: {rule}, got {shown(n)}") from None
    if not 1 <= count <= MOST:
        raise ArgumentError(f"set_num_threads: n is out of range: {rule}, got {shown(count)}")
    return count

"""Waits before a fork for work of other threads that a child could neither finish nor begin again.

A child has only the thread that forked. What another thread was doing stays half done in it; where that is an entry that is
missing in a cache, the child makes it again (see `_locks`), but a module that was being imported keeps its lock shut for ever,
and a switch of kernels or a compilation is neither the old state nor the new one. A fork therefore waits for these: for modules
of this package, of NumPy and of the standard library (the child would hang in a function that imports `heapq` where it needs it),
and for the locks given to `finish_before_fork`. They take milliseconds, compilations up to some seconds.
"""

from __future__ import annotations

import _imp
import os
import sys
import time
from _thread import _local, get_ident  # `threading` has the same, and takes a millisecond to import
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

__all__ = ["finish_before_fork"]

# Nothing here takes so long. If it does after all, two threads wait for each other, and the fork goes on as it would without us.
MOST_SECONDS = 30.0


class _Lock(Protocol):
    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...


_waited_for: list[_Lock] = []


class _Here(_local):
    def __init__(self) -> None:
        # What undoes what a fork of this thread has taken; several threads may fork at once.
        self.releases: list[Callable[[], None]] = []


_here = _Here()


def finish_before_fork(lock: _Lock) -> None:
    """From now on no fork happens while another thread holds the lock. The thread that forks may hold it itself."""
    _waited_for.append(lock)


# Whose modules functions of this package may import when they are first called. Not everybody's: another's may take minutes.
_IMPORTED = frozenset({__package__, "numpy"}) | sys.stdlib_module_names


def _importing() -> bool:
    """Is another thread importing a module that this package needs?"""
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    here = get_ident()
    for name, reference in list(locks.items()):
        if name.partition(".")[0] in _IMPORTED:
            lock = reference()
            if getattr(lock, "owner", None) not in (None, here):
                return True
    return False


def _before_fork() -> None:
    until = time.monotonic() + MOST_SECONDS
    while not _here.releases and not _take_all() and time.monotonic() < until:
        _wait()


def _take_all() -> bool:
    """Takes every lock, or none: waiting for one with others in hand would block a thread that has it and wants these."""
    for lock in _waited_for:
        if not lock.acquire(blocking=False):
            _give_all()
            return False
        _here.releases.append(lock.release)
    # While this thread holds the one lock of all imports, none begins; a thread within one must have it to go on.
    _imp.acquire_lock()
    _here.releases.append(_imp.release_lock)
    if _importing():
        _give_all()
        return False
    return True


def _give_all() -> None:
    while _here.releases:
        with suppress(RuntimeError):  # a lock that is new in the child is not held
            _here.releases.pop()()


def _wait() -> None:
    """Lets other threads go on. What they are about may want logging's lock, which logging itself takes before a fork, and before
    this is called if it was imported later: then it is not in hand meanwhile.
    """
    lock = getattr(sys.modules.get("logging"), "_lock", None)
    if not getattr(lock, "_is_owned", bool)():
        time.sleep(0.001)
        return
    state = lock._release_save()  # type: ignore[union-attr]
    try:
        time.sleep(0.001)
    finally:
        lock._acquire_restore(state)  # type: ignore[union-attr]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_give_all, after_in_child=_give_all)

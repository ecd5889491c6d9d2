"""Locks that a forked child finds open.

A child has only the thread that forked. A lock that another thread held would stay shut in it for ever, so every lock of the
package is made here, and new in the child. What it guards may then be half done; it is therefore changed in single steps (an
assignment, an entry of a dict) that are whole or not there at all, or a fork waits for it (see `_forks`).
"""

from __future__ import annotations

import os
import weakref
from _thread import RLock, allocate_lock  # `threading` has the same, and takes a millisecond to import
from contextlib import suppress
from functools import partial

__all__ = ["Lock"]

# By identity, each with a reference that takes itself out: every change is a single step, and so is a copy of the values.
_alive: dict[int, weakref.ref[Lock]] = {}


class Lock:
    """A lock that is open in a forked child. For ``with``; of a copy or a pickle it is a new one.

    Args:
        again: whether the thread that holds it may take it again.
    """

    __slots__ = ("__weakref__", "_again", "_lock", "acquire", "release")

    def __init__(self, again: bool = True) -> None:
        self._again = again
        self._renew()
        _alive[id(self)] = weakref.ref(self, partial(_alive.pop, id(self)))

    def _renew(self) -> None:
        lock = self._lock = RLock() if self._again else allocate_lock()
        self.acquire, self.release = lock.acquire, lock.release

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exception: object) -> None:
        # In a child that this very thread has forked while it held the lock, the new one is not held.
        with suppress(RuntimeError):
            self.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[bool]]:
        return Lock, (self._again,)


def _after_fork_in_child() -> None:
    for reference in list(_alive.values()):
        lock = reference()
        if lock is not None:
            lock._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

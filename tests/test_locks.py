"""Locks after a fork. What they guard is tested where it is."""

from __future__ import annotations

import copy
import gc
import os
import signal
import threading
import warnings

import pytest

from fastlayers import _locks
from fastlayers._locks import Lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def in_child(check: object) -> bool:
    """Whether `check` holds in a forked child, within two seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks next to threads
        child = os.fork()
    if child == 0:
        signal.alarm(2)
        os._exit(0 if check() else 1)  # type: ignore[operator]
    return os.waitpid(child, 0)[1] == 0


def test_a_lock_that_another_thread_holds_is_open_in_the_child() -> None:
    lock, held, done = Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def usable() -> bool:
        with lock, lock:
            return True

    try:
        assert in_child(usable)
        assert not lock.acquire(blocking=False)  # the parent's is untouched
    finally:
        done.set()
        thread.join()


def test_who_forks_within_a_lock_goes_on() -> None:
    lock = Lock()

    def leave() -> bool:
        lock.__exit__(None, None, None)
        with lock:
            return True

    with lock:
        assert in_child(leave)


def test_locks_are_forgotten_and_copies_are_new() -> None:
    gc.collect()
    before = len(_locks._alive)
    lock = Lock()
    assert copy.deepcopy(lock) is not lock
    del lock
    gc.collect()
    assert len(_locks._alive) == before

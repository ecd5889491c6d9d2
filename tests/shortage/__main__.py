"""``python -m tests.shortage FOLDER SCENARIO KIND HOW MOST``: fails each event of first calls in turn, in children of a process
that has called nothing. `tests.shortage.test_shortage` prepares the folder.

Kinds of events: ``open`` (files, folders, and libraries), ``import``, ``thread``, and ``allocate``, which needs allocations.c to
be loaded beforehand. HOW: ``once``, the event alone, or ``on``, it and all that come after it while the call lasts. MOST events
are tried, evenly spread. Prints a line for each: its number, the error's class or ``-``, and what was wrong, or nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import numpy as np

import fastlayers as fl

from .scenarios import SCENARIOS

EVENTS = {
    "open": ("open", "os.listdir", "os.scandir", "mmap.__new__", "ctypes.dlopen"),
    "import": ("import",),
    "thread": ("start",),
}
RAISED: dict[str, Callable[[], Exception]] = {
    "open": lambda: OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
    "import": lambda: ImportError(f"library.so: cannot open shared object file: {os.strerror(errno.EMFILE)}", path="library.so"),
    "thread": lambda: RuntimeError("can't start new thread"),
}
KINDS = (*EVENTS, "allocate")
LEAST = 513  # bytes: what is smaller comes from Python's own blocks


class Failing:
    """Events are counted from 0, and those from `first` to before `last` fail."""

    def __init__(self, kind: str) -> None:
        self.kind, self.on, self.seen, self.range = kind, False, 0, range(0)
        self.library: Any = ctypes.CDLL(None) if kind == "allocate" else None
        if kind == "thread":
            begin = threading.Thread.start

            def start(thread: threading.Thread) -> None:
                self._event("start")
                begin(thread)

            threading.Thread.start = start  # type: ignore[method-assign]
        elif self.library is None:
            sys.addaudithook(self._event)

    def _event(self, event: str, _: Any = None) -> None:
        if self.on and event in EVENTS[self.kind]:
            self.seen += 1
            if self.seen - 1 in self.range:
                raise RAISED[self.kind]()

    def start(self, first: int, last: int) -> None:
        """From now on."""
        if self.library is not None:
            self.library.fail_allocations(ctypes.c_size_t(LEAST), ctypes.c_long(first), ctypes.c_long(last))
        else:
            self.seen, self.range, self.on = 0, range(first, last), True

    def stop(self) -> int:
        """How many there were."""
        if self.library is not None:
            seen = int(self.library.allocations_seen())
            self.library.fail_allocations(ctypes.c_size_t(sys.maxsize), ctypes.c_long(-1), ctypes.c_long(-1))
            return seen
        self.on = False
        return self.seen


def attempt(failing: Failing, use: Callable[[], Any], first: int, last: int) -> tuple[int, str, str]:
    """Events seen, the error's class, and what is wrong of the call that fails and of those after it."""
    failing.start(first, last)
    error: BaseException | None = None
    try:
        use()
    except BaseException as raised:
        error = raised
    seen = failing.stop()
    said = "-" if error is None else type(error).__name__
    if error is not None and not isinstance(error, fl.Error):
        return seen, said, f"not our error: {error!s:.200}"
    try:
        result, variant, threads = use(), fl.kernels.current(), fl.get_num_threads()
    except BaseException as raised:
        return seen, said, f"later calls fail: {type(raised).__name__}: {raised!s:.200}"
    parts = result if isinstance(result, tuple) else (result,)
    return seen, said, f"{variant} {threads} {sha256(b''.join(np.asarray(part).tobytes() for part in parts)).hexdigest()[:16]}"


def in_child(work: Callable[[], tuple[int, str, str]]) -> tuple[int, str, str]:
    """What the work gives in a child of this process."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.close(receive)
        try:
            os.write(send, "\x1f".join(map(str, work())).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        told = pipe.read().decode(errors="replace").split("\x1f")
    status = os.waitpid(child, 0)[1]
    if len(told) != 3:
        return 0, "-", f"the process ended with status {status}"
    return int(told[0]), told[1], told[2]


def walk(folder: str, scenario: str, kind: str, how: str, most: int) -> Iterator[tuple[int, str, str]]:
    """The events that are tried; number -1 says of a call in which nothing fails how many events there are."""
    failing, make = Failing(kind), SCENARIOS[scenario]

    def tried(at: int) -> tuple[int, str, str]:
        use = make(folder)
        return in_child(lambda: attempt(failing, use, at, sys.maxsize if how == "on" else at + 1))

    tried(sys.maxsize)  # which compiles Python's modules, where they were not
    count, error, wanted = tried(sys.maxsize)
    yield -1, str(count), "" if error == "-" and wanted.startswith("aot/") else f"nothing failed: {error}, {wanted}"
    for at in sorted({int(i) for i in np.linspace(0, count - 1, min(most, count))} if count else ()):
        _, error, got = tried(at)
        yield at, error, "" if got == wanted else f"{got} for {wanted}" if got[:4] in ("aot/", "refe", "jit ") else got


if __name__ == "__main__":
    for line in walk(*sys.argv[1:5], most=int(sys.argv[5])):
        print(*line, sep="\t", flush=True)

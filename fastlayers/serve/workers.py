"""Several processes that serve one socket: forked after models are loaded, so that they share the memory of the weights."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from typing import Any

from .._held import trim_memory
from ..errors import UnsupportedError
from ..threads import get_num_threads, set_num_threads
from . import logs
from .settings import Settings
from .shared import Shared

__all__ = ["run_workers"]

_STOPS = (signal.SIGTERM, signal.SIGINT)
QUICK = 5.0  # seconds: a worker that lives for less
MOST_QUICK = 5  # so many of which in a row end the server


def run_workers(settings: Settings, listening: socket.socket, url: str) -> int:
    """Serves until a signal. A worker that dies is replaced."""
    if not hasattr(os, "fork"):
        raise UnsupportedError("serve: workers: several need fork, which this system lacks")
    shared = Shared(settings.workers)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared.counters  # read when its client is imported
    try:
        from . import app, connections  # noqa: F401 - before the fork, so that workers share their memory too
        from .repository import Repository

        repository = Repository(settings)
        repository.load_all()
        if not settings.threads:
            set_num_threads(max(1, get_num_threads() // settings.workers))
        for served in repository.every():
            served.pack()
        trim_memory()
        logs.serving(url, [s.name for s in repository.every()], settings.page, workers=settings.workers)
        return _Supervisor(settings, repository, listening, shared).run()
    finally:
        if os.getpid() == shared.made_by:
            shared.close()


class _Supervisor:
    def __init__(self, settings: Settings, repository: Any, listening: socket.socket, shared: Shared) -> None:
        self._settings, self._repository, self._listening, self._shared = settings, repository, listening, shared
        self._living: dict[int, tuple[int, float]] = {}  # by process: which worker, and since when
        self._stopping = 0.0
        self._inner = [_inner(shared.socket_of(i)) for i in range(settings.workers)]
        # Nothing is written to it: that it ends tells workers that this process has.
        self._read, self._write = os.pipe()

    def run(self) -> int:
        for number in _STOPS:
            signal.signal(number, self._stop)
        quick = 0
        for worker in range(self._settings.workers):
            self._start(worker)
        while self._living:
            process, status = self._wait()
            if process not in self._living:
                continue
            worker, since = self._living.pop(process)
            self._forget(process)
            if self._stopping:
                continue
            logs.event("worker died", level="error", worker=worker, process=process, status=os.waitstatus_to_exitcode(status))
            quick = quick + 1 if time.monotonic() - since < QUICK else 0
            if quick >= MOST_QUICK:
                logs.event("giving up", level="error", why=f"{quick} workers in a row lived for less than {QUICK:g} s")
                self._stop(signal.SIGTERM, None)
            else:
                time.sleep(min(0.1 * 2**quick, 2.0))
                if not self._stopping:
                    self._start(worker)
        logs.event("stopped", workers=self._settings.workers)
        return 1 if quick >= MOST_QUICK else 0

    def _wait(self) -> tuple[int, int]:
        """The next child that has ended; workers that do not end in time are killed."""
        limit = self._settings.drain + self._settings.stop_timeout + 5
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process:
                return process, status
            if self._stopping and time.monotonic() > self._stopping + self._settings.drain:
                self._listening.close()  # as workers do now: who still connects is refused, and does not wait in vain
            if self._stopping and time.monotonic() > self._stopping + limit:
                for other in self._living:
                    os.kill(other, signal.SIGKILL)
            time.sleep(0.05)

    def _start(self, worker: int) -> None:
        # A signal in between would find the handler of the wrong process.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        process = os.fork()
        if process:
            self._living[process] = worker, time.monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
            return
        code = 1
        signals: list[int] = []  # those that come before the event loop runs
        try:
            for number in _STOPS:
                signal.signal(number, lambda number, _: signals.append(number))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
            os.close(self._write)
            for i, inner in enumerate(self._inner):
                if i != worker:
                    inner.close()
            self._shared.worker = worker
            from .server import work

            sockets = [self._listening, self._inner[worker]]
            code = work(self._settings, self._repository, sockets, self._shared, self._read, signals)
        except BaseException as error:
            logs.failed("worker failed", error)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _forget(self, process: int) -> None:
        """Takes a dead worker's gauges out of the sums."""
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(process, self._shared.counters)

    def _stop(self, number: int, frame: Any) -> None:
        if not self._stopping:
            self._stopping = time.monotonic()
        for process in self._living:  # a terminal has sent them SIGINT itself
            os.kill(process, signal.SIGTERM)


def _inner(path: str) -> socket.socket:
    """A worker's own socket."""
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    made.listen(128)
    made.setblocking(False)
    return made

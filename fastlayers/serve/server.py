"""A process that serves, from its socket to its last answer."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import time
from types import FrameType
from typing import Any

import uvicorn

from ..errors import ArgumentError
from ..threads import get_num_threads, set_num_threads
from . import logs
from .settings import Settings
from .shared import Shared

__all__ = ["Server", "bound", "work"]


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens, so that an address that is taken is told before anything is loaded."""
    try:
        # With its protocol named: asyncio leaves Nagle's algorithm on for sockets without, and every answer waits 40 ms.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(1024)
    except socket.gaierror as error:
        raise ArgumentError(f"serve: host is {host!r}: {error.strerror}") from None
    except OSError as error:
        raise OSError(error.errno or errno.EADDRINUSE, f"{host}:{port}: {os.strerror(error.errno or 0)}") from None
    made.setblocking(False)
    return made


def work(
    settings: Settings,
    repository: Any,
    sockets: list[socket.socket],
    shared: Shared | None = None,
    parent: int = -1,
    signals: list[int] | None = None,
) -> int:
    """One process's serving.

    Args:
        shared: what it shares with other workers.
        parent: a file descriptor that is readable once the process that forked this one is gone.
        signals: those that have come already.
    """
    from .app import App  # Prometheus' client decides when it is imported whether it counts for several processes
    from .connections import protocol
    from .metrics import Metrics

    logs.take_over()
    # A run that is over waits this long for a busy event loop to let it say so; Python's own 5 ms are more than most runs take.
    sys.setswitchinterval(0.0005)
    if settings.threads:
        set_num_threads(settings.threads)
    metrics = Metrics()
    app = App(settings, repository, metrics, get_num_threads(), shared)
    config = uvicorn.Config(
        app, http=protocol(settings, metrics), ws="none", loop="asyncio", lifespan="off", interface="asgi3", log_config=None,
        access_log=False, server_header=False, proxy_headers=False, timeout_keep_alive=max(1, round(settings.idle_timeout)),
        timeout_graceful_shutdown=max(1, round(settings.stop_timeout)), backlog=1024,
    )  # fmt: skip
    server = Server(config, app, settings, [] if signals is None else signals)
    try:
        asyncio.run(server.until_stopped(sockets, parent))
    finally:
        app.close()
    return 0


class Server(uvicorn.Server):  # type: ignore[misc]  # untyped where it is not installed
    """uvicorn's, but that it first says for a while that it is not ready, if it was told to, so that no client is sent here."""

    def __init__(self, config: uvicorn.Config, app: Any, settings: Settings, signals: list[int]) -> None:
        super().__init__(config)
        self._app, self._settings, self._signals = app, settings, signals
        self._until = 0.0

    async def until_stopped(self, sockets: list[socket.socket], parent: int) -> None:
        """Serves."""
        loop = asyncio.get_running_loop()
        if parent >= 0:
            loop.add_reader(parent, self._orphaned, parent)
        await self.serve(sockets)
        logs.event("stopped")

    def _orphaned(self, parent: int) -> None:
        asyncio.get_running_loop().remove_reader(parent)
        self._signals.append(signal.SIGTERM)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Only notes the signal, for it may come in the middle of anything. (uvicorn's would raise it again at the end.)"""
        self._signals.append(sig)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second. The first signal stops gracefully, a second SIGINT at once."""
        if counter % 10 == 0:
            self._app.tick()
        if self._signals and not self._app.stopping:
            self._app.stopping = True
            self._until = time.monotonic() + self._settings.drain
            logs.event("stopping", drain=self._settings.drain)
        if self._app.stopping and time.monotonic() >= self._until:
            self.should_exit = True
        if signal.SIGINT in self._signals[1:]:
            self.should_exit = self.force_exit = True
        done: bool = await super().on_tick(counter)
        return done

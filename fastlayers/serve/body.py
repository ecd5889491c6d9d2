"""The body of a request, within limits that hold while it comes: nothing that a client announces is trusted or allocated."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from .failures import RETRY, Refused
from .served import late
from .settings import Settings

__all__ = ["Bodies", "Client", "Gone"]

T = TypeVar("T")
Receive = Callable[[], Awaitable[Any]]


class Gone(Exception):
    """The client has closed the connection."""


class Client:
    """Watches, once a body was read, whether the client closes the connection. To be closed itself."""

    def __init__(self, receive: Receive) -> None:
        self._leaves = asyncio.ensure_future(_leaves(receive))

    async def stays(self, work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """The result of `work`, which is cancelled if the client goes, or after so many seconds.

        Raises:
            Gone: it has gone.
            TimeoutError: it has waited too long.
        """
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({self._leaves, task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Gone if self._leaves.done() or seconds is None else late(seconds)
            return task.result()
        finally:
            task.cancel()

    def close(self) -> None:
        """Watches no longer."""
        self._leaves.cancel()


async def _leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Bodies:
    """All bodies that one process holds, whose sum is limited too."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.held = 0

    async def read(self, receive: Receive, headers: dict[bytes, bytes]) -> bytes:
        """All of a body; its reader calls `free` with its length afterwards."""
        most = self._settings.max_body
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced[:20]) > most:  # refused before a byte of it is read
            raise _too_large(most)
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b"gzip", b"deflate"):
            raise Refused(415, f"content-encoding is {encoding.decode('latin-1')!r:.50}: expected gzip or deflate")
        parts: list[bytes] = []
        size = 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                part = message.get("body", b"")
                self._hold(len(part))
                size += len(part)
                if size > most:
                    raise _too_large(most)
                if part:
                    parts.append(part)
                if not message.get("more_body", False):
                    break
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            if encoding != b"identity":
                body = await asyncio.to_thread(_inflated, body, encoding == b"gzip", most)
                self._hold(len(body) - size)
                size = len(body)
        except BaseException:
            self.free(size)
            raise
        return body

    def _hold(self, size: int) -> None:
        if self.held + size > self._settings.max_bodies:
            raise Refused(503, "too many large requests at once: try again later", "bodies", RETRY)
        self.held += size

    def free(self, size: int) -> None:
        """A body of this length is no longer needed."""
        self.held -= size


def _too_large(most: int) -> Refused:
    return Refused(413, f"the body is too large: expected at most {most} bytes", "too large")


def _inflated(body: bytes, gzip: bool, most: int) -> bytes:
    machine = zlib.decompressobj(31 if gzip else 15)
    try:
        found = machine.decompress(body, most + 1)
    except zlib.error as error:
        raise Refused(400, f"the body is not compressed as it says: {error!s:.100}") from None
    if len(found) > most:
        raise _too_large(most)
    if not machine.eof or machine.unused_data:
        raise Refused(400, "the body is not compressed as it says: it ends too early or too late")
    return found

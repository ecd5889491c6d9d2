"""uvicorn's HTTP protocol with bounds on what one connection may cost; uvicorn has none on receiving or on unread answers.

A request's head has a size, a request a time from its first byte to its last, an answer a time until it is read, and there are
only so many connections. A client that exceeds one gets a status if nothing was answered yet, and is cut off.
"""

from __future__ import annotations

import json
from asyncio import BaseTransport, TimerHandle
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .metrics import Metrics
from .settings import Settings

__all__ = ["protocol"]


def protocol(settings: Settings, metrics: Metrics) -> type[HttpToolsProtocol]:
    """The class of connections of a server with these limits."""
    return type("Connection", (_Connection,), {"settings": settings, "metrics": metrics})


class _Connection(HttpToolsProtocol):  # type: ignore[misc]  # untyped where it is not installed
    settings: ClassVar[Settings]
    metrics: ClassVar[Metrics]

    _head = 0  # bytes of the head, or of what follows the last chunk
    _in_head = True
    _receiving: TimerHandle | None = None
    _sending: TimerHandle | None = None

    # ---- what happens to it -----------------------------------------------------------------------------------------

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.metrics.gauge("connections", len(self.connections))
        if len(self.connections) > self.settings.connections:
            self._answer(503, "too many connections: try again later", "connections")
        else:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        if self._sending is not None:
            self._sending.cancel()
        super().connection_lost(exc)
        self.metrics.gauge("connections", len(self.connections))

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._receiving is None and not self._answering():
            self._expect()
        if self._in_head:
            self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > self.settings.max_head and not self.transport.is_closing():
            self._answer(431, f"the head of the request is too large: expected at most {self.settings.max_head} bytes", "head")

    def on_header(self, name: bytes, value: bytes) -> None:
        # Of trailers too, which come after a body and would gather without an end.
        if not self._in_head:
            self._head += len(name) + len(value)
            if self._head > self.settings.max_head:
                raise ValueError("trailers are too large")
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._head = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._stop()
        self._in_head, self._head = True, 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size() and self._sending is None:
            self._sending = self.loop.call_later(self.settings.send_timeout, self._unread)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._sending is None:  # in the middle of a stream too
            self._sending = self.loop.call_later(self.settings.send_timeout, self._unread)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._sending is not None and self.cycle is not None and not self.cycle.response_complete:
            self._sending.cancel()
            self._sending = None

    def send_400_response(self, msg: str) -> None:
        # The parser may have begun a request that now never ends.
        self._answer(400, msg, "malformed")

    # ---- bounds -----------------------------------------------------------------------------------------------------

    def _answering(self) -> bool:
        """Whether what comes now is of a later request than the one that is being answered."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def _expect(self) -> None:
        self._stop()
        self._receiving = self.loop.call_later(self.settings.receive_timeout, self._late)

    def _stop(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _late(self) -> None:
        self._receiving = None
        if self.transport.is_closing():
            self.transport.abort()
        elif self._in_head and not self._head:  # connected, and never said a word
            self.metrics.cut("silent")
            self.transport.close()
        else:
            self._answer(408, f"the request was not received within {self.settings.receive_timeout:g} seconds", "receiving")

    def _unread(self) -> None:
        self._sending = None
        if self.transport.get_write_buffer_size():
            self.metrics.cut("unread")
            self.transport.abort()

    def _answer(self, status: int, message: str, reason: str) -> None:
        """Answers in the application's place, unless it has begun to, and closes."""
        self.metrics.cut(reason)
        self._stop()
        self._unset_keepalive_if_required()
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            body = json.dumps({"error": message}).encode()
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
            self.metrics.responded(status)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # the application is told that the client is gone
            cycle.message_event.set()
        self.transport.close()
        if self._sending is None:
            self._sending = self.loop.call_later(self.settings.send_timeout, self._unread)

"""The paths of the protocol, as an ASGI application.

There are some twenty, so a table serves: what stands between the slashes is looked up, decoded, in dictionaries, and never
becomes a path of the file system.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import unquote_to_bytes

from .._version import __version__
from ..errors import Error
from . import logs
from .body import Bodies, Gone
from .described import config_of, metadata_of
from .failures import Refused, nothing, only, refusal
from .fields import described
from .inference import Inference
from .metrics import Metrics
from .openai import OpenAI
from .page import HEADERS as PAGE_HEADERS
from .page import PAGE
from .repository import Repository
from .scheduler import Scheduler
from .served import Served
from .settings import Settings
from .shared import Shared
from .wire import JSON, document, said

__all__ = ["App"]

Headers = tuple[tuple[bytes, bytes], ...]
Body = bytes | AsyncIterator[bytes]  # all of it, or its parts as they are made
Response = tuple[int, Headers, Body]
EXTENSIONS = ["binary_tensor_data", "model_configuration", "model_repository", "sequence", "statistics"]
MOST_SMALL = 64 << 10  # bytes of the body of anything but inference


class Request:
    """Fields of a request's scope, and the figures that the log reports of it afterwards."""

    __slots__ = ("began", "headers", "inner", "model", "parts", "path", "receive", "rows", "size", "verb")

    def __init__(self, scope: Any, receive: Any) -> None:
        self.began = time.monotonic()
        self.verb: str = scope["method"]
        self.path: bytes = scope["raw_path"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        # From another worker, over its socket, which has no port.
        self.inner = scope["server"] is None or scope["server"][1] is None
        self.receive = receive
        # Split before it is decoded: an encoded slash is part of a name.
        self.parts = [unquote_to_bytes(part).decode("utf-8", "replace") for part in self.path.strip(b"/").split(b"/")]
        self.model: Served | None = None
        self.size = self.rows = 0


class App:
    """One worker's answers to requests."""

    def __init__(
        self, settings: Settings, repository: Repository, metrics: Metrics, threads: int, shared: Shared | None = None
    ) -> None:
        self._settings, self._repository, self._metrics, self._shared = settings, repository, metrics, shared
        self._bodies = Bodies(settings)
        self._scheduler = Scheduler(threads, settings.queue, metrics)
        self._inference = Inference(settings, metrics, self._bodies, self._scheduler, shared)
        self._openai = OpenAI(settings, metrics, self._bodies, self._scheduler, repository)
        self._following = asyncio.Lock()
        self._fixed: dict[tuple[str, ...], Callable[[], Response]] = {
            ("v2", "health", "live"): lambda: said(200, {"live": True}),
            ("v2", "health", "ready"): self._ready,
            ("v2",): lambda: said(200, {"name": "fastlayers", "version": __version__, "extensions": EXTENSIONS}),
            ("v2", "models"): lambda: said(200, {"models": sorted({served.name for served in repository.every()})}),
            ("v2", "models", "stats"): lambda: said(200, {"model_stats": metrics.statistics(repository.every())}),
            ("metrics",): self._text,
        }
        if settings.page:
            self._fixed[("",)] = lambda: (200, PAGE_HEADERS, PAGE)
        self.stopping = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI's entrance."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            status, headers, body = await self._respond(request)
        except Gone:
            self._metrics.refused("client gone")
            return
        except Exception as error:
            refused = refusal(error)
            if not isinstance(error, (Refused, Error)):
                logs.failed("a request failed", error)
            self._metrics.refused(refused.reason)
            v1 = request.parts[0] == "v1"
            status, headers, body = said(
                refused.status, {"error": described(refused) if v1 else refused.message}, refused.headers
            )
        self._metrics.responded(status)
        if self.stopping:
            headers = (*headers, (b"connection", b"close"))
        if isinstance(body, bytes):
            size = len(body)
            headers = (*headers, (b"content-length", b"%d" % size))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        else:
            size = await self._stream(send, status, headers, body)
        if self._settings.log == "requests" and not request.inner:
            _log(request, status, size)

    async def _stream(self, send: Any, status: int, headers: Headers, body: AsyncIterator[bytes]) -> int:
        """Sends parts of a body as they are made; their bytes. Ends them when the client has gone."""
        size = 0
        try:
            await send({"type": "http.response.start", "status": status, "headers": headers})
            async for part in body:
                size += len(part)
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except Gone:
            self._metrics.refused("client gone")
        finally:
            await body.aclose()  # type: ignore[attr-defined]
        return size

    # ---- what a path means ------------------------------------------------------------------------------------------

    async def _respond(self, request: Request) -> Response:
        parts = request.parts
        if parts[0] == "v1":
            await self._follow()
            return await self._openai.answer(request)
        if parts[:2] == ["v2", "models"] and len(parts) > 3 and parts[-1] == "infer":
            only(request, "POST")
            name, version = _model(request, parts[2:-1])
            await self._follow()
            served = request.model = self._repository.find(name, version)
            return await self._inference.answer(request, served)
        found = self._fixed.get(tuple(parts))
        if found is None and parts[:2] == ["v2", "models"]:
            word = parts[-1] if len(parts) > 3 and parts[-1] in ("ready", "stats", "config") else ""
            name, version = _model(request, parts[2 : len(parts) - bool(word)])
            only(request, "GET", "HEAD")
            await self._follow()
            return self._about(word, name, version)
        if found is not None:
            only(request, "GET", "HEAD")
            await self._follow()
            return found()
        if parts[:2] == ["v2", "repository"]:
            only(request, "POST")
            await self._follow()
            return await self._manage(request)
        raise nothing(request)

    def _ready(self) -> Response:
        good = self._repository.ready() and not self.stopping
        return said(200 if good else 503, {"ready": good})

    def _text(self) -> Response:
        self.gauge()
        return 200, ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),), self._metrics.text()

    def _about(self, word: str, name: str, version: str | None) -> Response:
        served = self._repository.find(name, version)
        if word == "ready":
            good = not self.stopping
            return said(200 if good else 503, {"name": name, "ready": good})
        if word == "config":
            return said(200, config_of(served))
        if word == "stats":
            chosen = [s for s in self._repository.every() if s.name == name and version in (None, s.version)]
            return said(200, {"model_stats": self._metrics.statistics(chosen)})
        return said(200, metadata_of(served, self._repository.versions(name)))

    # ---- the repository ---------------------------------------------------------------------------------------------

    async def _manage(self, request: Request) -> Response:
        parts = request.parts[2:]
        body = await self._bodies.read(request.receive, request.headers)
        self._bodies.free(len(body))
        asked = document(body, MOST_SMALL) if body else {}
        if parts == ["index"]:
            index = await asyncio.to_thread(self._repository.index)
            return said(200, [entry for entry in index if not asked.get("ready") or entry["state"] == "READY"])
        if len(parts) != 3 or parts[0] != "models" or parts[2] not in ("load", "unload"):
            raise nothing(request)
        if not self._settings.control:
            raise Refused(403, f"to {parts[2]} models is not allowed: the server was started without --control", "not allowed")
        given = asked.get("parameters") or {}
        if unknown := [key for key in given if key != "unload_dependents"]:
            raise Refused(
                400, f"{parts[2]}: parameters has {unknown[0]!r:.50}: models are those of the folder, as they are there"
            )
        await asyncio.to_thread(self._repository.load if parts[2] == "load" else self._repository.unload, parts[1])
        if self._shared is not None:
            self._shared.publish(parts[1], parts[2])
        return 200, JSON, b""

    async def _follow(self) -> None:
        """Loads and unloads what another worker was asked to."""
        shared = self._shared
        if shared is None or not (shared.changed() or self._following.locked()):
            return
        # Who comes while another request of this worker loads waits for it: news are known before they are done.
        async with self._following:
            for name, action in shared.news().items():
                await asyncio.to_thread(self._repeat, name, action)

    def _repeat(self, name: str, action: str) -> None:
        try:
            (self._repository.load if action == "load" else self._repository.unload)(name)
        except Refused as refused:  # the folder has changed since
            logs.event("model failed", level="error", model=name, why=refused.message)

    # ---- from time to time ------------------------------------------------------------------------------------------

    def gauge(self) -> None:
        """Sets what is measured rather than counted."""
        self._metrics.gauge("requests_in_flight", self._scheduler.count)
        self._metrics.gauge("completions_in_flight", self._openai.growing)
        self._metrics.gauge("cache_bytes", self._openai.cached)
        self._metrics.gauge("sequences", self._inference.sequences)
        self._metrics.gauge("receiving_bytes", self._bodies.held)

    def tick(self) -> None:
        """Every second or so: forgets idle sequences."""
        self._inference.tick()
        self.gauge()

    def close(self) -> None:
        """After the last request."""
        self._scheduler.close()


def _model(request: Request, parts: list[str]) -> tuple[str, str | None]:
    """A model's name and version, of what follows ``v2/models``."""
    if len(parts) == 3 and parts[1] == "versions":
        return parts[0], parts[2]
    if len(parts) != 1:
        raise nothing(request)
    return parts[0], None


def _log(request: Request, status: int, size: int) -> None:
    model = {} if request.model is None else {"model": request.model.name, "version": request.model.version, "rows": request.rows}
    logs.event(
        "request", verb=request.verb, path=request.path[:200].decode("latin-1"), status=status,
        ms=round(1000 * (time.monotonic() - request.began), 3), received=request.size, sent=size, **model,
    )  # fmt: skip

"""Paths below ``/v1``: text models, as OpenAI's clients ask for them, and ``/v1/rerank`` as Cohere's and Jina's do."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..text import CrossEncoder, Encoder, Generator
from .body import Bodies, Client, Gone
from .completions import Completions
from .failures import nothing, only, refusal
from .fields import Fields, Invalid, prompts_of, shown
from .metrics import Metrics
from .repository import Repository
from .scheduler import Job, Scheduler
from .served import Served
from .settings import Settings
from .texts import Work, embedded, ranked
from .wire import JSON, document, said

if TYPE_CHECKING:
    from .app import Request, Response

__all__ = ["OpenAI"]

FEW = 1 << 15  # bytes that are parsed in the event loop's thread
# Fields that change nothing, or nothing with these values.
_EMBEDDINGS = {"user": None, "truncate_prompt_tokens": (-1,)}
_RERANK = {"user": None, "priority": None, "max_chunks_per_doc": (1,), "truncation": (True,)}


class OpenAI:
    """Endpoints of one worker."""

    def __init__(
        self, settings: Settings, metrics: Metrics, bodies: Bodies, scheduler: Scheduler, repository: Repository
    ) -> None:
        self._settings, self._metrics, self._bodies = settings, metrics, bodies
        self._scheduler, self._repository = scheduler, repository
        self._completions = Completions(settings, metrics, scheduler)
        self._endpoints: dict[str, tuple[type, Callable[..., Any]]] = {
            "embeddings": (Encoder, self._embeddings),
            "rerank": (CrossEncoder, self._rerank),
            "completions": (Generator, self._completions.texts),
            "chat/completions": (Generator, self._completions.chat),
        }

    @property
    def growing(self) -> int:
        """Completions that wait or run."""
        return self._completions.count

    @property
    def cached(self) -> int:
        """Bytes of decoders' caches, those of earlier prompts among them."""
        found = [one.text for one in self._repository.every() if isinstance(one.text, Generator)]
        return sum(one._running.nbytes + (one._prefixes.nbytes if one._prefixes is not None else 0) for one in found)

    async def answer(self, request: Request) -> Response:
        """The answer.

        Raises:
            Refused: it cannot be answered, with what the client is told.
            Gone: the client has left.
        """
        parts = request.parts[1:]
        if parts[:1] == ["models"]:
            only(request, "GET", "HEAD")
            return self._models("/".join(parts[1:]))
        name = "/".join(parts)
        if name not in self._endpoints:
            raise nothing(request)
        only(request, "POST")
        self._scheduler.admit()  # a full queue is no reason to read a body
        body = await self._bodies.read(request.receive, request.headers)
        request.size = len(body)
        try:
            return await self._asked(request, name, body)
        except Gone:
            raise
        except Exception as error:
            if request.model is not None:
                self._metrics.failed(request.model, time.monotonic() - request.began, refusal(error).reason)
            raise
        finally:
            self._bodies.free(request.size)

    async def _asked(self, request: Request, name: str, body: bytes) -> Response:
        most = self._settings.max_json
        fields = Fields(document(body, most) if len(body) <= FEW else await asyncio.to_thread(document, body, most))
        model = fields.text("model", fields.need("model"))
        served = self._repository.find(model, None)
        kind, endpoint = self._endpoints[name]
        if not isinstance(served.text, kind):
            raise Invalid("model", f"{model!r} is not served at /v1/{name}: {self._elsewhere(served)}", "unsupported_model")
        request.model = served
        found: Response = await endpoint(request, served, fields)
        return found

    def _elsewhere(self, served: Served) -> str:
        """The paths of a model."""
        if isinstance(served.text, str):
            return f"only under /v2, for {served.text}"
        paths = [f"/v1/{name}" for name, (kind, _) in self._endpoints.items() if isinstance(served.text, kind)]
        return f"its kind is {type(served.text).__name__}: {' and '.join(paths) or '/v2'}"

    def _models(self, name: str) -> Response:
        def about(served: Served) -> dict[str, Any]:
            return {"id": served.name, "object": "model", "created": served.created, "owned_by": "fastlayers"}

        if name:
            return said(200, about(self._repository.find(name, None)))
        kinds = tuple(kind for kind, _ in self._endpoints.values())
        found = {served.name: about(served) for served in self._repository.every() if isinstance(served.text, kinds)}
        return said(200, {"object": "list", "data": list(found.values())})

    async def _run(self, request: Request, served: Served, rows: int, function: Callable[[], Any]) -> Any:
        """The result of a function that runs as a job."""
        seconds, received = self._settings.timeout, time.monotonic()
        work = Work(function, seconds)
        job = Job(served, {}, seconds, received + seconds, work)
        request.rows = job.rows = rows
        client = Client(request.receive)
        try:
            found = await client.stays(self._scheduler.do(job))
        finally:
            work.gone = True
            client.close()
        now = time.monotonic()
        parts = (job.began - job.arrived, job.arrived - received, job.ended - job.began, now - job.ended)
        self._metrics.answered(served, rows, now - request.began, parts)
        return found

    def _texts(self, count: int, name: str) -> None:
        if count > self._settings.max_texts:
            raise Invalid(name, f"has {count} texts: expected at most {self._settings.max_texts} (--max-texts)", "too_many")

    # ---- embeddings -------------------------------------------------------------------------------------------------

    async def _embeddings(self, request: Request, served: Served, fields: Fields) -> Response:
        texts = prompts_of(fields, "input")
        self._texts(len(texts), "input")
        prompt_name = fields.take("prompt_name")
        if prompt_name is not None:
            fields.text("prompt_name", prompt_name)
        dimensions = fields.integer("dimensions", 1)
        form = fields.take("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise fields.invalid("encoding_format", f"got {shown(form)}: expected 'float' or 'base64'")
        fields.ends(_EMBEDDINGS)
        most = self._settings.max_json // 8

        def work() -> tuple[list[str], int]:
            vectors, written, count = embedded(served.text, texts, prompt_name, form == "base64")
            if dimensions not in (None, vectors.shape[1]):
                raise Invalid("dimensions", f"got {dimensions}: the model's vectors have {vectors.shape[1]}")
            if form == "float" and vectors.size > most:
                raise Invalid("encoding_format", f"{vectors.size} numbers are too many for JSON: ask for base64")
            return written, count

        written, count = await self._run(request, served, len(texts), work)
        data = ",".join(f'{{"object":"embedding","index":{i},"embedding":{one}}}' for i, one in enumerate(written))
        usage = {"prompt_tokens": count, "total_tokens": count}
        rest = json.dumps({"model": served.name, "usage": usage}, separators=(",", ":"))
        return 200, JSON, f'{{"object":"list","data":[{data}],{rest[1:]}'.encode()

    # ---- rerank -----------------------------------------------------------------------------------------------------

    async def _rerank(self, request: Request, served: Served, fields: Fields) -> Response:
        query = fields.text("query", fields.need("query"))
        documents = fields.need("documents")
        if not isinstance(documents, list) or not documents:
            raise fields.invalid("documents", f"got {shown(documents)}: expected a list of texts")
        self._texts(len(documents), "documents")
        texts = []
        for i, one in enumerate(documents):
            if isinstance(one, dict) and set(one) == {"text"}:
                one = one["text"]
            texts.append(fields.text(f"documents[{i}]", one))
        most, whole = fields.integer("top_n", 1), fields.flag("return_documents")
        fields.ends(_RERANK)
        found, count = await self._run(request, served, len(texts), lambda: ranked(served.text, query, texts, most))
        results = [
            {"index": one["corpus_id"], "relevance_score": one["score"], **({"document": {"text": one["text"]}} if whole else {})}
            for one in found
        ]
        usage = {"prompt_tokens": count, "total_tokens": count}
        return said(200, {"id": f"rerank-{uuid.uuid4().hex}", "model": served.name, "results": results, "usage": usage})

"""Completions of prompts and of messages, whole or as server-sent events."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ..errors import Error
from . import logs
from .body import Client, Gone
from .failures import Refused, refusal
from .fields import Fields, Invalid, described, prompts_of, shown
from .metrics import Metrics
from .scheduler import Job, Scheduler
from .served import Served
from .settings import Settings
from .texts import Batch, Growth, Work
from .wire import said, written

if TYPE_CHECKING:
    from .app import Request, Response

__all__ = ["Completions"]

EVENTS = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store"))
FEW = 16  # tokens that follow a prompt, unless a request says how many
_MOST_STOPS, _LONGEST_STOP, _MOST_TOP = 16, 1000, 20
_LEAST = 1e-5  # temperatures below are 0: logits that are divided by less are beyond all numbers
# Fields that change nothing, or nothing with these values.
_BOTH: dict[str, tuple[Any, ...] | None] = {
    "user": None, "n": (1,), "frequency_penalty": (0, 0.0), "presence_penalty": (0, 0.0), "logit_bias": ({},),
}  # fmt: skip
_TEXTS = {**_BOTH, "best_of": (1,), "echo": (False,), "suffix": ("",)}
_CHAT = {
    **_BOTH, "metadata": None, "service_tier": None, "safety_identifier": None, "prompt_cache_key": None,
    "prompt_cache_retention": None, "store": (False,), "tools": ([],), "functions": ([],), "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"), "parallel_tool_calls": (False, True), "response_format": ({"type": "text"},),
    "modalities": (["text"],),
}  # fmt: skip


class Completions:
    """Endpoints of text that follows, of one worker."""

    def __init__(self, settings: Settings, metrics: Metrics, scheduler: Scheduler) -> None:
        self._settings, self._metrics, self._scheduler = settings, metrics, scheduler
        self.count = 0

    async def texts(self, request: Request, served: Served, fields: Fields) -> Response:
        """``/v1/completions``."""
        prompts = prompts_of(fields, "prompt")
        if len(prompts) > (most := min(self._settings.max_texts, self._settings.max_tokens)):
            raise fields.invalid("prompt", f"has {len(prompts)} prompts: expected at most {most} (--max-texts, --max-tokens)")
        logprobs = fields.integer("logprobs", 0, _MOST_TOP)
        how = self._how(fields, ("max_tokens",), len(prompts), FEW)
        return await self._answer(request, served, fields, _Texts(served, logprobs, len(prompts)), prompts, {}, how)

    async def chat(self, request: Request, served: Served, fields: Fields) -> Response:
        """``/v1/chat/completions``."""
        messages = _messages(fields)
        if served.text._template is None:
            raise Invalid("messages", f"the folder of {served.name!r} has no chat template: use /v1/completions", "no_template")
        logprobs, top = fields.flag("logprobs"), fields.integer("top_logprobs", 0, _MOST_TOP)
        if top is not None and not logprobs:
            raise fields.invalid("top_logprobs", "is there without logprobs: expected true there")
        how = self._how(fields, ("max_completion_tokens", "max_tokens"), 1, self._settings.max_tokens)
        shape = _Chat(served, top or 0 if logprobs else None, 1)
        return await self._answer(request, served, fields, shape, [tuple(messages)], _variables(fields), how)

    def _how(self, fields: Fields, names: tuple[str, ...], count: int, few: int) -> dict[str, Any]:
        """Arguments of `Generator.generate`."""
        most = self._settings.max_tokens
        given = {name: tokens for name in names if (tokens := fields.integer(name, 1)) is not None}
        for name, tokens in given.items():
            if tokens * count > most:
                told = "" if count == 1 else f" for each of {count} prompts"
                raise fields.invalid(name, f"got {tokens}{told}: expected at most {most} in all (--max-tokens)")
        how: dict[str, Any] = {"max_tokens": next(iter(given.values()), min(few, most // count)), "stop": _stops(fields)}
        temperature = fields.number("temperature", 0, 2)
        how["temperature"] = 1.0 if temperature is None else temperature if temperature >= _LEAST else 0.0
        how["ignore_eos"] = fields.flag("ignore_eos")
        others = {name: fields.integer(name, 0) for name in ("top_k", "seed")}
        numbers = {name: fields.number(name, 0, 1) for name in ("top_p", "min_p")}
        penalty = {"repetition_penalty": fields.number("repetition_penalty", 0.01, 100)}
        return how | {name: value for name, value in {**others, **numbers, **penalty}.items() if value is not None}

    async def _answer(
        self, request: Request, served: Served, fields: Fields, shape: _Shape, prompts: list[Any], variables: dict[str, Any],
        how: dict[str, Any],
    ) -> Response:  # fmt: skip
        stream, options = fields.flag("stream"), fields.below("stream_options")
        usage = False
        if options is not None:
            usage = options.flag("include_usage")
            options.ends({"include_obfuscation": (False, True)})
            if not stream:
                raise fields.invalid("stream_options", "is there without stream: expected true there")
        fields.ends(shape.harmless)
        request.rows = len(prompts)
        growth = Growth(served.text, prompts, variables, {**how, "logprobs": shape.logprobs}, self._settings.max_prompt)
        steps = self._steps(request, served, growth)
        if not stream:
            async with aclosing(steps):
                async for events in steps:
                    shape.add(events)
            return said(200, shape.whole(growth.tokens))
        try:
            first = await anext(steps)  # what is wrong is found by now, and answered with a status
        except BaseException:
            await steps.aclose()
            raise
        return 200, EVENTS, self._sent(request, served, _parts(shape, growth, first, steps, usage))

    async def _sent(self, request: Request, served: Served, parts: Any) -> AsyncIterator[bytes]:
        """Server-sent events; an error that comes after the first is one too, for the status is sent."""
        async with aclosing(parts):
            try:
                async for part in parts:
                    yield part
            except Gone:
                raise
            except Exception as error:
                refused = refusal(error)
                if not isinstance(error, (Refused, Error)):
                    logs.failed("a request failed", error)
                self._metrics.refused(refused.reason)
                self._metrics.failed(served, time.monotonic() - request.began, refused.reason)
                yield _event({"error": described(refused)})

    async def _steps(self, request: Request, served: Served, growth: Growth) -> AsyncGenerator[list[Any], None]:
        """The events of a completion, as they are made. It has a place in the queue until all are made, or this is closed."""
        seconds, received = self._settings.timeout, time.monotonic()
        work, client = Work(growth.begin, seconds), Client(request.receive)
        batch = served.batch = served.batch or Batch(served, self._scheduler)
        self.count += 1
        first: float | None = None
        try:
            with self._scheduler.place():
                job = Job(served, {}, seconds, received + seconds, work)
                await client.stays(self._scheduler.part(job))
                batch.join(growth)
                while not growth.done:
                    events = await client.stays(batch.next(growth), seconds)
                    made = sum(event.token is not None for event in events)
                    if first is None:
                        self._metrics.grew(served, "prompt", growth.tokens)
                    if made or first is None:
                        self._metrics.grew(served, "completion", made, None if first else time.monotonic() - request.began)
                    first = time.monotonic()
                    yield events
            taken, ran = time.monotonic() - request.began, growth.ran
            self._metrics.answered(served, request.rows, taken, (max(taken - ran, 0.0), 0.0, ran, 0.0))
        finally:
            self.count -= 1
            work.gone = True
            client.close()
            batch.leave(growth)


async def _parts(shape: _Shape, growth: Growth, first: list[Any], steps: Any, usage: bool) -> AsyncIterator[bytes]:
    """The parts of a stream, to its end."""
    async with aclosing(steps):
        for piece in shape.begin():
            yield _event(shape.chunk(piece, usage))
        events: list[Any] | None = first
        while events is not None:
            pieces = [_event(shape.chunk(piece, usage)) for event in events for piece in shape.pieces(event)]
            if pieces:
                yield b"".join(pieces)
            events = await anext(steps, None)
    if usage:
        yield _event({**shape.head(), "choices": [], "usage": shape.usage(growth.tokens)})
    yield b"data: [DONE]\n\n"


def _event(value: Any) -> bytes:
    return f"data: {written(value)}\n\n".encode()


# ---- shapes of answers --------------------------------------------------------------------------------------------------


class _Shape:
    """Shape of an answer, whole and in pieces.

    Args:
        logprobs: how many of the most probable tokens are told; None: not even the token's own probability.
        count: prompts.
    """

    harmless: dict[str, tuple[Any, ...] | None]
    kind = prefix = ""

    def __init__(self, served: Served, logprobs: int | None, count: int) -> None:
        self.logprobs, self._generator = logprobs, served.text
        self._head = {"id": f"{self.prefix}-{uuid.uuid4().hex}", "object": self.kind, "created": int(time.time()),
                      "model": served.name}  # fmt: skip
        self._texts: list[list[str]] = [[] for _ in range(count)]
        self._lengths = [0] * count  # characters so far
        self._entries: list[list[Any]] = [[] for _ in range(count)]  # of probabilities
        self._finish: list[str | None] = [None] * count
        self._tokens = 0

    def head(self) -> dict[str, Any]:
        """Fields of every part of an answer."""
        return self._head

    def chunk(self, choice: dict[str, Any], usage: bool) -> dict[str, Any]:
        """A part of a stream."""
        return {**self.head(), "choices": [choice], **({"usage": None} if usage else {})}

    def usage(self, prompt: int) -> dict[str, int]:
        """Numbers of tokens."""
        return {"prompt_tokens": prompt, "completion_tokens": self._tokens, "total_tokens": prompt + self._tokens}

    def add(self, events: list[Any]) -> None:
        """Keeps events for the whole answer."""
        for event in events:
            self._texts[event.number].append(event.text)
            self._entries[event.number] += self._counted(event)
            self._finish[event.number] = event.finish

    def whole(self, prompt: int) -> dict[str, Any]:
        """The answer."""
        choices = [
            self._choice(i, "".join(texts), entries, finish)
            for i, (texts, entries, finish) in enumerate(zip(self._texts, self._entries, self._finish, strict=True))
        ]
        return {**self._head, "choices": choices, "usage": self.usage(prompt)}

    def begin(self) -> list[dict[str, Any]]:
        """Parts of a stream before the first token."""
        return []

    def pieces(self, event: Any) -> Iterator[dict[str, Any]]:
        """Parts of a stream that an event becomes."""
        raise NotImplementedError

    def _choice(self, i: int, text: str, entries: list[Any], finish: str | None) -> dict[str, Any]:
        raise NotImplementedError

    def _entry(self, event: Any) -> Any:
        raise NotImplementedError

    def _counted(self, event: Any) -> list[Any]:
        """The probabilities of an event, if they are asked for and it has any; its token and text are counted."""
        found = [] if event.token is None or self.logprobs is None else [self._entry(event)]
        self._tokens += event.token is not None
        self._lengths[event.number] += len(event.text)
        return found

    def _word(self, token: int) -> str:
        return str(self._generator._tokenizer.decode([token], False))


class _Texts(_Shape):
    harmless = _TEXTS
    kind, prefix = "text_completion", "cmpl"

    def pieces(self, event: Any) -> Iterator[dict[str, Any]]:
        entries = self._counted(event)
        if event.text or entries or event.finish:
            yield self._choice(event.number, event.text, entries, event.finish)

    def _choice(self, i: int, text: str, entries: list[Any], finish: str | None) -> dict[str, Any]:
        found = None
        if self.logprobs is not None:
            names = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
            found = {name: [entry[at] for entry in entries] for at, name in enumerate(names)}
        return {"index": i, "text": text, "logprobs": found, "finish_reason": finish}

    def _entry(self, event: Any) -> Any:
        top: dict[str, float] = {}
        for token, value in event.top.items():
            top.setdefault(self._word(token), value)  # of several that are parts of characters, the most probable
        return self._word(event.token), event.logprob, top, self._lengths[event.number]


class _Chat(_Shape):
    harmless = _CHAT
    kind, prefix = "chat.completion", "chatcmpl"

    def head(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk"}

    def begin(self) -> list[dict[str, Any]]:
        return [self._delta({"role": "assistant", "content": ""}, [], None)]

    def pieces(self, event: Any) -> Iterator[dict[str, Any]]:
        entries = self._counted(event)
        if event.text or entries:
            yield self._delta({"content": event.text}, entries, None)
        if event.finish:
            yield self._delta({}, [], event.finish)

    def _delta(self, delta: dict[str, Any], entries: list[Any], finish: str | None) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "logprobs": self._told(entries) if entries else None, "finish_reason": finish}

    def _choice(self, i: int, text: str, entries: list[Any], finish: str | None) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": i, "message": message, "logprobs": self._told(entries), "finish_reason": finish}

    def _told(self, entries: list[Any]) -> Any:
        return None if self.logprobs is None else {"content": entries, "refusal": None}

    def _entry(self, event: Any) -> Any:
        top = [self._token(token, value) for token, value in event.top.items()]
        return {**self._token(event.token, event.logprob), "top_logprobs": top}

    def _token(self, token: int, value: float) -> dict[str, Any]:
        word = self._word(token)
        return {"token": word, "logprob": value, "bytes": [*word.encode()]}


# ---- fields -------------------------------------------------------------------------------------------------------------


def _stops(fields: Fields) -> list[str]:
    value = fields.take("stop")
    found = [] if value is None else value if isinstance(value, list) else [value]
    if len(found) > _MOST_STOPS:
        raise fields.invalid("stop", f"has {len(found)} texts: expected at most {_MOST_STOPS}")
    for one in found:
        if not 1 <= len(fields.text("stop", one)) <= _LONGEST_STOP:
            raise fields.invalid("stop", f"got a text of {len(one)} characters: expected 1 to {_LONGEST_STOP}")
    return found


def _messages(fields: Fields) -> list[dict[str, str]]:
    """Messages whose contents are texts."""
    value = fields.need("messages")
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        raise fields.invalid("messages", f"got {shown(value)}: expected a list of objects with role and content")
    found = []
    for i, one in enumerate(value):
        below = Fields(one, f"messages[{i}].")
        made = {"role": below.text("role", below.need("role"))}
        content = below.need("content")
        if isinstance(content, list):
            parts = [
                Fields(part if isinstance(part, dict) else {}, f"messages[{i}].content[{j}].") for j, part in enumerate(content)
            ]
            for part in parts:
                if (kind := part.take("type")) != "text":
                    raise part.invalid("type", f"got {shown(kind)}: expected 'text'")
            content = "\n".join(part.text("text", part.need("text")) for part in parts)
            for part in parts:
                part.ends({})
        made["content"] = below.text("content", content)
        if (name := below.take("name")) is not None:
            made["name"] = below.text("name", name)
        below.ends({"refusal": (), "tool_calls": ([],)})
        found.append(made)
    return found


def _variables(fields: Fields) -> dict[str, Any]:
    """Variables of the chat template."""
    name = "chat_template_kwargs"
    value = fields.take(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(key.isidentifier() and key not in ("prompt", "self") for key in value):
        raise fields.invalid(name, f"got {shown(value)}: expected an object of the template's variables")
    fields.text(name, json.dumps(value, ensure_ascii=False))
    return value

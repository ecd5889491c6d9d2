"""OpenAI's own Python client as it is, on a server of text models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.text import Encoder, Generator
from tests.text import folders
from tests.text.test_generator import CHAT

from .servers import Server, serving

pytestmark = [pytest.mark.serve, pytest.mark.openai]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    folders.sentence_transformer(folder / "enc")
    folders.decoder(folder / "gen")
    return folder


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Server]:
    with serving(models, "--max-tokens", "500") as made:
        yield made


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    openai: Any = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"http://{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_models_and_embeddings(client: Any, models: Path) -> None:
    assert [model.id for model in client.models.list()] == ["enc", "gen"]
    assert client.models.retrieve("gen").owned_by == "fastlayers"
    want = Encoder(models / "enc").encode(["the cat", "the dog"])
    for more in ({}, {"encoding_format": "float"}):  # it asks for base64 by itself
        found = client.embeddings.create(model="enc", input=["the cat", "the dog"], **more)
        np.testing.assert_array_equal(np.array([one.embedding for one in found.data], np.float32), want)
    assert found.usage.total_tokens > 2


def test_completions(client: Any, models: Path) -> None:
    made = Generator(models / "gen")
    want = made.generate("the cat", 20, temperature=1.0, seed=3, logprobs=0)
    given: dict[str, Any] = {"model": "gen", "prompt": "the cat", "max_tokens": 20, "seed": 3}
    found = client.completions.create(**given)
    assert found.choices[0].text == want.text and found.choices[0].finish_reason == want.finish
    assert found.usage.completion_tokens == len(want.ids)
    assert "".join(part.choices[0].text for part in client.completions.create(**given, stream=True)) == want.text
    best = client.completions.create(**given, extra_body={"top_k": 1})
    assert best.choices[0].text == made.generate("the cat", 20)


def test_chat(client: Any, models: Path) -> None:
    want = Generator(models / "gen").generate(CHAT, 20, logprobs=1)
    given: dict[str, Any] = {"model": "gen", "messages": CHAT, "max_completion_tokens": 20, "temperature": 0}
    found = client.chat.completions.create(**given, logprobs=True, top_logprobs=1)
    assert found.choices[0].message.content == want.text and found.choices[0].finish_reason == want.finish
    assert [one.logprob for one in found.choices[0].logprobs.content] == want.logprobs
    parts = list(client.chat.completions.create(**given, stream=True, stream_options={"include_usage": True}))
    assert parts[0].choices[0].delta.role == "assistant" and parts[-1].usage == found.usage
    assert "".join(part.choices[0].delta.content or "" for part in parts[:-1]) == want.text


def test_errors_are_its_classes(client: Any) -> None:
    openai: Any = pytest.importorskip("openai")
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model="nobody", input="a")
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="expected an integer") as caught:
        client.completions.create(model="gen", prompt="a", max_tokens=0)
    assert caught.value.param == "max_tokens"
    with pytest.raises(openai.BadRequestError, match="tools: "):
        client.chat.completions.create(model="gen", messages=CHAT, tools=[{"type": "function", "function": {"name": "f"}}])


def test_many_clients_at_once(server: Server, models: Path) -> None:
    openai: Any = pytest.importorskip("openai")
    made = Generator(models / "gen")
    want = [made.generate(f"the cat {i}", 20, temperature=1.0, seed=i) for i in range(12)]

    async def run() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"http://{server.url}/v1", api_key="none") as client:

            async def one(i: int) -> str:
                given = {"model": "gen", "prompt": f"the cat {i}", "max_tokens": 20, "seed": i}
                return "".join([part.choices[0].text async for part in await client.completions.create(**given, stream=True)])

            return await asyncio.gather(*(one(i) for i in range(12)))

    assert asyncio.run(run()) == want


def test_what_is_not_supported_is_refused_by_its_name(client: Any) -> None:
    openai: Any = pytest.importorskip("openai")
    chat, texts, vectors = client.chat.completions.create, client.completions.create, client.embeddings.create
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    talk, text = {"model": "gen", "messages": CHAT}, {"model": "gen", "prompt": "the cat"}
    for call, given, name in (
        (chat, {**talk, "n": 2}, "n"), (chat, {**talk, "response_format": schema}, "response_format"),
        (chat, {**talk, "tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        (chat, {**talk, "logit_bias": {"5": 1}}, "logit_bias"), (chat, {**talk, "reasoning_effort": "low"}, "reasoning_effort"),
        (chat, {**talk, "top_logprobs": 2}, "top_logprobs"), (chat, {**talk, "audio": {}}, "audio"),
        (texts, {**text, "echo": True}, "echo"), (texts, {**text, "best_of": 2}, "best_of"),
        (texts, {**text, "suffix": "b"}, "suffix"), (texts, {**text, "n": 2}, "n"),
        (texts, {**text, "stream_options": {"include_usage": True}}, "stream_options"),
        (vectors, {"model": "enc", "input": "a", "dimensions": 5}, "dimensions"),
        (vectors, {"model": "enc", "input": []}, "input"),
    ):  # fmt: skip
        with pytest.raises(openai.BadRequestError) as caught:
            call(**given)
        assert caught.value.param == name and name in caught.value.message, given
    for call, given in ((chat, {**talk, "model": "enc"}), (vectors, {"model": "gen", "input": "a"})):
        with pytest.raises(openai.BadRequestError, match="is not served at") as caught:
            call(**given)
        assert caught.value.param == "model"
    for other in (lambda: client.responses.create(model="gen", input="a"), lambda: client.moderations.create(input="a")):
        with pytest.raises(openai.NotFoundError):
            other()


def test_fields_that_answers_depend_on(client: Any, models: Path) -> None:
    made = Generator(models / "gen")
    text = made.generate("the cat", 30)
    given: dict[str, Any] = {"model": "gen", "prompt": "the cat", "max_tokens": 30, "temperature": 0}
    found = client.completions.create(**given, logprobs=2).choices[0]
    assert found.text == text and len(found.logprobs.tokens) == len(found.logprobs.token_logprobs)
    assert all(1 <= len(top) <= 2 for top in found.logprobs.top_logprobs)
    stop = text[len(text) // 2 :][:3]
    for stops in (stop, [stop, "\0never"]):
        found = client.completions.create(**given, stop=stops).choices[0]
        assert (found.text, found.finish_reason) == (text[: text.index(stop)], "stop")
    parts = list(client.completions.create(**given, stream=True, stream_options={"include_usage": True}))
    assert parts[-1].choices == [] and parts[-1].usage.completion_tokens > 0 and not any(part.usage for part in parts[:-1])
    width = Encoder(models / "enc").encode("a").size
    vectors = client.embeddings.create(model="enc", input=[[5, 6], [7]], dimensions=width, encoding_format="base64")
    assert [type(one.embedding) for one in vectors.data] == [str, str] and vectors.usage.prompt_tokens == 3

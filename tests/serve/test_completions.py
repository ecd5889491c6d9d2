"""Completions over HTTP: the tokens of `Generator`, whole, streamed and beside others; and what ends them before their time."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import Graph
from fastlayers.serve.body import Client, Gone
from fastlayers.serve.texts import Growth, Work
from fastlayers.text import Generator
from tests.text import folders, networks
from tests.text.test_generator import CHAT, PROMPTS

from .servers import Server, serving

pytestmark = pytest.mark.serve

LONG = {"model": "long", "prompt": [f"the cat {i}" for i in range(8)], "max_tokens": 480, "ignore_eos": True}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    folders.decoder(folder / "gen")
    folders.decoder(folder / "short", max_position_embeddings=20)
    # Says that it has more positions than its table.
    folders.decoder(folder / "long", max_position_embeddings=4096)
    folders.decoder(folder / "roomy", max_position_embeddings=8192)
    folders.put(networks.decoder(300, most=8192), folder / "roomy" / "model.onnx")
    folders.decoder(folder / "broken")
    whole = networks.decoder(300)._graph
    spoilt = {name: array * np.float32("nan") if len(array.shape) == 2 else array for name, array in whole.constants.items()}
    folders.put(fl.Model(Graph(whole.inputs, whole.outputs, whole.nodes, spoilt)), folder / "broken" / "model.onnx")
    folders.decoder(folder / "plain", chat_template=None)
    folders.write_json(folder / "plain" / "tokenizer_config.json", {})
    return folder


@pytest.fixture(scope="module")
def generator(models: Path) -> Generator:
    return Generator(models / "gen")


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Server]:
    limits = ("--max-texts", "20", "--max-prompt", "600", "--max-tokens", "4000", "--send-timeout", "2", "--threads", "2")
    with serving(models, *limits) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left(server: Server) -> Iterator[None]:
    yield
    gauges = {"requests_in_flight": 0.0, "completions_in_flight": 0.0, "receiving_bytes": 0.0}
    until = time.monotonic() + 30
    while {name: value(server, name) for name in gauges} != gauges:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not server.noise and not server.events("log") and not server.events("a run failed"), server.lines[-5:]


def value(server: Server, name: str) -> float:
    """The sum of a metric."""
    text = server.ask("/metrics")[1].decode()
    return sum(float(number) for number in re.findall(rf"^fastlayers_{name}(?:{{.*?}})? (\S+)$", text, re.MULTILINE))


def ask(server: Server, name: str, **fields: Any) -> Any:
    status, found = server.ask(f"/v1/{name}", {"model": "gen", **fields})
    assert status == 200, found
    return found


def opened(server: Server, name: str, fields: dict[str, Any]) -> socket.socket:
    """A connection that has sent a request, whose answer ends with it."""
    made = server.connect()
    text = json.dumps(fields).encode()
    head = f"POST /v1/{name} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(text)}\r\n\r\n"
    made.sendall(head.encode() + text)
    return made


def read(made: socket.socket) -> bytes:
    found = b""
    with made:
        while data := made.recv(65536):
            found += data
    return found


def streamed(server: Server, name: str, **fields: Any) -> list[Any]:
    """The events of a stream, without the one that ends it."""
    head, _, body = read(opened(server, name, {"model": "gen", **fields, "stream": True})).partition(b"\r\n\r\n")
    assert b"200 OK" in head and b"text/event-stream" in head.lower()
    chunks, parts = b"", body
    while parts:
        size, _, rest = parts.partition(b"\r\n")
        chunks, parts = chunks + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    events = chunks.decode().split("\n\n")
    assert events[-1] == "" and all(event.startswith("data: ") for event in events[:-1])
    if events[-2] == "data: [DONE]":
        del events[-2]
    return [json.loads(event[6:]) for event in events[:-1]]


def strict(text: bytes | str) -> Any:
    """JSON as it is defined, without Python's words for what is no number."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


# ---- what comes back ----------------------------------------------------------------------------------------------------


def test_completions_are_those_of_the_generator(server: Server, generator: Generator) -> None:
    for how in ({"temperature": 0}, {"temperature": 1.5, "seed": 7}, {"seed": 3, "top_p": 0.9, "top_k": 40, "min_p": 0.01},
                {"temperature": 0, "repetition_penalty": 1.3, "stop": "the"}):  # fmt: skip
        for prompt in PROMPTS:
            want = generator.generate(prompt, 20, **{"temperature": 1.0, **how}, logprobs=0)
            found = ask(server, "completions", prompt=prompt, max_tokens=20, **how)
            (choice,) = found["choices"]
            assert (choice["text"], choice["finish_reason"]) == (want.text, want.finish) and choice["index"] == 0
            assert found["object"] == "text_completion" and found["model"] == "gen" and found["id"].startswith("cmpl-")
            n = len(generator.encode(prompt))
            usage = {"prompt_tokens": n, "completion_tokens": len(want.ids), "total_tokens": n + len(want.ids)}
            assert found["usage"] == usage
            events = streamed(server, "completions", prompt=prompt, max_tokens=20, **how)
            assert "".join(event["choices"][0]["text"] for event in events) == want.text
            assert [e["choices"][0]["finish_reason"] for e in events] == [None] * (len(events) - 1) + [want.finish]
            assert len({event["id"] for event in events}) == 1


def test_several_prompts_and_ids(server: Server, generator: Generator) -> None:
    ids = [generator.encode(prompt) for prompt in PROMPTS]
    want = generator.generate(PROMPTS, 10)
    for prompts in (PROMPTS, ids, [*PROMPTS[:3], *ids[3:]]):
        found = ask(server, "completions", prompt=prompts, max_tokens=10, temperature=0)
        assert [(one["index"], one["text"]) for one in found["choices"]] == [*enumerate(want)]
        assert found["usage"]["prompt_tokens"] == sum(map(len, ids))
        texts = [""] * len(prompts)
        for event in streamed(server, "completions", prompt=prompts, max_tokens=10, temperature=0):
            texts[event["choices"][0]["index"]] += event["choices"][0]["text"]
        assert texts == want
    assert ask(server, "completions", prompt=ids[0], max_tokens=10, temperature=0)["choices"][0]["text"] == want[0]


def test_defaults_are_openais(server: Server, generator: Generator) -> None:
    found = ask(server, "completions", prompt="the cat", seed=5)
    assert found["choices"][0]["text"] == generator.generate("the cat", 16, temperature=1.0, seed=5)
    drawn = {ask(server, "completions", prompt="the cat")["choices"][0]["text"] for _ in range(5)}
    assert len(drawn) > 1


def test_chat(server: Server, generator: Generator) -> None:
    want = generator.generate(CHAT, 20, logprobs=0)
    messages = [{"role": "system", "content": [{"type": "text", "text": CHAT[0]["content"]}]}, CHAT[1]]
    for name in ("max_tokens", "max_completion_tokens"):
        found = ask(server, "chat/completions", messages=messages, temperature=0, **{name: 20})
        assert found["object"] == "chat.completion" and found["choices"][0]["finish_reason"] == want.finish
        assert found["choices"][0]["message"] == {"role": "assistant", "content": want.text, "refusal": None}
        assert found["usage"]["completion_tokens"] == len(want.ids)
    fields = {"messages": messages, "temperature": 0, "max_tokens": 20, "stream_options": {"include_usage": True}}
    events = streamed(server, "chat/completions", **fields)
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert events[-1]["choices"] == [] and events[-1]["usage"] == found["usage"]
    assert all(event["usage"] is None for event in events[:-1])
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1]) == want.text
    assert events[-2]["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": want.finish}


def test_a_chat_goes_on_to_the_end_of_the_context_by_itself(server: Server) -> None:
    found = ask(server, "chat/completions", model="short", messages=CHAT[1:], ignore_eos=True)
    assert found["usage"]["total_tokens"] == 20 and found["choices"][0]["finish_reason"] == "length"


def test_variables_of_the_template(models: Path, tmp_path: Path) -> None:
    folder = folders.decoder(tmp_path / "gen")
    template = {"chat_template": "{% if brief %}the cat{% else %}the dog{% endif %}"}
    folders.write_json(folder / "tokenizer_config.json", template)
    made = Generator(folder)
    with serving(folder) as server:
        for variables, prompt in (({"brief": True}, "the cat"), ({}, "the dog"), (None, "the dog")):
            fields = {"messages": CHAT, "chat_template_kwargs": variables, "temperature": 0, "max_tokens": 10}
            found = ask(server, "chat/completions", **fields)["choices"][0]["message"]["content"]
            assert found == made.generate(made.encode(prompt)[1:], 10, logprobs=0).text


def test_probabilities(server: Server, generator: Generator) -> None:
    want = generator.generate("the cat", 6, logprobs=3)
    found = ask(server, "completions", prompt="the cat", max_tokens=6, logprobs=3, temperature=0)["choices"][0]
    words = [generator._tokenizer.decode([i], False) for i in want.ids]
    told = found["logprobs"]
    assert told["tokens"] == words and told["token_logprobs"] == want.logprobs
    assert [found["text"][at:][: len(word)] for at, word in zip(told["text_offset"], words, strict=True)] == words
    assert [max(top.values()) for top in told["top_logprobs"]] == [max(top.values()) for top in want.top]
    events = streamed(server, "completions", prompt="the cat", max_tokens=6, logprobs=3, temperature=0)
    assert [e["choices"][0]["logprobs"]["tokens"] for e in events] == [[word] for word in words]
    chat = generator.generate(CHAT, 6, logprobs=2)
    fields = {"messages": CHAT, "max_tokens": 6, "logprobs": True, "top_logprobs": 2, "temperature": 0}
    found = ask(server, "chat/completions", **fields)["choices"][0]["logprobs"]["content"]
    assert [one["logprob"] for one in found] == chat.logprobs
    assert [[top["logprob"] for top in one["top_logprobs"]] for one in found] == [[*top.values()] for top in chat.top]
    assert all(bytes(one["bytes"]).decode() == one["token"] for one in found)
    events = streamed(server, "chat/completions", **fields)
    assert [e["choices"][0]["logprobs"]["content"][0] for e in events if e["choices"][0]["logprobs"]] == found


def test_many_at_once_have_the_tokens_that_each_has_alone(server: Server, generator: Generator) -> None:
    prompts = [f"the {word} {i}" for i, word in enumerate(["cat", "dog", "question"] * 8)]
    want = [generator.generate(prompt, 30, temperature=1.0, seed=i) for i, prompt in enumerate(prompts)]
    found: dict[int, str] = {}

    def run(i: int) -> None:
        fields = {"prompt": prompts[i], "max_tokens": 30, "seed": i}
        if i % 2:
            found[i] = "".join(event["choices"][0]["text"] for event in streamed(server, "completions", **fields))
        else:
            found[i] = ask(server, "completions", **fields)["choices"][0]["text"]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(len(prompts))] == want


def test_a_short_one_does_not_wait_for_long_ones(server: Server) -> None:
    long = [opened(server, "completions", LONG) for _ in range(3)]
    while value(server, "completions_in_flight") < 3:
        time.sleep(0.01)
    ask(server, "completions", prompt="the cat", max_tokens=2)
    assert value(server, "completions_in_flight") == 3  # none of them is done
    for made in long:
        made.close()


def test_several_workers(models: Path, generator: Generator) -> None:
    want = generator.generate("the cat", 20, logprobs=0).text
    with serving(models, "--workers", "2", "--threads", "2") as server:
        for _ in range(12):  # on connections of their own, which either may get
            found = ask(server, "completions", prompt="the cat", max_tokens=20, temperature=0)
            assert found["choices"][0]["text"] == want
            events = streamed(server, "chat/completions", messages=CHAT, max_tokens=20, temperature=0)
            assert "".join(e["choices"][0]["delta"].get("content", "") for e in events) == generator.generate(CHAT, 20)
        assert value(server, "rows_total") == 24 and not server.noise


def test_tokens_are_counted(server: Server) -> None:
    before = {name: value(server, name) for name in ("tokens_total", "first_token_seconds_count", "rows_total")}
    usage = ask(server, "completions", prompt=["the cat", "the dog"], max_tokens=5)["usage"]
    after = {name: value(server, name) - before[name] for name in before}
    assert after == {"tokens_total": usage["total_tokens"], "first_token_seconds_count": 1, "rows_total": 2}
    assert 0 < value(server, "cache_bytes") < 256 << 20


# ---- what ends one before its time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_frees_its_place(server: Server, stream: bool) -> None:
    before = value(server, "refused_total")
    made = opened(server, "completions", {**LONG, "stream": stream})
    while value(server, "completions_in_flight") < 1:
        time.sleep(0.01)
    if stream:
        made.recv(100)
    made.close()
    until = time.monotonic() + 10
    while value(server, "completions_in_flight"):
        assert time.monotonic() < until
        time.sleep(0.02)
    made_so_far = value(server, "tokens_total")
    time.sleep(0.3)
    assert value(server, "tokens_total") == made_so_far
    assert value(server, "refused_total") == before + 1


def test_one_that_waits_for_room_goes_too(models: Path) -> None:
    with serving(models, "--completions", "1", "--timeout", "1", "--max-tokens", "8000") as server:
        longer = {"model": "roomy", "prompt": "the cat", "max_tokens": 8000, "ignore_eos": True}  # several seconds
        first = opened(server, "completions", longer)
        while value(server, "tokens_total") < 1:
            time.sleep(0.01)
        short = {**LONG, "model": "roomy"}
        second = opened(server, "completions", short)
        while value(server, "completions_in_flight") < 2:
            time.sleep(0.01)
        second.close()
        while value(server, "completions_in_flight") > 1:
            time.sleep(0.01)
        status, found = server.ask("/v1/completions", {**short, "max_tokens": 1})
        assert (status, found["error"]["type"]) == (504, "timeout_error")
        first.close()
        while value(server, "completions_in_flight"):
            time.sleep(0.01)
        assert server.ask("/v1/completions", {**short, "max_tokens": 1})[0] == 200


def test_a_full_queue_is_refused_and_one_that_has_begun_is_not(models: Path) -> None:
    with serving(models, "--queue", "1", "--max-tokens", "4000") as server:
        first = opened(server, "completions", {**LONG, "stream": True})
        assert first.recv(10)
        status, found = server.ask("/v1/completions", {**LONG, "max_tokens": 1})
        assert status == 503 and found["error"]["code"] == "queue_full"
        assert read(first).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


def test_a_stream_that_nobody_reads_is_dropped(server: Server) -> None:
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", server.port))
        probabilities = {"logprobs": True, "top_logprobs": 20, "max_tokens": 4000, "ignore_eos": True}  # some 10 MB
        text = json.dumps({"model": "roomy", "messages": CHAT, "stream": True, **probabilities}).encode()
        made.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(text) + text)
        until = time.monotonic() + 30
        while 'reason="unread"' not in server.ask("/metrics")[1].decode():
            assert time.monotonic() < until
            time.sleep(0.1)


def test_an_error_in_the_middle_of_a_stream_is_an_event(server: Server) -> None:
    """The network has 512 positions, and says that it has 4096."""
    fields = {"model": "long", "prompt": [5] * 400, "max_tokens": 300, "ignore_eos": True}
    *events, last = streamed(server, "completions", **fields)
    assert len(events) > 1 and set(last) == {"error"} and "out of range" in last["error"]["message"]
    status, found = server.ask("/v1/completions", fields)
    assert status == 400 and "out of range" in found["error"]["message"]


def test_what_is_closed_computes_no_more(generator: Generator) -> None:
    growth, running = Growth(generator, ["the cat", [5, 6]], {}, {"max_tokens": 400, "ignore_eos": True}, 100), generator._running
    growth.begin()
    assert growth.tokens == len(generator.encode("the cat")) + 2 and growth.take() == [] and not growth.done
    running.join(growth.sequences)
    assert running.step() and growth.take()
    while len(running._sequences) < 2:
        assert running.step()
    for one in growth.sequences:
        one.gone = True
    assert not running.step() and not running._sequences
    work = Work(Growth(generator, ["the cat"], {}, {}, 100).begin, 5)
    work.gone = True
    assert work(1.0) is None  # nothing that it runs takes long enough to be asked


def test_a_wait_ends_when_the_client_goes() -> None:
    async def run() -> list[str]:
        told: list[str] = []
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def work(seconds: float) -> int:
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                told.append("cancelled")
                raise
            return 3

        client = Client(receive)
        assert await client.stays(work(0)) == 3
        with pytest.raises(TimeoutError):
            await client.stays(work(60), 0.01)
        asyncio.get_running_loop().call_later(0.01, gone.set)
        with pytest.raises(Gone):
            await client.stays(work(60))
        await asyncio.sleep(0)
        client.close()
        return told

    assert asyncio.run(run()) == ["cancelled", "cancelled"]


# ---- what is wrong ------------------------------------------------------------------------------------------------------

TEXT, TALK = {"model": "gen", "prompt": "a"}, {"model": "gen", "messages": CHAT}
USER = {"role": "user", "content": "a"}
WRONG: list[tuple[str, dict[str, Any], str | None]] = [
    ("completions", {"model": "gen"}, "prompt"),
    *(("completions", {**TEXT, "prompt": wrong}, "prompt") for wrong in
      (3, [], {}, True, "\ud800", [-1], ["a"] * 21, [[5]] * 21, "the cat " * 600, [5] * 512)),
    ("completions", {**TEXT, "prompt": ["a", ["b"]]}, "prompt[1]"),
    ("completions", {**TEXT, "prompt": [299, 300]}, None),
    *(("completions", {**TEXT, name: wrong}, name) for name, wrong in (
        ("max_tokens", 0), ("max_tokens", -1), ("max_tokens", 4001), ("max_tokens", 10**40), ("max_tokens", 2.5),
        ("max_tokens", "8"), ("max_tokens", True), ("temperature", -1), ("temperature", 2.5), ("temperature", "hot"),
        ("temperature", float("nan")), ("temperature", float("inf")), ("temperature", 10**400), ("temperature", False),
        ("top_p", -0.1), ("top_p", 1.1), ("top_p", [1]), ("min_p", 2), ("top_k", -1), ("top_k", 1.0), ("seed", -1),
        ("seed", 2**63), ("repetition_penalty", 0), ("stop", 3), ("stop", ""), ("stop", ["a", 3]), ("stop", ["a"] * 17),
        ("stop", "a" * 1001),
        ("stop", {"a": 1}), ("stop", "\udc00"), ("stream", "yes"), ("stream", 1), ("logprobs", True), ("logprobs", -1),
        ("logprobs", 21), ("echo", True), ("n", 2), ("n", True), ("n", "1"), ("best_of", 2), ("suffix", "b"),
        ("logit_bias", {"5": 1}), ("frequency_penalty", 0.5), ("presence_penalty", -1),
        ("stream_options", {"include_usage": True}), ("stream_options", []),
        ("ignore_eos", "no"), ("messages", [USER]), ("max_completion_tokens", 3), ("anything", 1))),
    ("completions", {**TEXT, "stream": True, "stream_options": {"include_usage": 1}}, "include_usage"),
    ("completions", {**TEXT, "stream": True, "stream_options": {"other": 1}}, "stream_options.other"),
    ("completions", {**TEXT, "stream": True, "prompt": "the cat " * 600}, "prompt"),  # before the stream begins
    ("completions", {**TEXT, "prompt": ["a"] * 20, "max_tokens": 201}, "max_tokens"),
    *(("chat/completions", {**TALK, "messages": wrong}, "messages") for wrong in
      (None, [], {}, "a", [3], ["a"], [[USER]], [{**USER, "content": "the cat " * 600}])),
    ("chat/completions", {**TALK, "messages": [{"content": "a"}]}, "messages[0].role"),
    ("chat/completions", {**TALK, "messages": [USER, {**USER, "role": 3}]}, "messages[1].role"),
    ("chat/completions", {**TALK, "messages": [{"role": "user"}]}, "messages[0].content"),
    *(("chat/completions", {**TALK, "messages": [{**USER, "content": wrong}]}, "messages[0].content") for wrong in
      (None, 3, {}, "\ud800")),
    *(("chat/completions", {**TALK, "messages": [{**USER, "content": [wrong]}]}, "messages[0].content[0].type") for wrong in
      ("a", {}, {"type": "image_url", "image_url": {"url": "x"}}, {"type": ["text"]})),
    ("chat/completions", {**TALK, "messages": [{**USER, "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
    ("chat/completions", {**TALK, "messages": [{**USER, "tool_calls": [{}]}]}, "messages[0].tool_calls"),
    ("chat/completions", {**TALK, "messages": [{**USER, "name": 3}]}, "messages[0].name"),
    ("chat/completions", {**TALK, "model": "plain"}, "messages"),
    *(("chat/completions", {**TALK, name: wrong}, name) for name, wrong in (
        ("tools", [{"type": "function"}]), ("response_format", {"type": "json_object"}), ("reasoning_effort", "low"),
        ("logprobs", 3), ("top_logprobs", 2), ("modalities", ["audio"]), ("prompt", "a"), ("echo", False),
        ("chat_template_kwargs", []), ("chat_template_kwargs", {"prompt": 1}), ("chat_template_kwargs", {"a b": 1}),
        ("chat_template_kwargs", {"a": ["\ud800"]}))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fields", "param"), WRONG, ids=lambda given: f"{given!a:.60}")
def test_wrong_requests(server: Server, name: str, fields: dict[str, Any], param: str | None) -> None:
    status, found = server.ask(f"/v1/{name}", fields)
    assert status == 400, found
    error = found["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["type"] == "invalid_request_error"
    assert error["param"] == param or (param == "include_usage" and error["param"] == "stream_options.include_usage"), found
    assert len(error["message"]) < 2000


def test_harmless_fields_are_taken(server: Server) -> None:
    same = {"n": 1, "user": "me", "frequency_penalty": 0.0, "presence_penalty": 0, "logit_bias": {}, "stop": None, "seed": 1}
    a = ask(server, "completions", prompt="the cat", best_of=1, echo=False, suffix=None, **same)
    assert a["choices"][0]["text"] == ask(server, "completions", prompt="the cat", seed=1)["choices"][0]["text"]
    more = {"tools": [], "tool_choice": "none", "response_format": {"type": "text"}, "store": False, "metadata": {"a": "b"}}
    assert ask(server, "chat/completions", messages=CHAT, max_tokens=2, **same, **more)
    tiny = ask(server, "completions", prompt="the cat", temperature=1e-300)["choices"][0]["text"]
    assert tiny == ask(server, "completions", prompt="the cat", temperature=0)["choices"][0]["text"]


def test_limits_are_named(server: Server, models: Path) -> None:
    for fields, words in (
        ({"prompt": ["the cat " * 90] * 4}, "--max-prompt"),
        ({"prompt": [5] * 512}, "the network takes 512"),
        ({"prompt": "a", "max_tokens": 5000}, "--max-tokens"),
        ({"prompt": ["a"] * 21}, "--max-texts"),
    ):
        found = server.ask("/v1/completions", {"model": "gen", **fields})[1]["error"]
        assert words in found["message"], found
    assert found["param"] == "prompt"


def test_long_prompts_are_cut_off_by_their_time(tmp_path: Path) -> None:
    """In the middle of a run, and the place is free afterwards."""
    tokenizer = folders.byte_pairs(tmp_path)
    folders.put(networks.decoder(tokenizer.get_vocab_size(), width=512, layers=8, most=8192), tmp_path / "model.onnx")
    folders.write_json(tmp_path / "config.json", {"model_type": "llama", "max_position_embeddings": 8192})
    with serving(tmp_path, "--timeout", "0.3", "--model-name", "net") as server:
        began = time.monotonic()
        status, found = server.ask("/v1/completions", {"model": "net", "prompt": [5] * 8000})
        assert status == 504 and "0.3 seconds" in found["error"]["message"] and time.monotonic() - began < 5


# ---- networks without numbers, and memory -------------------------------------------------------------------------------


def test_probabilities_that_are_no_numbers_are_null(server: Server) -> None:
    fields = {"model": "broken", "max_tokens": 3, "temperature": 0, "ignore_eos": True}
    asked = (("completions", {"prompt": "the cat", "logprobs": 2}),
             ("chat/completions", {"messages": CHAT, "logprobs": True, "top_logprobs": 2}))  # fmt: skip
    for name, more in asked:
        for stream in (False, True):
            answer = read(opened(server, name, {**fields, **more, "stream": stream}))
            assert b" 200 " in answer.partition(b"\r\n")[0]
            body = answer.partition(b"\r\n\r\n")[2].decode()
            documents = re.findall(r"data: (\{.*\})", body) if stream else [body]
            told = [choice["logprobs"] for text in documents for choice in strict(text)["choices"] if choice["logprobs"]]
            values = [one for part in told for one in part.get("token_logprobs", [e["logprob"] for e in part.get("content", [])])]
            assert values == [None] * 3


def test_the_bytes_of_caches_are_told(server: Server, generator: Generator) -> None:
    before, prompt = value(server, "cache_bytes"), "a zebra answers " * 20
    for _ in range(2):  # the second time it is known
        ask(server, "completions", prompt=prompt, max_tokens=30, temperature=0, ignore_eos=True)
        tokens = len(generator.encode(prompt)) + 30
        of_a_token = 4 * sum(heads * d for heads, d in generator._decoder.shapes)
        # The last token is not read; memory has room for half as much again, and for 64 tokens.
        assert (tokens - 1) * of_a_token <= value(server, "cache_bytes") - before <= (2 * tokens + 128) * of_a_token

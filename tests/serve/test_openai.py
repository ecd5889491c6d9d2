"""Text models over HTTP in OpenAI's words: the values of `fastlayers.text`, and an error for every request that is wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.serve import Settings
from fastlayers.serve.repository import Repository
from fastlayers.text import CrossEncoder, Encoder
from tests.text import folders

from .servers import Server, folder_of_models, serving

pytestmark = pytest.mark.serve

TEXTS = [text for text in folders.TEXTS if text]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    folder_of_models(folder)
    folders.sentence_transformer(folder / "enc")
    folders.bert(folder / "rank", labels=1)
    folders.bert(folder / "classes", labels=3)
    folders.decoder(folder / "gen")
    prompts = {"prompts": {"query": "the question "}}
    folders.write_json(folder / "enc" / "config_sentence_transformers.json", prompts)
    return folder


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Server]:
    limits = ("--max-texts", "20", "--max-json", "1", "--max-prompt", "100", "--max-tokens", "64")
    with serving(models, *limits) as made:
        yield made


def ask(server: Server, name: str, **fields: Any) -> Any:
    """The answer to a request that succeeds."""
    status, found = server.ask(f"/v1/{name}", fields)
    assert status == 200, found
    return found


# ---- models -------------------------------------------------------------------------------------------------------------


def test_text_models_are_listed_and_all_models_stay_under_v2(server: Server) -> None:
    found = server.ask("/v1/models")[1]
    assert found["object"] == "list" and [one["id"] for one in found["data"]] == ["enc", "gen", "rank"]
    assert server.ask("/v1/models/enc") == (200, found["data"][0]) and found["data"][0]["created"] > 1.7e9
    assert {*server.ask("/v2/models")[1]["models"]} == {"classes", "enc", "gen", "mixing", "net", "rank", "sums"}
    about = server.ask("/v2/models/enc")[1]
    assert about["platform"] == "transformers_fastlayers" and about["inputs"][0]["name"] == "input_ids"


def test_a_folder_of_one_model_is_named_after_it_and_its_links_may_lead_anywhere(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "linked"
    folder.mkdir()
    for entry in (models / "enc").iterdir():
        (folder / entry.name).symlink_to(entry)
    for name, source in ((None, folder), ("other", folder), ("2", folder)):
        repository = Repository(Settings(source=str(source), name=name))
        repository.load_all()
        assert [served.name for served in repository.every()] == [name or "linked"]
        assert isinstance(repository.every()[0].text, Encoder)
    outside = Repository(Settings(source=str(tmp_path)))
    assert "is a link to outside" in outside.index()[0]["reason"]


def test_versions_of_a_text_model(tmp_path: Path) -> None:
    folders.bert(tmp_path / "net" / "1")
    folders.bert(tmp_path / "net" / "2", labels=1)
    folders.bert(tmp_path / "net" / "3", labels=1)
    modules = [{"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]
    folders.write_json(tmp_path / "net" / "3" / "modules.json", modules)
    repository = Repository(Settings(source=str(tmp_path)))
    repository.load_all()
    assert [type(served.text) for served in repository.every()] == [Encoder, CrossEncoder, CrossEncoder]


def test_what_is_no_text_model_is_served_as_before(models: Path, tmp_path: Path) -> None:
    source = (models / "net" / "1" / "model.safetensors").read_bytes()
    folder = tmp_path / "vision"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(source)
    folders.write_json(folder / "config.json", {"model_type": "vit"})
    folders.write_json(folder / "tokenizer.json", {})
    repository = Repository(Settings(source=str(folder)))
    repository.load_all()
    (served,) = repository.every()
    assert isinstance(served.text, str) and [*served.model.inputs.names] == ["x"]


# ---- embeddings ---------------------------------------------------------------------------------------------------------


def test_embeddings(server: Server, models: Path) -> None:
    encoder = Encoder(models / "enc")
    want = encoder.encode(TEXTS)
    found = ask(server, "embeddings", model="enc", input=TEXTS, user="me", dimensions=32)
    assert found["object"] == "list" and found["model"] == "enc"
    assert [one["index"] for one in found["data"]] == [*range(len(TEXTS))]
    np.testing.assert_array_equal(np.array([one["embedding"] for one in found["data"]], np.float32), want)
    count = sum(len(one.ids) for one in encoder._tokenizer.encode(TEXTS))
    assert found["usage"] == {"prompt_tokens": count, "total_tokens": count}
    for i, text in enumerate(TEXTS):
        (one,) = ask(server, "embeddings", model="enc", input=text, encoding_format="base64")["data"]
        np.testing.assert_array_equal(np.frombuffer(base64.b64decode(one["embedding"]), "<f4"), want[i])


def test_embeddings_of_ids_and_with_prompts(server: Server, models: Path) -> None:
    encoder = Encoder(models / "enc")
    found = ask(server, "embeddings", model="enc", input=[[5, 6, 7], [8]])
    np.testing.assert_array_equal(
        np.array([one["embedding"] for one in found["data"]], np.float32), encoder.encode([[5, 6, 7], [8]])
    )
    assert found["usage"]["prompt_tokens"] == 4
    assert ask(server, "embeddings", model="enc", input=[5, 6, 7])["data"] == found["data"][:1]
    (one,) = ask(server, "embeddings", model="enc", input="the cat", prompt_name="query")["data"]
    np.testing.assert_array_equal(np.array(one["embedding"], np.float32), encoder.encode("the cat", prompt_name="query"))


# ---- rerank -------------------------------------------------------------------------------------------------------------


def test_rerank(server: Server, models: Path) -> None:
    want = CrossEncoder(models / "rank").rank("the cat", TEXTS)
    documents = [text if i % 2 else {"text": text} for i, text in enumerate(TEXTS)]
    found = ask(server, "rerank", model="rank", query="the cat", documents=documents)
    assert [(one["index"], one["relevance_score"]) for one in found["results"]] == [(o["corpus_id"], o["score"]) for o in want]
    assert "document" not in found["results"][0] and found["usage"]["total_tokens"] > len(TEXTS)
    some = ask(server, "rerank", model="rank", query="the cat", documents=documents, top_n=2, return_documents=True)
    assert [one["document"]["text"] for one in some["results"]] == [one["text"] for one in want[:2]]


# ---- what is wrong ------------------------------------------------------------------------------------------------------

EMBED, RANK = {"model": "enc", "input": "a"}, {"model": "rank", "query": "a", "documents": ["b"]}
WRONG: list[tuple[str, dict[str, Any], str | None]] = [
    ("embeddings", {"input": "a"}, "model"),
    ("embeddings", {"model": 3, "input": "a"}, "model"),
    ("embeddings", {"model": "\ud800", "input": "a"}, "model"),
    ("embeddings", {"model": "rank", "input": "a"}, "model"),
    ("embeddings", {"model": "net", "input": "a"}, "model"),
    ("embeddings", {"model": "enc"}, "input"),
    *(("embeddings", {"model": "enc", "input": wrong}, "input") for wrong in
      ([], 3, True, {}, None, [3, -1], [2**31], [10**100])),
    *(("embeddings", {"model": "enc", "input": ["a", wrong]}, "input[1]")
      for wrong in (3, 1.5, None, [], {}, [True], ["a"], [[3]])),
    ("embeddings", {"model": "enc", "input": "half \ud83d"}, "input"),
    ("embeddings", {"model": "enc", "input": [3, 10**6]}, None),  # no such token: said by the network
    ("embeddings", {"model": "enc", "input": [[5] * 500]}, None),  # too long for it
    ("embeddings", {"model": "enc", "input": ["a"] * 21}, "input"),
    ("embeddings", {**EMBED, "dimensions": 16}, "dimensions"),
    ("embeddings", {**EMBED, "dimensions": "32"}, "dimensions"),
    ("embeddings", {**EMBED, "dimensions": 10**100}, "dimensions"),
    ("embeddings", {**EMBED, "encoding_format": "int8"}, "encoding_format"),
    ("embeddings", {**EMBED, "encoding_format": ["float"]}, "encoding_format"),
    ("embeddings", {**EMBED, "prompt_name": "nobody"}, None),
    ("embeddings", {**EMBED, "prompt_name": 3}, "prompt_name"),
    ("embeddings", {**EMBED, "input_type": "query"}, "input_type"),
    ("embeddings", {**EMBED, "\udc00" * 500: 1}, "\\udc00" * 100),
    ("rerank", {"model": "rank", "query": "a"}, "documents"),
    ("rerank", {"model": "rank", "documents": ["a"]}, "query"),
    ("rerank", {**RANK, "query": ["a"]}, "query"),
    ("rerank", {**RANK, "documents": []}, "documents"),
    ("rerank", {**RANK, "documents": "b"}, "documents"),
    ("rerank", {**RANK, "documents": ["b", 3]}, "documents[1]"),
    ("rerank", {**RANK, "documents": ["b", {"text": "c", "image": "d"}]}, "documents[1]"),
    ("rerank", {**RANK, "documents": ["\udfff"]}, "documents[0]"),
    ("rerank", {**RANK, "documents": ["b"] * 21}, "documents"),
    ("rerank", {**RANK, "top_n": 0}, "top_n"),
    ("rerank", {**RANK, "top_n": True}, "top_n"),
    ("rerank", {**RANK, "return_documents": "yes"}, "return_documents"),
    ("rerank", {**RANK, "rank_fields": ["a"]}, "rank_fields"),
    ("rerank", {**RANK, "max_chunks_per_doc": 2}, "max_chunks_per_doc"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fields", "param"), WRONG, ids=lambda value: f"{value!a:.60}")
def test_wrong_requests(server: Server, name: str, fields: dict[str, Any], param: str | None) -> None:
    status, found = server.ask(f"/v1/{name}", fields)
    error = found["error"]
    assert status == 400 and set(error) == {"message", "type", "param", "code"}, found
    assert error["type"] == "invalid_request_error" and error["param"] == param, found
    assert len(error["message"]) < 2000 and not server.noise and not server.events("a run failed")


def test_errors_have_openais_shape(server: Server) -> None:
    for path, body, status, code in (
        ("/v1/embeddings", {"model": "nobody", "input": "a"}, 404, "model_not_found"),
        ("/v1/models/nobody", None, 404, "model_not_found"),
        ("/v1/nothing", {}, 404, "unknown_path"),
        ("/v1", None, 404, "unknown_path"),
        ("/v1/embeddings/more", {}, 404, "unknown_path"),
        ("/v1/embeddings", None, 405, "method"),
        ("/v1/models", {}, 405, "method"),
        ("/v1/embeddings", b"{", 400, None),
        ("/v1/embeddings", b"[]", 400, None),
        ("/v1/embeddings", b"[" * 100_000, 400, None),
        ("/v1/embeddings", b'{"model":"enc","input":' + b"[" * 5000 + b"]" * 5000 + b"}", 400, None),
        ("/v1/embeddings", b'{"model":"enc","input":' + b"9" * 10_000 + b"}", 400, None),
        ("/v1/embeddings", b'{"model":"enc","input":"' + b"a" * (1 << 20) + b'"}', 413, "too_large"),
        ("/v1/embeddings", b'{"model":"enc","input":[' + b"[1]," * 300_000 + b"[1]]}", 413, "too_large"),
    ):
        found = server.ask(path, body)
        assert found[0] == status, (path, found)
        error = found[1]["error"]
        assert set(error) == {"message", "type", "param", "code"} and (code is None or error["code"] == code), found
    text = server.ask("/metrics")[1].decode()
    assert "fastlayers_requests_in_flight 0.0" in text and "fastlayers_receiving_bytes 0.0" in text


def test_numbers_in_json_have_a_limit_and_base64_has_none(tmp_path: Path) -> None:
    folders.sentence_transformer(tmp_path / "enc", dense=9000)
    with serving(tmp_path / "enc", "--max-json", "1") as server:
        given = {"model": "enc", "input": ["a"] * 20}
        status, found = server.ask("/v1/embeddings", given)
        assert status == 400 and "base64" in found["error"]["message"]
        assert len(ask(server, "embeddings", **given, encoding_format="base64")["data"]) == 20


def test_a_slow_request_ends_at_its_time(models: Path) -> None:
    with serving(models / "enc", "--timeout", "0.000001") as server:
        status, found = server.ask("/v1/embeddings", {"model": "enc", "input": TEXTS})
        assert status == 504 and found["error"]["type"] == "timeout_error"
        stats = server.ask("/v2/models/stats")[1]["model_stats"][0]
        assert stats["inference_stats"]["fail"]["count"] == 1


def test_requests_are_counted(models: Path) -> None:
    with serving(models / "enc") as server:
        ask(server, "embeddings", model="enc", input=TEXTS)
        (stats,) = server.ask("/v2/models/stats")[1]["model_stats"]
        assert stats["inference_count"] == len(TEXTS) and stats["inference_stats"]["success"]["count"] == 1
        server.stop()
        line = server.events("request")[0]
        assert line["model"] == "enc" and line["rows"] == len(TEXTS) and json.dumps(line)

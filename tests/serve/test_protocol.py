"""The protocol, asked by Triton's and KServe's own clients and by plain requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.serve import logs

from .servers import Server, folder_of_models, serving, tensors

pytestmark = pytest.mark.serve


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, fl.Model]]:
    folder = tmp_path_factory.mktemp("models")
    return folder, folder_of_models(folder)


@pytest.fixture(scope="module")
def server(models: tuple[Path, dict[str, fl.Model]]) -> Iterator[Server]:
    with serving(models[0], "--control", "--page", "--sequence-idle", "2") as made:
        yield made


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 5)).astype(np.float32)


def test_tritons_client(server: Server, models: tuple[Path, dict[str, fl.Model]]) -> None:
    http: Any = pytest.importorskip("tritonclient.http")
    client = http.InferenceServerClient(server.url)
    assert (
        client.is_server_live()
        and client.is_server_ready()
        and client.is_model_ready("net")
        and client.is_model_ready("net", "1")
    )
    assert not client.is_model_ready("net", "3") and not client.is_model_ready("nobody")
    assert client.get_server_metadata()["name"] == "fastlayers"
    about = client.get_model_metadata("net")
    assert about["versions"] == ["1", "2"] and about["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 5]}]
    config = client.get_model_config("net")
    assert config["max_batch_size"] == 16 and config["input"][0]["dims"] == [5]
    for version in ("", "1", "2"):
        for binary in (True, False):
            x = rows(3)
            given = http.InferInput("x", [3, 5], "FP32")
            given.set_data_from_numpy(x, binary_data=binary)
            name = about["outputs"][0]["name"]
            wanted = [http.InferRequestedOutput(name, binary_data=binary)]
            for algorithm in (None, "gzip", "deflate"):
                found = client.infer(
                    "net", [given], version, wanted, request_id="a b", request_compression_algorithm=algorithm,
                    response_compression_algorithm=algorithm,
                )  # fmt: skip
                expected = models[1][f"net{version or 2}"](x)
                assert found.as_numpy(name).tobytes() == expected.tobytes()
                assert found.get_response()["id"] == "a b" and found.get_response()["model_version"] == (version or "2")
    pending = [client.async_infer("net", [given]) for _ in range(5)]
    assert all(p.get_result().as_numpy(name).tobytes() == expected.tobytes() for p in pending)
    statistics = client.get_inference_statistics("net", "1")["model_stats"]
    assert len(statistics) == 1 and statistics[0]["inference_count"] == 18
    assert statistics[0]["inference_stats"]["success"]["count"] == 6
    assert {"net", "sums", "mixing"} <= {entry["name"] for entry in client.get_model_repository_index()}
    wrong = http.InferInput("y", [1], "FP32")
    wrong.set_data_from_numpy(np.zeros(1, np.float32))
    with pytest.raises(Exception, match="expected each of"):
        client.infer("net", [wrong])
    client.close()


def test_a_sequence_is_a_stream(server: Server) -> None:
    http: Any = pytest.importorskip("tritonclient.http")
    client = http.InferenceServerClient(server.url)

    def piece(values: list[float], **sequence: Any) -> list[float]:
        given = http.InferInput("x", [len(values)], "FP32")
        given.set_data_from_numpy(np.array(values, np.float32))
        found: list[float] = client.infer("sums", [given], **sequence).as_numpy("y").tolist()
        return found

    for name in (7, "seven"):
        assert piece([1, 2], sequence_id=name, sequence_start=True) == [1, 3]
    assert piece([10], sequence_id=8, sequence_start=True) == [10]
    assert piece([3], sequence_id=7) == [6] and piece([1], sequence_id="seven") == [4]
    assert piece([1], sequence_id=7, sequence_end=True) == [7]
    with pytest.raises(Exception, match="not open"):
        piece([1], sequence_id=7)
    assert piece([5], sequence_id=8, sequence_start=True) == [5]  # begun again
    assert piece([1, 2]) == [1, 3]  # of no sequence
    client.close()


@pytest.mark.kserve
def test_kserves_client(server: Server, models: tuple[Path, dict[str, fl.Model]]) -> None:
    kserve: Any = pytest.importorskip("kserve")

    async def ask() -> None:
        client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2"))
        base = f"http://{server.url}"
        assert await client.is_server_live(base) and await client.is_server_ready(base)
        assert await client.is_model_ready(base, "net")
        for binary in (True, False):
            x = rows(2)
            given = kserve.InferInput("x", [2, 5], "FP32")
            given.set_data_from_numpy(x, binary_data=binary)
            found = await client.infer(base, kserve.InferRequest(model_name="net", infer_inputs=[given]), model_name="net")
            assert np.float32(found.outputs[0].data).tobytes() == models[1]["net2"](x).tobytes()
        await client.close()

    asyncio.run(ask())


def test_models_are_unloaded_and_loaded(server: Server) -> None:
    assert server.ask("/v2/repository/models/net/unload", {})[0] == 200
    assert server.ask("/v2/models/net/ready")[0] == 404
    assert server.ask("/v2/models/net/infer", tensors(x=rows(1)))[0] == 404
    found = server.ask("/v2/repository/index", {})[1]
    assert [entry["state"] for entry in found if entry["name"] == "net"] == ["UNAVAILABLE"] * 2
    assert "net" not in {entry["name"] for entry in server.ask("/v2/repository/index", {"ready": True})[1]}
    assert server.ask("/v2/repository/models/net/load", {})[0] == 200
    assert server.ask("/v2/models/net/infer", tensors(x=rows(1)))[0] == 200
    assert server.ask("/v2/repository/models/other/load", {})[0] == 404
    assert server.ask("/v2/repository/models/net/load", {"parameters": {"file:1/model.onnx": "AAAA"}})[0] == 400


def test_metrics_count_what_happened(server: Server) -> None:
    def count() -> float:
        text = server.ask("/metrics")[1].decode()
        lines = [line for line in text.splitlines() if line.startswith("fastlayers_requests_total") and '"sums"' in line]
        return sum(float(line.split()[-1]) for line in lines)

    before = count()
    assert server.ask("/v2/models/sums/infer", tensors(x=np.ones(3, np.float32)))[1]["outputs"][0]["data"] == [1, 2, 3]
    assert server.ask("/v2/models/sums/infer", tensors(x=np.ones((3, 1), np.float32)))[0] == 400
    assert count() == before + 2


def test_the_page_is_there_and_loads_nothing_from_elsewhere(server: Server) -> None:
    status, page = server.ask("/")
    assert status == 200 and b"fastlayers serve" in page and b"http://" not in page and b"https://" not in page
    assert b"v2/repository/index" in page  # models that could not be loaded are shown with the reason
    assert b"<th>refused</th><th>failed</th>" in page and b"/infer" in page  # and a line to ask each with


def test_people_are_told_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    logs.serving("http://127.0.0.1:8000", ["a", "a", "b"], True)
    logs.serving("http://127.0.0.1:8000", [], False)
    shown = capsys.readouterr()
    assert shown.out == (
        "serving a, b on http://127.0.0.1:8000, page at /\nserving nothing on http://127.0.0.1:8000; with --page, a page at /\n"
    )
    assert json.loads(shown.err.splitlines()[0])["event"] == "serving"


def test_weights_in_fewer_bits(models: tuple[Path, dict[str, fl.Model]]) -> None:
    with serving(models[0], "--weights", "int8", "--precision", "strict") as server:
        assert server.ask("/v2/models/net/ready")[0] == 200


def test_what_is_logged_is_json(server: Server) -> None:
    server.ask("/v2/models/sums/infer", tensors(x=np.ones(3, np.float32)))
    server.ask("/nowhere%0a%22")
    assert not server.noise
    last = server.events("request")
    assert any(line.get("model") == "sums" and line["status"] == 200 and line["ms"] > 0 for line in last)


def test_without_the_flags_there_is_no_page_and_no_loading(tmp_path: Path) -> None:
    folder_of_models(tmp_path)
    with serving(tmp_path / "sums.safetensors", "--model-name", "given") as server:
        assert server.ask("/")[0] == 404
        assert server.ask("/v2/repository/models/given/unload", {})[0] == 403
        assert server.ask("/v2/models/given/infer", tensors(x=np.ones(2, np.float32)))[1]["outputs"][0]["data"] == [1, 2]
        assert server.stop() == 0 and server.events("stopped")

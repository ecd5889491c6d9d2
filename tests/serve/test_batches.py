"""Requests that run together: their answers have the bits of lone ones, whatever ran next to them."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl

from .servers import Server, answer, folder_of_models, serving, tensors

pytestmark = pytest.mark.serve

REQUESTS, CLIENTS = 10_000, 20


def encoded(x: np.ndarray) -> bytes:
    inputs = [{"name": "x", "datatype": "FP32", "shape": list(x.shape), "parameters": {"binary_data_size": x.nbytes}}]
    text = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    length = len(text) + x.nbytes
    lines = ["POST /v2/models/net/infer HTTP/1.1", "host: x", f"content-length: {length}"]
    lines += [f"inference-header-content-length: {len(text)}", "", ""]
    return "\r\n".join(lines).encode() + text + x.tobytes()


def wrong_answers(server: Server, model: fl.Model) -> list[str]:
    """What differs from lone runs, of 10,000 requests by 20 clients at once: one to five rows, some of them no numbers."""
    wrong: list[str] = []

    def ask(client: int) -> None:
        rng = np.random.default_rng(client)
        with server.connect() as made:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(REQUESTS // CLIENTS):
                x = (rng.standard_normal((int(rng.integers(1, 6)), 5)) * 10.0 ** rng.integers(-20, 20)).astype(np.float32)
                if rng.random() < 0.05:
                    x[0, 0] = rng.choice([np.nan, np.inf, -np.inf])
                made.sendall(encoded(x))
                status, body = answer(made)
                if status != 200 or body[body.index(b"]}") :][-12 * len(x) :] != model(x).tobytes():
                    wrong.append(f"client {client}: {status} for {x!r}")
                    return

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_ten_thousand_batched_answers_have_the_bits_of_lone_ones(tmp_path: Path) -> None:
    models = folder_of_models(tmp_path)
    with serving(tmp_path, "--log", "events", "--batch-delay", "0.002", "--batch", "24") as server:
        assert wrong_answers(server, models["net2"]) == []
        found = server.ask("/v2/models/net/stats")[1]["model_stats"][1]
        assert found["inference_stats"]["success"]["count"] == REQUESTS
        assert found["execution_count"] < REQUESTS / 2
        assert {event["model"] for event in server.events("batching off")} <= {"mixing", "sums"}


def test_rows_that_are_not_independent_are_found_out(tmp_path: Path) -> None:
    """A softmax over what its file calls the batch: its graph shows it, so that there is no batch."""
    model = folder_of_models(tmp_path)["mixing"]
    with serving(tmp_path, "--log", "events", "--batch-delay", "0.2") as server:
        wrong = []

        def ask(value: float) -> None:
            x = np.full((1, 2), value, np.float32)
            found = server.ask("/v2/models/mixing/infer", tensors(x=x))
            if found[1]["outputs"][0]["data"] != model(x).ravel().tolist():
                wrong.append(found)

        for _ in range(2):
            threads = [threading.Thread(target=ask, args=(value,)) for value in (1.0, 2.0, 3.0)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not wrong
        why = {event["model"]: event["why"] for event in server.events("batching off")}
        assert "Softmax" in why["mixing"]
        stats = server.ask("/v2/models/mixing/stats")[1]["model_stats"][0]
        assert stats["execution_count"] == stats["inference_stats"]["success"]["count"] == 6


def test_one_bad_request_does_not_spoil_a_batch(tmp_path: Path) -> None:
    f32, i64 = np.dtype("float32"), np.dtype("int64")
    graph = fl.graph.Graph(
        (fl.graph.Value("x", ("batch",), i64),), (fl.graph.Value("y", ("batch",), f32),),
        (fl.graph.Node("Gather", ("table", "x"), ("y",), {"axis": 0}),), {"table": np.arange(4, dtype=np.float32)},
    )  # fmt: skip
    fl.Model(graph).save(tmp_path / "pick.safetensors")
    with serving(tmp_path / "pick.safetensors", "--batch-delay", "0.3") as server:
        found: dict[int, int] = {}

        def ask(index: int) -> None:
            found[index] = server.ask("/v2/models/pick/infer", tensors(x=np.array([index])))[0]

        threads = [threading.Thread(target=ask, args=(index,)) for index in (0, 1, 99, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {0: 200, 1: 200, 99: 400, 3: 200}


def test_a_full_queue_and_a_deadline_are_errors(tmp_path: Path) -> None:
    folder_of_models(tmp_path)
    with serving(tmp_path, "--queue", "1", "--batch-delay", "2", "--timeout", "10") as server:
        x = tensors(x=np.ones((1, 5), np.float32))
        late: list[int] = []
        thread = threading.Thread(
            target=lambda: late.append(server.ask("/v2/models/net/infer", {**x, "parameters": {"timeout": 500_000}})[0])
        )
        thread.start()
        while "in_flight 1.0" not in server.ask("/metrics")[1].decode():
            assert thread.is_alive()
        status, found = server.ask("/v2/models/net/infer", x)
        assert status == 503 and "later" in found["error"]
        thread.join()
        assert late == [504]

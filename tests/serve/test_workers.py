"""Several workers: one count, one set of models, sequences in the right process, and nothing lost at the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from tests.text import folders, networks

from .servers import Server, folder_of_models, serving, tensors

pytestmark = pytest.mark.serve

ONE = tensors(x=np.ones((1, 5), np.float32))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder_of_models(tmp_path)
    with serving(tmp_path, "--workers", "2", "--control", "--stop-timeout", "20") as made:
        yield made


def processes(server: Server) -> set[int]:
    """Those that have answered."""
    return {line["pid"] for line in server.events("request")}


def ask_until_all_answer(server: Server, count: int = 2) -> int:
    """How many requests that took."""
    asked = 0
    deadline = time.monotonic() + 30
    while len(processes(server)) < count and time.monotonic() < deadline:
        threads = [threading.Thread(target=server.ask, args=("/v2/models/net/infer", ONE)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asked += 8
    assert len(processes(server)) >= count
    return asked


def counted(server: Server) -> float:
    lines = server.ask("/metrics")[1].decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("fastlayers_requests_total"))


def test_counts_add_up_and_a_dead_worker_is_replaced(server: Server) -> None:
    asked = ask_until_all_answer(server)
    assert {counted(server) for _ in range(6)} == {asked}
    assert server.ask("/v2/models/net/stats")[1]["model_stats"][1]["inference_count"] == asked
    os.kill(next(iter(processes(server))), signal.SIGKILL)
    deadline = time.monotonic() + 20
    while not server.events("worker died"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    asked += ask_until_all_answer(server, 3)
    assert counted(server) == asked


def test_sequences_find_their_worker(server: Server) -> None:
    """Each request has a connection of its own, so it comes to either worker."""
    for step in range(1, 6):
        for name in range(1, 9):
            asked = tensors(x=np.array([float(name)], np.float32))
            asked["parameters"] = {"sequence_id": name, "sequence_start": step == 1, "sequence_end": step == 5}
            status, found = server.ask("/v2/models/sums/infer", asked)
            assert status == 200 and found["outputs"][0]["data"] == [name * step], (name, step, found)
    lost = tensors(x=np.ones(1, np.float32))
    lost["parameters"] = {"sequence_id": 3}
    assert server.ask("/v2/models/sums/infer", lost)[0] == 400


def test_all_workers_load_and_unload(server: Server) -> None:
    for action, status in (("unload", 404), ("load", 200), ("unload", 404)):
        assert server.ask(f"/v2/repository/models/net/{action}", {})[0] == 200
        assert {server.ask("/v2/models/net/infer", ONE)[0] for _ in range(12)} == {status}, server.events("worker died")


def test_a_graceful_stop_answers_what_has_begun(tmp_path: Path) -> None:
    folder_of_models(tmp_path)
    with serving(tmp_path, "--workers", "2", "--batch-delay", "3", "--drain", "4") as server:
        found: list[int] = []
        threads = [threading.Thread(target=lambda: found.append(server.ask("/v2/models/net/infer", ONE)[0])) for _ in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.4)
        assert server.ask("/v2/health/ready")[0] == 503 and server.ask("/v2/health/live")[0] == 200
        for thread in threads:
            thread.join()
        assert found == [200] * 6
        assert server.stop() == 0
        assert len(server.events("stopped")) == 3


def test_workers_end_with_their_parent(server: Server) -> None:
    ask_until_all_answer(server)
    workers = processes(server)
    server.process.kill()
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{worker}") for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    server.process.wait()


def test_workers_share_packed_weights(tmp_path: Path) -> None:
    """85 MB of them, and every worker has run both models."""
    tokenizer = folders.byte_pairs(tmp_path / "gen")
    folders.put(networks.decoder(tokenizer.get_vocab_size(), width=512, layers=4), tmp_path / "gen" / "model.onnx")
    folders.write_json(tmp_path / "gen" / "config.json", {"model_type": "llama", "max_position_embeddings": 512})
    net = fl.Sequential(*[fl.Linear(2000, 2000) for _ in range(3)])
    net.load_state_dict({name: np.full(shape, 1e-3, np.float32) for name, shape in net.tensor_shapes().items()})
    fl.compile(net, fl.graph.Input("x", ("batch", 2000))).save(tmp_path / "wide.safetensors")
    asks = {
        "gen": ("/v1/completions", {"model": "gen", "prompt": [5] * 20, "max_tokens": 3}),
        "wide": ("/v2/models/wide/infer", tensors(x=np.ones((1, 2000), np.float32))),
    }
    with serving(tmp_path, "--workers", "2") as server:
        answered: dict[str, set[int]] = {name: set() for name in asks}
        deadline = time.monotonic() + 60
        while any(len(found) < 2 for found in answered.values()) and time.monotonic() < deadline:
            threads = [threading.Thread(target=server.ask, args=given) for given in [*asks.values()] * 8]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for line in server.events("request"):
                assert line["status"] == 200, line
                answered[line["model"]].add(line["pid"])
        own = {pid: private(pid) for pid in answered["gen"] & answered["wide"]}
        assert len(own) == 2 and max(own.values()) < 50, own


def private(process: int) -> float:
    """Megabytes that a process shares with no other."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:")) / 1024

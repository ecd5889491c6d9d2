"""Requests that are malformed, slow or huge: each gets an error, and another client is answered all the while."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from .servers import Server, answer, folder_of_models, serving, tensors

pytestmark = pytest.mark.serve

GOOD = tensors(x=np.ones((1, 5), np.float32))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder, outside = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("outside")
    folder_of_models(folder)
    folder_of_models(outside)
    (folder / "link.safetensors").symlink_to(outside / "sums.safetensors")
    (folder / "away").symlink_to(outside / "net")
    (folder / "deep" / "1").mkdir(parents=True)
    (folder / "deep" / "1" / "model.safetensors").symlink_to(outside / "sums.safetensors")
    (folder / "inside.safetensors").symlink_to(folder / "sums.safetensors")
    (folder / "broken.onnx").write_bytes(b"\x00" * 100)
    options = [
        "--control",
        "--receive-timeout",
        "2",
        "--send-timeout",
        "2",
        "--connections",
        "40",
        "--max-body",
        "2",
        "--max-json",
        "1",
    ]
    with serving(folder, *options) as made:
        yield made


@pytest.fixture
def allowed() -> set[int]:
    """What others are answered meanwhile."""
    return {200}


@pytest.fixture(autouse=True)
def others(server: Server, allowed: set[int]) -> Iterator[None]:
    """Meanwhile somebody else asks, and is answered every time; afterwards nothing is held."""
    stop = threading.Event()
    wrong: list[object] = []

    def ask() -> None:
        while not stop.is_set():
            try:
                found = server.ask("/v2/models/net/infer", GOOD)
            except OSError as error:
                found = (0, error)
            if found[0] not in allowed:
                wrong.append(found)
            time.sleep(0.01)

    thread = threading.Thread(target=ask)
    thread.start()
    yield
    stop.set()
    thread.join()
    assert not wrong, wrong[:3]
    assert server.process.poll() is None and not server.noise
    text = server.ask("/metrics")[1].decode()
    assert "fastlayers_requests_in_flight 0.0" in text and "fastlayers_receiving_bytes 0.0" in text


def head(length: object, more: str = "", path: str = "/v2/models/net/infer") -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{more}\r\n".encode()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01\x02\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"POST /v2 HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", 405),
        (b"GET /v2/models/net/infer HTTP/1.1\r\nhost: x\r\n\r\n", 405),
        (b"GET \xff HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (head("x"), 400),
        (head(-1), 400),
        (head(10**30), 400),
        (head(2) + b"{}", 400),
        (head(3) + b"nul", 400),
        (head(2, "inference-header-content-length: 99\r\n") + b"{}", 400),
        (head(2, "content-length: 3\r\n") + b"{}", 400),
        (head(2, "transfer-encoding: chunked\r\n") + b"{}", 400),
        (head(3, "content-encoding: gzip\r\n") + b"abc", 400),
        (head(3, "content-encoding: br\r\n") + b"abc", 415),
        (head(200_000) + b"[" * 200_000, 400),
        (b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 60_000, 431),
        (b"POST /v2/models/net/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
)
def test_malformed(server: Server, data: bytes, status: int) -> None:
    found, body = server.raw(data)
    assert found == status and "error" in json.loads(body)


@pytest.mark.parametrize(
    "path",
    [
        "/v2/models/../../etc/passwd",
        "/v2/models/..%2f..%2fetc%2fpasswd/infer",
        "/v2/models/%2e%2e/infer",
        "/v2/models/net%00/infer",
        "/v2/models/net/versions/..%2f1/infer",
        "/v2/models/net/versions/%2e/infer",
        "/v2/models//infer",
        "/v2/models/net%2f1%2fmodel.safetensors/infer",
        "/v2/models/link/infer",
        "/v2/models/away/infer",
        "/v2/models/deep/infer",
        "/v2/models/broken/infer",
        "/v2/models/net/versions/1/versions/1/infer",
    ],
)
def test_no_path_leads_anywhere(server: Server, path: str) -> None:
    assert server.ask(path, GOOD)[0] == 404
    name = path.split("/")[3]
    assert server.ask(f"/v2/repository/models/{name}/load", {})[0] in (400, 404) or name == "net"


def test_links_out_of_the_folder_are_named_and_links_within_are_served(server: Server) -> None:
    index = {(e["name"], e["version"]): e for e in server.ask("/v2/repository/index", {})[1]}
    for name in ("link", "away", "deep"):
        assert "outside" in index[(name, "1")]["reason"]
    assert index[("inside", "1")]["state"] == "READY" and index[("broken", "1")]["state"] == "UNAVAILABLE"


def test_huge_bodies(server: Server) -> None:
    started = time.monotonic()
    assert server.raw(head(3 << 20))[0] == 413  # before a byte of it
    assert time.monotonic() - started < 2
    chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
    chunked = b"POST /v2/models/net/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * 4 + b"0\r\n\r\n"
    assert server.raw(chunked)[0] == 413
    bomb = zlib.compress(b"\x00" * (64 << 20))
    assert server.raw(head(len(bomb), "content-encoding: deflate\r\n") + bomb)[0] == 413
    text = json.dumps(tensors(x=np.ones((60_000, 5), np.float32))).encode()
    status, body = server.raw(head(len(text)) + text)
    assert status == 413 and b"binary tensor" in body
    declared = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2**40, 5], "data": [1.0]}]}
    assert server.ask("/v2/models/net/infer", declared)[0] == 400


@pytest.mark.parametrize("step", ["head", "body", "chunks", "trailers"])
def test_slow_requests_are_cut_off(server: Server, step: str) -> None:
    begin = {
        "head": b"POST /v2/models/net/infer HTTP/1.1\r\nhost: x\r\n",
        "body": head(100_000),
        "chunks": b"POST /v2/models/net/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
        "trailers": b"POST /v2/models/net/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
    }[step]
    part = {"head": b"a: b\r\n", "body": b" ", "chunks": b"1\r\nx\r\n", "trailers": b"a: b\r\n"}[step]
    with server.connect() as made:
        made.sendall(begin)
        started = time.monotonic()
        made.settimeout(0.1)
        found = b""
        while time.monotonic() < started + 20 and not found:
            try:
                made.sendall(part)
                found = made.recv(4096)
            except TimeoutError:  # noqa: PERF203 - nothing was answered yet
                continue
            except OSError:
                break
        assert time.monotonic() - started < 15
        assert found.startswith(b"HTTP/1.1 408")


def test_silent_connections_are_closed_and_too_many_are_refused(server: Server, allowed: set[int]) -> None:
    allowed.add(503)  # the others' connections are among the too many
    made = [server.connect() for _ in range(36)]
    with server.connect() as one, server.connect() as two, server.connect() as three, server.connect() as four:
        found = [answer(last)[0] for last in (one, two, three, four)]
    assert set(found) <= {0, 503}
    for each in made:
        each.settimeout(20)
        assert each.recv(100)[:12] in (b"", b"HTTP/1.1 503")
        each.close()


def test_answers_that_nobody_reads_are_dropped(server: Server) -> None:
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", server.port))
        made.settimeout(5)
        x = np.ones((80_000, 5), np.float32)
        inputs = [{"name": "x", "datatype": "FP32", "shape": list(x.shape), "parameters": {"binary_data_size": x.nbytes}}]
        text = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        body = text + x.tobytes()
        whole = head(len(body), f"inference-header-content-length: {len(text)}\r\n") + body
        try:
            for _ in range(20):
                made.sendall(whole)
        except OSError:  # cut off, or no room for more
            pass
        deadline = time.monotonic() + 20
        while "unread" not in server.ask("/metrics")[1].decode():
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_a_client_that_goes_away_leaves_nothing(server: Server) -> None:
    for cut in (10, 60, 200):
        whole = head(400) + json.dumps(GOOD).encode()
        with server.connect() as made:
            made.sendall(whole[:cut])
    with server.connect() as made:
        made.sendall(head(len(json.dumps(GOOD))) + json.dumps(GOOD).encode())  # and does not wait for the answer


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    body = json.dumps({**GOOD, "id": "1"}).encode()
    with server.connect() as made:
        made.sendall((head(len(body)) + body) * 5)
        found = b""
        while found.count(b"HTTP/1.1 200") < 5 or found.count(b"model_name") < 5:
            found += made.recv(65536)


def test_random_bytes(server: Server) -> None:
    rng = np.random.default_rng(int(os.environ.get("SEED", "0")))
    whole = head(len(json.dumps(GOOD))) + json.dumps(GOOD).encode()
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(rng.integers(1, 6)):
            changed[rng.integers(0, len(changed))] = rng.integers(0, 256)
        with server.connect() as made:
            made.sendall(bytes(changed))
            made.shutdown(socket.SHUT_WR)
            assert answer(made)[0] in (0, 200, 400, 404, 405, 408, 413, 415, 503)

"""Requests a second and latencies of `fastlayers serve`, next to a bare onnxruntime server on the same HTTP server.

    python -m bench.serve load silero_vad.onnx squeezenet.onnx     1, 8 and 64 clients; batching on and off; onnxruntime
    python -m bench.serve slow silero_vad.onnx                     latencies next to clients that send some bytes a second
    python -m bench.serve soak squeezenet.onnx --seconds 600       the highest load for long: errors, memory

Needs the extra ``serve``, and onnxruntime for its part. Clients are one process with a non-blocking socket each, which sends the
next request when the answer is there. They read the clock themselves, since a request begins with one event and ends with
another; their latencies are stored as all times are. The onnxruntime server has none of what costs: no limits, metrics, checks or
log. It runs either in the event loop ("ort") or in the loop's threads ("ort, threads"), as frameworks do for plain functions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from bench.timing import Times, add_json, store, times_of

CLIENTS = (1, 8, 64)
SERVERS = ("serve", "serve, no batches", "ort", "ort, threads")
NAMES = {np.dtype("float32"): "FP32", np.dtype("int64"): "INT64"}


# ---- servers --------------------------------------------------------------------------------------------------------


@contextmanager
def running(kind: str, model: str, *extra: str) -> Iterator[tuple[int, int]]:
    """A server of this kind in a process of its own: its port and its process."""
    if kind.startswith("ort"):
        command = [sys.executable, "-m", "bench.serve", "ort", model, "--threads" if "threads" in kind else "--inline"]
    else:
        batches = ["--batch", "1"] if "no batches" in kind else []
        command = [sys.executable, "-m", "fastlayers", "serve", model, "--port", "0", "--log", "events", *batches, *extra]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if '"serving"' in line:
                break
        else:
            raise SystemExit(f"{kind}: no server came up")
        yield int(json.loads(line)["url"].rpartition(":")[2]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def ort(model: str, threads: bool) -> None:
    """The bare onnxruntime server."""
    import onnxruntime
    import uvicorn

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    dtypes = {"FP32": np.dtype("float32"), "INT64": np.dtype("int64")}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message["more_body"]:
                break
        length = int(dict(scope["headers"])[b"inference-header-content-length"])
        head, at, feeds = json.loads(body[:length]), length, {}
        for item in head["inputs"]:
            dtype, size = dtypes[item["datatype"]], item["parameters"]["binary_data_size"]
            feeds[item["name"]] = np.frombuffer(body[at : at + size], dtype).reshape(item["shape"])
            at += size
        if threads:
            results = await asyncio.get_running_loop().run_in_executor(None, session.run, None, feeds)
        else:
            results = session.run(None, feeds)
        parts, outputs = [], []
        for output, array in zip(session.get_outputs(), results, strict=True):
            parts.append(array.tobytes())
            about = {"binary_data_size": len(parts[-1])}
            outputs.append({"name": output.name, "datatype": "FP32", "shape": array.shape, "parameters": about})
        text = json.dumps({"model_name": "m", "outputs": outputs}).encode()
        answer = b"".join([text, *parts])
        headers = [(b"content-length", b"%d" % len(answer)), (b"inference-header-content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind(("127.0.0.1", 0))
    made.listen(1024)
    print(json.dumps({"event": "serving", "url": f"http://127.0.0.1:{made.getsockname()[1]}"}), file=sys.stderr, flush=True)
    config = uvicorn.Config(app, http="httptools", loop="asyncio", lifespan="off", log_config=None, access_log=False)
    uvicorn.Server(config).run([made])


# ---- clients --------------------------------------------------------------------------------------------------------


def request(model: str) -> bytes:
    """A request for a model of `feeds`, whole."""
    arrays = feeds(model)
    inputs = [
        {"name": n, "datatype": NAMES[a.dtype], "shape": a.shape, "parameters": {"binary_data_size": a.nbytes}}
        for n, a in arrays.items()
    ]
    text = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    body = b"".join([text, *(a.tobytes() for a in arrays.values())])
    return (
        f"POST /v2/models/{Path(model).stem}/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
        f"inference-header-content-length: {len(text)}\r\n\r\n"
    ).encode() + body


def feeds(model: str) -> dict[str, np.ndarray]:
    """Inputs of silero-vad, or of a network of one image."""
    rng = np.random.default_rng(0)
    if "silero" in model:
        state = np.zeros((2, 1, 128), np.float32)
        return {"input": rng.standard_normal((1, 576), np.float32), "state": state, "sr": np.array(16000)}
    import fastlayers as fl

    return {fl.load(model).inputs[0].name: rng.standard_normal((1, 3, 224, 224), np.float32)}


class _Client:
    """One connection, which always waits for one answer."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.request = request
        self.begin()

    def begin(self) -> None:
        """Sends the next request, as far as it goes."""
        self.sent, self.left, self.buffer, self.began = 0, -1, b"", time.perf_counter()
        self.send()

    def send(self) -> None:
        with suppress(BlockingIOError):
            self.sent += self.socket.send(memoryview(self.request)[self.sent :])

    def receive(self) -> int:
        """The status, once an answer is there; 0 until then."""
        data = self.socket.recv(1 << 20)
        if not data:
            return -1
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return 0
        lines = self.buffer[:head].lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        return int(lines[0].split()[1]) if len(self.buffer) >= head + 4 + length else 0


def drive(port: int, request: bytes, clients: int, seconds: float, warm: float = 0.5) -> tuple[list[float], list[int]]:
    """The latencies of requests that were answered with 200, and the statuses of all others."""
    chosen = selectors.DefaultSelector()
    both = selectors.EVENT_READ | selectors.EVENT_WRITE
    for _ in range(clients):
        client = _Client(port, request)
        chosen.register(client.socket, both if client.sent < len(request) else selectors.EVENT_READ, client)
    start = time.perf_counter() + warm
    latencies: list[float] = []
    bad: list[int] = []
    while time.perf_counter() < start + seconds:
        for key, events in chosen.select(1.0):
            client = key.data
            if events & selectors.EVENT_WRITE:
                client.send()
                if client.sent == len(request):
                    chosen.modify(client.socket, selectors.EVENT_READ, client)
            if events & selectors.EVENT_READ:
                status = client.receive()
                if status == 0:
                    continue
                now = time.perf_counter()
                if status != 200:
                    bad.append(status)
                elif client.began >= start:
                    latencies.append(now - client.began)
                if status < 0:
                    chosen.unregister(client.socket)
                    continue
                client.begin()
                if client.sent < len(request):
                    chosen.modify(client.socket, both, client)
    for key in list(chosen.get_map().values()):
        key.data.socket.close()
    return latencies, bad


class Told:
    """Report of the measurement: lines of a table, and the file."""

    def __init__(self) -> None:
        self.times: dict[str, dict[str, Times]] = {}
        self.rates: dict[str, float] = {}
        self.errors: dict[str, int] = {}

    def line(self, case: str, name: str, latencies: list[float], bad: list[int], seconds: float) -> str:
        """Summary of the clients' results, as the end of a line."""
        self.errors[f"{case}: {name}"] = len(bad)
        self.rates[f"{case}: {name}"] = len(latencies) / seconds
        if not latencies:
            return f"nothing answered, errors {bad[:5]}"
        times = self.times.setdefault(case, {})[name] = times_of(latencies)
        middle, late = 1e3 * times.median, 1e3 * times.percentile(0.99)
        return f"{len(latencies) / seconds:9.1f} /s  p50 {middle:8.2f} ms  p99 {late:8.2f} ms  errors {len(bad)}"

    def store(self, path: Path | None, **more: Any) -> None:
        store(path, self.times, requests_per_second=self.rates, errors=self.errors, **more)


# ---- what is measured -----------------------------------------------------------------------------------------------


def load(models: list[str], seconds: float, servers: Sequence[str], path: Path | None) -> None:
    told = Told()
    for model in models:
        asked = request(model)
        for kind in servers:
            with running(kind, model) as (port, _):
                for clients in CLIENTS:
                    case = f"{Path(model).stem}, {clients} clients"
                    line = told.line(case, kind, *drive(port, asked, clients, seconds), seconds)
                    print(f"{Path(model).stem:14} {kind:18} {clients:3} clients {line}", flush=True)
    told.store(path)


def slow(model: str, seconds: float, clients: int, path: Path | None) -> None:
    """Before, and beside it, `clients` that send a byte of a request ten times a second."""
    asked, told = request(model), Told()
    with running("serve", model) as (port, _):
        for turn, with_them in enumerate((False, True, False, True)):
            others = []
            if with_them:
                others = [socket.create_connection(("127.0.0.1", port)) for _ in range(clients)]
                others[0].sendall(asked[:60])
            pid = os.fork() if with_them else 0
            if with_them and not pid:
                end, at = time.monotonic() + seconds + 2, 0
                while time.monotonic() < end:
                    for other in others:
                        other.send(asked[at : at + 1] if other is not others[0] else asked[60 + at : 61 + at])
                    at += 1
                    time.sleep(0.1)
                os._exit(0)
            many = clients if with_them else 0
            case = f"{Path(model).stem}, 8 clients, turn {turn // 2 + 1}"
            line = told.line(case, f"beside {many} slow ones", *drive(port, asked, 8, seconds), seconds)
            print(f"{Path(model).stem:14} 8 clients, {many:3} slow ones: {line}", flush=True)
            for other in others:
                other.close()
            if pid:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    told.store(path)


def soak(model: str, seconds: float, clients: int, options: list[str], path: Path | None) -> None:
    """The highest load for long; memory every tenth of it."""
    asked, told, memory = request(model), Told(), []
    total, errors = 0, Counter[int]()
    with running("serve", model, *options) as (port, pid):
        for part in range(10):
            latencies, bad = drive(port, asked, clients, seconds / 10, 0)
            total, errors = total + len(latencies), errors + Counter(bad)
            status = Path(f"/proc/{pid}/status").read_text()
            resident = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
            files = len(os.listdir(f"/proc/{pid}/fd"))
            memory.append(resident)
            line = told.line(f"{Path(model).stem}, {clients} clients", f"part {part + 1}", latencies, bad, seconds / 10)
            print(f"{part + 1:2}/10 {line}  {resident:.1f} MB  {files} files", flush=True)
    print(f"{total} requests in {seconds:g} s; errors by status: {dict(errors) or 'none'}")
    told.store(path, megabytes=memory)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("load", "slow", "soak", "ort"))
    parser.add_argument("models", nargs="+")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--servers", nargs="+", default=SERVERS)
    parser.add_argument("--options", default="", help="of the server, in one word, such as --options='--timeout 300'")
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--inline", action="store_true")
    add_json(parser)
    given = parser.parse_args(arguments)
    if given.what == "ort":
        ort(given.models[0], given.threads)
    elif given.what == "load":
        load(given.models, given.seconds, given.servers, given.json)
    elif given.what == "slow":
        slow(given.models[0], given.seconds, given.clients, given.json)
    else:
        soak(given.models[0], given.seconds, given.clients, given.options.split(), given.json)


if __name__ == "__main__":
    main()

"""Servers of these tests, each a process of its own, and plain sockets to speak to them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl

ROOT = Path(__file__).parent.parent.parent


def folder_of_models(folder: Path) -> dict[str, fl.Model]:
    """A folder of three models: "net" in two versions, "sums" that streams, and "mixing" whose rows are not independent."""
    rng = np.random.default_rng(0)
    found = {}
    for version in (1, 2):
        net = fl.Sequential(fl.Linear(5, 33), fl.ReLU(), fl.Linear(33, 3))
        net.load_state_dict({name: rng.standard_normal(shape) for name, shape in net.tensor_shapes().items()})
        found[f"net{version}"] = fl.compile(net, fl.graph.Input("x", ("batch", 5)))
        (folder / "net" / str(version)).mkdir(parents=True)
        found[f"net{version}"].save(folder / "net" / str(version) / "model.safetensors")
    f32 = np.dtype("float32")
    sums = fl.graph.Graph(
        (fl.graph.Value("x", ("time",), f32),), (fl.graph.Value("y", ("time",), f32),),
        (fl.graph.Node("CumSum", ("x", "axis"), ("y",), {}),), {"axis": np.array(0)},
    )  # fmt: skip
    found["sums"] = fl.Model(sums)
    found["sums"].save(folder / "sums.safetensors")
    found["mixing"] = fl.compile(lambda x: fl.functional.softmax(x, 0), fl.graph.Input("x", ("batch", 2)))
    found["mixing"].save(folder / "mixing.safetensors")
    return found


class Server:
    """A process of `fastlayers serve`; what it logs is gathered."""

    def __init__(self, source: Path, *options: str) -> None:
        command = [sys.executable, "-m", "fastlayers", "serve", str(source), "--port", "0", *options]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[dict[str, Any]] = []
        self.noise: list[str] = []
        self.port = 0
        self._up = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._up.wait(300) or not self.port:  # a limit for what hangs: a busy machine may take a minute
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"no server came up: {self.noise} {self.lines}")

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                try:
                    found = json.loads(line)
                except ValueError:
                    self.noise.append(line)
                    continue
                self.lines.append(found)
                if found["event"] == "serving":
                    self.port = int(found["url"].rpartition(":")[2])
                    self._up.set()
        self._up.set()

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == name]

    def connect(self, timeout: float = 30) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def raw(self, data: bytes, timeout: float = 30) -> tuple[int, bytes]:
        """The status and body that these bytes are answered with, on a connection of their own; 0 if it is closed without."""
        with self.connect(timeout) as made:
            with suppress(OSError):  # it may be cut off before it has said all
                made.sendall(data)
            return answer(made)

    def ask(self, path: str, body: Any = None, headers: str = "", method: str = "") -> tuple[int, Any]:
        """The status and JSON of an answer."""
        text = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        method = method or ("GET" if body is None else "POST")
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(text)}\r\n{headers}\r\n"
        status, found = self.raw(head.encode() + text)
        return status, json.loads(found) if found[:1] in (b"{", b"[") else found

    def stop(self, number: int = signal.SIGTERM, timeout: float = 60) -> int:
        self.process.send_signal(number)
        code = self.process.wait(timeout)
        self._reader.join()
        return code


def answer(made: socket.socket) -> tuple[int, bytes]:
    """The next answer on a connection."""
    found = b""
    try:
        while b"\r\n\r\n" not in found:
            data = made.recv(65536)
            if not data:
                return 0, found
            found += data
        head, _, body = found.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
        while len(body) < length:
            data = made.recv(65536)
            if not data:
                return 0, body
            body += data
    except ConnectionResetError:
        return 0, found
    return int(lines[0].split()[1]), body


@contextmanager
def serving(source: Path, *options: str) -> Iterator[Server]:
    """Meanwhile a server runs."""
    server = Server(source, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def tensors(**arrays: np.ndarray) -> dict[str, Any]:
    """A request in JSON."""
    names = {"f": "FP32", "i": "INT64"}
    return {
        "inputs": [
            {"name": name, "datatype": names[a.dtype.kind], "shape": list(a.shape), "data": a.ravel().tolist()}
            for name, a in arrays.items()
        ]
    }  # fmt: skip

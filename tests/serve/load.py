"""`fastlayers serve` under requests of all kinds at once: every answer is judged, health and memory are watched meanwhile.

    python -m tests.serve.load --requests 100000 --clients 64 --workers 2 --seed 0

An answer must have the bits that the model gives alone; while a model is replaced, those of the old or of the new weights, and
only the new ones' once the reload was acknowledged. What is malformed must get its 4xx. At the end the server is told to stop
with requests in flight. Exits with 1 if anything was answered wrongly, with a 5xx that is not documented, or if memory or files
grow.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl

from .load_models import MODELS, Feeds, write
from .load_requests import (
    GONE,
    HANGS,
    KINDS,
    RECEIVE,
    REFUSED,
    RIGHT,
    WEIGHTS,
    Answer,
    Case,
    Client,
    Fault,
    infer,
    judge,
    request,
)
from .servers import Server

CASES = 40  # inputs that are drawn for each model
STOP = 10  # seconds that the server may take for stopping
# What may be more at the end than after half of the time: megabytes of all processes, or a tenth of them; files and threads.
MEMORY, FILES = 16.0, 16


def processes(root: int) -> list[int]:
    """A process and all that come from it."""
    found = [root]
    for pid in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def levels(root: int) -> dict[str, float]:
    """Of all processes together."""
    found: dict[str, float] = defaultdict(float)
    for pid in processes(root):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Rss:", "Pss:")):
                    found[f"{line[:3]} MB"] += int(line.split()[1]) / 1024
            found["files"] += len(os.listdir(f"/proc/{pid}/fd"))
            found["threads"] += len(os.listdir(f"/proc/{pid}/task"))
    return found


def watch(port: int, root: int, told: Any, period: float = 0.02) -> None:
    """In a process of its own: asks for health on a kept connection and on new ones, and reads levels once a second."""
    healths: dict[str, list[float]] = {"kept": [], "new": []}
    found: list[tuple[float, dict[str, float]]] = []
    faults: list[str] = []
    stop = threading.Event()

    def measure() -> None:
        while not stop.is_set():
            found.append((time.monotonic(), levels(root)))
            stop.wait(1.0)

    measuring = threading.Thread(target=measure)
    measuring.start()
    kept: socket.socket | None = None
    while not told.poll(period):
        for kind in healths:
            began = time.monotonic()
            try:
                line = kept if kind == "kept" and kept else socket.create_connection(("127.0.0.1", port), HANGS)
                line.sendall(request("/v2/health/live", verb="GET"))
                said = b""
                while not said.endswith(b"}") and (more := line.recv(4096)):
                    said += more
                if not said.startswith(b"HTTP/1.1 200"):
                    faults.append(f"health: {said!r}")
                if kind == "kept":
                    kept = line
                else:
                    line.close()
            except OSError as error:
                faults.append(f"health: {error}")
                kept = None
            healths[kind].append(time.monotonic() - began)
    stop.set()
    measuring.join()
    told.send((healths, found, faults))


class Load:
    """One server, what it is asked, and what became of that."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder, self.options = folder, options
        rng = np.random.default_rng(options.seed)
        made = {name: [write(name, 0, folder / name)] for name in MODELS if name != "mlp"}
        made["swap"] += [write("swap", i, folder / "swap") for i in (*range(1, WEIGHTS), 0)][:-1]
        for version in (1, 2):
            made[f"mlp/versions/{version}"] = [write("mlp", version, folder / "mlp" / str(version) / "model")]
        made["mlp"] = made["mlp/versions/2"]
        self.models = made
        self.cases: dict[str, list[Case]] = {}
        for name, models in made.items():
            draw = MODELS[name.partition("/")[0]].draw
            self.cases[name] = [self._case(name, models, draw(rng, int(rng.integers(1, 6)))) for _ in range(CASES)]
        large = MODELS["mlp"].draw
        self.cases["mlp large"] = [self._case("mlp", made["mlp"], large(rng, int(rng.integers(5_000, 25_000)))) for _ in range(4)]
        self.names = [name for name in made if name != "swap"]
        self.history: list[int | None] = [0]
        self.floor, self.changing = 0, asyncio.Lock()
        self.times: dict[str, list[float]] = defaultdict(list)
        self.faults: dict[str, Counter[str]] = defaultdict(Counter)
        self.port = 0

    @staticmethod
    def _case(name: str, models: list[fl.Model], feeds: Feeds) -> Case:
        return Case(name, feeds, [model.run(feeds) for model in models])

    async def requests(self) -> None:
        """All of them, by clients at once, in a random order."""
        options, rng = self.options, np.random.default_rng(self.options.seed)
        weights = np.array([weight for weight, *_ in KINDS.values()])
        kinds = iter(rng.choice(list(KINDS), options.requests, p=weights / weights.sum()).tolist())

        async def client(seed: int) -> None:
            mine = Client(self, np.random.default_rng((options.seed, seed)))
            for kind in kinds:
                began = time.monotonic()
                try:
                    await KINDS[kind][1](mine)
                except (Fault, OSError, ValueError, KeyError) as error:
                    mine.leave()
                    self.faults[kind][f"{type(error).__name__}: {error}"[:400]] += 1
                self.times[kind].append(time.monotonic() - began)
            mine.leave()

        await asyncio.gather(*(client(seed) for seed in range(options.clients)))

    async def stop(self, server: Server) -> tuple[Counter[str], float]:
        """SIGTERM while every client waits for an answer, some of them for long: what became of each; and seconds to the end."""
        found: Counter[str] = Counter()
        loop = [Case("loop", {"n": n}, [self.models["loop"][0].run({"n": n})]) for n in (np.array(10), np.array(900_000))]

        async def client(seed: int) -> None:
            mine = Client(self, np.random.default_rng(seed))
            while True:
                case = loop[int(seed % 8 == 0)] if seed % 4 == 0 else mine.case()
                try:
                    answer = await mine.ask(
                        infer(case, bool(seed % 2)), parts=1 + 9 * (seed % 5 == 0), pause=0.02 * (seed % 5 == 0)
                    )
                    if answer.status == 200:
                        judge(answer, case)
                    elif answer.status not in (0, 503):
                        raise Fault(f"{answer.status} {answer.body[:200]!r}")
                except OSError:
                    answer = Answer(0, {}, b"")
                except Fault as fault:
                    found[f"fault: {fault}"] += 1
                    return
                found[{0: "closed before an answer", 200: RIGHT, 503: "503"}[answer.status]] += 1
                if answer.status != 200:
                    return

        clients = [asyncio.create_task(client(seed)) for seed in range(self.options.clients)]
        await asyncio.sleep(0.5)
        children, began = processes(server.process.pid), time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(server.process.wait, 3 * STOP + 60)
        seconds = time.monotonic() - began
        await asyncio.gather(*clients)
        if code != 0 or seconds > STOP + 6:
            found[f"fault: ended with {code} after {seconds:.1f} s"] += 1
        if left := [pid for pid in children if os.path.exists(f"/proc/{pid}")]:
            found[f"fault: left processes {left}"] += 1
        return found, seconds


def milliseconds(times: Sequence[float]) -> str:
    p50, p99 = np.percentile(times, (50, 99)) * 1e3
    return f"{p50:9.1f} {p99:9.1f} {max(times) * 1e3:9.1f}"


def run(options: argparse.Namespace, workers: int) -> bool:
    """Whether all was right."""
    with tempfile.TemporaryDirectory() as name:
        load = Load(Path(name), options)
        given = ["--workers", str(workers), "--control", "--log", "events", "--receive-timeout", str(RECEIVE)]
        server = Server(load.folder, *given, "--stop-timeout", str(STOP), *options.options.split())
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        load.port = server.port
        watcher = context.Process(target=watch, args=(server.port, server.process.pid, theirs))
        watcher.start()
        try:
            began = time.monotonic()
            asyncio.run(load.requests())
            seconds = time.monotonic() - began
            mine.send(None)
            healths, found, faults = mine.recv()
            ended, took = asyncio.run(load.stop(server))
        finally:
            watcher.kill() if watcher.is_alive() else None
            server.process.kill()
            server.process.wait()
    faults += [f"server: {line}" for line in server.noise[:5]]
    faults += [
        f"server: {line}"[:2000]
        for e in ("a request failed", "a run failed", "a batch failed", "worker died")
        for line in server.events(e)
    ]
    print(f"\n{options.requests} requests by {options.clients} clients, {workers} workers, seed {options.seed}: {seconds:.1f} s")
    print(
        f"{'kind':32}"
        + "".join(f" {n:>7}" for n in ("count", RIGHT, REFUSED, GONE, "faults"))
        + "".join(f" {n:>9}" for n in ("p50 ms", "p99 ms", "max ms"))
    )
    for kind, (_, _, outcome) in KINDS.items():
        if times := load.times[kind]:
            bad = load.faults[kind].total()
            good = "".join(f" {len(times) - bad if outcome == column else 0:7}" for column in (RIGHT, REFUSED, GONE))
            print(f"{kind:32} {len(times):7}{good} {bad:7} {milliseconds(times)}")
        faults += [f"{kind}: {fault} ({count} times)" for fault, count in load.faults[kind].most_common(5)]
    for kind, times in healths.items():
        above = sum(t > 0.1 for t in times)
        print(f"health, {kind} connection: {len(times)} asked, p50 p99 max{milliseconds(times)} ms, above 100 ms: {above}")
    for level, margin in (("Rss MB", MEMORY), ("Pss MB", MEMORY), ("files", FILES), ("threads", FILES)):
        tenths = [statistics.median(part) for part in np.array_split([levels[level] for _, levels in found], 10) if len(part)]
        half, end = tenths[len(tenths) // 2], tenths[-1]
        most = half + max(margin, half / 10)
        told = " ".join(f"{value:.0f}" for value in tenths)
        print(f"{level} in each tenth of the time: {told}; flat from the half on up to {most:.0f}")
        if end > most:
            faults.append(f"{level} grow from {half:.0f} to {end:.0f}")
    print(f"stopped in {took:.1f} s of at most {STOP + 6}: {dict(ended)}")
    faults += [text for text in ended if text.startswith("fault")]
    for fault in faults:
        print(f"FAULT {fault}")
    return not faults


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--workers", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--options", default="", help="more of the server's, in one word, such as --options='--batch 1'")
    given = parser.parse_args(arguments)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # clients that go on sending what the server has refused
    judged = [run(given, workers) for workers in given.workers]
    return int(not all(judged))


if __name__ == "__main__":
    sys.exit(main())

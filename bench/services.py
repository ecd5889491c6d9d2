"""fastlayers in a service, next to onnxruntime: threads on one model, coroutines, deadlines, forked workers, cold starts.

    python -m bench.services threads [--seconds 2]      requests per second and p99 with 1, 8, 32 threads; bits compared
    python -m bench.services async                      what `arun` adds to a run, beside other ways to wait for one, and how late
                                                        a run ends after its deadline
    python -m bench.services memory                     four workers of `gunicorn --preload` (needs gunicorn)
    python -m bench.services cold FOLDER ... [--tenth]  from the start of Python to the first answer of FOLDER/cold.py,
                                                        alternately; --tenth: on a tenth of a processor

silero-vad comes out of its wheel (see `bench.demo`), SqueezeNet 1.1 is made here with drawn weights. Contestants alternate:
ratios count. Each engine decides for itself how many threads a call uses, except where said. Requests, coroutines, deadlines and
processes are no calls to repeat in turns: each is timed by a watch of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl
from bench.demo import fetch
from bench.timing import Times, Watch, add_json, store, times_of
from tests.formats import onnx_build as onnx

__all__ = ["squeezenet"]

Feeds = dict[str, np.ndarray]
Call = Callable[[Feeds], list[np.ndarray]]
THREADS = (1, 8, 32)
SHAPE = (1, 3, 224, 224)


def squeezenet(seed: int = 0) -> bytes:
    """SqueezeNet 1.1 as ONNX: 26 convolutions, 1.2 million weights, drawn."""
    rng = np.random.default_rng(seed)
    nodes: list[bytes] = []
    weights: list[bytes] = []

    def conv(x: str, name: str, shape: tuple[int, int, int], **options: object) -> str:
        o, i, k = shape
        scale = (2 / (i * k * k)) ** 0.5
        weights.append(onnx.tensor((scale * rng.standard_normal((o, i, k, k))).astype("f4"), f"{name}.w"))
        weights.append(onnx.tensor(np.zeros(o, "f4"), f"{name}.b"))
        nodes.append(onnx.node("Conv", f"{x} {name}.w {name}.b", f"{name}.c", kernel_shape=[k, k], **options))
        nodes.append(onnx.node("Relu", f"{name}.c", name))
        return name

    def pool(x: str, name: str) -> str:
        nodes.append(onnx.node("MaxPool", x, name, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1))
        return name

    x = pool(conv("x", "conv1", (64, 3, 3), strides=[2, 2]), "pool1")
    channels = 64
    for i, (squeezed, expanded) in enumerate(
        ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
    ):
        s = conv(x, f"s{i}", (squeezed, channels, 1))
        a, b = conv(s, f"a{i}", (expanded, squeezed, 1)), conv(s, f"b{i}", (expanded, squeezed, 3), pads=[1, 1, 1, 1])
        nodes.append(onnx.node("Concat", f"{a} {b}", f"fire{i}", axis=1))
        x, channels = f"fire{i}", 2 * expanded
        if i in (1, 3):
            x = pool(x, f"pool{i + 2}")
    x = conv(x, "classes", (1000, 512, 1))
    nodes += [onnx.node("GlobalAveragePool", x, "p"), onnx.node("Flatten", "p", "y")]
    return onnx.model(onnx.graph(nodes, [onnx.value_info("x", SHAPE)], [onnx.value_info("y", (1, 1000))], weights))


def models() -> dict[str, tuple[bytes, Callable[[np.random.Generator], Feeds]]]:
    """Name: the file, and what draws inputs."""

    def window(rng: np.random.Generator) -> Feeds:
        draw = rng.standard_normal
        sound, state = 0.1 * draw((1, 576)), 0.1 * draw((2, 1, 128))
        return {"input": sound.astype("f4"), "state": state.astype("f4"), "sr": np.array(16_000)}

    def picture(rng: np.random.Generator) -> Feeds:
        return {"x": rng.standard_normal(SHAPE).astype("f4")}

    return {"silero_vad": (fetch().read_bytes(), window), "SqueezeNet": (squeezenet(), picture)}


def engines(file: bytes) -> dict[str, Call]:
    """One model of each engine that is installed."""
    model = fl.load(file)
    names = list(model.outputs.names)
    calls: dict[str, Call] = {"fastlayers": lambda feeds: [model.run(feeds)[name] for name in names]}
    try:
        import onnxruntime
    except ImportError:
        return calls
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return {**calls, "onnxruntime": lambda feeds: session.run(None, feeds)}


def served(
    call: Call, feeds: list[Feeds], want: list[list[np.ndarray]], threads: int, seconds: float
) -> tuple[float, Times, int]:
    """Requests per second, their times, and how many answers had other bits than those of one thread."""
    samples: list[float] = []
    differ = 0
    barrier, end = threading.Barrier(threads + 1), [0.0]

    def ask(first: int) -> None:
        nonlocal differ
        mine, wrong, at = Watch(), 0, first
        barrier.wait()
        while not mine.samples or time.monotonic() < end[0]:
            at = (at + 1) % len(feeds)
            with mine:
                got = call(feeds[at])
            wrong += not all(np.array_equal(a, b) for a, b in zip(got, want[at], strict=True))
        with lock:
            samples.extend(mine.samples)
            differ += wrong

    lock = threading.Lock()
    workers = [threading.Thread(target=ask, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    end[0] = time.monotonic() + seconds
    with Watch() as whole:
        barrier.wait()
        for worker in workers:
            worker.join()
    return len(samples) / whole.last, times_of(samples), differ


def on_threads(options: argparse.Namespace) -> None:
    """Requests by threads on one model."""
    found: dict[str, dict[str, Times]] = {}
    rates: dict[str, float] = {}
    others: dict[str, int] = {}
    for name, (file, draw) in models().items():
        if options.only not in name:
            continue
        rng = np.random.default_rng(0)
        feeds = [draw(rng) for _ in range(8)]
        calls = engines(file)
        want = {engine: [call(one) for one in feeds] for engine, call in calls.items()}
        if len(want) == 2:
            theirs, ours = want["onnxruntime"], want["fastlayers"]
            off = max(float(np.abs(a - b).max()) for x, y in zip(theirs, ours, strict=True) for a, b in zip(x, y, strict=True))
            print(f"{name}: the engines' answers are at most {off:.1e} apart")
        for threads in THREADS:
            for engine, call in calls.items():
                rate, times, differ = served(call, feeds, want[engine], threads, options.seconds)
                late = times.percentile(0.99)
                print(
                    f"{name:11} {threads:2} threads {engine:12} {rate:8.1f}/s  p99 {late * 1e3:8.2f} ms  other bits: {differ}",
                    flush=True,
                )
                case = f"{name}, {threads} threads"
                found.setdefault(case, {})[engine] = times
                rates[f"{case}: {engine}"], others[f"{case}: {engine}"] = rate, differ
    store(options.json, found, requests_per_second=rates, answers_with_other_bits=others)


def awaited(file: bytes, feeds: Feeds) -> dict[str, Callable[[], Any]]:
    """Calls of one thread, and the ways to wait for one in a coroutine."""
    fl.set_num_threads(1)
    model = fl.load(file)
    calls: dict[str, Callable[[], Any]] = {
        "fastlayers run": lambda: model.run(feeds),
        "fastlayers await arun": lambda: model.arun(feeds),
        "fastlayers await to_thread(run)": lambda: asyncio.to_thread(model.run, feeds),
    }
    try:
        import onnxruntime
    except ImportError:
        return calls
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

    async def run_async() -> Any:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        session.run_async(None, feeds, lambda found, _, error: loop.call_soon_threadsafe(future.set_result, found), None)
        return await future

    return {
        **calls,
        "onnxruntime run": lambda: session.run(None, feeds),
        "onnxruntime run_async": run_async,
        "onnxruntime await to_thread(run)": lambda: asyncio.to_thread(session.run, None, feeds),
    }


async def waits(calls: Mapping[str, Callable[[], Any]], rounds: int, burst: int = 20) -> dict[str, Times]:
    """Times of each: all in turn, `burst` calls one after the other."""
    watches = {name: Watch() for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(burst):
                with watches[name]:
                    found = call()
                    if asyncio.iscoroutine(found):
                        await found
    return {name: watch.times() for name, watch in watches.items()}


def coroutines(options: argparse.Namespace) -> None:
    """`arun` next to `run` and to other ways to wait, and the time from a deadline to the return."""
    file, draw = models()["silero_vad"]
    calls = awaited(file, draw(np.random.default_rng(0)))
    asyncio.run(waits(calls, 3))
    base, turns = 0.0, asyncio.run(waits(calls, options.rounds))
    for name, times in turns.items():
        taken = times.median
        base = taken if name.endswith(" run") else base
        more = "" if base == taken else f", {1e6 * (taken - base):.0f} more than run"
        print(f"silero_vad: {name:32} {1e6 * taken:4.0f} us{more} (median of {len(times.samples)})")

    rng = np.random.default_rng(0)
    weights = [onnx.tensor((rng.standard_normal((256, 256, 3, 3)) / 48).astype("f4"), f"w{i}") for i in range(12)]
    steps = [onnx.node("Conv", f"{'x' if i == 0 else f'c{i - 1}'} w{i}", f"c{i}", pads=[1, 1, 1, 1]) for i in range(12)]
    shape = (1, 256, options.size, options.size)
    long = fl.load(onnx.model(onnx.graph(steps, [onnx.value_info("x", shape)], [onnx.value_info("c11", shape)], weights)))
    x = rng.standard_normal(shape).astype("f4")
    with Watch() as watch:
        long(x)
    whole, over = watch.last, []
    for i in range(40):
        deadline = whole * (0.1 + 0.02 * i)
        try:
            with watch:
                long(x, timeout=deadline)
        except fl.TimeoutError:
            over.append(watch.last - deadline)
    late = times_of(over or [0.0])
    middle, most = 1e3 * late.median, 1e3 * max(late.samples)
    print(f"deadline: a run of {1e3 * whole:.0f} ms ends {middle:.2f} ms after it (median), {most:.2f} at most, of {len(over)}")
    store(options.json, {"silero_vad": turns, f"after the deadline of a run of {whole:.3g} s": {"fastlayers": late}})


_APP = {
    "fastlayers": """
import numpy as np, fastlayers as fl
fl.set_num_threads(1)
model = fl.load({path!r})
def answer():
    return model.run({{"x": np.ones((1, 3, 224, 224), np.float32)}})["y"]
""",
    "onnxruntime": """
import numpy as np, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession({path!r}, options, providers=["CPUExecutionProvider"])
def answer():
    return session.run(None, {{"x": np.ones((1, 3, 224, 224), np.float32)}})[0]
""",
}
_WSGI = """
import os
if {preload}:
    answer()
def app(environ, start_response):
    found = answer()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{{os.getpid()}} {{found.argmax()}}".encode()]
"""


def resident(pids: set[int]) -> float:
    """Megabytes of some processes, what they share counted once."""
    found = 0
    for pid in pids:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        found += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return found / 1e3


def workers_memory(options: argparse.Namespace) -> None:
    """gunicorn with four workers on SqueezeNet: loaded before the fork, or by each worker."""
    if importlib.util.find_spec("gunicorn") is None:
        raise SystemExit("memory needs gunicorn: pip install gunicorn")
    found: dict[str, float | None] = {}
    for engine, start in _APP.items():
        for preload in (True, False):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / "net.onnx").write_bytes(squeezenet())
                text = start.format(path=str(folder / "net.onnx")) + _WSGI.format(preload=preload)
                (folder / "served.py").write_text(text, encoding="utf-8")
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    port = free.getsockname()[1]
                command = [
                    sys.executable, "-m", "gunicorn", "--workers", "4", "--bind", f"127.0.0.1:{port}", "--log-level", "error",
                    "--no-control-socket", *(["--preload"] if preload else []), "served:app",
                ]  # fmt: skip
                path = os.pathsep.join((str(Path(fl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
                env = {**os.environ, "PYTHONPATH": path}
                process = subprocess.Popen(command, cwd=folder, env=env, start_new_session=True)
                try:
                    pids = asked(port)
                    megabytes = resident(pids | {process.pid})
                finally:
                    os.killpg(process.pid, signal.SIGKILL)  # workers that hang do not end otherwise
                    process.wait()
                how = "preloaded" if preload else "loaded by each"
                found[f"{how}: {engine}"] = megabytes if len(pids) == 4 else None
                told = f"{megabytes:6.1f} MB (PSS)" if len(pids) == 4 else f"only {len(pids)} answer within 20 s"
                print(f"{engine:12} {how:14} 4 workers and their parent: {told}", flush=True)
    store(options.json, {}, megabytes=found)


def asked(port: int) -> set[int]:
    """The workers, after each has answered."""
    pids: set[int] = set()
    until = time.monotonic() + 20

    def ask(_: int) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                return int(answer.read().split()[0])
        except OSError:
            time.sleep(0.1)
            return 0

    with ThreadPoolExecutor(8) as pool:  # at once, or one idle worker takes them all
        while len(pids) < 4 and time.monotonic() < until:
            pids |= set(pool.map(ask, range(32))) - {0}
    return pids


class Tenth:
    """A tenth of a processor for a process: by the kernel's quota where it can be set, else stopped nine tenths of the time."""

    def __init__(self) -> None:
        self.folder = Path(f"/sys/fs/cgroup/cpu/bench-{os.getpid()}")
        try:
            self.folder.mkdir()
            (self.folder / "cpu.cfs_period_us").write_text("100000")
            (self.folder / "cpu.cfs_quota_us").write_text("10000")
            self.how = "the kernel's quota, 10 of 100 ms"
        except OSError:
            self.how = "stopped for 18 of 20 ms"

    def started(self, command: list[str], env: dict[str, str]) -> None:
        if self.folder.exists():
            place = self.folder / "cgroup.procs"
            subprocess.run(
                ["/bin/sh", "-c", f'echo $$ > {place}; exec "$@"', "sh", *command], env=env, check=True, stdout=subprocess.DEVNULL
            )
            return
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            time.sleep(0.002)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.018)
            process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self.folder.exists():
            self.folder.rmdir()


def cold(options: argparse.Namespace) -> None:
    """Seconds of a whole process that answers once: the folders are those of cloud functions, unpacked."""
    env = {"PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    slow = Tenth() if options.tenth else None
    watches = {folder.resolve(): Watch() for folder in options.folders}
    for turn in range(options.runs + 1):
        for folder, watch in watches.items():
            command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); import cold"]
            with watch:
                if slow is None:
                    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
                else:
                    slow.started(command, env)
            if not turn:  # it brings the files into memory
                watch.samples.clear()
    if slow is not None:
        slow.close()
        print(f"a tenth of a processor: {slow.how}")
    times = {folder.name: watch.times() for folder, watch in watches.items()}
    sizes = {}
    for folder in watches:
        found = times[folder.name]
        size = sizes[folder.name] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        print(
            json.dumps(
                {"folder": folder.name, "MB": round(size, 1), "median": round(found.median, 3), "best": round(found.best, 3)}
            )
        )
    store(options.json, {f"cold start{', a tenth of a processor' * options.tenth}": times}, megabytes=sizes)


WHAT = {"threads": on_threads, "async": coroutines, "memory": workers_memory, "cold": cold}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(WHAT))
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="", help="with threads: models whose names have this")
    parser.add_argument("--rounds", type=int, default=100, help="with async: turns of 20 calls")
    parser.add_argument("--size", type=int, default=128, help="with async: of the planes of the run that a deadline ends")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tenth", action="store_true")
    add_json(parser)
    options = parser.parse_intermixed_args(arguments)
    WHAT[options.what](options)


if __name__ == "__main__":
    main()

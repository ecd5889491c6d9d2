"""Whole models: time of a call and of a new binding, of loading, memory over many lengths and at its peak.

    python -m bench.whole calls                     run({"x": x}) of one 10->10 layer; a new binding for an LSTM at lengths not
    seen before
    python -m bench.whole load MODEL.onnx           load, and load to the first answer, next to onnxruntime; from ONNX and from
    our own file
    python -m bench.whole lengths [--runs 10000]    resident memory while an LSTM model runs at random lengths
    python -m bench.whole memory MODEL.onnx         peak memory of load and one run next to onnxruntime

One thread. Every load and every peak is measured in a process of its own, which reads the clock itself: nothing else may be
imported there, least of all the other engine. The best of several counts for times.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl
from bench.timing import Times, Watch, add_json, store, take_turns, times_of

# What the processes run: $engine, $path; feeds are ones in the model's shapes, open sizes 1 (or what --shape says).
_CHILD = """
import sys, json, time, resource
import numpy as np
engine, path, shapes, values = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
if engine == "ort":
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
else:
    import fastlayers as fl
    fl.set_num_threads(1)
    fl.kernels.current()
    from fastlayers.ort import InferenceSession  # imported, as onnxruntime's is
def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = rss()
start = time.perf_counter()
if engine == "ort":
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
else:
    session = InferenceSession(path)
loaded = time.perf_counter()
types = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(int32)": "i4"}
def shape(i):
    return shapes.get(i.name) or [d if isinstance(d, int) else 1 for d in i.shape]
feeds = {i.name: np.full(shape(i), values.get(i.name, 1), types[i.type]) for i in session.get_inputs()}
session.run(None, feeds)
first = time.perf_counter()
print(json.dumps({"load": loaded - start, "first": first - start, "peak": rss(), "before": before}))
"""


def child(engine: str, path: Path, options: argparse.Namespace) -> dict[str, float]:
    """One measurement in a fresh process."""
    shapes = {text.partition("=")[0]: [int(d) for d in text.partition("=")[2].split(",")] for text in options.shape}
    values = {text.partition("=")[0]: float(text.partition("=")[2]) for text in options.value}
    command = [sys.executable, "-c", _CHILD, engine, str(path), json.dumps(shapes), json.dumps(values)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def feeds(model: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Ones in the shapes of a model's inputs."""
    shapes = {text.partition("=")[0]: [int(d) for d in text.partition("=")[2].split(",")] for text in options.shape}
    values = {text.partition("=")[0]: float(text.partition("=")[2]) for text in options.value}
    return {
        s.name: np.full(shapes.get(s.name) or [d if isinstance(d, int) else 1 for d in s.shape], values.get(s.name, 1), s.dtype)
        for s in model.inputs
    }


def calls(options: argparse.Namespace) -> None:
    """Time of the shortest call, and of new bindings."""
    fl.set_num_threads(1)
    rng = np.random.default_rng(0)
    layer = fl.Linear(10, 10)
    layer.load_state_dict({"weight": rng.standard_normal((10, 10)), "bias": rng.standard_normal(10)})
    model = fl.compile(layer, fl.graph.Input("x", (1, 10)))
    x = rng.standard_normal((1, 10)).astype(np.float32)
    feeds = {"x": x}
    # Means over 10 ms.
    turns = take_turns({"run": lambda: model.run(feeds), "call": lambda: model(x)}, 7, 0.0, 0.01)
    print(f"10->10 layer: run {turns['run'].best * 1e6:.2f} us, call {turns['call'].best * 1e6:.2f} us")
    lstm, watch = recurrent_model(128), Watch()
    for length in rng.permutation(np.arange(1, 1 + options.lengths)):
        with watch:
            lstm.prepare([(int(length), 1, 128)])
    new = watch.times()
    print(
        f"new binding of an LSTM(128) model: median {new.median * 1e6:.1f} us, best {new.best * 1e6:.1f}, worst "
        f"{max(new.samples) * 1e6:.1f}"
    )
    print(f"variant={model.variant}")
    store(options.json, {"10->10 layer": turns, "LSTM(128)": {"new binding": new}})


def recurrent_model(units: int) -> Any:
    """An LSTM over sequences (t, 1, units) of any length."""
    rng = np.random.default_rng(0)
    net = fl.LSTM(units, units)
    net.load_state_dict({name: rng.standard_normal(shape) / np.sqrt(units) for name, shape in net.tensor_shapes().items()})
    return fl.compile(net, fl.graph.Input("x", ("t", 1, units)))


def load(options: argparse.Namespace) -> None:
    """Times of loading."""
    model = Path(options.model)
    with tempfile.TemporaryDirectory() as folder:
        own, packed = Path(folder, "own.safetensors"), Path(folder, "packed.safetensors")
        loaded = fl.load(model)
        loaded.save(own)
        loaded.prepare(feeds(loaded, options))
        loaded.save(packed, packed=True)
        engines = {
            "onnxruntime": ("ort", model), "fastlayers": ("fl", model),
            "fastlayers, own file": ("fl", own), "fastlayers, packed": ("fl", packed),
        }  # fmt: skip
        found: dict[str, list[dict[str, float]]] = {name: [] for name in engines}
        for _ in range(options.rounds):
            for name, (engine, path) in engines.items():
                found[name].append(child(engine, path, options))
    base = {key: min(r[key] for r in found["onnxruntime"]) for key in ("load", "first")}
    times: dict[str, dict[str, Times]] = {"load": {}, "first": {}}
    for name, results in found.items():
        for key, turns in times.items():
            turns[name] = times_of([r[key] for r in results])
        least = {key: turns[name].best for key, turns in times.items()}
        print(
            f"{name:22} load {least['load'] * 1e3:8.1f} ms (x{base['load'] / least['load']:.2f})   "
            f"to first answer {least['first'] * 1e3:8.1f} ms (x{base['first'] / least['first']:.2f})"
        )
    print(f"variant={fl.kernels.current()}")
    store(options.json, {f"{model.stem}, {'load' if key == 'load' else 'to first answer'}": t for key, t in times.items()})


def resident() -> float:
    """Resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def lengths(options: argparse.Namespace) -> None:
    """Resident memory over many lengths."""
    model, rng, found = recurrent_model(64), np.random.default_rng(1), {}
    for i in range(options.runs + 1):
        if i % max(options.runs // 10, 1) == 0:
            found[i] = resident()
            print(f"after {i:6} runs: {found[i]:.1f} MB resident")
        model(rng.standard_normal((int(rng.integers(1, 500)), 1, 64)).astype(np.float32))
    print(f"variant={model.variant}")
    store(options.json, {}, megabytes_after_runs=found)


def memory(options: argparse.Namespace) -> None:
    """Peak memory of load and one run."""
    model, told = Path(options.model), {}
    for name, engine in (("onnxruntime", "ort"), ("fastlayers", "fl")):
        found = child(engine, model, options)
        told[name] = {"peak": found["peak"] / 1e3, "before": found["before"] / 1e3}
        print(f"{name:12} peak {told[name]['peak']:.0f} MB, before loading {told[name]['before']:.0f} MB")
    print(f"the file has {model.stat().st_size / 1e6:.0f} MB; variant={fl.kernels.current()}")
    store(options.json, {}, megabytes=told)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses and calls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("calls", "load", "lengths", "memory"))
    parser.add_argument("model", nargs="?")
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--lengths", type=int, default=399, help="new bindings, with `calls`")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,576")
    parser.add_argument("--value", action="append", default=[], metavar="NAME=16000")
    add_json(parser)
    options = parser.parse_args(arguments)
    if options.what in ("load", "memory") and not options.model:
        parser.error(f"{options.what} needs a model file")
    {"calls": calls, "load": load, "lengths": lengths, "memory": memory}[options.what](options)


if __name__ == "__main__":
    main()

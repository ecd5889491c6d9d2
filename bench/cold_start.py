"""Processor time from `import` to the first answer, next to onnxruntime where that is installed.

    python -m bench.cold_start [MODEL.onnx ...] [--runs 10] [--set sr=16000 --shape input=1,576]
    python -m bench.cold_start --modules [MODEL.onnx]      which modules that imports, and how long each takes itself

One thread, every run in a process of its own, after numpy was imported; the least of all runs counts, whatever else the machine
does. Without a model: a network of convolutions and one of two LSTMs, made here. Where valgrind is installed, ``--instructions``
counts instructions instead, which no other process disturbs (on an instruction set that valgrind knows). A run reads the clock
itself, and the processor's instead of the wall's: the stopwatch is not for a process in which nothing else may be imported.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bench.timing import Times, add_json, store, times_of
from tests.formats import onnx_build as onnx

__all__ = ["main"]

_CHILD = """
import json, sys, time
import numpy as np
engine, path, shapes, values = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
if engine == "numpy":
    raise SystemExit
begin = time.process_time()
if engine == "onnxruntime":
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    imported = time.process_time()
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
else:
    import fastlayers as fl
    from fastlayers.ort import InferenceSession
    fl.set_num_threads(1)
    imported = time.process_time()
    session = InferenceSession(path)
loaded = time.process_time()
kinds = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(int32)": "i4"}
def shape(i):
    return shapes.get(i.name) or [d if isinstance(d, int) else 1 for d in i.shape]
session.run(None, {i.name: np.full(shape(i), values.get(i.name, 1), kinds[i.type]) for i in session.get_inputs()})
first = time.process_time()
parts = {"import": imported - begin, "load": loaded - imported, "first answer": first - loaded, "all": first - begin}
print(json.dumps(parts))
"""


def convolutions() -> bytes:
    """Twelve convolutions with their activations, and a classifier."""
    rng, nodes, weights, at = np.random.default_rng(0), [], [], "x"
    for i in range(12):
        c = 3 if i == 0 else 32
        weights.append(onnx.tensor((rng.standard_normal((32, c, 3, 3)) / 20).astype("f4"), f"w{i}"))
        nodes += [onnx.node("Conv", f"{at} w{i}", f"c{i}", pads=[1, 1, 1, 1]), onnx.node("Relu", f"c{i}", f"r{i}")]
        at = f"r{i}"
    weights.append(onnx.tensor(rng.standard_normal((10, 32)).astype("f4"), "v"))
    nodes += [onnx.node("GlobalAveragePool", at, "p"), onnx.node("Flatten", "p", "f"), onnx.node("Gemm", "f v", "y", transB=1)]
    values = [onnx.value_info("x", (1, 3, 32, 32))], [onnx.value_info("y", (1, 10))]
    return onnx.model(onnx.graph(nodes, *values, weights))


def recurrent() -> bytes:
    """Two LSTMs, one after the other, over 20 steps."""
    rng, nodes, weights, at = np.random.default_rng(0), [], [], "x"
    for i in range(2):
        for name, shape in ((f"w{i}", (1, 512, 128)), (f"r{i}", (1, 512, 128)), (f"b{i}", (1, 1024))):
            weights.append(onnx.tensor((rng.standard_normal(shape) / 10).astype("f4"), name))
        nodes.append(onnx.node("LSTM", f"{at} w{i} r{i} b{i}", f"h{i}", hidden_size=128))
        nodes.append(onnx.node("Squeeze", f"h{i} one", f"s{i}"))
        at = f"s{i}"
    weights.append(onnx.tensor(np.array([1], "i8"), "one"))
    values = [onnx.value_info("x", (20, 1, 128))], [onnx.value_info(at, (20, 1, 128))]
    return onnx.model(onnx.graph(nodes, *values, weights))


def environment() -> dict[str, str]:
    """As an installed package has its bytecode, this one may write its own. NumPy starts no threads, which spin for some 30 ms
    after its import, and whose time would count for whatever engine is measured.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OPENBLAS_NUM_THREADS": "1"}


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)


def parts(arguments: list[str], runs: int) -> dict[str, Times]:
    """Times of each part; the first process may write bytecode and does not count."""
    found = [json.loads(run([sys.executable, "-c", _CHILD, *arguments]).stdout) for _ in range(runs + 1)][1:]
    return {part: times_of([times[part] for times in found]) for part in found[0]}


def instructions(arguments: list[str]) -> float:
    """Millions of them, in user space."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    shown = run([*tool, sys.executable, "-c", _CHILD, *arguments]).stderr
    found = re.search(r"I *refs: *([\d,]+)", shown)
    assert found is not None
    return int(found[1].replace(",", "")) / 1e6


def modules(arguments: list[str], runs: int) -> None:
    """Prints what is imported after numpy, with the least time of each module alone."""
    times: dict[str, int] = {}
    for _ in range(runs):
        shown = run([sys.executable, "-X", "importtime", "-c", _CHILD, *arguments]).stderr
        lines = [re.match(r"import time: +(\d+) \| +\d+ \| +(\S+)$", line) for line in shown.splitlines()]
        names = [(line[2], int(line[1])) for line in lines if line]
        start = max(i for i, (name, _) in enumerate(names) if name == "numpy")
        for name, taken in names[start + 1 :]:
            times[name] = min(taken, times.get(name, taken))
    for name, taken in sorted(times.items(), key=lambda item: -item[1]):
        print(f"{taken:6} us  {name}")
    print(f"{len(times)} modules, {sum(times.values()) / 1e3:.1f} ms")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cold_start", description="Processor time to a first answer.")
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--shape", action="append", default=[], help="an input's shape: name=1,2,3")
    parser.add_argument("--set", action="append", default=[], help="what an input is filled with: name=16000")
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    add_json(parser)
    options = parser.parse_args(arguments)
    found: dict[str, dict[str, Times]] = {}
    counts: dict[str, float] = {}
    shapes = {name: [int(n) for n in sizes.split(",") if n] for name, _, sizes in (s.partition("=") for s in options.shape)}
    values = {name: float(value) for name, _, value in (s.partition("=") for s in options.set)}
    engines = ["fastlayers", *(["onnxruntime"] if find_spec("onnxruntime") else [])]
    if options.instructions and not shutil.which("valgrind"):
        parser.error("--instructions needs valgrind")
    with tempfile.TemporaryDirectory() as folder:
        models = options.models
        if not models:
            for make in (convolutions, recurrent):
                models.append(Path(folder) / f"{make.__name__}.onnx")
                models[-1].write_bytes(make())
        for model in models:
            rest = [str(model), json.dumps(shapes), json.dumps(values)]
            if options.modules:
                modules(["fastlayers", *rest], options.runs)
                continue
            for engine in engines:
                if options.instructions:
                    run([sys.executable, "-c", _CHILD, engine, *rest])
                    count = instructions([engine, *rest]) - instructions(["numpy", *rest])
                    print(f"{model.stem:16} {engine:12} {count:7.1f} million instructions")
                    counts[f"{model.stem}: {engine}"] = count
                    continue
                times = parts([engine, *rest], options.runs)
                for part, taken in times.items():
                    found.setdefault(f"{model.stem}, {part}", {})[engine] = taken
                line = "  ".join(f"{part} {1e3 * taken.best:6.1f}" for part, taken in times.items())
                print(f"{model.stem:16} {engine:12} {line}  ms", flush=True)
    store(options.json, found, **({"million_instructions": counts} if counts else {}))


if __name__ == "__main__":
    main()

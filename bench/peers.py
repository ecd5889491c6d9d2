"""Networks and layers next to the engines that one would otherwise use: ONNX Runtime, and those others that are installed.

    python -m bench.peers                             layers on shapes of real networks, one thread
    python -m bench.peers --threads 2 --json two.json
    python -m bench.peers --only depthwise
    python -m bench.peers model.onnx --shape x=1,3,224,224      a model of one's own, with seeded inputs

Needs ``pip install ".[compare,onnx]"``; OpenVINO (`openvino`), OpenCV 5's DNN (`opencv-python-headless`) and MNN (`MNN`) take
part if they can be imported. Every engine runs in a process of its own, and the processes alternate in short bursts, so a drift
in the machine's speed meets all alike. `ratio` is the time of the fastest peer over ours: above 1, fastlayers is ahead. Results
are checked against ONNX Runtime's before a time counts.
``python -m docs.make_performance`` draws pictures from the JSON.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from bench.timing import Times, add_json, store, take_turns, times_of

__all__ = ["ENGINES", "Model", "answers", "bursts", "layers", "measure", "present", "ratio", "start", "summary"]

TOLERANCE = 1e-4  # of the largest result, against ONNX Runtime's float32
OTHERS = 1e-2  # and of other engines, some of which round more: what is wrong is further away
Call = Callable[[], Sequence[np.ndarray]]


class Model(NamedTuple):
    """A model file's bytes with its inputs. `flops`: operations of a call, a multiply-add being two; 0 if they say little."""

    name: str
    family: str
    content: bytes
    feeds: dict[str, np.ndarray]
    flops: float = 0.0


# ---- the layers ---------------------------------------------------------------------------------------------------------


def _normal(rng: np.random.Generator, *shape: int, fan_in: float = 1) -> np.ndarray:
    return (rng.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)


def _single(
    name: str, family: str, op: str, x: np.ndarray, weights: dict[str, np.ndarray], flops: float, **attributes: Any
) -> Model:
    """A model of one node."""
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node(op, ["x", *weights], ["y"], **attributes)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    initializers = [numpy_helper.from_array(array, key) for key, array in weights.items()]
    made = helper.make_model(
        helper.make_graph([node], "layer", inputs, outputs, initializers),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    return Model(name, family, made.SerializeToString(), {"x": x}, flops)


def _seeded(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def convolution(c: int, size: int, k: int, o: int, stride: int = 1, groups: int = 1, dilation: int = 1, axes: int = 2) -> Model:
    """Padded so that a stride of 1 keeps the size."""
    depthwise = groups == c > 1
    family = "depthwise" if depthwise else "groups" if groups > 1 else f"{axes}-D convolution"
    words = [f"s{stride}"] * (stride > 1) + [f"g{groups}"] * (groups > 1 and not depthwise) + [f"d{dilation}"] * (dilation > 1)
    name = " ".join([f"{family} {'x'.join([str(k)] * axes)} {c}->{o} @{size}", *words])
    rng, pad, fan_in = _seeded(name), dilation * (k - 1) // 2, c // groups * k**axes
    x = _normal(rng, 1, c, *[size] * axes)
    weights = {"w": _normal(rng, o, c // groups, *[k] * axes, fan_in=fan_in), "b": _normal(rng, o)}
    out = (size + 2 * pad - dilation * (k - 1) - 1) // stride + 1
    return _single(
        name, family, "Conv", x, weights, 2.0 * o * out**axes * fan_in,
        strides=[stride] * axes, pads=[pad] * 2 * axes, dilations=[dilation] * axes, group=groups,
    )  # fmt: skip


def transposed(c: int, size: int, k: int, o: int, stride: int) -> Model:
    """A transposed convolution that multiplies the size by its stride."""
    name = f"transposed convolution {k}x{k} {c}->{o} @{size} s{stride}"
    rng = _seeded(name)
    weights = {"w": _normal(rng, c, o, k, k, fan_in=c * k * k / stride**2), "b": _normal(rng, o)}
    x = _normal(rng, 1, c, size, size)
    pads = [(k - stride) // 2] * 4
    return _single(
        name,
        "transposed convolution",
        "ConvTranspose",
        x,
        weights,
        2.0 * c * o * (size * k) ** 2,
        strides=[stride] * 2,
        pads=pads,
    )


def pooling(op: str, c: int, size: int, k: int = 0, stride: int = 0) -> Model:
    name = " ".join([f"{op} {c}@{size}", *[f"{k}x{k} s{stride}"] * (k > 0)])
    attributes = {"kernel_shape": [k, k], "strides": [stride] * 2, "pads": [(k - 1) // 2] * 4} if k else {}
    return _single(name, "pools", op, _normal(_seeded(name), 1, c, size, size), {}, 0, **attributes)


def recurrent(op: str, steps: int, batch: int, width: int) -> Model:
    name = f"{op} T{steps} B{batch} H{width}"
    rng, gates = _seeded(name), {"LSTM": 4, "GRU": 3}[op]
    weights = {key: _normal(rng, 1, gates * width, width, fan_in=width) for key in ("w", "r")} | {
        "b": _normal(rng, 1, 2 * gates * width)
    }
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    return _single(
        name,
        op,
        op,
        _normal(rng, steps, batch, width),
        weights,
        4.0 * steps * batch * gates * width**2,
        hidden_size=width,
        **more,
    )


def linear(rows: int, k: int, n: int) -> Model:
    name = f"linear {rows}x{k}x{n}"
    rng = _seeded(name)
    weights = {"w": _normal(rng, n, k, fan_in=k), "b": _normal(rng, n)}
    return _single(name, "linear", "Gemm", _normal(rng, rows, k), weights, 2.0 * rows * k * n, transB=1)


def rowwise(op: str, rows: int, columns: int) -> Model:
    name = f"{op} {rows}x{columns}"
    rng = _seeded(name)
    weights = {"w": _normal(rng, columns), "b": _normal(rng, columns)} if op == "LayerNormalization" else {}
    return _single(name, "rows", op, 3 * _normal(rng, rows, columns), weights, 0, axis=-1)


# (channels, size, kernel, ...), the arguments of `convolution` or some of them
_PLAIN = (
    (64, 56, 3, 64), (256, 14, 3, 256), (512, 7, 3, 512), (64, 56, 3, 128, 2), (64, 56, 1, 256), (256, 14, 1, 1024),
    (960, 7, 1, 160), (3, 224, 7, 64, 2), (3, 224, 3, 32, 2), (32, 56, 5, 64), (40, 28, 7, 40), (64, 28, 3, 64, 1, 1, 2),
)  # fmt: skip
_DEPTHWISE = (
    (32, 112, 3, 1), (576, 14, 3, 1), (960, 7, 3, 1), (64, 112, 3, 2), (144, 56, 3, 2), (120, 28, 5, 1), (72, 56, 5, 2),
    (672, 14, 5, 2), (96, 56, 7, 1), (384, 14, 7, 1),
)  # fmt: skip
_GROUPS = ((128, 16, 4), (128, 56, 32), (256, 28, 8), (256, 28, 32))
_SEQUENCES = ((64, 4000, 3, 64, 1), (128, 160, 5, 128, 1), (80, 3000, 3, 512, 1), (32, 10000, 11, 32, 4))


def layers() -> Iterator[Model]:
    """Layers on shapes of real networks."""
    for plain in _PLAIN:
        yield convolution(*plain)
    for c, size, k, stride in _DEPTHWISE:
        yield convolution(c, size, k, c, stride, c)
    for c, size, groups in _GROUPS:
        yield convolution(c, size, 3, c, groups=groups)
    for c, size, k, o, dilation in _SEQUENCES:
        yield convolution(c, size, k, o, dilation=dilation, axes=1)
    for c, size, k, o in ((64, 32, 4, 32), (128, 8, 4, 64), (256, 14, 2, 128)):
        yield transposed(c, size, k, o, 2)
    yield pooling("MaxPool", 64, 112, 3, 2)
    yield pooling("AveragePool", 128, 56, 2, 2)
    yield pooling("GlobalAveragePool", 2048, 7)
    for op in ("LSTM", "GRU"):
        for steps, batch, width in ((1, 1, 128), (100, 1, 64), (100, 1, 256), (100, 16, 256)):
            yield recurrent(op, steps, batch, width)
    for rows, k, n in ((1, 256, 256), (1, 4096, 4096), (8, 1024, 1024), (128, 768, 3072)):
        yield linear(rows, k, n)
    yield rowwise("Softmax", 1536, 128)
    yield rowwise("Softmax", 6144, 512)
    yield rowwise("LayerNormalization", 128, 768)


def from_file(path: str, shapes: Sequence[str]) -> Model:
    """A file with inputs of normal numbers, or ones for integers; open sizes of which `shapes` says nothing are 1."""
    import fastlayers as fl

    told = dict(text.split("=", 1) for text in shapes)
    rng, feeds = np.random.default_rng(0), {}
    for spec in fl.load(path).inputs:
        shape = [d if isinstance(d, int) else 1 for d in spec.shape or ()]
        if spec.name in told:
            shape = [int(d) for d in told[spec.name].split(",")]
        feeds[spec.name] = (rng.standard_normal(shape) if spec.dtype.kind == "f" else np.ones(shape)).astype(spec.dtype)
    return Model(Path(path).stem, "models", Path(path).read_bytes(), feeds)


# ---- the engines, each in its own process -------------------------------------------------------------------------------


class _Ours:
    """Our network, which can also say of its steps what they cost."""

    def __init__(self, model: Model, threads: int, precision: str = "default") -> None:
        import fastlayers as fl

        fl.set_num_threads(threads)
        self.loaded, self.feeds = fl.load(model.content, precision=precision), model.feeds

    def __call__(self) -> Sequence[np.ndarray]:
        return list(self.loaded.run(self.feeds).values())

    def about(self, runs: int) -> dict[str, Any]:
        """The kernels, the seconds of a run at the machine's limit, and what runs in numpy."""
        report = self.loaded.profile(self.feeds, runs)
        least = sum(report.least(step) * step.rounds for step in report.steps)
        numpy: dict[str, int] = {}
        for step in report.numpy_steps:
            if step.rounds or not report.staged:  # of stages, those that ran
                numpy[step.step.op] = numpy.get(step.step.op, 0) + 1
        return {
            "variant": report.variant, "least": least, "multiply_adds": report.multiply_adds,
            "staged": report.staged, "numpy": numpy, "numpy_share": sum(map(report.share, report.numpy_steps)),
        }  # fmt: skip


def _fastlayers(model: Model, threads: int) -> Call:
    return _Ours(model, threads)


def _onnxruntime(model: Model, threads: int) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    session = onnxruntime.InferenceSession(model.content, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, model.feeds)


def _openvino(model: Model, threads: int) -> Call:
    import openvino  # type: ignore[import-not-found]

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(model.content), "CPU", settings)
    request = compiled.create_infer_request()
    # A tensor may have several names: an input that is only reshaped has its result's too.
    names = {port: next(name for name in port.get_names() if name in model.feeds) for port in compiled.inputs}
    given = {port: openvino.Tensor(np.ascontiguousarray(model.feeds[name])) for port, name in names.items()}

    def call() -> list[np.ndarray]:
        for port, tensor in given.items():
            request.set_tensor(port, tensor)
        request.infer()
        return [request.get_tensor(port).data for port in compiled.outputs]

    return call


def _opencv(model: Model, threads: int) -> Call:
    import cv2  # type: ignore[import-not-found]
    from onnx import load_from_string
    from onnx.shape_inference import infer_shapes

    cv2.setNumThreads(threads)
    told = infer_shapes(load_from_string(model.content)).SerializeToString()  # it refuses outputs without a shape
    net = cv2.dnn.readNetFromONNX(np.frombuffer(told, np.uint8))
    names = net.getUnconnectedOutLayersNames()

    def call() -> Sequence[np.ndarray]:
        for name, array in model.feeds.items():
            net.setInput(array, name)
        return net.forward(names)  # type: ignore[no-any-return]

    return call


@contextmanager
def _silenced() -> Iterator[None]:
    """Without what a library writes to the standard output past Python."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def _mnn(model: Model, threads: int) -> Call:
    import _tools  # type: ignore[import-not-found]  # of MNN: the command of the package also installs a module that sends statistics
    import MNN  # type: ignore[import-not-found]
    from onnx import load_from_string
    from onnx.shape_inference import infer_shapes

    graph = infer_shapes(load_from_string(model.content)).graph
    outputs = {value.name: len(value.type.tensor_type.shape.dim) for value in graph.output}
    with TemporaryDirectory() as folder, _silenced():
        written, made = os.path.join(folder, "network.onnx"), os.path.join(folder, "network.mnn")
        Path(written).write_bytes(model.content)
        _tools.mnnconvert(["", "-f", "ONNX", "--modelFile", written, "--MNNModel", made, "--bizCode", "bench"])
        runtime = MNN.nn.create_runtime_manager(({"backend": "CPU", "numThread": threads, "precision": "high"},))
        net = MNN.nn.load_module_from_file(made, list(model.feeds), list(outputs), runtime_manager=runtime)
    kinds = {"float32": MNN.expr.float, "int32": MNN.expr.int, "int64": MNN.expr.int}
    plain = {name: np.ascontiguousarray(a.astype(np.int32) if a.dtype == np.int64 else a) for name, a in model.feeds.items()}
    given = [MNN.expr.const(a, list(a.shape), MNN.expr.NCHW, kinds[a.dtype.name]) for a in plain.values()]

    kept: list[Any] = []

    def call() -> list[np.ndarray]:
        kept[:] = [MNN.expr.convert(found, MNN.expr.NCHW) for found in net.onForward(given)]
        # They are arrays in the memory of these, which they do not keep. A sequence has an axis more there.
        ranks = zip([found.read() for found in kept], outputs.values(), strict=True)
        return [a[..., 0] if a.ndim == axes + 1 and a.shape[-1] == 1 else a for a, axes in ranks]

    return call


ENGINES = {
    "fastlayers": _fastlayers, "onnxruntime": _onnxruntime, "openvino": _openvino, "opencv": _opencv, "mnn": _mnn,
}  # fmt: skip
# Of those that may be missing, what is imported.
_MODULES = {"openvino": "openvino", "opencv": "cv2", "mnn": "MNN"}


def present() -> list[str]:
    """The engines that can take part here."""
    return [name for name in ENGINES if name not in _MODULES or find_spec(_MODULES[name])]


def _serve(pipe: Connection, engine: str, threads: int) -> None:
    """A process of one engine: takes models, answers with results and times, until it is told to stop."""
    call: Call | None = None
    while True:
        order, value = pipe.recv()
        try:
            if order == "stop":
                return
            if order == "model":
                call = ENGINES[engine](value, threads)
                pipe.send(("ok", [np.array(a) for a in call()]))
            elif order == "about":
                pipe.send(("ok", call.about(value) if isinstance(call, _Ours) else {}))
            elif call is None:
                pipe.send(("failed", "no model"))
            else:
                # One by one: a call that comes after another engine's burst is what is asked for, and the median is of calls.
                pipe.send(("ok", take_turns({engine: call}, 1, value, 0.0)[engine].samples))
        except Exception as error:  # an engine that cannot run a model is told of, not hidden
            pipe.send(("failed", f"{type(error).__name__}: {str(error).splitlines()[:1]}"))


class _Engine:
    def __init__(self, name: str, threads: int) -> None:
        self.name, self.threads = name, threads
        self.begin()

    def begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.name, self.threads), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, order: str, value: object) -> tuple[str, Any]:
        try:
            self.pipe.send((order, value))
            return self.pipe.recv()  # type: ignore[no-any-return]
        except (EOFError, OSError):
            if self.name != "fastlayers":  # one network that kills a peer does not spare it the others
                self.begin()
            return "failed", "its process died"

    def stop(self) -> None:
        try:
            self.pipe.send(("stop", None))
        except OSError:
            return
        self.process.join(5)


def start(threads: int, without: Sequence[str] = (), variant: str = "") -> dict[str, _Engine]:
    """The processes of the engines. `variant`: kernels that ours has to use, such as "x86_v3"; the peers use what they like."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    before = os.environ.get("FASTLAYERS_ISA")
    if variant:
        os.environ["FASTLAYERS_ISA"] = variant
    try:
        return {name: _Engine(name, threads) for name in present() if name not in without}
    finally:
        if variant:
            os.environ.pop("FASTLAYERS_ISA")
            if before is not None:
                os.environ["FASTLAYERS_ISA"] = before


def _apart(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> float:
    """The largest difference, as a part of the largest result."""
    if [a.shape for a in got] != [a.shape for a in want]:
        return math.inf
    gaps = [0.0]
    for g, w in zip(got, want, strict=True):
        if w.size:
            gaps.append(float(np.max(np.abs(g.astype(float) - w))) / max(1e-2, float(np.max(np.abs(w)))))
    return max(gaps)


def answers(engines: Mapping[str, _Engine], model: Model, tolerance: float = TOLERANCE) -> tuple[list[str], dict[str, str]]:
    """The engines whose results count, each of which has run the model once; and of others, what went wrong."""
    notes: dict[str, str] = {}
    results: dict[str, list[np.ndarray]] = {}
    for name, engine in engines.items():
        state, value = engine.ask("model", model)
        if state == "ok":
            results[name] = value
        else:
            notes[name] = value
    wanted = results.get("onnxruntime")
    for name in [name for name in results if wanted is not None and name != "onnxruntime"]:
        gap = _apart(results[name], wanted or ())
        if not gap <= (tolerance if name == "fastlayers" else max(OTHERS, tolerance)):
            notes[name] = f"differs from ONNX Runtime by {gap:.1e} of the largest result"
            del results[name]
        elif gap > tolerance:
            notes[name] = f"counts, though {gap:.1e} of the largest result from ONNX Runtime's"
    return list(results), notes


def bursts(engines: Mapping[str, _Engine], names: Sequence[str], seconds: float, rounds: int) -> dict[str, Times]:
    """The times of the model that these engines have last got: so many bursts of each, in turn."""
    samples: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            state, value = engines[name].ask("time", seconds / rounds)
            if state == "ok":
                samples[name] += value
    return {name: times_of(found) for name, found in samples.items() if found}


def measure(engines: Mapping[str, _Engine], model: Model, seconds: float, rounds: int) -> dict[str, Any]:
    """A row: the times of every engine, and what went wrong."""
    names, notes = answers(engines, model)
    times = bursts(engines, names, seconds, rounds)
    return {
        "name": model.name, "family": model.family, "flops": model.flops, "times": times,
        "ratio": ratio({name: found.best for name, found in times.items()}), "notes": notes,
    }  # fmt: skip


def ratio(times: Mapping[str, float]) -> float | None:
    """The time of the fastest peer over ours; None if there is no such pair."""
    ours, peers = times.get("fastlayers"), [seconds for name, seconds in times.items() if name != "fastlayers"]
    return min(peers) / ours if ours and peers else None


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float, int]]:
    """For each family, and for "all": the geometric mean of the ratios, the least, and how many there are."""
    families: dict[str, list[float]] = {}
    for row in rows:
        if row["ratio"]:
            families.setdefault(row["family"], []).append(row["ratio"])
            families.setdefault("all", []).append(row["ratio"])
    last = families.pop("all", [])
    whole = {**families, **({"all": last} if last else {})}
    return {name: (math.exp(sum(map(math.log, found)) / len(found)), min(found), len(found)) for name, found in whole.items()}


def probe() -> float:
    """Multiply-adds that one core can do in a second, times two."""
    import fastlayers as fl

    if not fl.kernels.current().startswith("aot/"):
        return 0.0
    from fastlayers.kernels.aot import _engine

    probed = take_turns({"probe": lambda: _engine.probe_fma(200_000)}, 20, 0.0, 0.0)["probe"]
    return float(2.0 * _engine.probe_fma(200_000) / probed.best)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="ONNX files; without any, the layers")
    parser.add_argument("--shape", action="append", default=[], help="NAME=1,3,224,224: an input of the models")
    parser.add_argument("--only", default="", help="a word in the names or families of the layers that are wanted")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.25, help="time of each engine and model")
    parser.add_argument("--rounds", type=int, default=5, help="bursts that this time is cut into")
    parser.add_argument("--without", action="append", default=[], choices=[name for name in ENGINES if name != "fastlayers"])
    add_json(parser)
    options = parser.parse_args(arguments)
    models = (from_file(path, options.shape) for path in options.models) if options.models else layers()
    import fastlayers as fl

    engines = start(options.threads, options.without)
    rows = []
    try:
        for model in models:
            if options.only not in model.name and options.only not in model.family:
                continue
            row = measure(engines, model, options.seconds, options.rounds)
            rows.append(row)
            cells = "  ".join(f"{name} {times.best * 1e6:9.1f}" for name, times in row["times"].items())
            ratio = f"{row['ratio']:5.2f}" if row["ratio"] else "  -  "
            print(f"{row['name']:44} {ratio}  {cells}  {row['notes'] or ''}", flush=True)
    finally:
        for engine in engines.values():
            engine.stop()
    for name, (mean, least, count) in summary(rows).items():
        print(f"{name:24} geometric mean {mean:5.2f}  least {least:5.2f}  of {count}")
    if options.json:
        fl.set_num_threads(options.threads)  # as the engine's process has it: the file says so
        found = {row["name"]: row["times"] for row in rows}
        cases = {row["name"]: {key: row[key] for key in ("family", "flops", "ratio", "notes")} for row in rows}
        store(options.json, found, probe=probe(), cases=cases)


if __name__ == "__main__":
    main()

"""Products, convolutions and a whole network of bytes next to onnxruntime: one process, one thread, the two taking turns.

    python -m bench.quantized                       needs onnx and onnxruntime
    python -m bench.quantized MODEL.onnx ...        float networks, quantized by onnxruntime's own tools in six ways,
           [--threads 2] [--made]                   or (--made) networks that are quantized already

The network is MobileNet's pattern (depthwise 3x3, 1x1) with weights at random, as exporters of QLinear operators write it.
Networks in files run in a process for each engine, since one engine's waiting threads would take the other's time; the stopwatch
is the same.
A line says the best time of each, their ratio, and the largest difference of results: in steps, or, of a network in a file,
in parts of its largest result, with the share of results that are equal bit for bit.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

import fastlayers as fl
from bench.timing import Times, add_json, store, take_turns, times_of

Constants = dict[str, np.ndarray]


class Network:
    """An ONNX model under construction: uint8 in, uint8 out."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.nodes: list[Any] = []
        self.constants: Constants = {}
        self.shape = shape
        self.rng = np.random.default_rng(len(shape))
        self.last = "x"

    def constant(self, value: Any, dtype: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.rng.integers(-127, 128, shape), np.int8)

    def node(self, op: str, *inputs: str, **attributes: Any) -> None:
        import onnx

        name = f"y{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(op, list(inputs), [name], **attributes))
        self.last = name

    def quant(self, scale: float = 1.0, zero: int = 128) -> tuple[str, str]:
        return self.constant(scale, np.float32), self.constant(zero, np.uint8)

    def conv(self, c: int, o: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        """Weights with a scale per channel, such that results spread over uint8."""
        spread = 1 / (40 * np.sqrt(c // groups * kernel**2) * 16)
        scales = self.constant(self.rng.uniform(0.7, 1.3, o) * spread, np.float32)
        zeros, bias = self.constant(np.zeros(o), np.int8), self.constant(self.rng.integers(-999, 999, o), np.int32)
        self.node(
            "QLinearConv", self.last, *self.quant(), self.weights(o, c // groups, kernel, kernel), scales, zeros, *self.quant(),
            bias, pads=[kernel // 2] * 4, strides=[stride] * 2, group=groups,
        )  # fmt: skip

    def product(self, k: int, n: int) -> None:
        scales = self.constant(self.rng.uniform(0.7, 1.3, n) / (640 * np.sqrt(k)), np.float32)
        zeros = self.constant(np.zeros(n), np.int8)
        self.node("QLinearMatMul", self.last, *self.quant(), self.weights(k, n), scales, zeros, *self.quant())

    def model(self) -> bytes:
        import onnx
        from onnx import TensorProto

        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            self.nodes, "g", [info("x", TensorProto.UINT8, self.shape)], [info(self.last, TensorProto.UINT8, None)],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )  # fmt: skip
        opsets = [onnx.helper.make_opsetid("", 21)]
        made: bytes = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
        return made


def networks() -> dict[str, Network]:
    """By the names of their lines."""
    found = {}
    for c, o, size, kernel, stride, groups in (
        (64, 64, 56, 3, 1, 1), (128, 128, 28, 3, 1, 1), (256, 256, 14, 3, 1, 1), (64, 256, 56, 1, 1, 1), (512, 128, 28, 1, 1, 1),
        (3, 64, 224, 7, 2, 1), (3, 32, 224, 3, 2, 1), (32, 32, 112, 3, 1, 32), (144, 144, 56, 3, 2, 144),
        (576, 576, 14, 3, 1, 576),
    ):  # fmt: skip
        net = Network((1, c, size, size))
        net.conv(c, o, kernel, stride, groups)
        found[f"{kernel}x{kernel} {c}->{o}@{size} stride {stride} groups {groups}"] = net
    for m, k, n in ((1, 1024, 1024), (128, 768, 768), (128, 768, 3072)):
        net = Network((m, k))
        net.product(k, n)
        found[f"product {m}x{k}->{n}"] = net
    net, c = Network((1, 3, 224, 224)), 32
    net.conv(3, 32, 3, 2)
    for o, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1)):
        net.conv(c, c, 3, stride, c)
        net.conv(c, o, 1)
        c = o
    found["network"] = net
    return found


def feeds_of(session: Any, seed: int) -> dict[str, np.ndarray]:
    """Inputs for a network: floats at random, integers small; open sizes are 1."""
    rng, found = np.random.default_rng(seed), {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in value.shape]
        small = rng.integers(0, 2, shape) if "mask" in value.name else rng.integers(0, 100, shape)
        floats = value.type == "tensor(float)"
        found[value.name] = rng.normal(size=shape).astype(np.float32) if floats else small.astype(np.int64)
    return found


def quantized(path: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The network of a file quantized by onnxruntime: as QLinear operators, as pairs around float operators, and dynamically;
    each with one scale a tensor and with one per channel.
    """
    import onnxruntime
    from onnxruntime import quantization as tools
    from onnxruntime.quantization.shape_inference import quant_pre_process

    plain = folder / "plain.onnx"
    quant_pre_process(str(path), str(plain), skip_symbolic_shape=True)
    session = onnxruntime.InferenceSession(str(plain), providers=["CPUExecutionProvider"])

    class Samples(tools.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [feeds_of(session, seed) for seed in range(3)]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return self.left.pop() if self.left else None

    for per_channel in (False, True):
        label = "a channel" if per_channel else "a tensor"
        for name, form in (("QLinear", tools.QuantFormat.QOperator), ("QDQ", tools.QuantFormat.QDQ)):
            made = folder / f"{name}{per_channel}.onnx"
            tools.quantize_static(
                str(plain), str(made), Samples(), quant_format=form, per_channel=per_channel,
                activation_type=tools.QuantType.QUInt8, weight_type=tools.QuantType.QInt8,
            )  # fmt: skip
            yield f"{path.stem} {name}, a scale {label}", made
        made = folder / f"dynamic{per_channel}.onnx"
        tools.quantize_dynamic(str(plain), str(made), per_channel=per_channel, weight_type=tools.QuantType.QUInt8)
        yield f"{path.stem} dynamic, a scale {label}", made


def serve(pipe: Any, engine: str, path: Path, threads: int) -> None:
    """One engine's process: loads the network, then answers with its first result, or with the times of some runs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # what onnxruntime's tools make, it may refuse
        pipe.send(error.args[0].splitlines()[0])
        return
    feeds = feeds_of(session, 9)
    run: Callable[[], Any] = lambda: session.run(None, feeds)[0]  # noqa: E731
    if engine == "ours":
        del session
        fl.set_num_threads(threads)
        model = fl.load(path, mmap=False)
        run = lambda: next(iter(model.run(feeds).values()))  # noqa: E731
    pipe.send(run())
    while seconds := pipe.recv():
        pipe.send(take_turns({engine: run}, 1, seconds, 0.0)[engine].samples)


def compared(name: str, path: Path, threads: int, rounds: int) -> tuple[str, dict[str, Times]]:
    """The line of a network, and the times that it is made of; none if onnxruntime refuses it."""
    context, results = multiprocessing.get_context("spawn"), {}
    samples: dict[str, list[float]] = {"ours": [], "theirs": []}
    pipes, processes = {}, []
    for engine in samples:
        pipes[engine], other = context.Pipe()
        processes.append(context.Process(target=serve, args=(other, engine, path, threads), daemon=True))
        processes[-1].start()
        results[engine] = pipes[engine].recv()
    wrong = [result for result in results.values() if isinstance(result, str)]
    burst = 0.0
    for _ in range(0 if wrong else max(rounds // 20, 1)):
        for engine, pipe in pipes.items():
            sleep(0.02)  # until the other's threads have gone to sleep
            if not burst:  # of about 20 runs: short bursts would be of threads that are waking up
                pipe.send(1e-9)
                burst = 20 * max(pipe.recv())
            pipe.send(burst)
            samples[engine] += pipe.recv()
    for pipe, process in zip(pipes.values(), processes, strict=True):
        if not wrong:
            pipe.send(0)
        process.join()
    if wrong:
        return f"{name:44s} onnxruntime refuses it: {wrong[0][:100]}", {}
    found, want = results.values()
    ours, theirs = times_of(samples["ours"]), times_of(samples["theirs"])
    speed, best = theirs.best / ours.best, f"{ours.best * 1e3:8.2f} ms  onnxruntime {theirs.best * 1e3:8.2f} ms"
    differs, equal = np.abs(found - want).max() / np.abs(want).max(), (found == want).mean()
    line = f"{name:44s} {threads} thread(s) {best}  ahead {speed:.2f}  differs by {differs:.1e}, equal {equal:.1%}"
    return line, {"fastlayers": ours, "onnxruntime": theirs}


def whole(paths: list[Path], threads: int, rounds: int, made: bool) -> dict[str, dict[str, Times]]:
    """A line for each form of each network; their times."""
    times = {}
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            for name, file in [(path.stem, path)] if made else quantized(path, Path(folder)):
                line, times[name] = compared(name, file, threads, rounds)
                print(line, flush=True)
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1, help="of networks in files")
    parser.add_argument("--made", action="store_true", help="the files are quantized")
    parser.add_argument("--only", default="", help="of the networks made here those whose names have this")
    add_json(parser)
    given = parser.parse_args(arguments)
    rounds = given.rounds
    if given.models:
        print(f"variant={fl.kernels.info()['variant']}, onnxruntime {onnxruntime.__version__}")
        found = whole(given.models, given.threads, rounds, given.made)
        fl.set_num_threads(given.threads)  # as the processes had it: the file says so
        store(given.json, found, onnxruntime=onnxruntime.__version__)
        return
    fl.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    print(f"variant={fl.kernels.info()['variant']}, onnxruntime {onnxruntime.__version__}")
    found = {}
    for name, net in networks().items():
        if given.only not in name:
            continue
        file = net.model()
        model = fl.load(file)
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        x = np.random.default_rng(0).integers(0, 256, net.shape).astype(np.uint8)
        feeds = {"x": x}
        wrong = np.abs(model(x).astype(int) - session.run(None, feeds)[0].astype(int)).max()
        calls = {
            "fastlayers": lambda model=model, x=x: model(x),
            "onnxruntime": lambda session=session, feeds=feeds: session.run(None, feeds),
        }
        times = found[name] = take_turns(calls, rounds, 0.0, 0.0)
        ours, theirs = times["fastlayers"].best, times["onnxruntime"].best
        line = f"{ours * 1e6:9.1f} us  onnxruntime {theirs * 1e6:9.1f} us  ratio {ours / theirs:.2f}"
        print(f"{name:44s} {line}  differs by {wrong}")
    store(given.json, found, onnxruntime=onnxruntime.__version__)


if __name__ == "__main__":
    main()

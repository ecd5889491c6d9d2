"""Weights of 16, 8 and 4 bits: time and error of each next to float32, and next to OpenVINO computing in bfloat16.

    python -m bench.half [--rounds 20] [--only lstm]        needs onnx; openvino where it is installed
    python -m bench.half MODEL.onnx ...                     networks in files

One thread, one process, all of them in turns. A line says the best time of float32 in milliseconds, how many times as fast the
others are, and the largest difference from float32's results, of the largest of these.

Inputs of a network in a file are at random, or those of MODEL.npz ("in NAME": array). Its line says the worst error, as a share
of the largest result, and the rms error, as one of the rms result, against MODEL.double.npz (results in float64 by their order),
or where there is none against `precision="strict"`, whose own errors are a thousandth of these. Of several results the worst
counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl
from bench.timing import Times, add_json, store, take_turns

STEPS = 50  # of a recurrent layer
WAYS = ("float32", "float16", "bfloat16", "int8", "int4")  # to store weights


def network(op: str, rows: int, k: int, n: int) -> bytes:
    """A product, or a recurrent layer of n units over sequences of k features, one after the other."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    if op == "linear":
        arrays = {"w": rng.normal(size=(k, n)) / np.sqrt(k), "b": rng.normal(size=n)}
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
        shape: tuple[int, ...] = (rows, k)
    else:
        gates = {"LSTM": 4, "GRU": 3}[op]
        arrays = {"w": rng.normal(size=(1, gates * n, k)) / np.sqrt(k), "r": rng.normal(size=(1, gates * n, n)) / np.sqrt(n),
                  "b": rng.normal(size=(1, 2 * gates * n)) / 4}  # fmt: skip
        more = {"linear_before_reset": 1} if op == "GRU" else {}
        nodes = [helper.make_node(op, ["x", "w", "r", "b"], ["y"], hidden_size=n, **more)]
        shape = (STEPS, rows, k)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, shape)], [info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a.astype(np.float32), name) for name, a in arrays.items()],
    )  # fmt: skip
    made: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    assert onnx.__version__
    return made


def networks() -> dict[str, bytes]:
    """By the names of their lines."""
    found = {}
    for op in ("LSTM", "GRU"):
        for h in (128, 256, 512, 1024):
            found[f"{op.lower()} {h}, batch 1"] = network(op, 1, h, h)
    found["lstm 512, batch 8"] = network("LSTM", 8, 512, 512)
    for rows, k, n in (
        (1, 1024, 1024),
        (1, 4096, 4096),
        (1, 1024, 4096),
        (8, 4096, 4096),
        (128, 768, 3072),
        (1, 2048, 8192),
        (128, 2048, 8192),
    ):
        found[f"linear {rows}x{k}x{n}"] = network("linear", rows, k, n)
    return found


def openvino(file: bytes, x: np.ndarray) -> Callable[[], np.ndarray] | None:
    """The network under OpenVINO in bfloat16; None where it is not installed."""
    try:
        from openvino import Core, Tensor
    except ImportError:
        return None
    core: Any = Core()
    options = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(core.read_model(file, b""), "CPU", options).create_infer_request()
    request.set_input_tensor(Tensor(x, shared_memory=True))

    def call() -> np.ndarray:
        request.infer()
        result: np.ndarray = request.get_output_tensor(0).data
        return result

    return call


def feeds(path: Path, model: fl.Model) -> dict[str, np.ndarray]:
    """Inputs for a network in a file: see the module."""
    beside = path.with_suffix(".npz")
    if beside.exists():
        with np.load(beside) as file:
            return {name.removeprefix("in "): file[name] for name in file.files}
    rng = np.random.default_rng(1)
    shapes = {value.name: (value.dtype, [d if isinstance(d, int) else 1 for d in value.shape or ()]) for value in model.inputs}
    return {
        name: rng.normal(size=shape).astype(dtype) if dtype.kind == "f" else rng.integers(0, 2, shape).astype(dtype)
        for name, (dtype, shape) in shapes.items()
    }


def errors(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> tuple[float, float]:
    """The worst and the rms error: see the module."""
    worst = rms = 0.0
    for result, want in zip(found, wanted, strict=True):
        if want.dtype.kind == "f" and want.size:
            apart, size = np.abs(result.astype(np.float64) - want), np.abs(want.astype(np.float64))
            worst = max(worst, float(apart.max() / max(size.max(), 1e-300)))
            rms = max(rms, float(np.sqrt((apart**2).mean() / max((size**2).mean(), 1e-300))))
    return worst, rms


def files(paths: Sequence[Path], rounds: int) -> dict[str, dict[str, Times]]:
    """Time and error of networks in files."""
    found: dict[str, dict[str, Times]] = {}
    errors_of = f"{'worst':>8} {'rms':>8}"
    print(f"{'':44} {'float32':>9} {errors_of} " + " ".join(f"{way:>8} {errors_of}" for way in WAYS[1:]))
    for path in paths:
        models = {way: fl.load(path, weights=way) for way in WAYS}
        given, double = feeds(path, models["float32"]), path.with_suffix(".double.npz")
        if double.exists():
            with np.load(double) as file:
                wanted = [file[name] for name in sorted(file.files)]
        else:
            wanted = list(fl.load(path, precision="strict").run(given).values())
        calls = {p: partial(model.run, given) for p, model in models.items()}
        results = {p: errors(list(call().values()), wanted) for p, call in calls.items()}
        times = found[path.stem] = take_turns(calls, rounds)
        line = f"{path.stem:44} {times['float32'].best * 1e3:9.3f}"
        for p, (worst, rms) in results.items():
            line += "" if p == "float32" else f" {times['float32'].best / times[p].best:8.2f}"
            line += f" {worst:8.1e} {rms:8.1e}"
        print(line, flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.half", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="lines whose names have this")
    add_json(parser)
    options = parser.parse_args(arguments)
    fl.set_num_threads(1)
    print(f"variant={fl.kernels.info()['variant']}, one thread")
    if options.models:
        store(options.json, files(options.models, options.rounds))
        return
    print(f"{'':22} {'float32':>9} " + " ".join(f"{way:>8} {'error':>8}" for way in (*WAYS[1:], "openvino")))
    found: dict[str, dict[str, Times]] = {}
    for name, file in networks().items():
        if options.only not in name:
            continue
        models = {way: fl.load(file, weights=way) for way in WAYS}
        x = np.random.default_rng(1).normal(size=models["float32"].inputs[0].shape).astype(np.float32)
        calls: dict[str, Callable[[], Any]] = {p: partial(model, x) for p, model in models.items()}
        peer = openvino(file, x)
        if peer is not None:
            calls["openvino"] = peer
        results = {key: np.array(call()).reshape(-1) for key, call in calls.items()}
        times = found[name] = take_turns(calls, options.rounds)
        whole = results.pop("float32")
        line = f"{name:22} {times['float32'].best * 1e3:9.3f}"
        for key, result in results.items():
            error = np.abs(result - whole).max() / np.abs(whole).max()
            line += f" {times['float32'].best / times[key].best:8.2f} {error:8.1e}"
        print(line, flush=True)
    store(options.json, found)


if __name__ == "__main__":
    main()

"""Products with weights of 4 and 8 bits (MatMulNBits) next to onnxruntime: one process, the two taking turns in bursts.

    python -m bench.nbits [--threads 1] [--bits 4 8] [--levels 0 4] [--rows 1 4 8 32 128] [--only 2048x2048]
    python -m bench.nbits --memory [--threads 1] [--bits 4 8] [--levels 0 4]

needs onnx and onnxruntime. A line says the best time of each, what onnxruntime takes of ours, and the largest difference of the
results as a part of the largest result. With --memory: products of one row with many matrices, more than caches hold, beside
plain reading of as many bytes by as many threads.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import fastlayers as fl
from bench.timing import Times, add_json, store, take_turns
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import NBITS_SUMS, Activation

SHAPES = ((2048, 2048), (2048, 8192), (8192, 2048), (4096, 4096), (896, 4864))  # terms, columns
BLOCK = 32


def model(k: int, n: int, bits: int, level: int) -> bytes:
    """A product alone, of any number of rows."""
    import onnx
    from onnx import TensorProto

    rng, info = np.random.default_rng(k + n), onnx.helper.make_tensor_value_info
    weights = rng.integers(0, 256, (n, k // BLOCK, BLOCK * bits // 8)).astype(np.uint8)
    scales = (rng.uniform(0.5, 1.5, (n, k // BLOCK)) / (np.sqrt(k) * 2 ** (bits - 2))).astype(np.float32)
    node = onnx.helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=BLOCK, accuracy_level=level
    )
    constants = [onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(scales, "s")]
    graph = onnx.helper.make_graph(
        [node], "g", [info("x", TensorProto.FLOAT, ("m", k))], [info("y", TensorProto.FLOAT, ("m", n))], constants
    )
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    made: bytes = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return made


def session_of(file: bytes, threads: int) -> Any:
    """onnxruntime with so many threads, which sleep when they have nothing to do: ours would have to share their cores."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads == 1 else "0")
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def from_memory(bits: int, sums: str, threads: int, seconds: float) -> tuple[str, dict[str, Times]]:
    """Products of one row with 4096x4096 matrices of 128 MB and more, and reading as much: a line, and the times."""
    engine, rng, k = dispatch.engine(), np.random.default_rng(0), 4096
    assert engine is not None
    scales = rng.uniform(0.5, 1.5, (k, k // BLOCK)).astype(np.float32)
    x, out, packed = rng.standard_normal((1, k)).astype(np.float32), np.empty((1, k), np.float32), []
    while sum(p.nbytes for p in packed) < 128 << 20:
        weights = rng.integers(0, 256, (k, k // BLOCK, BLOCK * bits // 8)).astype(np.uint8)
        packed.append(dispatch.kernel("nbits_pack")(weights, scales, None, None, k, bits))
    size, product = sum(p.nbytes for p in packed), dispatch.kernel("nbits")
    parts = [np.ones(size // 4 // threads, np.float32) for _ in range(threads)]  # written: pages that never were are none
    with ThreadPoolExecutor(threads) as pool:
        calls = {
            "product": lambda: [product(x, p, out, NBITS_SUMS[sums], Activation(0)) for p in packed],
            "reading": lambda: list(pool.map(engine.probe_read, parts)) if threads > 1 else engine.probe_read(parts[0]),
        }
        times = take_turns(calls, 10, seconds / 10, 0.0)
    own, reading = size / times["product"].best, size / times["reading"].best
    name = f"{bits} bits {sums} from memory"
    print(f"{name:38s} {own / 1e9:9.1f} GB/s  reading {reading / 1e9:9.1f} GB/s  share {own / reading:5.2f}", flush=True)
    return name, times


def main(arguments: Sequence[str] | None = None) -> None:
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bits", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 4])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4, 8, 32, 128])
    parser.add_argument("--only", default="", help="of the shapes those whose names have this")
    parser.add_argument("--memory", action="store_true", help="one row's share of the speed at which memory is read")
    parser.add_argument("--seconds", type=float, default=0.4, help="for each line and engine")
    add_json(parser)
    given = parser.parse_args(arguments)
    fl.set_num_threads(given.threads)
    print(f"variant={fl.kernels.info()['variant']}, onnxruntime {onnxruntime.__version__}, {given.threads} thread(s)")
    found: dict[str, dict[str, Times]] = {}
    if given.memory:
        sums = ["integer" if level == 4 else "exact" for level in given.levels]
        store(given.json, dict(from_memory(bits, each, given.threads, given.seconds) for bits in given.bits for each in sums))
        return
    for k, n in SHAPES:
        for bits in given.bits if given.only in f"{k}x{n}" else ():
            for level in given.levels:
                file = model(k, n, bits, level)
                ours, theirs = fl.load(file), session_of(file, given.threads)
                for rows in given.rows:
                    x = np.random.default_rng(0).standard_normal((rows, k)).astype(np.float32)
                    want = theirs.run(None, {"x": x})[0]
                    differs = np.abs(ours(x) - want).max() / np.abs(want).max()
                    calls = {
                        "fastlayers": lambda ours=ours, x=x: ours(x),
                        "onnxruntime": lambda theirs=theirs, x=x: theirs.run(None, {"x": x}),
                    }
                    name = f"{k}x{n} {bits} bits level {level} rows {rows}"
                    times = found[name] = take_turns(calls, 10, given.seconds / 10, 0.0)
                    own, other = times["fastlayers"].best, times["onnxruntime"].best
                    line = f"{own * 1e6:9.1f} us  onnxruntime {other * 1e6:9.1f} us  ahead {other / own:5.2f}"
                    print(f"{name:38s} {line}  differs by {differs:.1e}", flush=True)
    store(given.json, found, onnxruntime=onnxruntime.__version__)


if __name__ == "__main__":
    main()

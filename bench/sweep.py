"""Every product, convolution, pooling and recurrent layer of networks, each alone beside the engines of `bench.peers`.

    python -m bench.sweep                             published shapes of mobile networks, ResNets, detectors, encoders
    python -m bench.sweep onnx "timm mobile"          and layers of the networks of `bench.network_files` that these words name
    python -m bench.sweep --only 1x1 --threads 2 --shard 1/4 --json quarter.json

A line has the ratio of `bench.peers`, the times in microseconds, and the share of what the processor's multiply-adds could do.
The table at the end has the worst ratio first. A layer is measured once, however many networks have it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench import network_files
from bench.peers import Model, convolution, linear, measure, pooling, probe, recurrent, start, summary
from bench.timing import add_json, store

__all__ = ["layers_of", "published", "sharded"]

OPERATORS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "MaxPool", "AveragePool", "GlobalAveragePool", "LSTM", "GRU", "RNN")

# 1x1 convolutions: channels in, side, channels out
_MOBILE = (
    (16, 112, 16), (32, 112, 16), (16, 112, 96), (96, 56, 24), (24, 56, 144), (144, 28, 32), (32, 28, 192), (192, 14, 64),
    (64, 14, 384), (384, 14, 96), (96, 14, 576), (576, 7, 160), (160, 7, 960), (960, 7, 160), (960, 7, 320), (320, 7, 1280),
    (72, 28, 40), (40, 28, 120), (240, 14, 80), (80, 14, 480), (480, 14, 112), (112, 14, 672), (672, 7, 192), (1152, 7, 320),
    (116, 14, 116), (464, 7, 1024), (58, 28, 58),
)  # fmt: skip
_RESNET = (
    (64, 56, 64), (64, 56, 256), (256, 56, 64), (256, 56, 128), (128, 28, 512), (512, 28, 128), (512, 28, 256), (256, 14, 1024),
    (1024, 14, 256), (1024, 14, 512), (512, 7, 2048), (2048, 7, 512),
)  # fmt: skip
_DETECTORS = (
    (48, 80, 32), (64, 80, 64), (128, 40, 64), (192, 40, 128), (256, 26, 128), (512, 13, 256), (256, 20, 256), (384, 20, 256),
    (64, 80, 80), (1024, 13, 512), (128, 40, 80), (256, 20, 80),
)  # fmt: skip
# Other kernels: the arguments of `convolution`
_KERNELS = (
    (3, 224, 3, 16, 2), (16, 56, 3, 16), (64, 56, 3, 64), (128, 28, 3, 128), (256, 14, 3, 256), (512, 7, 3, 512),
    (128, 56, 3, 128, 2), (256, 28, 3, 256, 2), (3, 640, 3, 16, 2), (16, 320, 3, 32, 2), (32, 80, 3, 32), (64, 40, 3, 64),
    (128, 20, 3, 128), (3, 224, 16, 192, 16), (40, 28, 7, 40), (64, 14, 7, 64), (24, 28, 7, 24), (16, 28, 5, 16),
    (32, 14, 5, 32), (8, 32, 3, 8), (1, 28, 3, 32), (32, 28, 3, 64),
)  # fmt: skip
_DEPTHWISE = (
    (96, 112, 3, 2), (144, 56, 3, 1), (192, 28, 3, 1), (192, 28, 3, 2), (384, 14, 3, 1), (576, 14, 3, 2), (960, 7, 3, 1),
    (960, 7, 5, 1), (240, 28, 5, 2), (480, 14, 5, 1), (116, 14, 3, 1), (232, 14, 3, 2),
)  # fmt: skip
_SEQUENCES = ((80, 100, 9, 128), (64, 500, 9, 64), (256, 100, 9, 256), (128, 400, 1, 256), (256, 100, 3, 256), (1, 16000, 9, 32))
_PRODUCTS = (
    (1, 784, 128), (3, 784, 300), (8, 784, 300), (32, 784, 256), (32, 128, 10), (64, 2048, 10), (1, 2048, 1000),
    (1, 1280, 1000), (1, 768, 768), (1, 768, 3072), (16, 384, 384), (16, 384, 1536), (16, 1536, 384), (128, 384, 384),
    (128, 384, 1536), (128, 768, 768), (128, 3072, 768), (197, 192, 576), (49, 768, 768), (1024, 1024, 1024), (1, 64, 64),
    (4, 20, 50),
)  # fmt: skip
_RECURRENT = (
    (30, 64, 64), (20, 4, 300), (20, 4, 128), (1, 1, 256), (50, 1, 128), (100, 8, 128), (50, 32, 256), (10, 2, 64),
    (25, 16, 40),
)  # fmt: skip
_POOLS = (
    ("MaxPool", 64, 112, 3, 2), ("MaxPool", 128, 20, 5, 1), ("MaxPool", 256, 13, 5, 1), ("AveragePool", 256, 28, 3, 1),
    ("AveragePool", 64, 56, 2, 2), ("GlobalAveragePool", 1280, 7), ("GlobalAveragePool", 96, 28),
)  # fmt: skip


def published() -> Iterator[Model]:
    """Layers as papers have them: mobile networks, ResNets, detectors, encoders of texts, small recurrent networks."""
    for c, size, o in (*_MOBILE, *_RESNET, *_DETECTORS):
        yield convolution(c, size, 1, o)
    for plain in _KERNELS:
        yield convolution(*plain)
    for c, size, k, stride in _DEPTHWISE:
        yield convolution(c, size, k, c, stride, c)
    for sequence in _SEQUENCES:
        yield convolution(*sequence, axes=1)
    for product in _PRODUCTS:
        yield linear(*product)
    for op in ("LSTM", "GRU"):
        for cell in _RECURRENT:
            yield recurrent(op, *cell)
    for pool in _POOLS:
        yield pooling(*pool)


def _flops(op: str, shapes: Sequence[Sequence[int]], out: Sequence[int]) -> float:
    """Operations of a layer whose operands have these shapes; 0 for what multiplies little."""
    if op in ("Conv", "Gemm", "MatMul"):  # each result is a sum over what a result's channel, or column, has of weights
        terms = np.prod(shapes[1][1:]) if op == "Conv" else max(shapes[0]) if len(shapes[0]) == 1 else shapes[0][-1]
        return 2.0 * float(np.prod(out)) * float(terms)
    if op == "ConvTranspose":
        return 2.0 * float(np.prod(shapes[0])) * float(np.prod(shapes[1][1:]))
    if op in ("LSTM", "GRU", "RNN"):
        steps, batch, _ = shapes[0]
        return 2.0 * steps * batch * float(np.prod(shapes[1]) + np.prod(shapes[2]))
    return 0.0


def layers_of(content: bytes, feeds: dict[str, np.ndarray], family: str) -> Iterator[Model]:
    """The nodes of an ONNX file that `OPERATORS` has, each a model of its own: weights as they are, other operands drawn."""
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load_from_string(content)
    for spec in model.graph.input:
        if spec.name in feeds:
            spec.CopyFrom(helper.make_tensor_value_info(spec.name, spec.type.tensor_type.elem_type, feeds[spec.name].shape))
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    weights = {t.name: t for t in graph.initializer}
    known: dict[str, tuple[int, list[int]]] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if all(d.HasField("dim_value") for d in kind.shape.dim):
            known[value.name] = kind.elem_type, [d.dim_value for d in kind.shape.dim]
    known |= {name: (t.data_type, list(t.dims)) for name, t in weights.items()}
    rng = np.random.default_rng(0)
    for node in graph.node:
        names = [name for name in node.input if name]
        if node.op_type not in OPERATORS or any(known.get(name, (0, []))[0] != TensorProto.FLOAT for name in names):
            continue
        if not node.output[0] or node.output[0] not in known:
            continue
        told = " ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute).replace(": ", " ")
        shapes, free = [known[name][1] for name in names], [name for name in dict.fromkeys(names) if name not in weights]
        given = [helper.make_tensor_value_info(name, *known[name]) for name in free]
        result = helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)
        single = helper.make_graph([node], "layer", given, [result], [weights[name] for name in names if name in weights])
        made = helper.make_model(single, opset_imports=model.opset_import, ir_version=8)
        drawn = {name: rng.standard_normal(known[name][1]).astype(np.float32) for name in free}
        name = f"{node.op_type} {' '.join('x'.join(map(str, shape)) for shape in shapes)} {told}".strip()
        yield Model(name, family, made.SerializeToString(), drawn, _flops(node.op_type, shapes, known[node.output[0]][1]))


def _all(words: Sequence[str]) -> Iterator[Model]:
    yield from published()
    for name in (name for name in network_files.NAMES if any(word in name for word in words)):
        try:
            case = network_files.made(name)
        except (ImportError, FileNotFoundError) as reason:
            print(f"{name}: left out, {reason}")
            continue
        yield from layers_of(case.content, case.feeds, name)


def sharded(models: Iterator[Model], shard: str, only: str = "") -> Iterator[Model]:
    """Part i of n, which `shard` says as "i/n", of those that are different and have `only` in their names or families."""
    part, _, parts = shard.partition("/")
    seen: set[str] = set()
    for model in models:
        if model.name in seen or (only not in model.name and only not in model.family):
            continue
        if len(seen) % int(parts) == int(part) - 1:
            yield model
        seen.add(model.name)


def _line(row: dict[str, Any]) -> str:
    cells = "  ".join(f"{name} {times.best * 1e6:9.1f}" for name, times in row["times"].items())
    said = f"{row['ratio']:5.2f}" if row["ratio"] else "  -  "
    return f"{row['name'][:76]:76} {said}  {100 * row['share']:3.0f}%  {cells}  {row['notes'] or ''}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="words in the names of networks whose layers are wanted too")
    parser.add_argument("--only", default="", help="a word in the names or families of the layers that are wanted")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shard", default="1/1", help="I/N: layer I of N, and every Nth from there")
    parser.add_argument("--seconds", type=float, default=0.1, help="time of each engine and layer")
    parser.add_argument("--rounds", type=int, default=4, help="bursts that this time is cut into")
    parser.add_argument("--without", action="append", default=[], help="an engine that is left out")
    parser.add_argument("--worst", type=int, default=20, help="lines of the table at the end")
    add_json(parser)
    options = parser.parse_args(arguments)
    engines, peak, rows = start(options.threads, options.without), probe() * options.threads, []
    try:
        for model in sharded(_all(options.words), options.shard, options.only):
            row = measure(engines, model, options.seconds, options.rounds)
            ours = row["times"].get("fastlayers")
            rows.append(row | {"share": model.flops / ours.best / peak if ours and peak else 0.0})
            print(_line(rows[-1]), flush=True)
    finally:
        for engine in engines.values():
            engine.stop()
    print(f"\nthe worst of {len(rows)}, {options.threads} threads, {peak / 1e9:.0f} GF/s at most:")
    for row in sorted(rows, key=lambda row: row["ratio"] or 0)[: options.worst]:
        print(_line(row))
    for name, (mean, least, count) in summary(rows).items():
        print(f"{name:24} geometric mean {mean:5.2f}  least {least:5.2f}  of {count}")
    if options.json:
        found = {row["name"]: row["times"] for row in rows}
        cases = {row["name"]: {key: row[key] for key in ("family", "flops", "ratio", "share", "notes")} for row in rows}
        store(options.json, found, probe=peak, cases=cases)


if __name__ == "__main__":
    main()

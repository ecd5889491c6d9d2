"""The models of `tests.serve.load`: what each computes, and what draws its inputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers.graph import Graph, Input, Node, Value
from tests.formats import onnx_build as onnx

from .decided import DECIDED

__all__ = ["ABSURD", "MODELS", "STREAMS", "Feeds", "write"]

Feeds = dict[str, np.ndarray]
F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


class Made(NamedTuple):
    """A model, and its inputs for so many rows."""

    content: Callable[[np.random.Generator], fl.Model | bytes]
    draw: Callable[[np.random.Generator, int], Feeds]


def floats(*shape: int, name: str = "x") -> Callable[[np.random.Generator, int], Feeds]:
    """Draws rows of this shape, of all magnitudes; now and then one value is no number."""

    def draw(rng: np.random.Generator, rows: int) -> Feeds:
        x = (rng.standard_normal((rows, *shape)) * 10.0 ** rng.integers(-6, 6)).astype(F32)
        if rng.random() < 0.1:
            x.flat[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
        return {name: x}

    return draw


def net(layer: Any, *inputs: Any) -> Callable[[np.random.Generator], fl.Model]:
    """The network of a layer, or of a list of layers, with drawn weights."""

    def make(rng: np.random.Generator) -> fl.Model:
        made = layer()
        made.load_state_dict({name: 0.3 * rng.standard_normal(shape) for name, shape in made.tensor_shapes().items()})
        return fl.compile(lambda *x: y[0] if isinstance(y := made(*x), tuple) else y, *inputs)

    return make


def graph(nodes: list[Node], outputs: list[tuple[str, Any]], inputs: Any = (("x", ("batch", 6), F32),), **constants: Any) -> Any:
    """The network of some nodes."""
    values = tuple(Value(name, None, np.dtype(dtype)) for name, dtype in outputs)
    arrays = {name: np.asarray(value) for name, value in constants.items()}
    return lambda _: fl.Model(Graph(tuple(Value(*value) for value in inputs), values, tuple(nodes), arrays))


def quantized(rng: np.random.Generator) -> fl.Model:
    """A product whose scale is found in all rows."""
    nodes = [
        Node("DynamicQuantizeLinear", ("x",), ("q", "s", "z"), {}), Node("MatMulInteger", ("q", "w", "z"), ("p",), {}),
        Node("Cast", ("p",), ("f",), {"to": 1}), Node("Mul", ("f", "s"), ("y",), {}),
    ]  # fmt: skip
    made: fl.Model = graph(nodes, [("y", F32)], w=rng.integers(-100, 100, (6, 5)).astype(np.int8))(rng)
    return made


def trees(rng: np.random.Generator) -> bytes:
    """Two trees that vote for words, and a word that is looked up."""
    count = 7
    nodes = {
        "treeids": [t for t in (0, 1) for _ in range(count)], "nodeids": [*range(count)] * 2,
        "featureids": rng.integers(0, 4, 2 * count).tolist(), "values": rng.standard_normal(2 * count).round(2).tolist(),
        "modes": (["BRANCH_LT"] * 3 + ["LEAF"] * 4) * 2, "truenodeids": [1, 3, 5, 0, 0, 0, 0] * 2,
        "falsenodeids": [2, 4, 6, 0, 0, 0, 0] * 2,
    }  # fmt: skip
    votes = {
        "treeids": [0] * 4 + [1] * 4, "nodeids": [3, 4, 5, 6] * 2, "ids": [0, 1, 2, 0, 1, 2, 0, 1],
        "weights": rng.random(8).round(3).tolist(),
    }  # fmt: skip
    attributes = {f"nodes_{k}": v for k, v in nodes.items()} | {f"class_{k}": v for k, v in votes.items()}
    ensemble = onnx.node(
        "TreeEnsembleClassifier", "x", "label scores", domain="ai.onnx.ml", classlabels_strings=["à", "b", ""], **attributes
    )
    lookup = onnx.node(
        "LabelEncoder",
        "word",
        "code",
        domain="ai.onnx.ml",
        keys_strings=["yes", "é"],
        values_int64s=[7, -(2**62)],
        default_int64=1,
    )
    inputs = [onnx.value_info("x", ("batch", 4)), onnx.value_info("word", ("batch",), 8)]
    outputs = [onnx.value_info("label", None, 8), onnx.value_info("scores", None), onnx.value_info("code", None, 7)]
    return onnx.model(
        onnx.graph([ensemble, lookup], inputs, outputs), onnx.field(8, onnx.field(1, "ai.onnx.ml") + onnx.field(2, 3))
    )


def rows_and_words(rng: np.random.Generator, rows: int) -> Feeds:
    return {**floats(4)(rng, rows), "word": rng.choice(np.array(["yes", "é", "", "other\n"], object), rows)}


def several(rng: np.random.Generator, rows: int) -> Feeds:
    half = rng.standard_normal((rows, 3)).astype(np.float16)
    return {
        "a": half,
        "b": rng.integers(-(2**63), 2**63, (rows, 3)),
        "c": rng.random((rows, 3)) < 0.5,
        **floats(3, name="d")(rng, rows),
    }


def tokens(rng: np.random.Generator, rows: int) -> Feeds:
    return {"ids": rng.integers(0, 50, (rows, rng.integers(1, 9)))}


def decided(op: str) -> Made:
    """A network whose values decide sizes, and values between those that it is told: short runs, and now and then longer ones."""
    make, few, many = DECIDED[op]

    def draw(rng: np.random.Generator, rows: int) -> Feeds:
        if few.dtype == I64:
            most = np.minimum(many, 20 if rng.random() < 0.9 else 300)
            return {"n": np.asarray(np.minimum(few, most) + rng.integers(0, np.maximum(most - few, 0) + 1))}
        return {"n": np.where(rng.random(few.shape) < rng.random(), few, many).astype(few.dtype)}

    return Made(lambda _: fl.Model(make()), draw)


X = Input("x", ("batch", 6))
MODELS: dict[str, Made] = {
    # Rows are independent, so that requests run together.
    "mlp": Made(net(lambda: fl.Sequential(fl.Linear(6, 33), fl.ReLU(), fl.Linear(33, 3)), X), floats(6)),
    "cnn": Made(
        net(
            lambda: fl.Sequential(fl.Conv2d(3, 8, 3, padding=1), fl.ReLU(), fl.MaxPool2d(2), fl.Flatten(1), fl.Linear(512, 5)),
            Input("x", ("batch", 3, 16, 16)),
        ),
        floats(3, 16, 16),
    ),
    "lstm": Made(net(lambda: fl.LSTM(6, 16, batch_first=True), Input("x", ("batch", "time", 6))), floats(7, 6)),
    "bert": Made(
        net(
            lambda: fl.Sequential(fl.Embedding(50, 32), fl.TransformerEncoderLayer(32, 4, 64, batch_first=True)),
            Input("ids", ("batch", "time"), np.int64),
        ),
        tokens,
    ),
    "trees": Made(trees, rows_and_words),
    "several": Made(
        graph(
            [Node("Add", ("a", "a"), ("e",), {}), Node("Not", ("c",), ("f",), {}), Node("Where", ("c", "b", "b2"), ("g",), {}),
             Node("Cast", ("d",), ("h",), {"to": 11})],
            [("e", np.float16), ("f", np.bool_), ("g", I64), ("h", np.float64)],
            [(name, ("batch", 3), np.dtype(dtype)) for name, dtype in (("a", "f2"), ("b", "i8"), ("c", "?"), ("d", "f4"))],
            b2=np.array([2**62, -1, 0]),
        ),
        several,
    ),
    # What is one row's answer depends on the others: never together.
    "quantized": Made(quantized, floats(6)),
    "softmax": Made(graph([Node("Softmax", ("x",), ("y",), {"axis": 0})], [("y", F32)]), floats(6)),
    "cumsum": Made(graph([Node("CumSum", ("x", "axis"), ("y",), {})], [("y", F32)], axis=np.array(0)), floats(6)),
    "sums": Made(
        graph([Node("CumSum", ("x", "axis"), ("y",), {})], [("y", F32)], [("x", ("time", 6), F32)], axis=np.array(0)), floats(6)
    ),
    "topk": Made(graph([Node("TopK", ("x", "k"), ("y", "i"), {"axis": 0})], [("y", F32), ("i", I64)], k=[1]), floats(6)),
    "mean": Made(graph([Node("ReduceMean", ("x", "axis"), ("y",), {})], [("y", F32)], axis=np.array([0])), floats(6)),
    **{op.lower(): decided(op) for op in DECIDED},
    "swap": Made(net(lambda: fl.Sequential(fl.Linear(6, 40), fl.Tanh(), fl.Linear(40, 4)), X), floats(6)),
}  # fmt: skip
# Each request is a piece of a sequence, if it says so; what values of `n` would take more memory than any machine has.
STREAMS = ("sums", "lstm")
ABSURD = {
    "range": 10**15,
    "constantofshape": [2**50],
    "expand": [2**50],
    "tile": [2**45],
    "pad": [0, 2**50],
    "resize": [2**25, 2**25],
}


def write(name: str, seed: int, path: Path) -> fl.Model:
    """A model with the weights of this seed, at `path` and a suffix, as a server finds it; and as it computes alone."""
    content = MODELS[name].content(np.random.default_rng(seed))
    path.parent.mkdir(parents=True, exist_ok=True)
    path = path.with_suffix(".onnx" if isinstance(content, bytes) else ".safetensors")
    made = path.with_name(f".{path.name}")
    if isinstance(content, bytes):
        made.write_bytes(content)
    else:
        content.save(made)
    made.replace(path)  # in one step: a server may be reading
    return fl.load(path.read_bytes(), zipmap=False)

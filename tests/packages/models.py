"""Small ONNX models with random weights, for packages whose wheels have none: the inputs and outputs that the packages expect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Builder", "encoder", "segmenter"]

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32}


class Builder:
    """Nodes one after the other; every call of `add` gives the name of what it makes."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def input(self, name: str, shape: Any, dtype: Any = np.float32) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[np.dtype(dtype)], shape))
        return name

    def output(self, name: str, value: str, shape: Any, dtype: Any = np.float32) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TYPES[np.dtype(dtype)], shape))

    def weight(self, *shape: int, scale: float = 0.0) -> str:
        spread = scale or float(max(1, np.prod(shape[1:]))) ** -0.5
        return self.constant((self.rng.standard_normal(shape) * spread).astype(np.float32))

    def constant(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def save(self, path: Path, **metadata: str) -> Path:
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        helper.set_model_props(model, metadata)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(path))
        return path


def encoder(path: Path, width: int = 32, words: int = 100, types: bool = True, heads: int = 4, head: int = 0) -> Path:
    """A transformer of one layer over token ids: last_hidden_state, or, with `head`, that many logits of the first token."""
    b = Builder()
    ids = b.input("input_ids", ["batch", "time"], np.int64)
    mask = b.input("attention_mask", ["batch", "time"], np.int64)
    x = b.add("Gather", b.weight(words, width, scale=1.0), ids)
    if types:
        x = b.add(
            "Add", x, b.add("Gather", b.weight(2, width, scale=0.1), b.input("token_type_ids", ["batch", "time"], np.int64))
        )
    open_ = b.add("Unsqueeze", b.add("Cast", mask, to=TensorProto.FLOAT), b.constant(np.array([1, 2], np.int64)))
    bias = b.add("Mul", b.add("Sub", b.constant(np.float32(1)), open_), b.constant(np.float32(-1e4)))
    split = b.constant(np.array([0, 0, heads, width // heads], np.int64))

    def project(order: list[int]) -> str:
        return b.add("Transpose", b.add("Reshape", b.add("MatMul", x, b.weight(width, width)), split), perm=order)

    q, k, v = project([0, 2, 1, 3]), project([0, 2, 3, 1]), project([0, 2, 1, 3])
    scores = b.add("Add", b.add("Div", b.add("MatMul", q, k), b.constant(np.float32(np.sqrt(width // heads)))), bias)
    mixed = b.add("Transpose", b.add("MatMul", b.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    mixed = b.add("Reshape", mixed, b.constant(np.array([0, 0, width], np.int64)))
    x = b.add("Add", x, mixed)
    x = b.add("LayerNormalization", x, b.constant(np.ones(width, np.float32)), b.constant(np.zeros(width, np.float32)), axis=-1)
    if head:
        first = b.add("Gather", x, b.constant(np.int64(0)), axis=1)
        b.output("logits", b.add("MatMul", first, b.weight(width, head)), ["batch", head])
    else:
        b.output("last_hidden_state", x, ["batch", "time", width])
    return b.save(path)


def segmenter(path: Path, size: int = 320) -> Path:
    """Convolutions from a picture to a plane of the same size."""
    b = Builder()
    x = b.input("input.1", ["batch", 3, size, size])
    for inner, outer in ((3, 8), (8, 8)):
        x = b.add("Relu", b.add("Conv", x, b.weight(outer, inner, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]))
    x = b.add("Resize", x, "", b.constant(np.array([1, 1, 4, 4], np.float32)), mode="linear")
    x = b.add("Sigmoid", b.add("Conv", x, b.weight(1, 8, 3, 3), pads=[1, 1, 1, 1]))
    b.output("mask", x, ["batch", 1, size, size])
    return b.save(path)

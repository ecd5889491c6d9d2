"""Networks for the tests of fastlayers.ort, written without the package onnx."""

from __future__ import annotations

import numpy as np

from tests.formats import onnx_build as onnx

__all__ = ["ADDED", "added", "matmul", "outside", "overridable", "relu", "sequence", "unknown"]

ADDED = np.array([1.0, 2.0, 3.0], np.float32)
INT64 = 7


def added(weights: bytes = b"") -> bytes:
    """y = x + w for x of n rows of 3, and t = s for an integer."""
    nodes = [onnx.node("Add", "x w", "y"), onnx.node("Identity", "s", "t")]
    inputs = [onnx.value_info("x", ("n", 3)), onnx.value_info("s", (), INT64)]
    outputs = [onnx.value_info("y", ("n", 3)), onnx.value_info("t", (), INT64)]
    described = onnx.field(10, "a sum and a copy")
    graph = onnx.graph(nodes, inputs, outputs, [weights or onnx.tensor(ADDED, "w")], extra=described)
    told = onnx.field(4, "org.example") + onnx.field(5, 7) + onnx.field(6, "what it does")
    return onnx.model(graph, told, onnx.field(14, onnx.entry("author", "someone")))


def overridable(ir: int = 8, shape: tuple[int | str, ...] = (3,)) -> bytes:
    """y = x * w + b, of which w and b are inputs with initializers."""
    nodes = [onnx.node("Mul", "x w", "m"), onnx.node("Add", "m b", "y")]
    inputs = [onnx.value_info("x", ("n", 3)), onnx.value_info("w", shape), onnx.value_info("b", (3,))]
    weights = [onnx.tensor(np.full(3, 2, "f4"), "w"), onnx.tensor(np.ones(3, "f4"), "b")]
    return onnx.model(onnx.graph(nodes, inputs, [onnx.value_info("y", ("n", 3))], weights), ir=ir)


def relu() -> bytes:
    """y = max(x, 0) of one row of 3."""
    sides = [onnx.value_info("x", (1, 3))], [onnx.value_info("y", (1, 3))]
    return onnx.model(onnx.graph([onnx.node("Relu", "x", "y")], *sides))


def unknown() -> bytes:
    """y = max(x, 0) of an x whose rank is not said."""
    return onnx.model(onnx.graph([onnx.node("Relu", "x", "y")], [onnx.value_info("x", None)], [onnx.value_info("y", None)]))


def matmul() -> bytes:
    """y = x z of any sizes."""
    sides = [onnx.value_info("x", ("a", "b")), onnx.value_info("z", ("c", "d"))]
    return onnx.model(onnx.graph([onnx.node("MatMul", "x z", "y")], sides, [onnx.value_info("y", ("a", "d"))]))


def sequence() -> bytes:
    """q = [x, x]."""
    kind = onnx.field(2, onnx.field(4, onnx.field(1, onnx.field(1, onnx.field(1, 1)))))
    out = onnx.field(1, "q") + kind
    return onnx.model(onnx.graph([onnx.node("SequenceConstruct", "x x", "q")], [onnx.value_info("x", ("n",))], [out]))


def outside(location: str) -> bytes:
    """`added` with its weights in another file."""
    return added(onnx.external([3], "w", location=location))

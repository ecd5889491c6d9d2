"""Networks in which the values of an input decide how large a result is, or how long a run takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastlayers.graph import Graph, Node, Value

__all__ = ["DECIDED"]

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
BODY = Graph(
    (Value("i", (), I64), Value("c", (), np.dtype(bool)), Value("a", (4,), F32)),
    (Value("c", (), np.dtype(bool)), Value("b", (4,), F32)), (Node("Add", ("a", "a"), ("b",), {}),), {},
)  # fmt: skip


def graph(
    op: str, *inputs: str, given: Any = (("n", (1,), I64),), dtype: Any = F32, attributes: Any = None, **constants: Any
) -> Graph:
    """A node that reads `n`, and a sine of what it gives, where that is a tensor of floats."""
    nodes = [Node(op, inputs, ("y",), attributes or {})]
    return Graph(
        tuple(Value(*value) for value in given), (Value("y", None, np.dtype(dtype)),), tuple(nodes),
        {name: np.asarray(value) for name, value in constants.items()},
    )  # fmt: skip


X = np.ones((1, 4), np.float32)
SCALAR: Any = [("n", (), I64)]
FEW, MANY, ZEROS, ONES = np.array([3]), np.array([10**6]), np.zeros(1000, F32), np.ones(1000, F32)
PICK, ALL = np.arange(4) == 0, np.ones(4, bool)
# By operator: the graph, and its input for a short run and for a long one of the same shape.
DECIDED: dict[str, tuple[Callable[[], Graph], Any, Any]] = {
    "Range": (lambda: graph("Range", "z", "n", "o", given=SCALAR, dtype=I64, z=np.int64(0), o=np.int64(1)), FEW[0], MANY[0]),
    "ConstantOfShape": (lambda: graph("ConstantOfShape", "n"), FEW, MANY),
    "Expand": (lambda: graph("Expand", "x", "n", x=X[0, :1]), FEW, MANY),
    "Tile": (lambda: graph("Tile", "x", "n", x=X[0]), FEW, MANY),
    "Pad": (lambda: graph("Pad", "x", "n", given=[("n", (2,), I64)], x=X[0]), np.array([0, 3]), np.array([0, 10**6])),
    "Resize": (
        lambda: graph("Resize", "x", "e", "e", "n", given=[("n", (2,), I64)], x=X, e=np.zeros(0, np.float32)),
        np.array([1, 5]), np.array([100, 10**4]),
    ),
    "OneHot": (lambda: graph("OneHot", "x", "n", "v", given=SCALAR, x=np.array([0, 1]), v=X[0, :2]), FEW[0], MANY[0]),
    "NonZero": (lambda: graph("NonZero", "n", given=[("n", (1000,), F32)], dtype=I64), ZEROS, ONES),
    "Compress": (lambda: graph("Compress", "x", "n", given=[("n", (4,), ALL.dtype)], x=X[0], attributes={"axis": 0}), PICK, ALL),
    "Unique": (lambda: graph("Unique", "n", given=[("n", (1000,), F32)]), ZEROS, np.cumsum(ONES)),
    "Loop": (lambda: graph("Loop", "n", "t", "x", given=SCALAR, attributes={"body": BODY}, t=True, x=X[0]), FEW[0], MANY[0]),
}  # fmt: skip

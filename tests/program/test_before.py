"""Nodes that run in numpy before a decoder's other nodes: what may be among them, and the limits that they keep."""

from __future__ import annotations

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import Graph, Node, Value
from fastlayers.program.before import MOST_NODES, before

INT, FLOAT = np.dtype(np.int64), np.dtype(np.float32)


def graph(*nodes: Node, **constants: np.ndarray) -> Graph:
    return Graph((Value("x", (None, None), INT),), (Value("y", None, INT),), nodes, constants)


def test_values_and_sizes() -> None:
    made = graph(
        Node("Gather", ("table", "x"), ("wide",), {"axis": 0}),
        Node("Shape", ("wide",), ("sizes",), {}),
        Node("Range", ("zero", "n", "one"), ("y",), {}),
        Node("Gather", ("sizes", "one"), ("n",), {"axis": 0}),
        table=np.zeros((10, 70000), FLOAT), zero=np.array(0), one=np.array(1),
    )  # fmt: skip
    made = Graph(made.inputs, made.outputs, (*made.nodes[:2], made.nodes[3], made.nodes[2]), made.constants)
    found = before(made, {"y"}, set())
    assert found is not None
    for size in (3, 5):
        values = found.run({"x": np.zeros((2, size), INT)}, (2, size), 1 << 20)
        assert values["y"].tolist() == list(range(size))
        assert "wide" not in values  # of which the sizes alone are wanted


def test_results_are_within_the_limit() -> None:
    made = graph(Node("Tile", ("x", "times"), ("y",), {}), times=np.array([1, 1 << 20]))
    found = before(made, {"y"}, set())
    assert found is not None
    assert found.run({"x": np.zeros((1, 1), INT)}, (1, 1), 1 << 24)["y"].size == 1 << 20
    with pytest.raises(fl.LimitError):
        found.run({"x": np.zeros((1, 3), INT)}, (1, 3), 1 << 24)
    made = graph(Node("Transpose", ("x",), ("t",), {"perm": (1, 0)}), Node("Mul", ("x", "t"), ("y",), {}))
    found = before(made, {"y"}, set())
    assert found is not None
    assert found.run({"x": np.zeros((1, 3), INT)}, (1, 3), 1 << 24)["y"].shape == (3, 3)
    with pytest.raises(fl.LimitError):
        found.run({"x": np.zeros((1, 5000), INT)}, (1, 5000), 1 << 24)


def test_what_is_much_is_refused() -> None:
    chain = [Node("Neg", (f"v{i}" if i else "x",), (f"v{i + 1}",), {}) for i in range(MOST_NODES + 1)]
    assert before(graph(*chain), {f"v{MOST_NODES}"}, set()) is not None
    assert before(graph(*chain), {f"v{MOST_NODES + 1}"}, set()) is None
    table = graph(Node("Gather", ("table", "x"), ("y",), {"axis": 0}), table=np.zeros((10, 70000), FLOAT))
    assert before(table, {"y"}, set()) is None
    products = graph(Node("MatMul", ("x", "x"), ("y",), {}))
    assert before(products, {"y"}, set()) is None
    single = graph(Node("Neg", ("x",), ("y",), {}))
    assert before(single, {"y"}, {id(single.nodes[0])}) is None

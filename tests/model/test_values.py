"""Names of inner values: listed, and told when another is asked for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from tests.program.graphs import graph, node, normal

NAMES = ["/block1/conv1/Conv_output_0", "/block1/relu/Relu_output_0", "/block2/conv1/Conv_output_0"]


def scoped() -> fl.Model:
    values = ["x", *NAMES, "y"]
    nodes = tuple(Node("Relu", (a,), (b,), {}) for a, b in pairwise(values))
    spec = Value("x", (2,), np.dtype("f4"))
    return fl.Model(Graph((spec,), (spec._replace(name="y"),), nodes, {}))


def test_all_of_them_can_be_asked_for() -> None:
    model, x = scoped(), normal(2)
    assert model.value_names == [*NAMES, "y"]
    for name in model.value_names:
        np.testing.assert_array_equal(model.run(x, [name])[name], np.maximum(x, 0))


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("conv1", [NAMES[0], NAMES[2]]),
        ("RELU", [NAMES[1]]),
        ("/block1/conv1/Conv_output", [NAMES[0]]),
        ("block1/conv1/Conv_output_O", [NAMES[0]]),
    ],
)
def test_an_error_says_what_may_have_been_meant(asked: str, near: list[str]) -> None:
    with pytest.raises(fl.ArgumentError, match="which is not a value of the graph: expected some of its outputs") as caught:
        scoped().run(normal(2), [asked])
    told = str(caught.value).partition("near to it: ")[2]
    assert "['y']" in str(caught.value) and all(repr(name) in told for name in near)


def test_hostile_names_cost_nothing() -> None:
    """Many outputs, many values, long names: the message stays short."""
    values = tuple(Value(f"{i}" + "y" * 5000, (2,), np.dtype("f4")) for i in range(300))
    made = fl.Model(graph({"x": (2,)}, [node("y = Relu(x)")], ["y"]))._graph
    nodes = tuple(Node("Relu", ("x",), (v.name,), {}) for v in values)
    many = fl.Model(Graph(made.inputs, values, nodes, {}))
    for asked in ("z" * 10000, "y"):
        with pytest.raises(fl.ArgumentError, match="and 295 more") as caught:
            many.run(normal(2), [asked])
        assert len(str(caught.value)) < 1000

"""States of loops that stay what they are become values of the graph around; all others stay states."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.passes.control import unchanging

from ..program.graphs import FLOAT, graph, node, normal
from ..program.test_program import program, run

INT, BOOL = np.dtype(np.int64), np.dtype(np.bool_)


def body(inputs: str, nodes: list[Node], outputs: str, constants: Any = None, loop: bool = True) -> Graph:
    arrays = {name: np.asarray(a) for name, a in (constants or {}).items()}
    first = [Value("i", (), INT), Value("go", (), BOOL)] if loop else []
    values = (*first, *(Value(name, None, FLOAT) for name in inputs.split()))
    return Graph(
        values, tuple(Value(name, None, BOOL if name == "go" else FLOAT) for name in outputs.split()), tuple(nodes), arrays
    )


def loop(inner: Graph, reads: str, gives: str) -> Graph:
    given = ("n", "yes", *reads.split())
    nodes = [Node("Loop", given, tuple(gives.split()), {"body": inner})]
    constants = {"yes": True, "w": normal(4, 4), "v": normal(4, 4, seed=1)}
    return graph({"x": (2, 4), "n": ((), INT)}, nodes, gives.split(), constants)


def both(given: Graph, *arrays: Any) -> Graph:
    """The graph after the pass, whose results are those of the graph before it."""
    made = unchanging(given)
    for one, other in zip(run(program(given), *arrays), run(program(made), *arrays), strict=True):
        np.testing.assert_array_equal(one, other)
    return made


STEP = [node("h = MatMul(a, b)"), node("s = Tanh(h)")]


def test_weights_that_are_states_are_captured() -> None:
    given = loop(body("a b", [*STEP, node("c = Identity(b)"), node("d = Identity(c)")], "go s d"), "x w", "y u")
    for rounds in (3, 1, 0):
        made = both(given, normal(2, 4), np.array(rounds))
    first, *others = made.nodes
    assert first.inputs == ("n", "yes", "x")
    assert first.outputs == ("y",)
    assert [(n.op, n.inputs, n.outputs) for n in others] == [("Identity", ("w",), ("u",))]
    assert unchanging(made) is made


def test_what_grows_stays_where_it_is() -> None:
    given = loop(body("b a", [*STEP, node("p = Relu(s)")], "go b s p"), "w x", "u y ps")
    made = both(given, normal(2, 4), np.array(2))
    assert made.nodes[0].outputs == ("y", "ps")


def test_states_that_change_places_or_names_stay() -> None:
    swapped = loop(body("a b c", [node("h = MatMul(a, b)"), node("s = Tanh(h)")], "go s c b"), "x w v", "y u t")
    assert both(swapped, normal(2, 4), np.array(3)) is swapped
    inner = [node("w = Neg(b)"), node("h = MatMul(a, w)"), node("s = Tanh(h)")]  # a name of its own hides the outer one
    hidden = loop(body("a b", inner, "go s b"), "x w", "y u")
    assert unchanging(hidden) is hidden


def test_a_state_that_is_made_around_the_loop() -> None:
    given = loop(body("a b", STEP, "go s b"), "x k", "y u")
    given = Graph(given.inputs, given.outputs, (node("k = Neg(w)"), *given.nodes), given.constants, given.values)
    assert both(given, normal(2, 4), np.array(2)).nodes[1].inputs == ("n", "yes", "x")


def test_scans() -> None:
    inner = body("a b t", [*STEP, node("q = Add(s, t)")], "q b s", loop=False)
    nodes = [Node("Scan", ("x", "w", "xs"), ("y", "u", "ys"), {"body": inner, "num_scan_inputs": 1})]
    given = graph({"x": (2, 4), "xs": (5, 2, 4)}, nodes, ["y", "u", "ys"], {"w": normal(4, 4)})
    made = both(given, normal(2, 4), normal(5, 2, 4))
    assert made.nodes[0].inputs == ("x", "xs")
    assert made.nodes[0].outputs == ("y", "ys")

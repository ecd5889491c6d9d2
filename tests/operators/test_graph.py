"""From a model that was read to a graph: names, constants, branches, and all that is not supported in one error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import FormatError, UnsupportedError
from fastlayers.ir.graph import Graph

from .models import graph, info, model, node, run, to_graph

X = np.arange(6, dtype=np.float32).reshape(2, 3)
YES, NO = np.array(True), np.array(False)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def names(made: Graph) -> list[str]:
    """All values of a graph and of the graphs in it."""
    found = [v.name for v in made.inputs] + list(made.constants)
    for n in made.nodes:
        found += n.outputs
        for value in n.attributes.values():
            if isinstance(value, Graph):
                found += names(value)
    return found


def test_a_plain_model() -> None:
    main = graph(
        [node("Add", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])],
        [info("x", None, ("N", 3), np.float32), info("w", f32(1, 2, 3))],
        [info("y", None, ("N", 3), np.float32)],
        {"w": f32(1, 2, 3)},
    )
    made = to_graph(model(main, 17))
    assert [(v.name, v.shape, v.dtype) for v in made.inputs] == [("x", ("N", 3), np.dtype(np.float32))]
    assert [(v.name, v.shape, v.dtype) for v in made.outputs] == [("y", ("N", 3), np.dtype(np.float32))]
    assert [n.op for n in made.nodes] == ["Add", "Relu"]
    assert list(made.constants) == ["w"]
    np.testing.assert_array_equal(run(made, [X])[0], X + f32(1, 2, 3))


CONSTANTS: list[tuple[dict[str, Any], np.ndarray]] = [
    ({"value": f32(1, 2)}, f32(1, 2)),
    ({"value_float": 2.5}, np.array(2.5, np.float32)),
    ({"value_floats": (1.0, 2.0)}, f32(1, 2)),
    ({"value_int": 3}, np.array(3)),
    ({"value_ints": [1, 2]}, np.array([1, 2])),
    ({"sparse_value": f32(0, 1, 0)}, f32(0, 1, 0)),
]


@pytest.mark.parametrize(("attributes", "want"), CONSTANTS, ids=[next(iter(c[0])) for c in CONSTANTS])
def test_constant_nodes_become_constants(attributes: dict[str, Any], want: np.ndarray) -> None:
    made = to_graph(model(graph([node("Constant", [], ["c"], **attributes)], [], ["c"]), 13))
    assert not made.nodes
    got = made.constants["c"]
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(run(made, [])[0], want)


def test_constants_are_read_only() -> None:
    mine = f32(1, 2)
    made = to_graph(model(graph([node("Relu", ["w"], ["y"])], [], ["y"], {"w": mine}), 13))
    assert not made.constants["w"].flags.writeable
    assert mine.flags.writeable


def test_inputs_that_are_left_out() -> None:
    made = to_graph(model(graph([node("Clip", ["x", "", ""], ["y"])], [info("x", X)], ["y"]), 13))
    assert made.nodes[0].inputs == ("x",)
    made = to_graph(model(graph([node("Clip", ["x", "", "m"], ["y"])], [info("x", X)], ["y"], {"m": f32(1)[0]}), 13))
    assert made.nodes[0].inputs == ("x", None, "m")


def test_outputs_that_are_left_out_keep_their_place() -> None:
    main = graph([node("Split", ["x"], ["", "b"], axis=1)], [info("x", X[:, :2])], ["b"])
    made = to_graph(model(main, 11))
    assert made.nodes[0].outputs == ("", "b")
    np.testing.assert_array_equal(run(made, [X[:, :2]])[0], X[:, 1:2])


def choice(op: str, constant: float) -> SimpleNamespace:
    """A branch that calls its values what every branch calls them, and reads x from around it."""
    return graph([node("Constant", [], ["c"], value_float=constant), node(op, ["x", "c"], ["y"])], [], ["y"])


def conditional(then: Any, other: Any, **more: Any) -> SimpleNamespace:
    nodes = [node("If", ["cond"], ["out"], then_branch=then, else_branch=other), node("Relu", ["out"], ["y"])]
    return graph(nodes, [info("cond", YES), info("x", X)], ["y"], **more)


def test_branches_have_names_of_their_own() -> None:
    made = to_graph(model(conditional(choice("Add", 1.0), choice("Mul", -2.0)), 17))
    assert len(set(names(made))) == len(names(made))
    assert {"cond", "x", "out", "y"} <= set(names(made))
    for variant in ("reference", "aot"):
        np.testing.assert_array_equal(run(made, [YES, X], variant)[0], np.maximum(X + 1, 0))
        np.testing.assert_array_equal(run(made, [NO, X], variant)[0], np.maximum(X * -2, 0))


def test_thousands_of_branches_with_the_same_names() -> None:
    nodes, last = [], "x"
    for i in range(2000):
        branches = {"then_branch": choice("Add", 1.0), "else_branch": choice("Sub", 1.0)}
        for branch in branches.values():
            branch.nodes = (branch.nodes[0], node("Add", [last, "c"], ["y"]))
        nodes.append(node("If", ["cond"], [f"h{i}"], **branches))
        last = f"h{i}"
    made = to_graph(model(graph(nodes, [info("cond", YES), info("x", X)], [last]), 17))
    assert len(set(names(made))) == len(names(made))
    np.testing.assert_array_equal(run(made, [YES, X])[0], X + 2000)


def test_branches_in_branches_and_initializers_in_them() -> None:
    inner = graph(
        [
            node("If", ["cond"], ["y"], then_branch=choice("Add", 1.0), else_branch=choice("Sub", 3.0)),
            node("Mul", ["y", "c"], ["z"]),
        ],
        [],
        ["z"],
        {"c": f32(10)},
    )
    made = to_graph(model(conditional(inner, choice("Mul", 2.0), initializers={"unused": f32(1)}), 17))
    assert len(set(names(made))) == len(names(made))
    np.testing.assert_array_equal(run(made, [YES, X])[0], (X + 1) * 10)
    np.testing.assert_array_equal(run(made, [NO, X])[0], X * 2)


def test_a_branch_may_give_a_value_from_around_it() -> None:
    empty = graph([], [], ["x"])
    made = to_graph(model(conditional(empty, choice("Mul", 2.0)), 17))
    np.testing.assert_array_equal(run(made, [YES, X])[0], X)


def test_a_branch_may_hide_a_name_that_comes_later() -> None:
    made = to_graph(model(conditional(choice("Add", 1.0), graph([node("Neg", ["x"], ["y"])], [], ["y"])), 17))
    np.testing.assert_array_equal(run(made, [NO, -X])[0], X)


def test_branches_know_nothing_of_each_other() -> None:
    with pytest.raises(FormatError, match=r"Neg \(y\): reads 'c'"):
        to_graph(model(conditional(choice("Add", 1.0), graph([node("Neg", ["c"], ["y"])], [], ["y"])), 17))


def test_a_branch_must_have_as_many_outputs_as_the_node() -> None:
    with pytest.raises(FormatError, match=r"If \(out\): else_branch has 0 inputs and 2 outputs"):
        to_graph(model(conditional(choice("Add", 1.0), graph([], [], ["x", "x"])), 17))
    with pytest.raises(FormatError, match="attribute then_branch is of the wrong type"):
        to_graph(model(conditional(1, choice("Add", 1.0)), 17))


BROKEN: list[tuple[list[Any], str]] = [
    ([node("Relu", ["z"], ["y"])], r"Relu \(y\): reads 'z', which no input, constant or node before it gives"),
    ([node("Relu", ["y"], ["y"])], "reads 'y'"),
    ([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], "value 'y' is written twice"),
    ([node("Relu", ["x"], ["x"]), node("Relu", ["x"], ["y"])], "value 'x' is written twice"),
    ([node("Relu", ["x"], ["h"])], "the graph's outputs: reads 'y'"),
    ([node("Constant", [], ["y"])], r"Constant \(y\): expected one output and one value"),
]


@pytest.mark.parametrize(("nodes", "text"), BROKEN, ids=[b[1][:30] for b in BROKEN])
def test_broken(nodes: list[Any], text: str) -> None:
    with pytest.raises(FormatError, match=text):
        to_graph(model(graph(nodes, [info("x", X)], ["y"]), 17))


def test_a_model_without_opset() -> None:
    main = graph([node("Relu", ["x"], ["y"])], [info("x", X)], ["y"])
    with pytest.raises(FormatError, match="does not say which version"):
        to_graph(SimpleNamespace(opsets={"com.microsoft": 1}, graph=main))


def test_a_node_may_know_its_opset() -> None:
    """Functions of a model bring their own."""
    squeeze = node("Squeeze", ["x"], ["y"], axes=(0,))
    squeeze.opset = 11
    made = to_graph(model(graph([squeeze], [info("x", X[None])], ["y"]), 17))
    np.testing.assert_array_equal(run(made, [X[None]])[0], X)


def test_one_error_lists_everything() -> None:
    bad = graph([node("Strange", ["x"], ["h"]), node("Relu", ["h"], ["y"], slope=1)], [], ["y"])
    main = graph(
        [
            node("If", ["cond"], ["a"], then_branch=bad, else_branch=bad),
            node("Strange", ["a"], ["b"]),
            node("Other", ["b"], ["c"], "my.own"),
            node("Constant", [], ["d"], value_string="text"),
            node("Loop", ["", "cond", "c"], ["y"], body=graph([node("Strange", ["z"], ["w"])], [info(n) for n in "ijz"], "jw")),
        ],
        [info("cond", YES), info("x", X), SimpleNamespace(name="s", shape=None, dtype=None, kind="opaque")],
        ["y"],
        {"t": np.array(["text"], object)},
    )
    with pytest.raises(UnsupportedError) as caught:
        to_graph(model(main, 17))
    assert str(caught.value).splitlines() == [
        "onnx: the model needs what is not supported:",
        "  an input that is no tensor but of type opaque: 1 time",
        "  operator Other of domain my.own, version 1 (`fl.operator` adds one): 1 time",
        "  operator Relu: attribute slope: 2 times",
        "  operator Strange: 4 times",
    ]


def test_errors_stay_short() -> None:
    nodes = [node(f"Op{i}" + "x" * 10000, ["x"], [f"y{i}"], "d" * 10000, **{"a" * 10000: 1}) for i in range(1000)]
    with pytest.raises(UnsupportedError) as caught:
        to_graph(model(graph(nodes, [info("x", X)], ["y0"]), 17))
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (52, "  and 950 more")
    assert max(map(len, lines)) < 400
    with pytest.raises(FormatError) as broken:
        to_graph(model(graph([node("Relu", ["x\n" * 9999], ["y" * 9999])], [], ["y"]), 17))
    assert len(str(broken.value)) < 400
    assert "\n" not in str(broken.value)


def test_names_of_new_constants_are_new() -> None:
    main = graph([node("Clip", ["x"], ["y"], min=1.0)], [info("x", X), info("y/min", X)], ["y"])
    made = to_graph(model(main, 6))
    assert len(set(names(made))) == len(names(made)) == 4

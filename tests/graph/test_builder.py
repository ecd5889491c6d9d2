"""What everything that writes graphs is built on: unique names, constants, and what is known of values."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import LimitError
from fastlayers.formats.budget import Budget
from fastlayers.formats.onnx.names import Fresh
from fastlayers.ir.graph import Graph, Node, Value, captured, free, needed
from fastlayers.ir.names import Names
from fastlayers.operators import Spec
from fastlayers.operators.graphs import UNTOLD, GraphBuilder, read_only, trimmed

PACKAGE = Path(fl.__file__).parent
FLOAT32 = np.dtype(np.float32)


@pytest.mark.parametrize(("mark", "first"), [("_", 2), ("_", 1), ("~", 0)])
def test_names_are_hints_or_numbered_hints(mark: str, first: int) -> None:
    names = Names(["x"], mark, first)
    given = [names(hint) for hint in ("x", "x", "y", "y", f"x{mark}{first}", "x")]
    second = f"x{mark}{first}{mark}{first}"  # the hint is what an earlier name was
    assert given == [f"x{mark}{first}", f"x{mark}{first + 1}", "y", f"y{mark}{first}", second, f"x{mark}{first + 2}"]
    assert len({"x", *given}) == 7
    assert all(name in names for name in given)
    assert "z" not in names


def test_numbered_names_share_one_count_and_miss_what_is_taken() -> None:
    names = Names(["w~1"], "~", 0)
    names.take(["b~3", "b~3"])
    assert [names.numbered(hint) for hint in ("w", "w", "b", "b")] == ["w~0", "w~2", "b~4", "b~5"]


def test_thousands_of_equal_hints_take_no_longer_each() -> None:
    names = Names()
    assert names("x") == "x"
    assert [names("x") for _ in range(20_000)][-1] == "x_20001"


def test_names_within_a_budget_are_counted() -> None:
    fresh = Fresh(["a"], Budget(1000, "load"), "file")
    assert [fresh("a"), fresh("a")] == ["a_2", "a_3"]
    fresh("a")
    with pytest.raises(LimitError, match="file: names made unique"):
        fresh("a")


def test_a_graph_says_what_follows_of_its_values() -> None:
    e = GraphBuilder()
    x = e.input("x", ("n", 3), FLOAT32)
    weight = np.ones((3, 4), np.float32)
    y = e.node("MatMul", x, e.constant(weight, "w"), None)
    y = e.node("Relu", y, out="y")
    graph = e.graph([x], [y])
    assert (e.shape(y), e.rank(y), e.dtype(y), e.rank("other")) == (("n", 4), 2, FLOAT32, None)
    assert [node.inputs for node in graph.nodes] == [("x", "w"), ("~matmul",)]
    assert graph.outputs == (Value("y", ("n", 4), FLOAT32),)
    assert graph.values["~matmul"].shape == ("n", 4)
    assert weight.flags.writeable
    assert not graph.constants["w"].flags.writeable
    assert np.shares_memory(graph.constants["w"], weight)
    np.testing.assert_array_equal(fl.Model(graph)(np.ones((2, 3), np.float32)), np.full((2, 4), 3, np.float32))


def test_nothing_follows_from_what_is_not_known() -> None:
    e = GraphBuilder({"around": Spec((2,), FLOAT32)})
    assert e.known(e.node("Neg", "around")).shape == (2,)
    assert e.known(e.node("Neg", "nobody knows")) == Value("~neg_2", None, UNTOLD)
    assert e.known(e.node("NoOperator", "around")) == Value("~nooperator", None, UNTOLD)


def test_what_is_read_alone_is_needed() -> None:
    body = Graph((), (Value("b", None, FLOAT32),), (Node("Add", ("outer", "w"), ("b",), {}),), {"w": np.ones(1, np.float32)})
    nodes = [
        Node("Relu", ("x",), ("unread",), {}), Node("Relu", ("x",), ("outer",), {}),
        Node("If", ("c",), ("y", ""), {"then_branch": body}), Node("Relu", ("y",), ("",), {}),
    ]  # fmt: skip
    assert captured(nodes[2]) == free(body) == {"outer"}
    kept, names = needed(nodes, ["y"])
    assert kept == (nodes[1], nodes[2])
    assert names == {"y", "c", "outer", "x"}


def test_arrays_and_inputs_are_as_graphs_want_them() -> None:
    array = np.zeros(3)
    assert not read_only(array).flags.writeable
    frozen = read_only(array)
    assert read_only(frozen) is frozen
    assert trimmed(["a", None, "b", None, None]) == ("a", None, "b")
    assert trimmed([None]) == ()


def makers(path: Path) -> list[str]:
    """Loops that look for a name that is not taken: ``while name in ...`` round a text with a number in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.While) and any(isinstance(op, ast.In) for op in ast.walk(node.test)):
            inside = [part for part in ast.walk(node) if isinstance(part, ast.JoinedStr)]
            if inside:
                found.append(f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}")
    return found


def test_there_is_one_maker_of_unique_names() -> None:
    found = [place.rpartition(":")[0] for path in PACKAGE.rglob("*.py") for place in makers(path)]
    assert set(found) == {"ir/names.py"}

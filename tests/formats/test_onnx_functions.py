"""Local functions of ONNX models: every call is replaced by what the function does, under names of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats.onnx.proto import GraphProto

from . import onnx_build as ob
from .measure import allocations
from .onnx_build import field, function, node, reference

DOUBLE = function("Double", "a", "r", [node("Add", "a a", "r")])


def call(op: str, inputs: str, outputs: str, *raw: bytes, **options: Any) -> bytes:
    return node(op, inputs, outputs, *raw, domain="my", **options)


def model_of(nodes: list[bytes], functions: list[bytes], inputs: str = "x c", outputs: str = "y", **options: Any) -> bytes:
    return ob.model(ob.graph(nodes, inputs, outputs), functions=functions, imports="my", **options)


def lines(graph: GraphProto) -> list[str]:
    """One line a node, as they are run."""
    return [f"{' '.join(n.outputs)} = {n.op_type} {' '.join(i or '_' for i in n.inputs)}" for n in graph.nodes]


def read(nodes: list[bytes], functions: list[bytes], **options: Any) -> GraphProto:
    return ob.read(model_of(nodes, functions, **options)).graph


def test_a_call_is_replaced_by_the_body() -> None:
    body = [node("Relu", "a", "h"), node("Add", "h b", "r")]
    graph = read([call("F", "x c", "y", name="call")], [function("F", "a b", "r", body)])
    assert lines(graph) == ["call/h = Relu x", "y = Add call/h c"]
    assert [n.name for n in graph.nodes] == ["call/Relu", "call/Add"]
    model = ob.read(model_of([call("F", "x c", "y")], [function("F", "a b", "r", body)]))
    assert [f.name for f in model.functions] == ["F"] and model.functions[0].nodes[0].outputs == ("h",)


def test_calls_get_names_of_their_own() -> None:
    body = [node("Relu", "a", "h"), node("Neg", "h", "r")]
    graph = read([call("F", "x", "F/h"), call("F", "F/h", "u"), call("F", "u", "y")], [function("F", "a", "r", body)])
    names = [name for n in graph.nodes for name in n.outputs]
    assert len(set(names)) == 6 and "F/h" in names and "y" in names
    assert [n.op_type for n in graph.nodes] == ["Relu", "Neg"] * 3


def test_names_of_a_body_do_not_meet_those_of_its_caller() -> None:
    graph = read([node("Neg", "x", "h"), call("F", "h", "y")], [function("F", "x", "h", [node("Relu", "x", "h")])])
    assert lines(graph) == ["h = Neg x", "y = Relu h"]


def test_inputs_and_outputs_that_are_left_out() -> None:
    body = [node("Clip", "a b c", "r"), node("Neg", "r", "s")]
    graph = read([call("F", "x _", "_ y")], [function("F", "a b c", "r s", body)])
    assert lines(graph) == ["F/r = Clip x _ _", "y = Neg F/r"]
    assert lines(read([call("F", "x", "y")], [function("F", "a b c", "r s", body)])) == ["y = Clip x _ _", "F/s = Neg y"]


def test_an_output_that_is_an_input_or_another_output() -> None:
    graph = read([call("F", "x", "u y v")], [function("F", "a", "a r r", [node("Neg", "a", "r")])])
    assert lines(graph) == ["y = Neg x", "u = Identity x", "v = Identity y"]
    assert all(n.opset == 17 for n in graph.nodes)


def test_attributes_are_handed_over() -> None:
    body = [node("Op", "a", "r", reference("axis", "given"), reference("eps", "default", 1), reference("gone", "absent"), keep=1)]
    defaults = [ob.attribute("default", 0.5), ob.attribute("given", 9)]
    f = function("F", "a", "r", body, attributes="absent", defaults=defaults)
    assert dict(read([call("F", "x", "y", given=3)], [f]).nodes[0].attributes) == {"axis": 3, "eps": 0.5, "keep": 1}
    tensor = np.arange(20_000, dtype="f8")
    graph = read([call("F", "x", "y", given=tensor, absent=[1, 2])], [f])
    assert graph.nodes[0].attributes["gone"] == (1, 2)
    np.testing.assert_array_equal(graph.nodes[0].attributes["axis"], tensor)


def test_attributes_are_handed_on_by_functions_that_call_functions() -> None:
    inner = function("Inner", "a", "r", [node("Op", "a", "r", reference("axis", "n"))])
    outer = function("Outer", "a", "r", [call("Inner", "a", "h", reference("n", "m")), call("Inner", "h", "r", n=5)])
    graph = read([call("Outer", "x", "y", m=2)], [outer, inner])
    assert [n.attributes["axis"] for n in graph.nodes] == [2, 5]
    assert lines(graph) == ["Outer/h = Op x", "y = Op Outer/h"]
    assert "axis" not in read([call("Outer", "x", "y")], [outer, inner]).nodes[0].attributes


def test_graphs_in_a_body() -> None:
    branch = ob.graph([node("Mul", "a h", "k"), node("Op", "k", "z", reference("n", "n"))], "", "z")
    f = function("F", "a b", "r", [node("Neg", "a", "h"), node("If", "b", "r", then_branch=branch, else_branch=branch)])
    graph = read([call("F", "x c", "y", n=4)], [f])
    first, second = graph.nodes[1].attributes.values()
    assert lines(graph) == ["F/h = Neg x", "y = If c"]
    assert lines(first) == ["F/k = Mul x F/h", "F/z = Op F/k"] and first.nodes[1].attributes == {"n": 4}
    assert lines(second) == ["F/k_2 = Mul x F/h", "F/z_2 = Op F/k_2"] and second.outputs[0].name == "F/z_2"


def test_calls_in_inner_graphs_and_graphs_as_attributes() -> None:
    branch = ob.graph([call("Double", "x", "z")], "", "z")
    assert lines(read([node("If", "c", "y", then_branch=branch)], [DOUBLE]).nodes[0].attributes["then_branch"]) == ["z = Add x x"]
    # The body's own "a" is another value than the caller's, which the graph that is handed over reads.
    switch = function("Switch", "x", "r", [node("Neg", "x", "a"), node("If", "a", "r", reference("then_branch", "g", 5))])
    given = ob.graph([call("Double", "a", "z")], "", "z")
    graph = read([node("Relu", "x", "a"), call("Switch", "c", "y", g=given)], [switch, DOUBLE])
    assert lines(graph) == ["a = Relu x", "Switch/a = Neg c", "y = If Switch/a"]
    assert lines(graph.nodes[2].attributes["then_branch"]) == ["z = Add a a"]


def test_a_body_out_of_order_is_sorted() -> None:
    f = function("F", "a", "r", [node("Neg", "h", "r"), node("Relu", "a", "h")])
    assert lines(read([call("F", "x", "y")], [f])) == ["F/h = Relu x", "y = Neg F/h"]


def test_functions_are_told_apart_by_domain_and_overload() -> None:
    other = function("Double", "a", "r", [node("Mul", "a a", "r")], domain="other")
    over = function("Double", "a", "r", [node("Sub", "a a", "r")]) + field(13, "over")
    nodes = [call("Double", "x", "u"), node("Double", "u", "v", domain="other"), call("Double", "v", "y") + field(8, "over")]
    assert lines(read(nodes, [DOUBLE, other, over])) == ["u = Add x x", "v = Mul u u", "y = Sub v v"]


def test_a_function_may_replace_an_operator_of_onnx() -> None:
    f = function("Relu", "a", "r", [node("Max", "a", "r")], domain="ai.onnx")
    assert lines(read([node("Relu", "x", "y")], [f])) == ["y = Max x"]


def test_nodes_keep_the_operator_set_of_their_function() -> None:
    f = function("F", "a", "r", [node("Neg", "a", "r")], opset=13)
    assert [n.opset for n in read([call("F", "x", "u"), node("Relu", "u", "y")], [f]).nodes] == [13, 17]


def test_widened_constants_of_a_body() -> None:
    constant = node("Constant", "", "k", value=ob.Tensor(ob.tensor_raw((1,), 22, field(9, b"\1"))))
    graph = read([call("F", "x", "y")], [function("F", "a", "r", [constant, node("Add", "a k", "r")])])
    assert dict(graph.widened) == {"F/k": "INT4"} and lines(graph) == ["F/k = Constant ", "y = Add x F/k"]


def chain(length: int, *last: bytes) -> list[bytes]:
    calls = [function(f"F{i}", "a", "r", [call(f"F{i + 1}", "a", "r")]) for i in range(length)]
    return [*calls, function(f"F{length}", "a", "r", [*last] or [node("Neg", "a", "r")])]


def explosive(width: int, depth: int, last: list[bytes]) -> list[bytes]:
    def body(i: int) -> list[bytes]:
        return [call(f"F{i + 1}", "a", f"v{k}") for k in range(width)] + [node("Neg", "a", "r")]

    return [*(function(f"F{i}", "a", "r", body(i)) for i in range(depth)), function(f"F{depth}", "a", "a", last)]


BROKEN: dict[str, tuple[Callable[[], bytes], type[Error], str]] = {
    "itself": (
        lambda: model_of([call("F0", "x", "y")], chain(0, call("F0", "a", "r"))),
        FormatError,
        "function 'F0' calls 'F0': recursion is not allowed",
    ),
    "each other": (
        lambda: model_of([call("F0", "x", "y")], chain(2, call("F1", "a", "r"))),
        FormatError,
        "function 'F1' calls 'F2' calls 'F1': recursion is not allowed",
    ),
    "too deep": (lambda: model_of([call("F0", "x", "y")], chain(64)), LimitError, "functions call each other more than 64 deep"),
    "too many nodes": (
        lambda: model_of([call("F0", "x", "y")], explosive(10, 9, [])),
        LimitError,
        "its functions stand for more than 50000 nodes",
    ),
    "too many inputs": (
        lambda: model_of([call("Double", "x x", "y")], [DOUBLE]),
        FormatError,
        "Double '': has 2 inputs, the function has 1",
    ),
    "too many outputs": (
        lambda: model_of([call("Double", "x", "y z")], [DOUBLE]),
        FormatError,
        "has 2 outputs, the function has 1",
    ),
    "twice": (lambda: model_of([], [DOUBLE, DOUBLE], outputs="x"), FormatError, "function 'my:Double:' is there twice"),
    "no name": (lambda: model_of([], [function("", "a", "r", [])], outputs="x"), FormatError, "has no name"),
    "reads what its caller has": (
        lambda: model_of([node("Neg", "x", "h"), call("F", "x", "y")], [function("F", "a", "r", [node("Add", "a h", "r")])]),
        FormatError,
        "function 'F': reads 'h', which is no input of it",
    ),
    "output of nothing": (
        lambda: model_of([call("F", "x", "y")], [function("F", "a", "r", [node("Neg", "a", "b")])]),
        FormatError,
        "function 'F': nothing writes its output 'r'",
    ),
    "writes its input": (
        lambda: model_of([call("F", "x", "y")], [function("F", "a", "r", [node("Neg", "a", "a"), node("Neg", "a", "r")])]),
        FormatError,
        "function 'F': an input has no name, or the name of another value",
    ),
    "an input twice": (
        lambda: model_of([call("F", "x x", "y")], [function("F", "a a", "r", [node("Neg", "a", "r")])]),
        FormatError,
        "an input has no name, or the name of another value",
    ),
    "writes twice": (
        lambda: model_of([call("F", "x", "y")], [function("F", "a", "r", [node("Neg", "a", "r"), node("Abs", "a", "r")])]),
        FormatError,
        "Abs 'F/Abs': writes 'y' a second time",
    ),
    "old operators": (
        lambda: model_of([], [function("F", "a", "r", [node("Neg", "a", "r")], opset=5)], outputs="x"),
        UnsupportedError,
        "load: <bytes>: function 'F': is written for version 5",
    ),
    "a default that refers": (
        lambda: model_of([], [function("F", "a", "r", [], defaults=[reference("n", "m")])], outputs="x"),
        FormatError,
        "function 'F': attribute 'n' refers to 'm', but it is in no function",
    ),
    "a broken body": (
        lambda: model_of([], [function("F", "a", "r", [node("Neg", "a", "r", ob.attribute_raw("n", 99))])], outputs="x"),
        FormatError,
        "function 'F': Neg 'r': attribute 'n' is of type 99",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_every_broken_rule_is_its_own_error(case: str) -> None:
    make, error, text = BROKEN[case]
    with pytest.raises(error) as caught:
        ob.read(make())
    assert text in str(caught.value)
    assert str(caught.value).startswith("load: <bytes>: ")


def test_a_chain_of_calls_may_be_long() -> None:
    assert lines(read([call("F0", "x", "y")], chain(63))) == ["y = Neg x"]


def test_graphs_nested_by_calls_are_limited_too() -> None:
    def body(i: int) -> list[bytes]:
        inner = ob.graph([call(f"F{i + 1}", "a", "z") if i < 62 else node("Neg", "a", "z")], "", "z")
        for level in range(9):
            inner = ob.graph([node("If", "a", f"z{level}", then_branch=inner)], "", f"z{level}")
        return [node("If", "a", "r", then_branch=inner)]

    with pytest.raises(LimitError, match="nested too deeply"):
        read([call("F0", "x", "y")], [function(f"F{i}", "a", "r", body(i)) for i in range(63)])


def test_expanding_costs_no_more_than_it_is_charged() -> None:
    content = model_of([call("F0", "x", "y")], explosive(10, 9, []))
    with allocations() as measured, pytest.raises(LimitError, match=r"expanding functions|names made unique"):
        ob.read(content, max_bytes=8 << 20)
    assert measured.peak < 16 << 20

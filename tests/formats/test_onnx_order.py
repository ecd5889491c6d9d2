"""Names and order in ONNX graphs, inner graphs among them: what is put right, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import FormatError
from fastlayers.formats.onnx.proto import GraphProto

from . import onnx_build as ob
from .onnx_build import Graph, field, node


def ops(graph: GraphProto) -> list[str]:
    return [n.op_type for n in graph.nodes]


def model_of(nodes: list[bytes], inputs: str = "x c", outputs: str = "y", **options: Any) -> bytes:
    return ob.model(ob.graph(nodes, inputs, outputs, **options))


def branch(*nodes: bytes, output: str, **options: Any) -> Graph:
    return ob.graph(nodes, "", output, **options)


def test_nodes_out_of_order_are_sorted_and_others_stay() -> None:
    nodes = [node("D", "c2", "y"), node("A", "x", "a"), node("C", "b a", "c2"), node("B", "a", "b"), node("E", "x", "e")]
    assert ops(ob.read(model_of(nodes)).graph) == ["A", "B", "C", "D", "E"]
    nodes = [node("B", "x", "b"), node("A", "x", "a"), node("C", "a b", "y")]
    assert ops(ob.read(model_of(nodes)).graph) == ["B", "A", "C"]


def test_what_inner_graphs_read_counts_for_the_order() -> None:
    inner = branch(node("Neg", "late", "z"), output="z")
    deep = branch(node("If", "c", "w", then_branch=inner), output="w")
    nodes = [node("If", "c", "y", then_branch=deep), node("Relu", "x", "late")]
    assert ops(ob.read(model_of(nodes)).graph) == ["Relu", "If"]


def test_inner_graphs_are_sorted_too() -> None:
    inner = branch(node("B", "a", "z"), node("A", "x", "a"), output="z")
    graph = ob.read(model_of([node("If", "c", "y", then_branch=inner)])).graph
    assert ops(graph.nodes[0].attributes["then_branch"]) == ["A", "B"]


def test_names_that_two_graphs_give_are_made_different() -> None:
    def inner(value: float) -> Graph:
        return branch(
            node("Add", "x w", "h"),
            node("If", "c", "z", then_branch=branch(node("Mul", "h w", "k"), output="k")),
            output="z",
            initializers=[ob.tensor(np.array([value], "f4"), "w")],
            extra=field(13, ob.value_info("h", (2,))),
        )

    # The second graph writes what the first writes, and what the outer one writes after it.
    nodes = [node("If", "c", "y1", then_branch=inner(1), else_branch=inner(2)), node("Add", "y1 x", "z"), node("Neg", "z", "y")]
    graph = ob.read(model_of(nodes)).graph
    first, second = graph.nodes[0].attributes.values()
    names = [n for g in (graph, first, second) for n in [*(o for m in g.nodes for o in m.outputs), *g.initializers]]
    inner_names = [g.nodes[1].attributes["then_branch"].nodes[0].outputs[0] for g in (first, second)]
    assert len(set(names + inner_names)) == len(names) + 2
    assert first.initializers["w"] == 1 and second.initializers["w_2"] == 2
    assert second.nodes[0].inputs == ("x", "w_2") and second.nodes[0].outputs == ("h_2",)
    assert dict(second.value_info)["h_2"].name == "h_2"
    assert second.nodes[1].attributes["then_branch"].nodes[0].inputs == ("h_2", "w_2")
    assert first.outputs[0].name == first.nodes[1].outputs[0] and first.outputs[0].name != "z"
    assert graph.nodes[1].outputs == ("z",) and graph.nodes[2].inputs == ("z",)


def test_an_inner_name_may_be_that_of_its_own_node() -> None:
    graph = ob.read(model_of([node("If", "c", "y", then_branch=branch(node("Neg", "x", "y"), output="y"))])).graph
    inner = graph.nodes[0].attributes["then_branch"]
    assert graph.nodes[0].outputs == ("y",) and inner.outputs[0].name == inner.nodes[0].outputs[0] == "y_2"


def test_new_names_avoid_all_others() -> None:
    inner = branch(node("Neg", "x", "y"), node("Neg", "y", "y_2"), node("Neg", "y_2", "z"), output="z")
    graph = ob.read(model_of([node("If", "c", "y", then_branch=inner), node("Neg", "y", "y_3")], outputs="y y_3")).graph
    inner_nodes = graph.nodes[0].attributes["then_branch"].nodes
    assert [n.outputs[0] for n in inner_nodes] == ["y_4", "y_2", "z"] and inner_nodes[1].inputs == ("y_4",)


def test_inputs_of_inner_graphs_are_renamed() -> None:
    body = ob.graph([node("Add", "i s", "s_out")], "i cond s", "cond s_out", [ob.tensor(np.ones(1, "f4"), "s")])
    graph = ob.read(model_of([node("Loop", "x c x", "y", body=body), node("Loop", "x c x", "y2", body=body)])).graph
    second = graph.nodes[1].attributes["body"]
    assert [info.name for info in second.inputs] == ["i_2", "cond_2", "s_2"]
    assert [info.name for info in second.outputs] == ["cond_2", "s_out_2"]
    assert list(second.initializers) == ["s_2"] and second.nodes[0].inputs == ("i_2", "s_2")


def test_lists_of_graphs_are_checked_as_well() -> None:
    graphs = ob.attribute_raw("gs", 10, field(11, bytes(branch(node("Neg", "x", "z"), output="z"))) * 2)
    first, second = ob.read(model_of([node("Switch", "x", "y", graphs)])).graph.nodes[0].attributes["gs"]
    assert first.outputs[0].name == "z" and second.outputs[0].name == second.nodes[0].outputs[0] == "z_2"


def test_widened_constants_keep_their_type_under_another_name() -> None:
    constant = node("Constant", "", "k", value=ob.Tensor(ob.tensor_raw((1,), 21, field(9, b"\1"))))
    inner = branch(constant, node("Neg", "k", "z"), output="z")
    nodes = [node("If", "c", "y", then_branch=inner), node("If", "c", "y2", then_branch=inner)]
    first, second = (n.attributes["then_branch"] for n in ob.read(model_of(nodes)).graph.nodes)
    assert dict(first.widened) == {"k": "UINT4"} and dict(second.widened) == {"k_2": "UINT4"}


def test_outputs_may_be_inputs_and_initializers() -> None:
    w = [ob.tensor(np.ones(1, "f4"), "w")]
    assert [o.name for o in ob.read(model_of([], outputs="x w", initializers=w)).graph.outputs] == ["x", "w"]
    inner = ob.read(model_of([node("If", "c", "y", then_branch=branch(output="x"))])).graph.nodes[0].attributes["then_branch"]
    assert inner.outputs[0].name == "x" and not inner.nodes
    assert ob.read(model_of([node("Neg", "x w", "y")], "x w c", initializers=w)).graph.inputs[1].name == "w"


def test_left_out_names_are_no_values() -> None:
    graph = ob.read(model_of([node("LSTM", "x _ _ c", "_ y _"), node("Pad", "_ x _", "_ z")])).graph
    assert graph.nodes[0].inputs == ("x", "", "", "c") and graph.nodes[0].outputs == ("", "y", "")


SHADOW = branch(node("Neg", "x", "h"), output="h")
BROKEN: dict[str, tuple[bytes, str]] = {
    "cycle": (model_of([node("A", "x b", "a"), node("B", "a", "b"), node("C", "b", "y")]), "A 'a': is part of a cycle"),
    "cycle of one": (model_of([node("A", "x y", "y")]), "A 'y': is part of a cycle"),
    "cycle by an inner graph": (
        model_of([node("If", "c", "y", then_branch=branch(node("Neg", "y", "z"), output="z"))]),
        "If 'y': is part of a cycle",
    ),
    "cycle in an inner graph": (
        model_of([node("If", "c", "y", then_branch=branch(node("A", "b", "a"), node("B", "a", "b"), output="b"))]),
        "If 'y': attribute 'then_branch': A 'a': is part of",
    ),
    "undefined": (model_of([node("A", "nowhere", "y", name="first")]), "A 'first': reads 'nowhere', which nothing writes"),
    "undefined within": (
        model_of([node("If", "c", "y", then_branch=branch(node("Neg", "gone", "z"), output="z"))]),
        "If 'y': attribute 'then_branch': Neg 'z': reads 'gone', which nothing writes",
    ),
    "written in another branch": (
        model_of([node("If", "c", "y", then_branch=branch(node("Neg", "x", "z"), output="z"), else_branch=branch(output="z"))]),
        "attribute 'else_branch': output 'z' is written by no node",
    ),
    "read from an inner graph": (
        model_of([node("If", "c", "y0", then_branch=branch(node("Neg", "x", "z"), output="z")), node("Neg", "z", "y")]),
        "Neg 'y': reads 'z', which nothing writes",
    ),
    "output of nothing": (
        model_of([node("A", "x", "y")], outputs="y lost"),
        "load: <bytes>: output 'lost' is written by no node",
    ),
    "written twice": (model_of([node("A", "x", "y"), node("B", "x", "y")]), "B 'y': writes 'y' a second time"),
    "written twice by one node": (model_of([node("A", "x", "y y")]), "A 'y, y': writes 'y' a second time"),
    "an input written": (model_of([node("A", "c", "x")], outputs="x"), "A 'x': writes 'x' a second time"),
    "an initializer written": (
        model_of([node("A", "x", "y")], initializers=[ob.tensor(np.ones(1, "f4"), "y")]),
        "writes 'y' a second time",
    ),
    "two inputs": (model_of([node("A", "x", "y")], "x x"), "load: <bytes>: two inputs have the name 'x'"),
    "two outputs": (model_of([node("A", "x", "y")], outputs="y y"), "two outputs of the model have the name 'y'"),
    "an outer name within": (
        model_of([node("A", "x", "h"), node("If", "c", "y", then_branch=SHADOW)]),
        "If 'y': attribute 'then_branch': value 'h' has the name of one of a graph around it",
    ),
    "an outer input within": (
        model_of([node("If", "c", "y", then_branch=branch(node("Neg", "c", "x"), output="x"))]),
        "value 'x' has the name of one of a graph around it",
    ),
    "an outer name further within": (
        model_of(
            [node("A", "x", "h"), node("If", "c", "y", then_branch=branch(node("If", "c", "z", then_branch=SHADOW), output="z"))]
        ),
        "attribute 'then_branch': If 'z': attribute 'then_branch': value 'h' has the name",
    ),
    "twice in an inner graph": (
        model_of([node("If", "c", "y", then_branch=branch(node("A", "x", "z"), node("B", "x", "z"), output="z"))]),
        "If 'y': attribute 'then_branch': B 'z': writes 'z' a second time",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_every_broken_rule_is_its_own_error(case: str) -> None:
    content, text = BROKEN[case]
    with pytest.raises(FormatError) as caught:
        ob.read(content)
    assert text in str(caught.value)
    assert str(caught.value).startswith("load: <bytes>: ")


def test_a_long_chain_in_reverse_is_sorted_quickly() -> None:
    nodes = [node("Neg", f"v{i}", f"v{i + 1}") for i in range(20_000)]
    graph = ob.read(model_of(nodes[::-1], "v0", "v20000")).graph
    assert [n.inputs[0] for n in graph.nodes[:3]] == ["v0", "v1", "v2"] and len(graph.nodes) == 20_000

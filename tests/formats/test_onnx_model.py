"""The messages of an ONNX model other than tensors: what is read of each, what is skipped, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights
from fastlayers.formats.onnx.proto import GraphProto, NodeProto, ValueInfo
from fastlayers.formats.onnx.wire import fields, varints

from . import onnx_build as ob
from .onnx_build import field, node, repeated, varint

RELU = node("Relu", "x", "y")


def small(*nodes: bytes, inputs: Any = "x", outputs: Any = "y", **options: Any) -> bytes:
    return ob.model(ob.graph(nodes or [RELU], inputs, outputs), **options)


def attributes_of(*raw: bytes, **attributes: Any) -> dict[str, Any]:
    """What is read of a node's attributes."""
    return dict(ob.read(small(node("Relu", "x", "y", *raw, **attributes))).graph.nodes[0].attributes)


def test_a_whole_model() -> None:
    weight = np.arange(6, dtype="f4").reshape(2, 3)
    graph = ob.graph(
        [node("MatMul", "x w", "h", name="first"), node("Clip", "h _ top", "y", domain="ai.onnx")],
        [ob.value_info("x", ("batch", 2), 1), ob.value_info("top", (), 1)],
        [ob.value_info("y", (None, 3), 1)],
        [ob.tensor(weight, "w"), ob.tensor(np.float32(6), "top")],
        name="main",
        extra=field(13, ob.value_info("h", None, 1)),
    )
    extra = (field(3, "2.0"), field(4, "net.example"), field(5, -3), field(6, "text"), field(14, ob.entry("k", "vä")))
    model = ob.read(ob.model(graph, *extra, imports="com.example"))
    assert (model.ir_version, model.producer_name, model.producer_version) == (8, "tests", "2.0")
    assert (model.domain, model.model_version, model.doc_string) == ("net.example", -3, "text")
    assert dict(model.opsets) == {"": 17, "com.example": 1} and dict(model.metadata) == {"k": "vä"} and model.functions == ()
    assert model.graph.name == "main"
    f4 = np.dtype("f4")
    assert model.graph.inputs == (ValueInfo("x", ("batch", 2), f4, "tensor", 1), ValueInfo("top", (), f4, "tensor", 1))
    assert model.graph.outputs == (ValueInfo("y", (None, 3), f4, "tensor", 1),)
    assert dict(model.graph.value_info) == {"h": ValueInfo("h", None, f4, "tensor", 1)}
    assert list(model.graph.initializers) == ["w", "top"]
    np.testing.assert_array_equal(model.graph.initializers["w"], weight)
    assert model.graph.initializers["top"].shape == () and model.graph.widened == {}
    assert model.graph.nodes == (
        NodeProto("MatMul", "", "", "first", ("x", "w"), ("h",), {}, 17),
        NodeProto("Clip", "", "", "", ("h", "", "top"), ("y",), {}, 17),
    )


def test_the_description_is_frozen() -> None:
    model = ob.read(small(node("Relu", "x", "y", a=1)))
    for mapping in (
        model.opsets,
        model.metadata,
        model.graph.initializers,
        model.graph.nodes[0].attributes,
        model.graph.value_info,
    ):
        with pytest.raises(TypeError):
            mapping["new"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        model.graph.nodes[0].op_type = "Neg"  # type: ignore[misc]


def test_attributes_of_every_type() -> None:
    inner = ob.graph([node("Neg", "x", "z")], "", "z")
    got = attributes_of(
        ob.attribute_raw("tensors", 9, repeated(10, [ob.tensor(np.ones(2, "f4")), ob.tensor(np.zeros((), "i8"))])),
        ob.attribute_raw("graphs", 10, repeated(11, [bytes(inner)])),
        ob.attribute_raw("sparse", 11, field(22, ob.sparse(ob.tensor(np.ones(1, "f4")), ob.tensor(np.array([1])), (3,)))),
        ob.attribute_raw("sparses", 12, field(23, ob.sparse(ob.tensor(np.ones(1, "f4")), ob.tensor(np.array([0])), (2,)))),
        ob.attribute_raw("type", 13, field(14, field(4, field(1, field(1, field(1, 7)))))),
        ob.attribute_raw("types", 14, repeated(15, [field(1, field(1, 10)), field(7, b"")])),
        ob.attribute_raw("packed", 7, ob.packed(8, [1, -2, 300])),
        ob.attribute_raw("packed floats", 6, field(7, np.array([0.5, -1], "<f4").tobytes())),
        i=-5,
        f=0.5,
        s="text",
        bytes=b"\xff\x00",
        ints=[3, -(1 << 63), (1 << 63) - 1],
        floats=[1.5, float("inf")],
        strings=["a", "é", b"\xfe"],
        t=np.arange(3, dtype="i4"),
        g=inner,
    )
    tensors, graphs, sparse = got.pop("tensors"), got.pop("graphs"), got.pop("sparse")
    assert isinstance(tensors, tuple) and [a.tolist() for a in tensors] == [[1, 1], 0]
    assert isinstance(graphs[0], GraphProto) and isinstance(got["g"], GraphProto) and got.pop("g").nodes[0].op_type == "Neg"
    assert sparse.tolist() == [0, 1, 0] and got.pop("sparses")[0].tolist() == [1, 0]
    assert got.pop("t").tolist() == [0, 1, 2]
    assert got == {
        "type": ValueInfo("", None, None, "sequence(tensor)", 7),
        "types": (ValueInfo("", None, np.dtype("f2"), "tensor", 10), ValueInfo("", None, None, "opaque", 0)),
        "packed": (1, -2, 300),
        "packed floats": (0.5, -1.0),
        "i": -5,
        "f": 0.5,
        "s": "text",
        "bytes": b"\xff\x00",
        "ints": (3, -(1 << 63), (1 << 63) - 1),
        "floats": (1.5, float("inf")),
        "strings": ("a", "é", b"\xfe"),
    }


def test_attributes_without_content_are_zero_and_old_ones_have_no_type() -> None:
    got = attributes_of(
        *(ob.attribute_raw(f"a{type_}", type_) for type_ in (1, 2, 3, 6, 7, 8, 9, 10, 12, 14)),
        ob.attribute_raw("old int", None, field(3, 4)),
        ob.attribute_raw("old ints", None, repeated(8, [4])),
    )
    lists = {f"a{type_}": () for type_ in (6, 7, 8, 9, 10, 12, 14)}
    assert got == {"a1": 0.0, "a2": 0, "a3": "", **lists, "old int": 4, "old ints": (4,)}


ATTRIBUTES: dict[str, tuple[bytes, str]] = {
    "twice": (ob.attribute("a", 1) + b"", "has attribute 'a' twice"),
    "without a name": (ob.attribute_raw("", 2), "an attribute has no name"),
    "without a type": (ob.attribute_raw("b", None), "attribute 'b' is of type 0, expected 1 to 14"),
    "of an unknown type": (ob.attribute_raw("b", 15), "attribute 'b' is of type 15"),
    "of a negative type": (ob.attribute_raw("b", -1), "attribute 'b' is of type 18446744073709551615"),
    "old, with two contents": (ob.attribute_raw("b", None, field(3, 1) + field(2, 1.0)), "attribute 'b' is of type 0"),
    "of another type": (ob.attribute_raw("b", 1, field(3, 1)), "attribute 'b' is of type FLOAT and has a value of INT"),
    "of two types": (ob.attribute_raw("b", 7, field(8, 1) + field(7, 1.0)), "is of type INTS and has a value of FLOATS"),
    "tensor without one": (ob.attribute_raw("b", 4), "attribute 'b' of type TENSOR has no value"),
    "graph without one": (ob.attribute_raw("b", 5), "attribute 'b' of type GRAPH has no value"),
    "two graphs": (ob.attribute_raw("b", 5, repeated(6, [b"", b""])), "attribute 'b' has its value twice"),
    "floats cut": (ob.attribute_raw("b", 6, field(7, b"abc")), "a run of floats has 3 bytes"),
    "ints cut": (ob.attribute_raw("b", 7, field(8, b"\x80")), "ends within"),
    "a reference": (ob.reference("b", "c"), "attribute 'b' refers to 'c', but it is in no function"),
    "a value and a reference": (ob.reference("b", "c") + field(3, 1), "attribute 'b' refers to 'c', but it has a value"),
    "a tensor that is broken": (
        ob.attribute("b", ob.Tensor(ob.tensor_raw((2,), 1))),
        "attribute 'b': its FLOAT elements are nowhere",
    ),
    "a float for an int": (field(1, "b") + varint(3 << 3 | 5) + bytes(4), "field 3 is of kind 5"),
}


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_broken_attributes(case: str) -> None:
    attribute, text = ATTRIBUTES[case]
    with pytest.raises(FormatError) as caught:
        attributes_of(ob.attribute("a", 1), attribute)
    assert text in str(caught.value)
    assert str(caught.value).startswith("load: <bytes>: Relu 'y': ")


def test_types_of_values() -> None:
    tensor = field(1, field(1, 1))
    infos = {
        "sequence": (field(4, field(1, tensor)), ("sequence(tensor)", 1)),
        "optional": (field(9, field(1, field(4, field(1, tensor)))), ("optional(sequence(tensor))", 1)),
        "map": (field(5, field(1, 7) + field(2, tensor)), ("map(tensor)", 1)),
        "sparse": (field(8, field(1, 11) + field(2, field(1, field(1, 3)))), ("sparse tensor", 11)),
        "opaque": (field(7, field(1, "d") + field(2, "n")), ("opaque", 0)),
        "nothing": (b"", ("", 0)),
    }
    inputs = [field(1, name) + field(2, content) for name, (content, _) in infos.items()]
    model = ob.read(small(inputs=[ob.value_info("x"), *inputs, field(1, "untyped")]))
    for info in model.graph.inputs[1:-1]:
        assert info == ValueInfo(info.name, None, None, *infos[info.name][1])
    assert model.graph.inputs[-1] == ValueInfo("untyped", None, None, "", 0)


def test_shapes_and_element_types_of_values() -> None:
    dims = [field(1, 3), field(1, -1), field(2, "n"), field(2, ""), b"", field(1, 0), field(3, "DATA_BATCH")]
    shaped = field(1, "s") + field(2, field(1, field(1, 16) + field(2, repeated(1, dims))))
    kinds = [ob.value_info(f"t{code}", (), code) for code in (0, 8, 14, 22, 23, 99)]
    model = ob.read(small(inputs=[ob.value_info("x"), shaped, *kinds]))
    assert model.graph.inputs[1].shape == (3, None, "n", None, None, 0, None) and model.graph.inputs[1].dtype == np.float32
    dtypes = [None, np.dtype(object), np.dtype("c8"), np.dtype("i1"), np.dtype("f4"), None]
    assert [info.dtype for info in model.graph.inputs[2:]] == dtypes
    assert [info.elem_type for info in model.graph.inputs[2:]] == [0, 8, 14, 22, 23, 99]


def test_unknown_fields_are_skipped_everywhere() -> None:
    junk = field(900, 1) + field(901, b"x" * 200) + field(902, 1.5) + varint(903 << 3 | 1) + bytes(8)
    w = ob.tensor(np.ones(3, "f4"), "w") + junk
    inner = node("Add", "x w", "y", ob.attribute("a", [1, 2]) + junk) + junk
    info = field(1, "x") + junk + field(2, field(1, field(1, 1) + junk) + junk)
    graph = ob.graph([inner], [info], "y", [w], extra=junk)
    model = ob.read(ob.model(graph, junk, field(8, field(1, "d") + field(2, 3) + junk), field(14, ob.entry("k", "v") + junk)))
    assert model.graph.nodes[0].attributes == {"a": (1, 2)} and model.graph.initializers["w"].tolist() == [1, 1, 1]
    assert model.graph.inputs[0].kind == "tensor" and model.opsets["d"] == 3 and model.metadata == {"k": "v"}


def test_fields_that_nothing_depends_on_are_skipped() -> None:
    known = field(6, "doc") + field(9, ob.entry("k", "v")) + field(10, b"\x0a\x01a")
    graph = ob.graph([RELU + known], "x", "y", extra=field(10, "doc") + field(14, b"") + field(16, ob.entry("k", "v")))
    assert len(ob.read(ob.model(graph, field(20, b""), field(26, b""))).graph.nodes) == 1


MODELS: dict[str, tuple[bytes, type[Error], str]] = {
    "no graph": (ob.model(None), FormatError, "is an ONNX model without a graph"),
    "two graphs": (ob.model(ob.graph([RELU], "x", "y"), field(7, b"")), FormatError, "has more than one graph"),
    "no ir_version": (ob.model(ob.graph([RELU], "x", "y"), ir=0), FormatError, "has the ir_version 0, expected one from 3 to 14"),
    "negative ir_version": (small(ir=-1), FormatError, "has the ir_version -1"),
    "old ir_version": (small(ir=2), UnsupportedError, "has the ir_version 2, those from 3 to 14 are supported"),
    "new ir_version": (small(ir=15), UnsupportedError, "has the ir_version 15"),
    "old operators": (small(opset=5), UnsupportedError, "is written for version 5 of ONNX's operators, those from 6 to 28 are"),
    "new operators": (small(opset=29), UnsupportedError, "is written for version 29"),
    "no operators": (small(opset=None), FormatError, "Relu 'y': is an operator of ONNX's own set, which the model does not"),
    "operators of version 0": (small(opset=0), FormatError, "imports version 0 of operator set ''"),
    "two versions": (ob.model(ob.graph([RELU], "x", "y"), field(8, field(2, 13))), FormatError, "imports version 17 of operator"),
    "two versions by its other name": (
        ob.model(ob.graph([RELU], "x", "y"), field(8, field(1, "ai.onnx") + field(2, 13))),
        FormatError,
        "imports version 17 of operator set ''",
    ),
    "node without op_type": (small(repeated(1, ["x"]) + field(2, "y")), FormatError, "node 'y' has no op_type"),
    "empty nodes": (small(*[b""] * 1000), FormatError, "node '' has no op_type"),
    "name not UTF-8": (small(node("Relu", "x", "y") + field(3, b"\xff")), FormatError, "a name or text is not UTF-8: b'\\xff'"),
    "input without a name": (small(inputs=[b""]), FormatError, "load: <bytes>: input: has no name"),
    "initializer without a name": (
        ob.model(ob.graph([RELU], "x", "y", [ob.tensor(np.ones(1, "f4"))])),
        FormatError,
        "initializer '': has no name",
    ),
    "two initializers": (
        ob.model(ob.graph([RELU], "x", "y", [ob.tensor(np.ones(1, "f4"), "w")] * 2)),
        FormatError,
        "initializer 'w': another initializer has the same name",
    ),
    "a group": (small() + varint(900 << 3 | 3), FormatError, "field 900 is a group, which ONNX never uses (3)"),
    "end of a group": (small() + varint(900 << 3 | 4), FormatError, "is a group"),
    "kind 6": (small() + varint(900 << 3 | 6), FormatError, "field 900 is of no known kind (6)"),
    "field 0": (small() + b"\x02\x00", FormatError, "a field has the number 0"),
    "field number over the limit": (small() + varint(1 << 32) + b"\0", FormatError, "a field has the number 536870912"),
    "graph a number": (field(1, 8) + field(2, "p") + field(7, 1), FormatError, "field 7 is of kind 0"),
    "field longer than its message": (
        small(b"\x0a\x05x"),
        FormatError,
        "a field of 5 bytes is longer than the 1 bytes that are left",
    ),
    "field longer than the file": (field(1, 8) + b"\x12" + varint(1 << 62), FormatError, "0 bytes that are left: truncated?"),
    "length of 65 bits": (field(1, 8) + b"\x12" + b"\xff" * 9 + b"\x02", FormatError, "a number has more than 64 bits"),
    "length of 11 bytes": (field(1, 8) + b"\x12" + b"\x80" * 10 + b"\0", FormatError, "a number has more than 64 bits"),
    "cut within a tag": (field(1, 8) + b"\x12\0\x80", FormatError, "the file ends within a field"),
    "cut within a number": (field(1, 8) + b"\x12\0\x28\x80", FormatError, "the file ends within a field"),
    "cut within 32 bits": (field(1, 8) + b"\x12\0" + varint(900 << 3 | 5) + b"abc", FormatError, "ends within a number"),
    "number beyond its message": (small(b"\x08"), FormatError, "load: <bytes>: byte"),
}


@pytest.mark.parametrize("case", MODELS)
def test_every_broken_rule_is_its_own_error(case: str) -> None:
    content, error, text = MODELS[case]
    with pytest.raises(error) as caught:
        ob.read(content)
    assert text in str(caught.value)
    assert str(caught.value).startswith("load: <bytes>: ") and len(str(caught.value)) < 1000


def test_another_domain_need_not_be_imported() -> None:
    graph = ob.graph([node("Gelu", "x", "h", domain="com.microsoft"), node("Relu", "h", "y")], "x", "y")
    nodes = ob.read(ob.model(graph)).graph.nodes
    assert [(n.domain, n.opset) for n in nodes] == [("com.microsoft", 1), ("", 17)]
    nodes = ob.read(ob.model(graph, field(8, field(1, "com.microsoft") + field(2, 4)))).graph.nodes
    assert [(n.domain, n.opset) for n in nodes] == [("com.microsoft", 4), ("", 17)]


def test_fields_may_come_in_any_order() -> None:
    graph = field(12, ob.value_info("y")) + field(5, ob.tensor(np.ones(1, "f4"), "w")) + field(1, node("Add", "x w", "y"))
    graph += field(11, ob.value_info("x")) + field(2, "late")
    content = field(1, 8) + field(8, field(2, 17)) + field(7, graph) + field(2, "p")
    model = ob.read(content)
    assert model.graph.name == "late" and model.graph.nodes[0].opset == 17 and model.producer_name == "p"


def nested(levels: int) -> bytes:
    """If in If in If."""
    inner = ob.graph([node("Neg", "x", "z")], "", "z")
    for level in range(levels):
        name = f"z{level}"
        inner = ob.graph([node("If", "c", name, then_branch=inner, else_branch=ob.graph([], "", "x"))], "", name)
    return ob.model(ob.graph(repeated_nodes(inner), "c x", inner_output(levels)))


def inner_output(levels: int) -> str:
    return f"z{levels - 1}" if levels else "z"


def repeated_nodes(graph: bytes) -> list[bytes]:
    return [bytes(graph)[a:b] for tag, a, b in fields(memoryview(bytes(graph)), 0, len(graph), "") if tag == 0x0A]


def test_nesting_has_a_limit() -> None:
    model = ob.read(nested(20))
    depth = 0
    graph = model.graph
    while "then_branch" in graph.nodes[0].attributes:
        graph = graph.nodes[0].attributes["then_branch"]
        depth += 1
    assert depth == 20
    for levels in (21, 300):
        with pytest.raises(LimitError, match="is nested more than 64 messages deep"):
            ob.read(nested(levels))
    types = field(1, field(1, 1))
    for _ in range(100):
        types = field(4, field(1, types))
    with pytest.raises(LimitError, match="is nested more than 64 messages deep"):
        ob.read(small(inputs=[ob.value_info("x"), field(1, "deep") + field(2, types)]))


def test_long_paths_and_names_are_shortened_in_errors() -> None:
    broken = ob.graph([node("Neg", "gone", "z" * 1000)], "", "z" * 1000)
    for level in range(10):
        name = f"{level}" * 1000
        broken = ob.graph([node("If", "c", name, name=name, then_branch=broken)], "", name)
    with pytest.raises(FormatError, match=r"^load: <bytes>: If .*: \.\.\.: attribute .*: Neg .*: reads 'gone'") as caught:
        ob.read(ob.model(ob.graph(repeated_nodes(broken), "c", "9" * 1000)))
    assert len(str(caught.value)) < 1000


def test_weights_of_inner_graphs_and_constants() -> None:
    def branch(value: float) -> ob.Graph:
        constant = node("Constant", "", "shared", value=np.array([value], "f4"))
        return ob.graph([constant, node("Add", "shared own", "z")], "", "z", [ob.tensor(np.array([value], "f4"), "own")])

    graph = ob.graph(
        [
            node("Constant", "", "c0", value=np.array([1, 2], "i8")),
            node("Constant", "", "c1", value_float=1.5),
            node("Constant", "", "c2", value_floats=[1.5, 2.5]),
            node("Constant", "", "c3", value_int=7),
            node("Constant", "", "c4", value_ints=[7, 8]),
            node("Constant", "", "c5", value_strings=["a"]),
            node("Constant", "", "c6", ob.attribute_raw("sparse_value", 11, field(22, ob.sparse(
                ob.tensor(np.ones(1, "f4")), ob.tensor(np.array([1])), (2,))))),
            node("If", "b", "y", name="If_0", then_branch=branch(1), else_branch=branch(2)),
            node("If", "b", "y2", then_branch=ob.graph([], "", "only", [ob.tensor(np.ones(1, "f4"), "only")])),
        ],
        "b",
        "y",
        [ob.tensor(np.zeros(1, "f4"), "w")],
    )  # fmt: skip
    body = [node("Constant", "", "k", value=np.array([5.0], "f4")), node("Add", "a k", "r")]
    weights = load_weights(ob.model(graph, functions=[ob.function("Plus", "a", "r", body)]))
    assert {name: array.tolist() for name, array in weights.items()} == {
        "w": [0],
        "c0": [1, 2],
        "c1": 1.5,
        "c2": [1.5, 2.5],
        "c3": 7,
        "c4": [7, 8],
        "c6": [0, 1],
        "If_0.then_branch.own": [1],
        "If_0.then_branch.shared": [1],
        "If_0.else_branch.own": [2],
        "If_0.else_branch.shared": [2],
        "only": [1],
        "k": [5],
    }
    assert weights["c4"].dtype == np.int64 and weights["c2"].dtype == np.float32
    assert not any(array.flags.writeable for array in weights.values())


def test_weights_are_read_from_any_version() -> None:
    graph = ob.graph([node("Gemm", "x w w", "y")], "x", "y", [ob.tensor(np.ones(2, "f4"), "w")])
    for content in (ob.model(graph, opset=1, ir=3), ob.model(graph, opset=99, ir=25), ob.model(graph, opset=None)):
        assert load_weights(content, format="onnx")["w"].tolist() == [1, 1]
    with pytest.raises(FormatError, match="holds no tensors"):
        load_weights(small())
    twice = ob.graph([node("Constant", "", "w", value=np.ones(1, "f4"))], "", "w", [ob.tensor(np.ones(1, "f4"), "w")])
    with pytest.raises(FormatError, match="two tensors have the name 'w'"):
        load_weights(ob.model(twice))


def test_wire_numbers() -> None:
    for value in (0, 1, 127, 128, 16383, 16384, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        content = memoryview(field(3, value) + field(700, value))
        assert [(tag, a) for tag, a, _ in fields(content, 0, len(content), "")] == [(24, value), (5600, value)]
        run = memoryview(varint(value) * 3)
        assert list(varints(run, 0, len(run), "")) == [value] * 3

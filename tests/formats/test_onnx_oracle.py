"""What we read of an ONNX model next to what the onnx package reads: needs that package, and skips without it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.formats import load_weights
from fastlayers.formats.budget import Budget
from fastlayers.formats.onnx.elements import ELEMENTS
from fastlayers.formats.onnx.parse import Parser
from fastlayers.formats.onnx.proto import GraphProto, Model, NodeProto, Reference, ValueInfo
from fastlayers.formats.source import open_source

from . import onnx_build as ob

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx

SHIPPED = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").rglob("*.onnx"))


def parsed(content: Any) -> Model:
    """What is written in the file, before functions are expanded."""
    budget = Budget(1 << 30, "load")
    parser = Parser(open_source(content, caller="load", mapped=True, budget=budget), budget)
    model = parser.model()
    assert not parser.refused
    return model


# ---------------------------------------------------------------------- the same, message by message


def compare_arrays(ours: np.ndarray, theirs: Any) -> None:
    theirs = np.asarray(theirs)
    if theirs.dtype.kind in "UO":
        assert ours.dtype == object and ours.tolist() == theirs.tolist()
        return
    if ours.dtype != theirs.dtype:
        theirs = theirs.astype(ours.dtype)  # widened
    assert ours.shape == theirs.shape and not ours.flags.writeable and ours.flags.aligned
    np.testing.assert_array_equal(ours, theirs, strict=True)


def compare_sparse(ours: np.ndarray, proto: Any) -> None:
    values, indices = (onnx.numpy_helper.to_array(t) for t in (proto.values, proto.indices))
    dense = np.zeros(tuple(proto.dims), values.dtype)
    dense[tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)] = values
    compare_arrays(ours, dense)


def compare_info(ours: ValueInfo, proto: Any) -> None:
    assert ours.name == proto.name
    if not proto.type.HasField("tensor_type"):
        assert ours.shape is None and (ours.kind == "") == (proto.type.WhichOneof("value") is None)
        return
    tensor = proto.type.tensor_type
    shape = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    assert (ours.kind, ours.elem_type) == ("tensor", tensor.elem_type)
    assert ours.shape == (shape if tensor.HasField("shape") else None)


def compare_attribute(ours: Any, proto: Any) -> None:
    if proto.ref_attr_name:
        assert ours == Reference(proto.ref_attr_name)
        return
    theirs = onnx.helper.get_attribute_value(proto)
    kind = onnx.AttributeProto
    if proto.type == kind.TENSOR:
        compare_arrays(ours, onnx.numpy_helper.to_array(theirs))
    elif proto.type == kind.SPARSE_TENSOR:
        compare_sparse(ours, theirs)
    elif proto.type == kind.GRAPH:
        compare_graphs(ours, theirs)
    elif proto.type == kind.TYPE_PROTO:
        assert isinstance(ours, ValueInfo) and ours.kind
    elif proto.type == kind.STRING:
        assert (ours if isinstance(ours, bytes) else ours.encode()) == theirs
    elif proto.type == kind.STRINGS:
        assert [s if isinstance(s, bytes) else s.encode() for s in ours] == list(theirs)
    elif proto.type in (kind.FLOAT, kind.FLOATS):
        np.testing.assert_array_equal(np.float32(ours), np.float32(theirs))
    else:
        assert proto.type in (kind.INT, kind.INTS)
        assert ours == (theirs if proto.type == kind.INT else tuple(theirs))


def compare_nodes(ours: Iterable[NodeProto], protos: Iterable[Any]) -> None:
    for node, proto in zip(ours, protos, strict=True):
        assert (node.op_type, node.name, node.overload) == (proto.op_type, proto.name, proto.overload)
        assert node.domain == ("" if proto.domain == "ai.onnx" else proto.domain)
        assert node.inputs == tuple(proto.input) and node.outputs == tuple(proto.output)
        assert list(node.attributes) == [a.name for a in proto.attribute]
        for attribute in proto.attribute:
            compare_attribute(node.attributes[attribute.name], attribute)


def compare_graphs(ours: GraphProto, proto: Any) -> None:
    assert ours.name == proto.name
    compare_nodes(ours.nodes, proto.node)
    sparse = {s.values.name: s for s in proto.sparse_initializer}
    assert set(ours.initializers) == {i.name for i in proto.initializer} | sparse.keys()
    for initializer in proto.initializer:
        compare_arrays(ours.initializers[initializer.name], onnx.numpy_helper.to_array(initializer))
        assert (initializer.name in ours.widened) == ELEMENTS[initializer.data_type].widened
    for name, tensor in sparse.items():
        compare_sparse(ours.initializers[name], tensor)
    for infos, protos in ((ours.inputs, proto.input), (ours.outputs, proto.output), (ours.value_info.values(), proto.value_info)):
        for info, other in zip(infos, protos, strict=True):
            compare_info(info, other)


def compare(content: Any, proto: Any) -> Model:
    """Everything that we read of the model next to the package's; gives ours."""
    model = parsed(content)
    assert (model.ir_version, model.domain, model.model_version or 0) == (proto.ir_version, proto.domain, proto.model_version)
    assert (model.producer_name, model.producer_version) == (proto.producer_name, proto.producer_version)
    assert model.doc_string == proto.doc_string and model.metadata == {e.key: e.value for e in proto.metadata_props}
    assert model.opsets == {"" if o.domain == "ai.onnx" else o.domain: o.version for o in proto.opset_import}
    compare_graphs(model.graph, proto.graph)
    for function, other in zip(model.functions, proto.functions, strict=True):
        assert (function.name, function.inputs, function.outputs) == (other.name, tuple(other.input), tuple(other.output))
        compare_nodes(function.nodes, other.node)
    return model


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_models_that_the_package_ships(path: Path) -> None:
    model = compare(path, onnx.load(path))
    assert ob.read(path).graph.nodes == () or len(ob.read(path).graph.nodes) == len(model.graph.nodes)


def test_models_written_by_our_own_helper() -> None:
    from .test_onnx_hostile import rich

    compare(rich(), onnx.load_from_string(rich()))


# ---------------------------------------------------------------------- tensors


TYPES = [code for code, kind in ELEMENTS.items() if kind.codec is not None]


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0,), (2, 0, 3), (1000,)])
@pytest.mark.parametrize("code", TYPES)
def test_every_type(code: int, shape: tuple[int, ...], raw: bool) -> None:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(code)
    rng = np.random.default_rng(code)
    count, bits = int(np.prod(shape)), min(ELEMENTS[code].bits, 62)
    numbers = rng.integers(0, 1 << (1 if code == 9 else bits), count, np.uint64)
    if ELEMENTS[code].bits < 8:
        array = numbers.astype(np.uint8).view(dtype).reshape(shape)
    else:
        array = numbers.astype(f"u{np.dtype(dtype).itemsize}").view(dtype).reshape(shape)
    tensor = onnx.numpy_helper.from_array(array, "w")
    if not raw:
        if array.dtype.kind == "f" and ELEMENTS[code].bits >= 32:
            values = array.reshape(-1).tolist()
            tensor = onnx.helper.make_tensor("w", code, shape, values)
        else:
            content = tensor.raw_data
            tensor.ClearField("raw_data")
            if code == 7:
                tensor.int64_data.extend(array.reshape(-1).tolist())
            elif code in (12, 13):
                tensor.uint64_data.extend(array.reshape(-1).tolist())
            elif ELEMENTS[code].bits in (2, 4):
                tensor.int32_data.extend(content)
            elif ELEMENTS[code].bits == 6:
                tensor.int32_data.extend(numbers.tolist())
            elif array.dtype.kind in "iu":
                tensor.int32_data.extend(array.reshape(-1).tolist())
            else:
                tensor.int32_data.extend(array.reshape(-1).view(f"u{array.dtype.itemsize}").tolist())
    model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], [tensor]))
    compare_arrays(load_weights(model.SerializeToString())["w"], onnx.numpy_helper.to_array(tensor))


# ---------------------------------------------------------------------- functions, order and names: the same results


def rebuilt(model: Model) -> Any:
    """Our model as a ModelProto of the package."""

    def attribute(key: str, value: Any) -> Any:
        if isinstance(value, GraphProto):
            value = graph(value)
        elif isinstance(value, np.ndarray):
            value = onnx.numpy_helper.from_array(value)
        return onnx.helper.make_attribute(key, value)

    def node(n: NodeProto) -> Any:
        made = onnx.helper.make_node(n.op_type, n.inputs, n.outputs, n.name, domain=n.domain)
        made.attribute.extend(attribute(key, value) for key, value in n.attributes.items())
        return made

    def info(i: ValueInfo) -> Any:
        return onnx.helper.make_tensor_value_info(i.name, i.elem_type, i.shape)

    def graph(g: GraphProto) -> Any:
        initializers = [onnx.numpy_helper.from_array(array, name) for name, array in g.initializers.items()]
        return onnx.helper.make_graph(
            [node(n) for n in g.nodes], g.name or "g", [info(i) for i in g.inputs], [info(i) for i in g.outputs], initializers
        )

    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in model.opsets.items()]
    return onnx.helper.make_model(graph(model.graph), opset_imports=opsets, ir_version=model.ir_version)


def results(proto: Any, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    outputs: list[np.ndarray] = ReferenceEvaluator(proto).run(None, inputs)
    return outputs


def test_a_model_gives_the_same_before_and_after() -> None:
    """Functions that call functions, with attributes, inner graphs and names that clash."""
    node, graph, function = ob.node, ob.graph, ob.function
    scale = function(
        "Scale", "a", "r", [node("Constant", "", "h", ob.reference("value_float", "by", 1)), node("Mul", "a h", "r")]
    )
    positive = graph([node("Scale", "a", "t", ob.attribute("by", 3.0), domain="my")], "", [ob.value_info("t", (2,))])
    negative = graph([node("Neg", "a", "t")], "", [ob.value_info("t", (2,))])
    choose = function(
        "Choose",
        "a c",
        "r s",
        [
            node("If", "c", "h", then_branch=positive, else_branch=negative),
            node("Scale", "h", "r", ob.reference("by", "by", 1), domain="my"),
            node("Add", "r a", "s"),
        ],
        attributes="by",
        defaults=[],
    )
    # A function's node of domain "my" needs the domain among its own imports.
    choose += ob.field(9, ob.field(1, "my") + ob.field(2, 1))
    nodes = [
        node("Choose", "x c", "h s", ob.attribute("by", 2.0), domain="my"),
        node("Choose", "h c", "t _", ob.attribute("by", -1.0), domain="my", name="again"),
        node("Sum", "t s h", "y"),
    ]
    content = ob.model(
        graph(nodes, [ob.value_info("x", (2,)), ob.value_info("c", (), 9)], [ob.value_info("y", (2,))]),
        functions=[scale, choose],
        imports="my",
    )
    proto = onnx.load_from_string(content)
    after = rebuilt(ob.read(content))
    assert not after.functions
    onnx.checker.check_model(after)
    for condition in (True, False):
        inputs = {"x": np.array([1.5, -2], np.float32), "c": np.array(condition)}
        np.testing.assert_array_equal(results(proto, inputs)[0], results(after, inputs)[0])


def test_sorted_models_pass_the_packages_checker() -> None:
    inner = ob.graph([ob.node("Neg", "late", "z")], "", [ob.value_info("z", (2,))])
    nodes = [
        ob.node("Add", "u v", "y"),
        ob.node("If", "c", "u", then_branch=inner, else_branch=inner),
        ob.node("If", "c", "v", then_branch=inner, else_branch=inner),
        ob.node("Relu", "x", "late"),
    ]
    values = [ob.value_info("x", (2,)), ob.value_info("c", (), 9)]
    content = ob.model(ob.graph(nodes, values, [ob.value_info("y", (2,))]))
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(onnx.load_from_string(content))
    after = rebuilt(ob.read(content))
    onnx.checker.check_model(after)
    got = results(after, {"x": np.array([1.5, -2], np.float32), "c": np.array(True)})
    np.testing.assert_array_equal(got[0], np.array([-3, 0], np.float32))

"""Models as the reader gives them, made of nodes or of onnx's own messages; and whole graphs run in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fastlayers.formats.onnx.graph import to_graph
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.program import Program


def info(name: str, array: np.ndarray | None = None, shape: Any = None, dtype: Any = None) -> SimpleNamespace:
    """A ValueInfo, by default an array's."""
    if array is not None:
        shape, dtype = array.shape, array.dtype
    return SimpleNamespace(name=name, shape=shape, dtype=None if dtype is None else np.dtype(dtype), kind="tensor")


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any) -> SimpleNamespace:
    """A NodeProto."""
    return SimpleNamespace(
        op_type=op, domain=domain, name="", inputs=tuple(inputs), outputs=tuple(outputs), attributes=attributes
    )


def graph(
    nodes: Sequence[Any], inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), initializers: Mapping[str, np.ndarray] = {}
) -> SimpleNamespace:
    """A GraphProto; outputs may be names."""
    outputs = [info(o) if isinstance(o, str) else o for o in outputs]
    return SimpleNamespace(
        name="g", nodes=tuple(nodes), initializers=dict(initializers), inputs=tuple(inputs), outputs=tuple(outputs)
    )


def model(main: Any, opset: int, **domains: int) -> SimpleNamespace:
    """A Model."""
    return SimpleNamespace(opsets={"": opset, **domains}, graph=main, metadata={}, functions=())


def from_onnx(proto: Any) -> SimpleNamespace:
    """onnx's ModelProto as the reader would give it."""
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in proto.opset_import}
    return SimpleNamespace(opsets=opsets, graph=_graph(proto.graph), metadata={}, functions=())


def _graph(proto: Any) -> SimpleNamespace:
    from onnx import numpy_helper

    return SimpleNamespace(
        name=proto.name,
        nodes=tuple(_node(n) for n in proto.node),
        initializers={t.name: numpy_helper.to_array(t) for t in proto.initializer},
        inputs=tuple(map(_info, proto.input)),
        outputs=tuple(map(_info, proto.output)),
    )


def _node(proto: Any) -> SimpleNamespace:
    return node(proto.op_type, proto.input, proto.output, proto.domain, **{a.name: _value(a) for a in proto.attribute})


def _value(attribute: Any) -> Any:
    import onnx

    kind = attribute.type
    value = onnx.helper.get_attribute_value(attribute)
    if kind == onnx.AttributeProto.GRAPH:
        return _graph(value)
    if kind == onnx.AttributeProto.TENSOR:
        return onnx.numpy_helper.to_array(value)
    if kind == onnx.AttributeProto.STRING:
        return value.decode()
    if kind == onnx.AttributeProto.STRINGS:
        return tuple(v.decode() for v in value)
    return tuple(value) if isinstance(value, list) or hasattr(value, "append") else value


def _info(proto: Any) -> SimpleNamespace:
    from onnx import helper

    if proto.type.WhichOneof("value") != "tensor_type":
        return SimpleNamespace(name=proto.name, shape=None, dtype=None, kind=_kind(proto.type))
    tensor = proto.type.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    try:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    except KeyError:
        dtype = None
    return info(proto.name, None, shape, dtype)


def _kind(proto: Any) -> str:
    inner = {"sequence_type": "sequence", "optional_type": "optional"}.get(proto.WhichOneof("value"))
    if inner is None:
        return "tensor" if proto.WhichOneof("value") == "tensor_type" else proto.WhichOneof("value") or ""
    return f"{inner}({_kind(getattr(proto, f'{inner}_type').elem_type)})"


def one(op: str, arrays: Sequence[np.ndarray | None], outputs: int = 1, **attributes: Any) -> Graph:
    """A graph of one node in the newest form, all of whose inputs are the graph's."""
    names = tuple(None if a is None else f"x{i}" for i, a in enumerate(arrays))
    inputs = tuple(Value(n, a.shape, a.dtype) for n, a in zip(names, arrays, strict=True) if n is not None and a is not None)
    made = tuple(f"y{i}" for i in range(outputs))
    return Graph(inputs, tuple(Value(m, None, np.dtype(np.void)) for m in made), (Node(op, names, made, attributes),), {})


def run(made: Graph, arrays: Sequence[np.ndarray | None], variant: str = "reference") -> Sequence[np.ndarray]:
    """A graph's outputs under a variant."""
    with dispatch.switch(variant):
        program = Program(made, dispatch.variant())
    given = [np.array(a, order="C") for a in arrays if a is not None]
    return program.binding(given).run(given)


__all__ = ["from_onnx", "graph", "info", "model", "node", "one", "run", "to_graph"]

"""From what a model's file says to a graph that can be run: newest forms, unique names, all that is unsupported in one error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import FormatError, UnsupportedError
from ...ir.graph import Graph, Node, Value
from ...ir.names import Names
from ...operators import OPERATORS
from ...operators.families import CONTROL, SEQUENCES
from ...operators.graphs import UNTOLD, GraphBuilder, read_only, trimmed
from ..source import quote
from .canonical import Called, canonical, check_counts, complaints, name_of
from .elements import ELEMENTS
from .narrow import Narrowed, coded, told
from .proto import in_place
from .schema import CONSTANT_DTYPES, is_graph

__all__ = ["to_graph"]

# What an input or output may be; the file need not say it.
KINDS = ("tensor", "sequence(tensor)", "optional(tensor)", "optional(sequence(tensor))", "map", "sequence(map)")

# The names of a graph as the file has them, with the unique names of their values; then those of the graphs around it.
Scope = list[dict[str, str]]


def to_graph(model: Any) -> Graph:
    """The graph of a model that was read.

    Args:
        model: `opsets` (versions by domain) and `graph`, as the reader makes them.

    Returns:
        A graph of `operators`' vocabulary. Inputs that have an initializer are constants. Graphs among attributes are ir.Graphs,
        which read the values around them by name; no two values of the whole have the same name.

    Raises:
        UnsupportedError: lists every operator, version and attribute that is not supported, each with the number of nodes.
        FormatError: the graph contradicts itself: a value that nothing writes or that two nodes write, a wrong number of inputs.
    """
    return _Converter(model.opsets).model(model.graph)


class _Converter:
    def __init__(self, opsets: Any) -> None:
        self.opsets = opsets
        self.refused: Counter[str] = Counter()
        self.names = Names()
        self.narrow = Narrowed()
        self.coded: dict[str, str] = {}

    # ---- graphs -------------------------------------------------------------------------------------------------------

    def model(self, proto: Any) -> Graph:
        # The model's own names stay as they are; graphs within it give way.
        self.names.take((*(v.name for v in proto.inputs), *proto.initializers))
        self.names.take(name for node in proto.nodes for name in node.outputs)
        graph = self.graph(proto, [{}], True)
        if self.refused:
            from .._refused import times, unsupported

            raise unsupported("onnx", times(self.refused))
        return graph

    def graph(self, proto: Any, scope: Scope, outermost: bool) -> Graph:
        """The graph; `scope` has the names around it, and is added to."""
        e = GraphBuilder(None, self.names)
        own: set[str] = set()
        types = told(proto)
        inputs = []
        for value in proto.inputs:
            if value.name not in proto.initializers:
                name = self.define(value.name, scope, own, outermost)
                self.narrow.note(name, types.get(value.name, 0))
                inputs.append(self.value(name, value, "input"))
        kinds = coded(proto) if outermost else {}
        for key, array in in_place(proto.initializers, kinds):
            if array is not None and array.dtype.kind == "O":
                e.nodes.append(self.strings(self.define(key, scope, own, outermost), array))
                continue
            if array is None or array.dtype.kind not in "fiubc":
                self.refused["an initializer of elements that numpy does not have"] += 1
                array = np.zeros(0, np.float32)
            name = self.define(key, scope, own, outermost)
            self.narrow.note(name, types.get(key, 0))
            if key in kinds and array.dtype == np.uint8:
                self.coded[name] = kinds[key]
            e.constants[name] = read_only(array)
        for node in proto.nodes:
            e.nodes.extend(self.node(node, e, scope, own, outermost, types))
        outputs = []
        for value in proto.outputs:
            outputs.append(self.value(self.read(value.name, scope, "the graph's outputs"), value, "output"))
        return e.graph(inputs, outputs)

    def value(self, name: str, value: Any, what: str) -> Value:
        """An input or output, with what the file says of it."""
        kind = getattr(value, "kind", "") or "tensor"
        if "map(" in kind:  # of numbers or strings, by numbers or strings
            kind = kind.replace("map(tensor)", "map")
        elements = ELEMENTS.get(getattr(value, "elem_type", 0))
        dtype = elements.dtype if value.dtype is None and elements is not None and kind != "tensor" else value.dtype
        if kind not in KINDS:
            self.refused[f"an {what} that is no tensor but of type {kind}"] += 1
        elif dtype is not None and dtype.kind not in "fiubcO":
            self.refused[f"an {what} of elements that numpy does not have"] += 1
        return Value(name, value.shape, UNTOLD if dtype is None else dtype, kind)

    def define(self, name: str, scope: Scope, own: set[str], outermost: bool) -> str:
        """A new value; returns its unique name."""
        if name in own:
            raise FormatError(f"onnx: value {quote(name)} is written twice")
        own.add(name)
        unique = scope[0][name] = name if outermost else self.names(name)
        return unique

    def read(self, name: str, scope: Scope, reader: object) -> str:
        for names in scope:
            found = names.get(name)
            if found is not None:
                return found
        raise FormatError(f"onnx: {reader}: reads {quote(name)}, which no input, constant or node before it gives")

    # ---- nodes --------------------------------------------------------------------------------------------------------

    def node(
        self, proto: Any, e: GraphBuilder, scope: Scope, own: set[str], outermost: bool, types: Mapping[str, int]
    ) -> Iterator[Node]:
        """The nodes that one of the file becomes; `e` makes the constants that they need."""
        op, domain = proto.op_type, "" if proto.domain == "ai.onnx" else proto.domain
        label = Called((op, proto.outputs))
        inputs = trimmed([self.read(name, scope, label) if name else None for name in proto.inputs])
        attributes = self.attributes(proto, op, domain, label, scope)
        outputs = tuple([self.define(name, scope, own, outermost) if name else "" for name in proto.outputs])
        for name, unique in zip(proto.outputs, outputs, strict=True):
            self.narrow.note(unique, types.get(name, 0))
        if attributes is None:
            return
        if outputs:
            self.narrow.node(op, inputs, outputs, attributes)
        if op == "Constant" and not domain:
            yield from self.constant_node(e, outputs, attributes)
            return
        if op == "DequantizeLinear" and inputs[0] in self.coded:
            words = {"axis": 1, "block_size": 0, **attributes, "codes": self.coded[inputs[0]]}
            words.pop("output_dtype", None)
            yield Node("DequantizeCodes", tuple(inputs[:2]), outputs, words)
            return
        try:
            node = self.narrow.settled(Node(op, inputs, outputs, attributes))
            made = canonical(node, domain, self.version(proto, domain), e)
        except UnsupportedError as error:
            self.refused[str(error)] += 1
            return
        for node in made:
            if node.op not in OPERATORS and node.op not in CONTROL and node.op not in SEQUENCES:
                self.refused[f"operator {node.op}"] += 1
                continue
            if node.op in CONTROL:
                from ...operators.control import check_bodies

                check_bodies(node, f"onnx: {label}")
            else:
                check_counts(node)
            yield node

    def version(self, proto: Any, domain: str) -> int:
        """The version of the node's operator set: the node's own where functions brought it, else the model's."""
        found = getattr(proto, "opset", 0) or self.opsets.get(domain) or (self.opsets.get("ai.onnx") if not domain else 1)
        if not found:
            raise FormatError("onnx: the model does not say which version of ONNX's operators it is written for (opset_import)")
        return int(found)

    def attributes(self, proto: Any, op: str, domain: str, label: object, scope: Scope) -> dict[str, Any] | None:
        """The attributes as plain values, graphs made; None if the node is not supported, which is noted."""
        found = complaints(op, domain, self.version(proto, domain), proto.attributes, label)
        self.refused.update(found)
        attributes: dict[str, Any] = {}
        for name, value in proto.attributes.items():
            if is_graph(value):
                # Also where the node is refused: what its graphs need belongs to the list.
                value = self.graph(value, [{}, *scope], False)
            attributes[name] = tuple(value) if isinstance(value, list) else value
        return None if found else attributes

    def strings(self, name: str, array: np.ndarray) -> Node:
        """The node that gives an array of strings: constants of graphs are numeric."""
        values = tuple(array.reshape(-1).tolist())
        if not all(isinstance(value, str) for value in values):
            self.refused["a constant string that is not UTF-8"] += 1
        return Node("StringConstant", (), (name,), {"values": values, "shape": array.shape})

    def constant_node(self, e: GraphBuilder, outputs: Sequence[str], attributes: dict[str, Any]) -> Iterator[Node]:
        """Its value becomes a constant of the graph, or a node if it is of strings."""
        if len(outputs) != 1 or len(attributes) != 1:
            raise FormatError(f"onnx: {name_of('Constant', tuple(outputs))}: expected one output and one value")
        ((key, value),) = attributes.items()
        if key in ("value", "sparse_value") and value.dtype.kind in "fiubc":
            e.constants[outputs[0]] = read_only(value)
        elif key in CONSTANT_DTYPES:
            e.constants[outputs[0]] = read_only(np.array(value, CONSTANT_DTYPES[key]))
        elif key in ("value_string", "value_strings") or value.dtype.kind == "O":
            yield self.strings(outputs[0], np.array(value, object))
        else:
            self.refused[f"operator Constant: {key} of elements that numpy does not have"] += 1

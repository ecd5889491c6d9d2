"""The messages of onnx.proto that make up a network: model, function, graph, node, attribute. One method each.

What they say is taken down as it is, under its names; no name is followed. Numbers of fields are those of onnx.proto, and a tag
is 8 * the number + the kind (0 a varint, 2 a message, text or run of values, 5 a float).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...errors import FormatError, LimitError
from ..budget import Budget
from ..source import Source, quote
from .proto import EMPTY, FunctionProto, GraphProto, Model, NodeProto, Place, Reference, ValueInfo, frozen
from .runs import FLOAT_ITEM, INT_ITEM, STRING_ITEM, floats_at, integers_at, strings_at
from .values import MAX_DEPTH, ValueParser
from .wire import fields, signed, skip, varints

MAX_NODES = 250_000  # in all graphs; unrolled networks have tens of thousands
MAX_GRAPHS = 2_000  # branches and bodies of loops: a few bytes each, of which thousands are made
_MOST_LISTED = 10_000  # functions, imports and metadata of a model, each
_MOST_ATTRIBUTES = 1_000  # of one node
_MOST_IN_FUNCTION = 50_000  # nodes that functions may stand for
_ITEM_BYTES = 64  # that a number of a list takes at most
_FEW = 64  # items of a list that are not worth counting
_AT_ONCE = 4096  # strings of a list that are read before they are counted

# Values of the fields that are read; a field of another number is skipped.
_MODEL = frozenset((1, 2, 3, 4, 5, 6, 7, 8, 14, 25))
_OPSET = frozenset((1, 2))
_FUNCTION = frozenset((1, 4, 5, 6, 7, 9, 10, 11, 13))
_GRAPH = frozenset((1, 2, 5, 10, 11, 12, 13, 15))
_NODE = frozenset((1, 2, 3, 4, 5, 7, 8))
_ATTRIBUTE = frozenset((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 20, 21, 22, 23))

# AttributeProto.AttributeType, and what stands for one that has no content: writers leave out what is zero.
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH_TYPE, _FLOATS, _INTS, _STRINGS, _TENSORS, _GRAPHS = range(1, 11)
_SPARSE_TENSOR, _SPARSE_TENSORS, _TYPE_PROTO, _TYPE_PROTOS = range(11, 15)
_ITEMS = (FLOAT_ITEM, INT_ITEM, STRING_ITEM)
_LISTS = frozenset((_FLOATS, _INTS, _STRINGS, _TENSORS, _GRAPHS, _SPARSE_TENSORS, _TYPE_PROTOS))
_DEFAULTS: dict[int, Any] = {_FLOAT: 0.0, _INT: 0, _STRING: ""}
_TYPE_NAMES = (
    *("UNDEFINED", "FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS"),
    *("SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"),
)
# Tags of the fields whose values are messages, and the types that these are for.
_MESSAGES = {
    0x2A: _TENSOR,
    0x32: _GRAPH_TYPE,
    0x52: _TENSORS,
    0x5A: _GRAPHS,
    0x72: _TYPE_PROTO,
    0x7A: _TYPE_PROTOS,
    0xB2: _SPARSE_TENSOR,
    0xBA: _SPARSE_TENSORS,
}

_float = struct.Struct("<f").unpack_from

Opsets = Mapping[str, int]


class Parser(ValueParser):
    """One reading of one file, from its first byte to its last."""

    def __init__(self, source: Source, budget: Budget) -> None:
        super().__init__(source, budget)
        self._nodes_left = MAX_NODES
        self._graphs_left = MAX_GRAPHS
        self._in_function = False

    def model(self) -> Model:
        """The ModelProto that the file is. Raises FormatError or LimitError; what is not supported is in `refused`."""
        where = self._where
        try:
            return self._model(0, len(self._view))
        except UnicodeDecodeError as error:
            raise FormatError(f"{where}: a name or text is not UTF-8: {quote(error.object)}") from None
        except RecursionError:
            raise LimitError(f"{where}: is nested too deeply: the stack is exhausted") from None

    # ------------------------------------------------------------------ model, function, graph

    def _model(self, at: int, end: int) -> Model:
        where = self._where
        numbers: dict[int, int] = {1: 0}
        texts = {2: "", 3: "", 4: "", 6: ""}
        graph: tuple[int, int] | None = None
        listed: dict[int, list[tuple[int, int]]] = {8: [], 14: [], 25: []}  # imports, metadata, functions
        for tag, a, b in fields(self._view, at, end, where):
            number = tag >> 3
            if tag in (0x08, 0x28):
                numbers[number] = signed(a)
            elif tag in (0x12, 0x1A, 0x22, 0x32):
                texts[number] = self._text(a, b)
            elif tag == 0x3A:
                if graph is not None:
                    raise FormatError(f"{where}: has more than one graph")
                graph = a, b
            elif tag in (0x42, 0x72, 0xCA):
                self._count()
                listed[number].append((a, b))
                if len(listed[number]) > _MOST_LISTED:
                    raise LimitError(f"{where}: has more than {_MOST_LISTED} imports, functions or entries of metadata")
            else:
                skip(tag, _MODEL, where)
        if graph is None:
            from ..elsewhere import TENSORFLOW

            raise FormatError(f"{where}: is an ONNX model without a graph: truncated? Or of TensorFlow: {TENSORFLOW}")
        # The operator sets come after the graph in the file, but its nodes are bound to them.
        opsets = self._opsets(listed[8], where)
        return Model(
            ir_version=numbers[1],
            opsets=opsets,
            producer_name=texts[2],
            producer_version=texts[3],
            domain=texts[4],
            model_version=numbers.get(5),
            doc_string=texts[6],
            metadata=frozen(dict([self._entry(a, b, where) for a, b in listed[14]])),
            graph=self._graph(*graph, 2, where, opsets),
            functions=tuple([self._function(a, b) for a, b in listed[25]]),
        )

    def _opsets(self, imports: list[tuple[int, int]], where: object) -> Opsets:
        """OperatorSetIdProto, all of them."""
        opsets: dict[str, int] = {}
        for start, end in imports:
            domain, version = "", 0
            for tag, a, b in fields(self._view, start, end, where):
                if tag == 0x0A:
                    domain = _domain(self._text(a, b))
                elif tag == 0x10:
                    version = signed(a)
                else:
                    skip(tag, _OPSET, where)
            if version < 1 or opsets.setdefault(domain, version) != version:
                raise FormatError(f"{where}: imports version {version} of operator set {quote(domain)}, expected one from 1 up")
        return MappingProxyType(opsets)

    def _function(self, at: int, end: int) -> FunctionProto:
        where = Place(self._where, "function")
        texts = {1: "", 10: "", 13: ""}
        names: dict[int, list[str]] = {4: [], 5: [], 6: []}
        parts: dict[int, list[tuple[int, int]]] = {7: [], 9: [], 11: []}
        for tag, a, b in fields(self._view, at, end, where):
            number = tag >> 3
            if tag in (0x0A, 0x52, 0x6A):
                texts[number] = self._text(a, b)
            elif tag in (0x22, 0x2A, 0x32):
                self._count()
                names[number].append(self._text(a, b))
            elif tag in (0x3A, 0x4A, 0x5A):
                self._count()
                parts[number].append((a, b))
                if len(parts[number]) > _MOST_IN_FUNCTION:
                    raise LimitError(f"{where}: a function has more than {_MOST_IN_FUNCTION} nodes")
            else:
                skip(tag, _FUNCTION, where)
        where = Place(self._where, "function", texts[1])
        opsets = self._opsets(parts[9], where)
        widened: dict[str, str] = {}
        defaults = self._attributes(parts[11], 3, where, opsets, {})
        self._in_function = True
        nodes = [self._node(a, b, 3, where, opsets, widened) for a, b in parts[7]]
        self._in_function = False
        return FunctionProto(
            name=texts[1],
            domain=_domain(texts[10]),
            overload=texts[13],
            inputs=tuple(names[4]),
            outputs=tuple(names[5]),
            attributes=tuple(names[6]),
            defaults=defaults,
            nodes=tuple(nodes),
            opsets=opsets,
            widened=frozen(widened),
        )

    def _graph(self, at: int, end: int, depth: int, where: object, opsets: Opsets) -> GraphProto:
        if depth > MAX_DEPTH:
            raise LimitError(f"{where}: is nested more than {MAX_DEPTH} messages deep")
        self._count()
        self._graphs_left -= 1
        if self._graphs_left < 0:
            raise LimitError(f"{where}: has more than {MAX_GRAPHS} graphs")
        name = told = ""
        nodes: list[NodeProto] = []
        initializers: dict[str, Any] = {}
        inputs: list[ValueInfo] = []
        outputs: list[ValueInfo] = []
        value_info: dict[str, ValueInfo] = {}
        widened: dict[str, str] = {}
        for tag, a, b in fields(self._view, at, end, where):
            if tag == 0x0A:
                nodes.append(self._node(a, b, depth + 1, where, opsets, widened))
            elif tag == 0x2A or tag == 0x7A:
                read = self._tensor if tag == 0x2A else self._sparse
                key, value, kind = read(a, b, where, "initializer")
                if not key or key in initializers:
                    problem = "another initializer has the same name" if key else "has no name"
                    raise FormatError(f"{Place(where, 'initializer', key)}: {problem}")
                initializers[key] = value
                if kind:
                    widened[key] = kind
            elif tag == 0x5A:
                inputs.append(self._value_info(a, b, depth + 1, Place(where, "input")))
            elif tag == 0x62:
                outputs.append(self._value_info(a, b, depth + 1, Place(where, "output")))
            elif tag == 0x6A:
                info = self._value_info(a, b, depth + 1, Place(where, "value_info"))
                value_info[info.name] = info
            elif tag == 0x12:
                name = self._text(a, b)
            elif tag == 0x52:
                told = self._text(a, b)
            else:
                skip(tag, _GRAPH, where)
        sides = tuple(inputs), tuple(outputs)
        return GraphProto(name, tuple(nodes), frozen(initializers), *sides, frozen(value_info), frozen(widened), told)

    # ------------------------------------------------------------------ nodes and their attributes

    def _node(self, at: int, end: int, depth: int, where: object, opsets: Opsets, widened: dict[str, str]) -> NodeProto:
        self._count()
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise LimitError(f"{where}: has more than {MAX_NODES} nodes")
        view = self._view
        name = op_type = domain = overload = ""
        inputs: list[str] = []
        outputs: list[str] = []
        parts: list[tuple[int, int]] = []
        for tag, a, b in fields(view, at, end, where):
            if tag == 0x0A:
                inputs.append(view[a:b].tobytes().decode())
            elif tag == 0x12:
                outputs.append(view[a:b].tobytes().decode())
            elif tag == 0x2A:
                parts.append((a, b))
                if len(parts) > _MOST_ATTRIBUTES:
                    raise LimitError(f"{where}: byte {a}: a node has more than {_MOST_ATTRIBUTES} attributes")
            elif tag == 0x22:
                op_type = view[a:b].tobytes().decode()
            elif tag == 0x1A:
                name = view[a:b].tobytes().decode()
            elif tag == 0x3A:
                domain = _domain(self._text(a, b))
            elif tag == 0x42:
                overload = self._text(a, b)
            else:
                skip(tag, _NODE, where)
        if not op_type:
            raise FormatError(f"{where}: byte {at}: node {quote(name or ', '.join(outputs))} has no op_type")
        attributes: Mapping[str, Any] = EMPTY
        if parts:
            kinds: dict[str, str] = {}
            place = Place(where, op_type, name or ", ".join(outputs))
            attributes = self._attributes(parts, depth + 1, place, opsets, kinds)
            if kinds and op_type in ("Constant", "ConstantOfShape") and not domain and outputs:
                widened[outputs[0]] = next(iter(kinds.values()))
        opset = opsets.get(domain, 1 if domain else 0)
        return NodeProto(op_type, domain, overload, name, tuple(inputs), tuple(outputs), attributes, opset)

    def _attributes(
        self, parts: list[tuple[int, int]], depth: int, where: object, opsets: Opsets, kinds: dict[str, str]
    ) -> Mapping[str, Any]:
        """Attributes by name; `kinds` gets ONNX's names of the element types that numpy lacks."""
        attributes: dict[str, Any] = {}
        for at, end in parts:
            name, value, kind = self._attribute(at, end, depth, where, opsets)
            if not name or name in attributes:
                raise FormatError(f"{where}: has attribute {quote(name)} twice" if name else f"{where}: an attribute has no name")
            attributes[name] = value
            if kind:
                kinds[name] = kind
        return frozen(attributes)

    def _attribute(self, at: int, end: int, depth: int, where: object, opsets: Opsets) -> tuple[str, Any, str]:
        """AttributeProto: its name, its value, and the name of the element type of a tensor that was widened."""
        self._count()
        view = self._view
        name = reference = kind = ""
        declared = found = 0  # the type it says it has; a bit for each type that it has content of
        value: Any = None
        items: list[Any] = []
        found_fields = fields(view, at, end, where)
        for tag, a, b in found_fields:
            if tag == 0x0A:
                name = view[a:b].tobytes().decode()
            elif tag == 0xA0:
                declared = a
            elif tag in _MESSAGES:
                type_ = _MESSAGES[tag]
                if found >> type_ & 1 and type_ not in _LISTS:
                    raise FormatError(f"{where}: attribute {quote(name)} has its value twice")
                found |= 1 << type_
                value, kind = self._message(type_, a, b, depth + 1, where, name, opsets)
                if type_ in _LISTS:
                    items.append(value)
            elif tag == 0x40:
                found |= 1 << _INTS
                items.append(a if a < 1 << 63 else signed(a))
            elif tag == 0x18:
                found |= 1 << _INT
                value = signed(a)
            elif tag == 0x15:
                found |= 1 << _FLOAT
                (value,) = _float(view, a)
            elif tag == 0x22:
                found |= 1 << _STRING
                value = self._string(a, b)
            elif tag == 0x3D:
                found |= 1 << _FLOATS
                items += _float(view, a)
            elif tag == 0x42:
                found |= 1 << _INTS
                items.extend(map(signed, varints(view, a, b, where)))
            elif tag == 0x3A:
                found |= 1 << _FLOATS
                items += _floats(view[a:b], where)
            elif tag == 0x4A:
                found |= 1 << _STRINGS
                items.append(self._string(a, b))
            elif tag == 0xAA:
                reference = self._text(a, b)
            else:
                skip(tag, _ATTRIBUTE, where)
            if len(items) == _FEW and tag in _ITEMS:  # once in an attribute, however it mixes its fields
                found_fields.send(self._items(tag, b, end, where, items))
        if len(items) > _FEW:
            self._budget.take(_ITEM_BYTES * len(items), f"{where}: attribute {quote(name)}")
        if reference:
            if found or not self._in_function:
                problem = "has a value" if found else "is in no function"
                raise FormatError(f"{where}: attribute {quote(name)} refers to {quote(reference)}, but it {problem}")
            return name, Reference(reference), ""
        if not declared and found and not found & (found - 1):  # files of 2017 do not say it
            declared = found.bit_length() - 1
        if declared >= len(_TYPE_NAMES) or found != 1 << declared:
            value = self._without_content(name, declared, found, where)
        return name, tuple(items) if declared in _LISTS else value, kind

    def _items(self, tag: int, at: int, end: int, where: object, items: list[Any]) -> int:
        """Appends the items of the fields with this tag that follow, and returns the offset after the last."""
        if tag != STRING_ITEM:
            numbers, at = integers_at(self._view, at, end, where) if tag == INT_ITEM else floats_at(self._view, at, end)
            items += numbers
            return at
        while True:
            texts, at = strings_at(self._view, at, end, _AT_ONCE)
            self._count(len(texts))
            items += texts
            if len(texts) < _AT_ONCE:
                return at

    def _without_content(self, name: str, declared: int, found: int, where: object) -> Any:
        """Value of an attribute without content of its type. Raises FormatError if it must have some, or has other content."""
        if not 0 < declared < len(_TYPE_NAMES):
            raise FormatError(f"{where}: attribute {quote(name)} is of type {declared}, expected 1 to {len(_TYPE_NAMES) - 1}")
        other = found & ~(1 << declared)
        if other:
            names = _TYPE_NAMES[declared], _TYPE_NAMES[other.bit_length() - 1]
            raise FormatError(f"{where}: attribute {quote(name)} is of type {names[0]} and has a value of {names[1]}")
        if declared not in _DEFAULTS and declared not in _LISTS:
            raise FormatError(f"{where}: attribute {quote(name)} of type {_TYPE_NAMES[declared]} has no value")
        return _DEFAULTS.get(declared)

    def _message(self, type_: int, at: int, end: int, depth: int, where: object, name: str, opsets: Opsets) -> tuple[Any, str]:
        """The value of an attribute that is a message: its content, and the element type of a tensor that was widened."""
        if type_ in (_TENSOR, _TENSORS):
            return self._tensor(at, end, where, "attribute", name)[1:]
        if type_ in (_SPARSE_TENSOR, _SPARSE_TENSORS):
            return self._sparse(at, end, where, "attribute", name)[1:]
        place = Place(where, "attribute", name)
        if type_ in (_GRAPH_TYPE, _GRAPHS):
            return self._graph(at, end, depth, place, opsets), ""
        return self._type(at, end, depth, place), ""


def _floats(view: memoryview, where: object) -> list[float]:
    """A packed run of floats."""
    if len(view) % 4:
        raise FormatError(f"{where}: a run of floats has {len(view)} bytes")
    return [value for (value,) in struct.iter_unpack("<f", view)]


def _domain(text: str) -> str:
    """ONNX's own operator set has two names."""
    return "" if text == "ai.onnx" else text

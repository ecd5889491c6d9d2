"""Writing ONNX: a graph of operators in its newest form, as the bytes of a ModelProto. Large arrays are not copied.

Numbers of fields are those of onnx.proto. What an operator's attributes may be is asked of the schemas that readers use.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._version import __version__
from ...errors import LimitError, UnsupportedError
from ...ir.graph import Graph, Node, Value
from ...operators.graphs import UNTOLD
from ...operators.shapes import DTYPES
from ..write import whole
from .canonical import complaints, name_of
from .quantized import TABLE
from .schema import NEWEST, Schema, schemas

__all__ = ["content", "save"]

_OLDEST = 18  # it has all operators in the form of the graph's, except those of `_LATER`
_LATER = {"DFT": 20, "GroupNormalization": 21}
_IR = ((18, 8), (20, 9), (22, 10), (23, 11), (NEWEST, 12))  # the version of the format that an opset came with
_MOST = (1 << 31) - 1  # bytes of a message of protobuf
_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
_NOTES = ("direct", "rounded", "precision")  # attributes of our own that change no value
_TYPES = {"f": 1, "i": 2, "s": 3, "t": 4, "g": 5, "fs": 6, "is": 7, "ss": 8}
_FIELDS = {"f": 2, "i": 3, "s": 4, "t": 5, "g": 6, "fs": 7, "is": 8, "ss": 9}

Parts = list[Any]  # bytes, and views of arrays


def save(path: str | os.PathLike[str], graph: Graph, metadata: Mapping[str, str]) -> None:
    """Writes an ONNX file, which appears whole or not at all.

    Raises:
        UnsupportedError: ONNX has no operator, attribute or type for something in the graph; the message names it.
        LimitError: it would have more than 2 GiB.
    """
    parts = content(graph, metadata)
    with whole(path) as file:
        for part in parts:
            file.write(part)


def content(graph: Graph, metadata: Mapping[str, str]) -> Parts:
    """The parts of the file, in their order; see `save`."""
    writer = _Writer()
    body = writer.graph(graph, "fastlayers")
    version = writer.version
    imports = [[*_text(1, ""), *_number(2, version)]]
    if writer.microsoft:
        imports.append([*_text(1, "com.microsoft"), *_number(2, 1)])
    ir = next(number for opset, number in _IR if version <= opset)
    parts = [*_number(1, ir), *_text(2, "fastlayers"), *_text(3, __version__), *_message(7, body)]
    for each in imports:
        parts += _message(8, each)
    for key, value in metadata.items():
        parts += _message(14, [*_text(1, key), *_text(2, value)])
    if (size := sum(map(_size, parts))) > _MOST:
        raise LimitError(f"export: the file would have {size} bytes: an ONNX file has at most {_MOST}")
    return parts


# ---- protobuf -----------------------------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _size(part: Any) -> int:
    return part.nbytes if isinstance(part, memoryview) else len(part)


def _number(field: int, value: int) -> Parts:
    return [_varint(field << 3) + _varint(value)]


def _message(field: int, parts: Parts) -> Parts:
    small = b"".join(parts) if not any(isinstance(part, memoryview) for part in parts) else None
    inner = parts if small is None else [small]
    return [_varint(field << 3 | 2) + _varint(sum(map(_size, inner))), *inner]


def _text(field: int, value: str | bytes) -> Parts:
    return _message(field, [value.encode() if isinstance(value, str) else value])


# ---- messages -----------------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self) -> None:
        self.version, self.microsoft = _OLDEST, False

    def graph(self, graph: Graph, name: str) -> Parts:
        """GraphProto."""
        parts: Parts = []
        for node in graph.nodes:
            parts += _message(1, self.node(node))
        parts += _text(2, name)
        for key, array in graph.constants.items():
            parts += _message(5, _tensor(array, key))
        for field, values in ((11, graph.inputs), (12, graph.outputs)):
            for value in values:
                parts += _message(field, _value(value))
        return parts

    def node(self, node: Node) -> Parts:
        """NodeProto."""
        label = name_of(node.op, node.outputs)
        if node.op == "StringConstant":
            values, shape = node.attributes["values"], node.attributes["shape"]
            if len(shape) == 1 and values:
                node = Node("Constant", (), node.outputs, {"value_strings": values})
        schema = schemas().get(node.op) or TABLE.get(node.op, (None,))[0]
        if schema is None:
            raise UnsupportedError(f"export: {label}: ONNX has no such operator: expected a network without it")
        domain = "" if node.op in schemas() else "com.microsoft"
        attributes = {key: v for key, v in node.attributes.items() if not self.left_out(node.op, key, v, schema)}
        if domain:
            self.microsoft = True
        else:
            firsts = (schema.attributes[key].first for key in attributes if key in schema.attributes)
            self.version = max(self.version, schema.since, _LATER.get(node.op, 0), *firsts)
        plain = {key: v for key, v in attributes.items() if not isinstance(v, Graph)}
        missing = {key: 0 for key, a in schema.attributes.items() if a.required and a.type == "g"}
        wrong = complaints(node.op, domain, 1 if domain else self.version, plain, label) if not missing else []
        if wrong:
            raise UnsupportedError(f"export: {label}: ONNX has not {'; '.join(wrong)}")
        parts: Parts = []
        for name in node.inputs:
            parts += _text(1, name or "")
        for name in node.outputs:
            parts += _text(2, name)
        parts += [*_text(3, next((n for n in node.outputs if n), "")), *_text(4, node.op)]
        for key, value in attributes.items():
            parts += _message(5, self.attribute(key, value, schema, label))
        return [*parts, *(_text(7, domain) if domain else [])]

    def left_out(self, op: str, key: str, value: Any, schema: Schema) -> bool:
        """Whether an attribute says nothing that ONNX would have to be told."""
        return key not in schema.attributes and (
            key in _NOTES or not value or (op, key, value) == ("BatchNormalization", "axis", 1)
        )

    def attribute(self, name: str, value: Any, schema: Schema, label: str) -> Parts:
        """AttributeProto."""
        kind = schema.attributes[name].type
        field, parts = _FIELDS.get(kind, 0), _text(1, name)
        if kind == "g" and isinstance(value, Graph):
            parts += _message(field, self.graph(value, name))
        elif kind == "t":
            parts += _message(field, _tensor(np.asarray(value), ""))
        elif kind in ("i", "f", "s"):
            parts += _item(kind, field, value)
        elif kind in ("is", "fs", "ss"):
            for item in value:
                parts += _item(kind[0], field, item)
        else:
            raise UnsupportedError(f"export: {label}: attribute {name} is of a kind that is not written")
        return [*parts, *_number(20, _TYPES[kind])]


def _item(kind: str, field: int, value: Any) -> Parts:
    if kind == "f":
        return [_varint(field << 3 | 5) + struct.pack("<f", value)]
    return _number(field, int(value)) if kind == "i" else _text(field, value)


def _tensor(array: np.ndarray, name: str) -> Parts:
    """TensorProto."""
    if array.dtype not in _NUMBERS:
        raise UnsupportedError(f"export: {name!r} has dtype {array.dtype}, which is not written")
    stored: Any = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    parts: Parts = [b"".join(_varint(1 << 3) + _varint(size) for size in array.shape)]
    parts += [*_number(2, _NUMBERS[array.dtype]), *(_text(8, name) if name else [])]
    return [*parts, *_message(9, [memoryview(stored.reshape(-1).view(np.uint8))] if stored.size else [b""])]


def _value(value: Value) -> Parts:
    """ValueInfoProto; without a type where that is not known."""
    parts = _text(1, value.name)
    if value.dtype == UNTOLD and value.kind == "tensor":
        return parts
    number = 8 if value.dtype.kind == "O" else _NUMBERS.get(value.dtype)
    if value.kind not in ("tensor", "sequence(tensor)") or number is None:
        raise UnsupportedError(f"export: {value.name!r} is of the kind {value.kind} of {value.dtype}, which is not written")
    tensor: Parts = _number(1, number)
    if value.shape is not None:
        tensor += _message(2, [part for size in value.shape for part in _message(1, _dimension(size))])
    kind = _message(1, tensor)
    return [*parts, *_message(2, kind if value.kind == "tensor" else _message(4, _message(1, kind)))]


def _dimension(size: int | str | None) -> Parts:
    return [] if size is None else _number(1, size) if isinstance(size, int) else _text(2, size)

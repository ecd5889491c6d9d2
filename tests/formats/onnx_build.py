"""ONNX models from bytes alone, well made and badly made: a protobuf writer of a few lines, and one function a message."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fastlayers.formats import onnx
from fastlayers.formats.budget import Budget
from fastlayers.formats.onnx.proto import Model
from fastlayers.formats.source import open_source

# TensorProto.DataType
TYPES = {"f4": 1, "u1": 2, "i1": 3, "u2": 4, "i2": 5, "i4": 6, "i8": 7, "b1": 9, "f2": 10, "f8": 11, "u4": 12, "u8": 13}


def varint(value: int) -> bytes:
    """A varint; negative values take ten bytes, as in protobuf."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | float | str | bytes) -> bytes:
    """One field: an int as a varint, a float as 32 bits, a text or message with its length."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def repeated(number: int, values: Iterable[int | float | str | bytes]) -> bytes:
    """A field for each value."""
    return b"".join(field(number, value) for value in values)


def packed(number: int, values: Iterable[int]) -> bytes:
    """One field that holds all the varints."""
    return field(number, b"".join(map(varint, values)))


def entry(key: str, value: str) -> bytes:
    """StringStringEntryProto."""
    return field(1, key) + field(2, value)


def tensor_raw(dims: Sequence[int] = (), type_: int = 1, *content: bytes, name: str = "") -> bytes:
    """TensorProto with whatever fields of content."""
    return repeated(1, dims) + field(2, type_) + b"".join(content) + (field(8, name) if name else b"")


def tensor(array: Any, name: str = "") -> bytes:
    """TensorProto with raw_data."""
    array = np.asarray(array)
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
    return tensor_raw(array.shape, TYPES[array.dtype.str[1:]], field(9, little.tobytes()), name=name)


def external(dims: Sequence[int], name: str, **entries: str | int) -> bytes:
    """TensorProto of floats whose data is in another file."""
    pairs = [field(13, entry(key, str(value))) for key, value in entries.items()]
    return tensor_raw(dims, 1, *pairs, field(14, 1), name=name)


def sparse(values: bytes, indices: bytes, dims: Sequence[int]) -> bytes:
    """SparseTensorProto."""
    return field(1, values) + field(2, indices) + repeated(3, dims)


class Message(bytes):
    """A message that is to be an attribute's value; `type_` is the AttributeProto.AttributeType."""

    type_ = 0


class Graph(Message):
    """GraphProto."""

    type_ = 5


class Tensor(Message):
    """TensorProto."""

    type_ = 4


_NUMBERS = {4: 5, 5: 6, 11: 22, 12: 23, 13: 14, 14: 15}


def attribute(name: str, value: Any) -> bytes:
    """AttributeProto: int, float, str, bytes, Graph, Tensor, an array, or a list of ints, floats, strings."""
    if isinstance(value, np.ndarray):
        value = Tensor(tensor(value))
    if isinstance(value, Message):
        number, type_ = _NUMBERS[value.type_], value.type_
        return attribute_raw(name, type_, field(number, bytes(value)))
    if isinstance(value, (list, tuple)):
        number = 8 if isinstance(value[0], int) else 7 if isinstance(value[0], float) else 9
        return attribute_raw(name, {8: 7, 7: 6, 9: 8}[number], repeated(number, value))
    number = 3 if isinstance(value, int) else 2 if isinstance(value, float) else 4
    return attribute_raw(name, {3: 2, 2: 1, 4: 3}[number], field(number, value))


def attribute_raw(name: str, type_: int | None, content: bytes = b"") -> bytes:
    """AttributeProto with this type, whatever the content is."""
    return field(1, name) + content + (b"" if type_ is None else field(20, type_))


def reference(name: str, to: str, type_: int = 2) -> bytes:
    """AttributeProto that refers to an attribute of the function it is in."""
    return field(1, name) + field(20, type_) + field(21, to)


def node(op: str, inputs: str, outputs: str, *raw: bytes, name: str = "", domain: str = "", **attributes: Any) -> bytes:
    """NodeProto; inputs and outputs are names with spaces between, "_" for one that is left out."""
    out = repeated(1, ("" if n == "_" else n for n in inputs.split()))
    out += repeated(2, ("" if n == "_" else n for n in outputs.split()))
    out += (field(3, name) if name else b"") + field(4, op)
    out += repeated(5, [*raw, *(attribute(key, value) for key, value in attributes.items())])
    return out + (field(7, domain) if domain else b"")


def value_info(name: str, shape: Sequence[int | str | None] | None = (), type_: int = 1) -> bytes:
    """ValueInfoProto of a tensor; `shape` None for an unknown rank."""
    content = field(1, type_)
    if shape is not None:
        dims = [field(1, s) if isinstance(s, int) else field(2, s) if s else b"" for s in shape]
        content += field(2, repeated(1, dims))
    return field(1, name) + field(2, field(1, content))


def graph(
    nodes: Iterable[bytes] = (),
    inputs: str | Iterable[bytes] = (),
    outputs: str | Iterable[bytes] = (),
    initializers: Iterable[bytes] = (),
    name: str = "g",
    extra: bytes = b"",
) -> Graph:
    """GraphProto; inputs and outputs are names with spaces between, or value_infos."""
    inputs = [value_info(n) for n in inputs.split()] if isinstance(inputs, str) else inputs
    outputs = [value_info(n) for n in outputs.split()] if isinstance(outputs, str) else outputs
    parts = (repeated(1, nodes), field(2, name), repeated(5, initializers), repeated(11, inputs), repeated(12, outputs))
    return Graph(b"".join(parts) + extra)


def function(
    name: str,
    inputs: str,
    outputs: str,
    nodes: Iterable[bytes],
    *,
    attributes: str = "",
    defaults: Iterable[bytes] = (),
    domain: str = "my",
    opset: int = 17,
) -> bytes:
    """FunctionProto."""
    out = field(1, name) + repeated(4, inputs.split()) + repeated(5, outputs.split()) + repeated(6, attributes.split())
    out += repeated(7, nodes) + field(9, field(1, "") + field(2, opset)) + field(10, domain)
    return out + repeated(11, defaults)


def model(
    graph: bytes | None, *extra: bytes, opset: int | None = 17, ir: int = 8, functions: Iterable[bytes] = (), imports: str = ""
) -> bytes:
    """ModelProto; `imports` are further domains, of version 1."""
    out = field(1, ir) + field(2, "tests")
    out += b"".join(field(8, field(1, domain) + field(2, 1)) for domain in imports.split())
    out += b"" if graph is None else field(7, bytes(graph))
    out += repeated(25, functions) + b"".join(extra)
    return out + (b"" if opset is None else field(8, field(1, "") + field(2, opset)))


def read(source: Any, max_bytes: int = 1 << 30, mmap: bool = True) -> Model:
    """The model of a path or of bytes, as `load` reads it."""
    budget = Budget(max_bytes, "load")
    return onnx.read(open_source(source, caller="load", mapped=mmap, budget=budget), budget)

"""TensorFlow Lite files, well made and badly made: a writer of flatbuffers from struct alone, and networks in a few words."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastlayers.formats.tflite.schema import TYPES, _names, options_of

NUMBERS = {name: number for number, (name, _) in TYPES.items()}
_SIZES = {"b": 1, "B": 1, "i": 4, "I": 4, "f": 4, "q": 8, "Q": 8}


class Field(NamedTuple):
    """A field of a table: `code` as in struct, "table", "tables", "text", "bytes", or "[" and the code of a vector's elements."""

    code: str
    value: Any


Table = dict[int, Field]


class Writer:
    """Writes tables from the front: whatever a table refers to comes after it."""

    def __init__(self) -> None:
        self.out = bytearray(8)

    def file(self, root: Table, identifier: bytes = b"TFL3") -> bytes:
        self.out[4:8] = identifier
        struct.pack_into("<I", self.out, 0, self.table(root))
        return bytes(self.out)

    def _align(self, size: int, ahead: int = 0) -> None:
        self.out += bytes(-(len(self.out) + ahead) % size)

    def table(self, fields: Table) -> int:
        offsets, size = [0] * (max(fields, default=-1) + 1), 4
        for number, field in fields.items():
            width = _SIZES.get(field.code, 4)
            size += -size % width
            offsets[number] = size
            size += width
        self._align(8, 4 + 2 * len(offsets))
        vtable = len(self.out)
        self.out += struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), size, *offsets)
        at = len(self.out)
        self.out += struct.pack("<i", at - vtable) + bytes(size - 4)
        for number, field in fields.items():
            place = at + offsets[number]
            if field.code in _SIZES:
                struct.pack_into(f"<{field.code}", self.out, place, field.value)
            else:
                struct.pack_into("<I", self.out, place, self._child(field) - place)
        return at

    def _child(self, field: Field) -> int:
        if field.code == "table":
            return self.table(field.value)
        if field.code == "tables":
            self._align(4)
            at = len(self.out)
            self.out += struct.pack("<I", len(field.value)) + bytes(4 * len(field.value))
            for i, fields in enumerate(field.value):
                place = at + 4 + 4 * i
                struct.pack_into("<I", self.out, place, self.table(fields) - place)
            return at
        data = field.value.encode() if field.code == "text" else field.value if field.code == "bytes" else None
        if data is not None:
            self._align(16, 4)
            at = len(self.out)
            self.out += struct.pack("<I", len(data)) + data + b"\0"
            return at
        code = field.code[1:]
        self._align(8, 4)
        at = len(self.out)
        self.out += struct.pack(f"<I{len(field.value)}{code}", len(field.value), *field.value)
        return at


class Net:
    """A graph, written tensor by tensor. `fields` of the last file may be edited before it is written again."""

    def __init__(self, buffers: list[bytes] | None = None, codes: list[tuple[str, int]] | None = None) -> None:
        self.tensors: list[Table] = []
        self.operators: list[Table] = []
        self.buffers = [b""] if buffers is None else buffers
        self.codes: list[tuple[str, int]] = [] if codes is None else codes
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def tensor(
        self, shape: Sequence[int], dtype: str = "float32", data: bytes | None = None, name: str = "",
        scale: Sequence[float] = (), zero: Sequence[int] = (0,), axis: int = 0, signature: Sequence[int] | None = None,
        variable: bool = False, sparsity: Table | None = None,
    ) -> int:  # fmt: skip
        """A tensor; returns its number."""
        number = len(self.tensors)
        fields: Table = {
            0: Field("[i", list(shape)), 1: Field("b", NUMBERS[dtype]), 2: Field("I", 0 if data is None else len(self.buffers)),
            3: Field("text", name or f"t{number}"),
        }  # fmt: skip
        if data is not None:
            self.buffers.append(data)
        if scale:
            fields[4] = Field("table", {2: Field("[f", scale), 3: Field("[q", zero), 6: Field("i", axis)})
        if variable:
            fields[5] = Field("b", 1)
        if sparsity is not None:
            fields[6] = Field("table", sparsity)
        if signature is not None:
            fields[7] = Field("[i", signature)
        self.tensors.append(fields)
        return number

    def constant(self, array: Any, name: str = "", dtype: str = "", **more: Any) -> int:
        """A tensor with data."""
        array = np.asarray(array)
        return self.tensor(array.shape, dtype or array.dtype.name, np.ascontiguousarray(array).tobytes(), name, **more)

    def op(self, name: str, inputs: Sequence[int], outputs: Sequence[int], version: int = 1, **options: Any) -> None:
        """An operator; options that are not given have the schema's defaults. A name that is not known is a custom one."""
        if (name, version) not in self.codes:
            self.codes.append((name, version))
        fields: Table = {
            0: Field("I", self.codes.index((name, version))), 1: Field("[i", list(inputs)), 2: Field("[i", list(outputs)),
        }  # fmt: skip
        known = options_of(name)
        if "custom" in options:
            fields[5] = Field("bytes", options.pop("custom"))
        if known is not None:
            places = {f.name: (f.number, "[i" if f.code == "list" else f.code) for f in known[1]}
            fields[3] = Field("B", known[0])
            fields[4] = Field("table", {places[k][0]: Field(places[k][1], v) for k, v in options.items()})
        self.operators.append(fields)

    def subgraph(self, name: str = "main") -> Table:
        """The graph's table."""
        return {
            0: Field("tables", self.tensors), 1: Field("[i", self.inputs), 2: Field("[i", self.outputs),
            3: Field("tables", self.operators), 4: Field("text", name),
        }  # fmt: skip

    def root(self, *others: Net, **more: Field) -> Table:
        """The model's table, with further graphs that share buffers and codes. more: metadata and signatures, as fields."""
        graphs = [self.subgraph(), *(other.subgraph(f"graph {i}") for i, other in enumerate(others, 1))]
        fields = {
            0: Field("I", 3), 1: Field("tables", [_code(*code) for code in self.codes]), 2: Field("tables", graphs),
            3: Field("text", "made by a test"), 4: Field("tables", [{0: Field("bytes", b)} if b else {} for b in self.buffers]),
        }  # fmt: skip
        return {**fields, **{{"metadata": 6, "signatures": 7}[key]: field for key, field in more.items()}}

    def file(self, *others: Net, **more: Field) -> bytes:
        """The whole file."""
        return Writer().file(self.root(*others, **more))


def _code(name: str, version: int) -> Table:
    names = _names()
    if name not in names:
        return {0: Field("b", 32), 1: Field("text", name), 2: Field("i", version), 3: Field("i", 32)}
    number = names.index(name)
    return {0: Field("b", min(number, 127)), 2: Field("i", version), 3: Field("i", number)}


def signature(key: str, inputs: dict[str, int], outputs: dict[str, int], subgraph: int = 0) -> Table:
    """Names for a graph's inputs and outputs."""
    sides = [[{0: Field("text", name), 1: Field("I", n)} for name, n in side.items()] for side in (inputs, outputs)]
    return {0: Field("tables", sides[0]), 1: Field("tables", sides[1]), 2: Field("text", key), 4: Field("I", subgraph)}


def single(
    op: str, given: Sequence[Any], fixed: dict[int, Any] | None = None, results: int = 1, shapes: Sequence[Sequence[int]] = (),
    dtypes: Sequence[str] = ("float32",), version: int = 1, **options: Any,
) -> bytes:  # fmt: skip
    """A file of one operator. `given` are arrays in place of inputs, None for a constant of `fixed` or for nothing."""
    net, numbers = Net(), []
    fixed = fixed or {}
    for i in range(max(len(given), max(fixed, default=-1) + 1)):
        if i in fixed:
            numbers.append(net.constant(fixed[i], f"c{i}"))
        elif i < len(given) and given[i] is not None:
            array = np.asarray(given[i])
            numbers.append(net.tensor(array.shape, array.dtype.name, name=f"x{i}"))
            net.inputs.append(numbers[-1])
        else:
            numbers.append(-1)
    for i in range(results):
        shape = shapes[i] if i < len(shapes) else ()
        net.outputs.append(net.tensor(shape, dtypes[i if i < len(dtypes) else -1], name=f"y{i}"))
    net.op(op, numbers, net.outputs, version, **options)
    return net.file()


def small() -> bytes:
    """A network of a few operators: convolution, pool, softmax; for tests that damage it."""
    net = Net()
    x = net.tensor((1, 4, 4, 2), name="x", signature=(-1, 4, 4, 2))
    w = net.constant(np.arange(36, dtype=np.float32).reshape(2, 3, 3, 2) / 36, "w")
    b = net.constant(np.array([1, -1], np.float32), "b")
    h, p = net.tensor((1, 4, 4, 2), name="h"), net.tensor((1, 2, 2, 2), name="p")
    axes = net.constant(np.array([1, 2], np.int32), "axes")
    y, z = net.tensor((1, 2), name="y"), net.tensor((1, 2), name="z")
    net.op("CONV_2D", [x, w, b], [h], padding=0, stride_w=1, stride_h=1, act=1)
    net.op("MAX_POOL_2D", [h], [p], padding=1, stride_w=2, stride_h=2, filter_w=2, filter_h=2)
    net.op("MEAN", [p, axes], [y], keep_dims=0)
    net.op("SOFTMAX", [y], [z], beta=1.0)
    net.inputs, net.outputs = [x], [z]
    return net.file(signatures=Field("tables", [signature("serving_default", {"image": x}, {"scores": z})]))

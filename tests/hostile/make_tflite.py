"""TensorFlow Lite files: flatbuffers whose offsets are, and networks whose parts contradict each other or stand for much."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from fastlayers.errors import FormatError, LimitError, UnsupportedError

from ..formats.test_tflite_hostile import LIES, edited, sparse_file
from ..formats.tflite_build import Field, Net, Table, Writer, signature, single, small
from .cases import ANY_OF_OURS, Case, Refusal, Sweep, contents, sweeps, weights

F, L, U = FormatError, LimitError, UnsupportedError
Change = Callable[[Net, Table], None]


def patched(at: int, code: str, value: int, whole: Callable[[], bytes] = small) -> bytes:
    """A right file with one number replaced."""
    raw = bytearray(whole())
    struct.pack_into(f"<{code}", raw, at, value)
    return bytes(raw)


def root() -> int:
    """Where the root table of `small` is."""
    return int(struct.unpack_from("<I", small(), 0)[0])


def field_of_root(number: int) -> int:
    """Where a field of the root table is."""
    raw, at = small(), root()
    vtable = at - struct.unpack_from("<i", raw, at)[0]
    return int(at + struct.unpack_from("<H", raw, vtable + 4 + 2 * number)[0])


def vector_of_root(number: int) -> int:
    """Where the vector that a field of the root leads to begins."""
    at = field_of_root(number)
    return int(at + struct.unpack_from("<I", small(), at)[0])


def vtable_of_root() -> int:
    return int(root() - struct.unpack_from("<i", small(), root())[0])


def buffer(start: int, size: int) -> Change:
    """The weights are after the flatbuffer, as in files of more than 2 GB."""

    def change(net: Net, root: Table) -> None:
        root[4] = Field("tables", [{}, {1: Field("Q", start), 2: Field("Q", size)}])

    return change


def quantized(**fields: Any) -> Change:
    numbers = {"scale": (2, "[f"), "zero": (3, "[q"), "axis": (6, "i"), "low": (0, "[f")}

    def change(net: Net, root: Table) -> None:
        net.tensors[1][4] = Field("table", {numbers[k][0]: Field(numbers[k][1], v) for k, v in fields.items()})

    return change


def set_tensor(number: int, place: int, code: str, value: Any) -> Change:
    def change(net: Net, root: Table) -> None:
        net.tensors[number][place] = Field(code, value)

    return change


def set_operator(place: int, code: str, value: Any) -> Change:
    def change(net: Net, root: Table) -> None:
        net.operators[0][place] = Field(code, value)

    return change


def set_graph(place: int, code: str, value: Any) -> Change:
    def change(net: Net, root: Table) -> None:
        root[2].value[0][place] = Field(code, value)

    return change


def custom(name: str, options: bytes = b"") -> bytes:
    net = Net()
    x, y = net.tensor((2,), name="x"), net.tensor((2,), name="y")
    net.op(name, [x], [y], **({"custom": options} if options else {}))
    net.inputs, net.outputs = [x], [y]
    return net.file()


def ring() -> bytes:
    """Two graphs whose branches call each other."""
    net = Net()
    c, x, y = net.tensor((), "bool", name="c"), net.tensor((2,), name="x"), net.tensor((2,), name="y")
    net.op("IF", [c, x], [y], then_subgraph_index=1, else_subgraph_index=1)
    net.inputs, net.outputs = [c, x], [y]
    others = []
    for following in (2, 1):
        other = Net(net.buffers, net.codes)
        a, b, k = other.tensor((2,), name="a"), other.tensor((2,), name="b"), other.constant(np.array(True), "k")
        other.op("IF", [k, a], [b], then_subgraph_index=following, else_subgraph_index=following)
        other.inputs, other.outputs = [a], [b]
        others.append(other)
    return net.file(*others)


def branch(number: int) -> bytes:
    """An If whose branches are this graph."""
    net = Net()
    c, x, y = net.tensor((), "bool", name="c"), net.tensor((2,), name="x"), net.tensor((2,), name="y")
    net.op("IF", [c, x], [y], then_subgraph_index=number, else_subgraph_index=number)
    net.inputs, net.outputs = [c, x], [y]
    return net.file()


def grown(*, shape: int = 0, op: str = "FILL") -> bytes:
    """An operator that makes much of a few values, all constant."""
    net = Net()
    x, y = net.tensor((2,), name="x"), net.tensor((2,), name="y")
    made = net.tensor((1,), name="made")
    if op == "FILL":
        net.op(op, [net.constant(np.array([shape], np.int32)), net.constant(np.float32(1))], [made])
    elif op == "TILE":
        net.op(op, [net.constant(np.ones(4, np.float32)), net.constant(np.array([shape], np.int32))], [made])
    elif op == "BROADCAST_TO":
        net.op(op, [net.constant(np.ones(1, np.float32)), net.constant(np.array([shape], np.int32))], [made])
    else:
        ends = [net.constant(np.float32(v)) for v in (0, shape, 1)]
        net.op("RANGE", ends, [made])
    first = net.tensor((), name="first")
    net.op("GATHER", [made, net.constant(np.array(0, np.int32))], [first], axis=0)
    net.op("ADD", [x, first], [y])
    net.inputs, net.outputs = [x], [y]
    return net.file()


def repeated(count: int) -> bytes:
    """Operators of nothing."""
    tables: list[Table] = [{} for _ in range(count)]
    graph: Table = {0: Field("tables", [{}]), 3: Field("tables", tables)}
    return Writer().file({0: Field("I", 3), 1: Field("tables", [{}]), 2: Field("tables", [graph]), 4: Field("tables", [{}])})


EDITED: dict[str, tuple[Change, Refusal | None, str]] = {
    "a network": (lambda net, root: None, None, ""),
    "a buffer that begins in the file": (buffer(8, 48), None, ""),
    "a buffer beyond the end": (buffer(1 << 40, 48), F, "begins at 1099511627776"),
    "a buffer that ends beyond": (buffer(8, 1 << 20), F, "truncated?"),
    "a buffer whose end overflows": (buffer(16, (1 << 64) - 8), F, "truncated?"),
    "a buffer of 2**64 - 1 from 2**64 - 1": (buffer((1 << 64) - 1, (1 << 64) - 1), F, "truncated?"),
    "a buffer of nothing": (buffer(8, 0), ANY_OF_OURS, ""),
    "weights a byte short": (set_tensor(1, 0, "[i", [4, 3, 2]), F, "48 bytes, float32 of shape [4, 3, 2] takes 96"),
    "sizes that overflow": (set_tensor(1, 0, "[i", [1 << 30] * 6), F, "beyond any memory"),
    "a size below 0": (set_tensor(1, 0, "[i", [-4, -3]), F, "expected sizes from 0 up"),
    "a signature below -1": (set_tensor(0, 7, "[i", [-2, 3]), F, "expected sizes from 0 up"),
    "a thousand axes": (set_tensor(1, 0, "[i", [1] * 1000), U, "1000 dimensions"),
    "elements of text": (set_tensor(1, 1, "b", 5), ANY_OF_OURS, ""),
    "elements of a resource": (set_tensor(1, 1, "b", 13), ANY_OF_OURS, ""),
    "elements below 0": (set_tensor(1, 1, "b", -1), ANY_OF_OURS, ""),
    "half bytes too few": (set_tensor(1, 1, "b", 17), F, "12 values of 4 bits take 6"),
    "data in another file": (set_tensor(1, 10, "I", 1), U, "another file"),
    "scales of another number": (quantized(scale=[1.0] * 3, zero=[0, 0]), F, "expected as many"),
    "scales for another axis": (quantized(scale=[1.0] * 3, zero=[0] * 3, axis=0), None, ""),
    "an axis of scales that there is not": (quantized(scale=[1.0] * 4, zero=[0] * 4, axis=9), None, ""),
    "an axis of scales below 0": (quantized(scale=[1.0] * 4, zero=[0] * 4, axis=-(1 << 31)), None, ""),
    "an infinite scale": (quantized(scale=[float("inf")], zero=[0]), F, "finite scales"),
    "a code beyond": (set_operator(0, "I", (1 << 32) - 1), F, "has the code 4294967295"),
    "an input beyond": (set_operator(1, "[i", [0, (1 << 31) - 1]), F, "inputs are the tensors"),
    "an input below -1": (set_operator(1, "[i", [0, -(1 << 31)]), F, "inputs are the tensors"),
    "an output below 0": (set_operator(2, "[i", [-1]), F, "outputs are the tensors"),
    "no outputs of an operator": (set_operator(2, "[i", []), F, ""),
    "ten thousand inputs": (set_operator(1, "[i", [0] * 10_000), ANY_OF_OURS, ""),
    "no inputs of an operator": (set_operator(1, "[i", []), ANY_OF_OURS, ""),
    "an operator that reads itself": (set_operator(1, "[i", [2, 1]), F, "is read, and no input"),
    "options of another kind": (set_operator(3, "B", 1), F, "options are of type 1: expected 8"),
    "options of no kind": (set_operator(3, "B", 255), F, "options are of type 255"),
    "an activation beyond": (set_operator(4, "table", {0: Field("b", 127)}), U, "activation number 127"),
    "outputs beyond": (set_graph(2, "[i", [77]), F, "inputs or outputs are the tensors"),
    "inputs below": (set_graph(1, "[i", [-1]), F, "inputs or outputs are the tensors"),
    "an input twice": (set_graph(1, "[i", [0, 0]), None, ""),
    "a version of 2**32 - 1": (lambda net, root: root.update({0: Field("I", (1 << 32) - 1)}), U, "version 4294967295"),
    "no codes": (lambda net, root: root.update({1: Field("tables", [])}), F, "has the code 0, the file has 0"),
    "no buffers": (lambda net, root: root.update({4: Field("tables", [])}), F, "has the buffer"),
    "a code of 2**31 - 1": (
        lambda net, root: root.update({1: Field("tables", [{0: Field("b", 127), 3: Field("i", (1 << 31) - 1)}])}), U,
        "2147483647",
    ),
    "a code below 0": (
        lambda net, root: root.update({1: Field("tables", [{0: Field("b", -5), 3: Field("i", -5)}])}), U, "operator",
    ),
    "a description that is no text": (lambda net, root: root.update({3: Field("bytes", b"\xff\xfe{0}%n")}), None, ""),
    "metadata of no buffer": (
        lambda net, root: root.update({6: Field("tables", [{0: Field("text", "a"), 1: Field("I", 99)}])}), F, "buffer 99",
    ),
    "a signature of no tensor": (
        lambda net, root: root.update({7: Field("tables", [signature("s", {"a": 99}, {})])}), F, "its values are the tensors",
    ),
}  # fmt: skip

FILES: dict[str, tuple[Callable[[], bytes], Refusal | None, str]] = {
    "a small network": (small, None, ""),
    # ---- the flatbuffer
    "a root beyond the end": (lambda: patched(0, "I", 1 << 30), F, "truncated?"),
    "a root of 2**32 - 1": (lambda: patched(0, "I", (1 << 32) - 1), F, "truncated?"),
    "a root at itself": (lambda: patched(0, "I", 0), F, "refers to itself"),
    "a root that is not aligned": (lambda: patched(0, "I", root() + 1), F, ""),
    "a root in the identifier": (lambda: patched(0, "I", 4), F, ""),
    "a vtable beyond the end": (lambda: patched(root(), "i", -(1 << 30)), F, "a vtable is at"),
    "a vtable before the file": (lambda: patched(root(), "i", 1 << 30), F, "a vtable is at -"),
    "a vtable of 3 bytes": (lambda: patched(vtable_of_root(), "H", 3), F, "the vtable at"),
    "a vtable of 65535 bytes": (lambda: patched(vtable_of_root(), "H", 65535), F, "the vtable at"),
    "a vtable of 65534 bytes": (lambda: patched(vtable_of_root(), "H", 65534), F, "a vtable is at"),
    "a table of 65535 bytes": (lambda: patched(vtable_of_root() + 2, "H", 65535), F, "a table is at"),
    "a table of 3 bytes": (lambda: patched(vtable_of_root() + 2, "H", 3), F, "the vtable at"),
    "a field beyond its table": (lambda: patched(vtable_of_root() + 4, "H", 60000), F, "field 0 of the table"),
    "a field over the vtable's place": (lambda: patched(vtable_of_root() + 4, "H", 2), F, "field 0 of the table"),
    "fields that overlap": (lambda: patched(vtable_of_root() + 6, "H", 4), ANY_OF_OURS, ""),
    "a field that is not aligned": (lambda: patched(vtable_of_root() + 8, "H", 5), ANY_OF_OURS, ""),
    "a field that leads to itself": (lambda: patched(field_of_root(2), "I", 0), F, "refers to itself"),
    "a field that leads beyond the end": (lambda: patched(field_of_root(2), "I", 1 << 31), F, "truncated?"),
    "a vector of 2**32 - 1 tables": (lambda: patched(vector_of_root(2), "I", (1 << 32) - 1), F, "has 4294967295 elements"),
    "a vector longer than the file": (lambda: patched(vector_of_root(4), "I", len(small())), F, "elements, the file has"),
    "a vector that ends beyond": (lambda: patched(vector_of_root(4), "I", len(small()) // 4), F, ""),
    "a table that leads to itself": (lambda: patched(vector_of_root(2) + 4, "I", 0), F, "refers to itself"),
    "another identifier": (lambda: small().replace(b"TFL3", b"TFL9", 1), F, "is of no known format"),
    "nothing after the identifier": (lambda: small()[:8], F, "truncated?"),
    "a hundred thousand operators": (lambda: repeated(100_000), L, "more than 30000 tensors and operators"),
    # ---- what is never run
    "a custom operator": (lambda: custom("Evil"), U, "operator CUSTOM 'Evil'"),
    "a Flex operator": (lambda: custom("FlexPyFunc", b"evil"), U, "operator CUSTOM 'FlexPyFunc'"),
    "a custom operator of signs": (lambda: custom("../../{0}%s\n\x1b[2J", b"\xff" * 100), U, "operator CUSTOM"),
    "an operator that reads files": (lambda: custom("FlexReadFile", b"/etc/passwd"), U, "FlexReadFile"),
    "a hash table": (lambda: single("HASHTABLE", [np.zeros(2, np.float32)]), U, "HASHTABLE"),
    # ---- graphs that call
    "branches that call each other": (ring, F, "calls itself"),
    "branches that are the main graph": (lambda: branch(0), F, "graph 0 has 2 inputs"),
    "branches that there are not": (lambda: branch(7), F, "7"),
    "branches below 0": (lambda: branch(-1), F, "-1"),
    # ---- much from a few bytes
    "Fill of 4 GB": (lambda: grown(shape=1 << 30), None, ""),
    "Fill of 200 MB": (lambda: grown(shape=50_000_000), None, ""),
    "Fill of a negative size": (lambda: grown(shape=-1), ANY_OF_OURS, ""),
    "Tile to 4 GB": (lambda: grown(shape=1 << 28, op="TILE"), None, ""),
    "BroadcastTo 4 GB": (lambda: grown(shape=1 << 30, op="BROADCAST_TO"), None, ""),
    "Range of 8 GB": (lambda: grown(shape=1 << 30, op="RANGE"), None, ""),
    "Range of 200 MB": (lambda: grown(shape=50_000_000, op="RANGE"), None, ""),
    # ---- sparse
    **{
        f"sparse: {name}": (lambda c=change: sparse_file(**c), F, match)  # type: ignore[misc]
        for name, (change, match) in {
            "an order twice": (
                {"order": [0, 0]}, "order of dimensions"), "an order beyond": ({"order": [0, 9]}, "order of dimensions",
            ),
            "blocks beyond": ({"blocks": [99]}, "order of dimensions"), "a level too few": ({"levels": 1}, "order of dimensions"),
            "2**30 rows": ({"rows": 1 << 30}, "more positions than its shape"), "rows below 0": ({"rows": -1}, "more positions"),
            "segments that fall": (
                {"segments": [0, 2, 1, 3]}, "segments of a compressed"), "no segments": ({"segments": []}, "segments",
            ),
            "segments beyond": (
                {"segments": [0, 1, 1, 99]}, "segments of a compressed"), "an index beyond": ({"indices": [2, 0, 4]}, "outside",
            ),
            "an index far beyond": ({"indices": [2, 0, 255]}, "outside"), "a value too few": ({"values": 2}, "has 2 values"),
            "a value too many": ({"values": 4}, "has 4 values"), "a dense level of indices": ({"kind": 0}, ""),
        }.items()
    },
}  # fmt: skip

CASES: list[Case | Sweep] = [
    *contents(
        "tflite",
        {
            f"once: {name}": (lambda c=lie: edited(c), error, re.sub(r"\\(.)", r"\1", text))
            for name, (lie, error, text) in LIES.items()
        },
    ),  # type: ignore[misc]
    *contents(
        "tflite", {f"edited: {name}": (lambda c=change: edited(c), error, text) for name, (change, error, text) in EDITED.items()}
    ),  # type: ignore[misc]
    *contents("tflite", {name: file for name, file in FILES.items() if not name.startswith("sparse")}),
    *contents("tflite", {name: file for name, file in FILES.items() if name.startswith("sparse")}, weights),
    *sweeps("tflite", "a small network", small, step=3),
    *sweeps("tflite", "a small network's weights", small, weights, 7),
]

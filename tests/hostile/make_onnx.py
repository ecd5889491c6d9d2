"""ONNX files as bytes: protobuf that is, and tensors whose parts contradict each other."""

from __future__ import annotations

import numpy as np

from fastlayers.errors import DTypeError, FormatError, LimitError, ShapeError, UnsupportedError

from ..formats import onnx_build as ob
from ..formats.onnx_build import field, node, repeated, varint
from .cases import Case, Refusal, Sweep, contents, sweeps, weights

HEAD = b"\x08\x08\x12\x00"  # ir_version, an empty producer_name
EIGHT = field(9, bytes(32))  # raw_data of eight floats
F, L, U = FormatError, LimitError, UnsupportedError


def tail() -> bytes:
    return field(8, field(1, "") + field(2, 17))


def net(*initializers: bytes, nodes: tuple[bytes, ...] = (), **more: object) -> bytes:
    """A network that adds its initializer w."""
    inputs, outputs = [ob.value_info("x", (8,))], [ob.value_info("y", (8,))]
    return ob.model(ob.graph([*nodes, node("Add", "x w", "y")], inputs, outputs, initializers), **more)  # type: ignore[arg-type]


def whole() -> bytes:
    """A small model with some of everything; what is needed last is last."""
    inner = ob.graph([node("Mul", "x w", "k"), node("Neg", "k", "z")], "", "z", [ob.tensor(np.ones(1, "f4"), "own")])
    nodes = [
        node("If", "b", "h", then_branch=inner, else_branch=inner),
        node("F", "h", "y", domain="my"),
        node("Add", "y n", "r"),
    ]
    initializers = [ob.tensor(np.ones((2, 1), "f4"), "w"), ob.tensor_raw((2,), 1, field(4, bytes(8)), name="n")]
    f = ob.function("F", "a", "r", [node("Relu", "a", "r")])
    inputs = [ob.value_info("x", ("n", 2)), ob.value_info("b", (), 9)]
    return ob.model(ob.graph(nodes, inputs, [ob.value_info("r", None)], initializers), functions=[f], imports="my")


# ---- protobuf ----


def nested(depth: int, number: int = 7) -> bytes:
    """Messages in one another, made from the inside."""
    out = b""
    for _ in range(depth):
        out = field(number, out)
    return out


def branches(depth: int) -> bytes:
    """An If whose branches are an If, and so on."""
    inner = leaf = ob.graph([node("Neg", "x", "z")], "", "z")
    for i in range(depth):
        inner = ob.graph([node("If", "b", f"z{i}", then_branch=inner, else_branch=leaf)], "", f"z{i}")
    inputs = [ob.value_info("x", (8,)), ob.value_info("b", (), 9)]
    return ob.model(ob.graph([node("If", "b", "y", then_branch=inner, else_branch=leaf)], inputs, "y"))


def types(depth: int) -> bytes:
    """sequence(sequence(...)), made at once."""
    parts, size = [b""], 0
    for _ in range(depth):
        first = b"\x0a" + varint(size)
        second = b"\x22" + varint(size + len(first))
        parts.append(second + first)
        size += len(first) + len(second)
    return HEAD + field(7, field(11, field(1, "a") + field(2, b"".join(reversed(parts)))))


WIRE: dict[str, tuple[object, Refusal | None, str]] = {
    "a number of 11 bytes": (lambda: HEAD + field(7, b"") + b"\x28" + b"\xff" * 10 + b"\1", F, "more than 64 bits"),
    "a number of 65 bits": (lambda: HEAD + field(7, b"") + b"\x28" + b"\xff" * 9 + b"\2", F, "more than 64 bits"),
    "a number that does not end": (lambda: HEAD + field(7, b"") + b"\x28" + b"\xff" * 5, F, "the file ends within"),
    "a million continuation bytes": (lambda: HEAD + b"\x28" + b"\x80" * 1_000_000, F, "more than 64 bits"),
    "a number longer than it need be": (lambda: net(ob.tensor(np.zeros(8, "f4"), "w")) + b"\x28\x81\x80\x00", None, ""),
    "a field of number 0": (lambda: HEAD + b"\x00\x01", F, "has the number 0"),
    "a field beyond the highest number": (lambda: HEAD + varint(1 << 32) + b"\0", F, "has the number 536870912"),
    "a tag of ten bytes": (lambda: HEAD + b"\xff" * 9 + b"\1", F, "no known kind (7)"),
    "a group": (lambda: HEAD + b"\x3b\x3c", F, "field 7 is a group"),
    "the end of a group": (lambda: HEAD + b"\x3c", F, "field 7 is a group"),
    "wire type 6": (lambda: HEAD + b"\x3e\0", F, "no known kind (6)"),
    "wire type 7": (lambda: HEAD + b"\x3f\0", F, "no known kind (7)"),
    "groups in groups": (lambda: HEAD + b"\x3b" * 100_000, F, "is a group"),
    "a length beyond the end": (lambda: HEAD + b"\x3a\x7f", F, "longer than the"),
    "a length of 2**63": (lambda: HEAD + b"\x3a" + varint(1 << 63), F, "longer than the"),
    "a length of 2**64 - 1": (lambda: HEAD + b"\x3a" + varint((1 << 64) - 1), F, "longer than the"),
    "a length beyond the message around it": (lambda: HEAD + field(7, b"\x0a\x40") + field(6, bytes(64)), F, "longer than the"),
    "a float that is cut off": (
        lambda: HEAD + field(7, field(1, field(4, "A") + field(5, b"\x15\0\0"))), F, "ends within a number",
    ),
    "the graph as a number": (lambda: HEAD + field(7, 1), F, "field 7 is of kind 0"),
    "the version as a text": (lambda: HEAD + field(8, b"") + field(1, b"8"), F, "field 1 is of kind 2"),
    "two graphs": (lambda: net(ob.tensor(np.zeros(8, "f4"), "w")) + field(7, b""), F, "has more than one graph"),
    "no graph": (lambda: ob.model(None), F, "without a graph"),
    "a name that is no text": (lambda: HEAD + field(7, field(2, b"\xff\xfe")), F, "is not UTF-8"),
    "a name of surrogates": (lambda: HEAD + field(7, field(1, field(4, "A") + field(3, b"\xed\xa0\x80"))), F, "is not UTF-8"),
    "unknown fields": (lambda: net(ob.tensor(np.zeros(8, "f4"), "w")) + field(900, b"\xff" * 999) + field(901, 1.5), None, ""),
    "messages 100000 deep": (lambda: HEAD + types(100_000)[4:], L, "nested more than 64"),
    "branches in branches": (lambda: branches(40), L, "nested more than 64"),
    "branches too deep for Python": (lambda: branches(900), L, "nested more than 64"),
    "branches that may be": (lambda: branches(12), None, ""),
    "training_info": (
        lambda: net(ob.tensor(np.zeros(8, "f4"), "w")) + field(20, field(1, ob.graph([node("PyOp", "", "z")], "", "z"))),
        None, "",
    ),
    "a million nodes of nothing": (lambda: ob.model(field(1, b"") * 1_000_000), F, "has no op_type"),
    "a million nodes": (lambda: ob.model(field(1, field(4, "A")) * 1_000_000), L, ""),
    "a million empty messages": (lambda: ob.model(field(11, b"") * 1_000_000), F, "has no name"),
    "a million metadata": (lambda: HEAD + field(7, b"") + field(14, b"") * 1_000_000 + tail(), L, "more than 10000"),
    "a million imports": (lambda: HEAD + field(7, b"") + field(8, b"\x10\1") * 1_000_000, L, "more than 10000"),
    "a million functions": (lambda: HEAD + field(7, b"") + field(25, b"") * 1_000_000, L, "more than 10000"),
    "a million nodes of a function": (lambda: HEAD + field(7, b"") + field(25, field(7, b"") * 1_000_000), L, "50000 nodes"),
    "a million attributes of nothing": (
        lambda: ob.model(field(1, field(4, "A") + field(5, b"") * 1_000_000)), L, "1000 attributes",
    ),
    "a million inputs of a node": (lambda: ob.model(field(1, field(4, "A") + b"\x0a\0" * 1_000_000)), (F, L, U), ""),
    "a million unknown fields": (lambda: net(ob.tensor(np.zeros(8, "f4"), "w")) + b"\xf8\x3f\0" * 500_000, None, ""),
}  # fmt: skip


# ---- tensors ----


def w(dims: tuple[int, ...] = (8,), *content: bytes, type_: int = 1) -> bytes:
    return net(ob.tensor_raw(dims, type_, *content, name="w"))


def spread(values: bytes, indices: bytes, dims: tuple[int, ...] = (8,)) -> bytes:
    sparse = field(15, ob.sparse(values, indices, dims))
    return ob.model(ob.graph([node("Add", "x w", "y")], "x", "y", extra=sparse))


ONE = ob.tensor(np.ones(1, "f4"), "w")


def at(*places: int) -> bytes:
    return ob.tensor(np.array(places, "i8"))


TENSORS: dict[str, tuple[object, Refusal | None, str]] = {
    "a tensor": (lambda: w((8,), EIGHT), None, ""),
    "raw_data a byte short": (lambda: w((8,), field(9, bytes(31))), F, "raw_data has 31 bytes, FLOAT of shape (8,) takes 32"),
    "raw_data a byte long": (lambda: w((8,), field(9, bytes(33))), F, "raw_data has 33 bytes"),
    "no raw_data": (lambda: w((8,)), F, "its FLOAT elements are nowhere"),
    "empty raw_data": (lambda: w((8,), field(9, b"")), F, "raw_data has 0 bytes"),
    "raw_data and float_data": (lambda: w((8,), EIGHT, field(4, bytes(32))), F, "both in raw_data and in a field"),
    "two fields": (lambda: w((8,), field(4, bytes(16)), ob.packed(5, [0] * 4)), F, "in more than one field"),
    "the wrong field": (lambda: w((8,), ob.packed(7, [0] * 8)), F, "elements are in int64_data"),
    "too few float_data": (lambda: w((8,), field(4, bytes(28))), F, "float_data has 28 bytes"),
    "float_data of half a float": (lambda: w((8,), field(4, bytes(30))), F, "float_data has 30 bytes"),
    "float_data, each in a field": (lambda: w((8,), repeated(4, [0.5] * 8)), None, ""),
    "float_data, packed": (lambda: w((8,), field(4, bytes(32))), None, ""),
    "integers packed and not": (lambda: w((8,), ob.packed(7, [0] * 4), repeated(7, [0] * 4), type_=7), F, "packed and some not"),
    "too few int64_data": (lambda: w((8,), ob.packed(7, [0] * 7), type_=7), F, "has 7 bytes, shape (8,) takes 8"),
    "too many int64_data": (lambda: w((8,), ob.packed(7, [0] * 9), type_=7), F, "has 9 values"),
    "too many int64_data, each in a field": (lambda: w((8,), repeated(7, [0] * 9), type_=7), F, "has 9 values"),
    "a packed number of 11 bytes": (lambda: w((100,), field(7, bytes(99) + b"\xff" * 10 + b"\1"), type_=7), F, "64 bits"),
    "a packed number that is cut off": (lambda: w((100,), field(7, bytes(99) + b"\xff"), type_=7), F, "is cut off"),
    "int32_data beyond its type": (lambda: w((1,), ob.packed(5, [300]), type_=3), F, "values beyond"),
    "a bool of 2": (lambda: w((1,), ob.packed(5, [2]), type_=9), F, "beyond 0 to 1"),
    "a negative size": (lambda: w((-8,), EIGHT), F, "expected sizes from 0 up"),
    "two negative sizes": (lambda: w((-2, -4), EIGHT), F, "expected sizes from 0 up"),
    "sizes that overflow to 8": (lambda: w(((1 << 62) + 1, 8), EIGHT), F, "w"),
    "sizes that overflow to 0": (lambda: w((1 << 32, 1 << 32)), F, "w"),
    "a size of 2**63": (lambda: w((-(1 << 63),), EIGHT), F, "expected sizes from 0 up"),
    "a huge shape of nothing": (lambda: w((1 << 62, 0)), F, ""),
    "a huge shape without data": (lambda: w((1 << 40,)), F, "w"),
    "a petabyte in raw_data": (lambda: w((1 << 48,), EIGHT), F, "raw_data has 32 bytes"),
    "a thousand sizes": (lambda: w((1,) * 1000, EIGHT), U, "dimensions"),
    "a million sizes": (lambda: w((1,) * 1_000_000, EIGHT), U, "dimensions"),
    "no type": (lambda: w((8,), EIGHT, type_=0), F, "has no element type"),
    "an unknown type": (lambda: w((8,), EIGHT, type_=99), U, "type 99"),
    "type 2**63": (lambda: w((8,), EIGHT, type_=1 << 63), U, "of type 9223372036854775808"),
    "text": (lambda: w((8,), *(field(6, "a") for _ in range(8)), type_=8), DTypeError, "dtype object: expected"),
    "too few strings": (lambda: w((8,), field(6, "a"), type_=8), F, "has 1 strings"),
    "text in raw_data": (lambda: w((8,), EIGHT, type_=8), F, "STRING elements are in raw_data"),
    "2**40 strings of nothing": (lambda: w((1 << 40,), field(6, ""), type_=8), F, "has 1 strings"),
    "segments": (lambda: w((8,), EIGHT, field(3, b"")), U, "cut into segments"),
    "half a byte too few": (lambda: w((9,), field(9, bytes(4)), type_=22), F, "has 4 bytes"),
    "no name": (lambda: net(ob.tensor_raw((8,), 1, EIGHT)), F, "has no name"),
    "the same name twice": (lambda: net(*[ob.tensor_raw((8,), 1, EIGHT, name="w")] * 2), F, "the same name"),
    "raw_data twice": (lambda: w((8,), field(9, bytes(999)), EIGHT), None, ""),  # the last counts, as in protobuf
    "the type twice": (lambda: w((8,), field(2, 7), EIGHT), F, ""),
    # ---- sparse
    "a sparse tensor": (lambda: spread(ONE, at(7)), None, ""),
    "a sparse index outside": (lambda: spread(ONE, at(8)), F, "from 0 to 7"),
    "a sparse index below": (lambda: spread(ONE, at(-1)), F, "from 0 to 7"),
    "sparse indices twice": (lambda: spread(ob.tensor(np.ones(2, "f4"), "w"), at(3, 3)), F, "without repetition"),
    "sparse indices that fall": (lambda: spread(ob.tensor(np.ones(2, "f4"), "w"), at(3, 2)), F, "must ascend"),
    "too few sparse indices": (lambda: spread(ob.tensor(np.ones(2, "f4"), "w"), at(3)), F, "sparse indices of shape"),
    "sparse indices of floats": (lambda: spread(ONE, ob.tensor(np.ones(1, "f4"))), F, "sparse indices of shape"),
    "a sparse bomb": (lambda: spread(ONE, at(7), (1 << 40,)), L, "1000 times"),
    "a sparse bomb of 200 MB": (lambda: spread(ONE, at(7), (50_000_000,)), L, "1000 times"),
    "a sparse shape that overflows": (lambda: spread(ONE, at(7), (1 << 32, 1 << 32)), F, "w"),
    "a negative sparse shape": (lambda: spread(ONE, at(7), (-8,)), F, "expected sizes from 0 up"),
    "sparse without values": (
        lambda: ob.model(ob.graph([node("Add", "x w", "y")], "x", "y", extra=field(15, field(2, at(7))))), F, "has no values",
    ),
    "sparse indices of rows outside": (
        lambda: spread(ONE, ob.tensor(np.array([[0, 9]])), (8, 8)), F, "go beyond the shape",
    ),
    # ---- attributes
    "an attribute twice": (
        lambda: net(ONE, nodes=(node("Neg", "x", "z", ob.attribute("a", 1), ob.attribute("a", 2)),)), F, "twice",
    ),
    "an attribute of two types": (
        lambda: net(ONE, nodes=(node("Neg", "x", "z", ob.attribute_raw("a", 2, field(3, 1) + field(4, "a"))),)), F,
        "attribute 'a'",
    ),
    "an attribute that lies about its type": (
        lambda: net(ONE, nodes=(node("Neg", "x", "z", ob.attribute_raw("a", 4, field(3, 1))),)), F, "is of type TENSOR",
    ),
    "an attribute of type 99": (lambda: net(ONE, nodes=(node("Neg", "x", "z", ob.attribute_raw("a", 99)),)), F, "type 99"),
    "an attribute without a value": (
        lambda: net(ONE, nodes=(node("Constant", "", "z", ob.attribute_raw("value", 4)),)), F, "no value",
    ),
    "an attribute of two tensors": (
        lambda: net(ONE, nodes=(node("Constant", "", "z", ob.attribute_raw("value", 4, field(5, ONE) * 2)),)), F,
        "its value twice",
    ),
    "an attribute that refers outside of functions": (
        lambda: net(ONE, nodes=(node("Neg", "x", "z", ob.reference("a", "b")),)), F, "is in no function",
    ),
    "an axis that is a tensor": (
        lambda: net(ONE, nodes=(node("Softmax", "x", "z", axis=np.zeros(3, "f4")),)), (F, U), "axis",
    ),
    "an axis of 2**62": (
        lambda: net(ONE, nodes=(node("Softmax", "x", "z", axis=1 << 62),)), ShapeError, "axis is 4611686018427387904",
    ),
}  # fmt: skip

CASES: list[Case | Sweep] = [
    *contents("onnx", {f"protobuf: {name}": file for name, file in WIRE.items()}),  # type: ignore[misc]
    *contents("onnx", TENSORS),  # type: ignore[arg-type]
    *sweeps("onnx", "a small model", whole),
    *sweeps("onnx", "a small model's weights", whole, weights, 3),
]

"""ONNX files with damage of every kind: whatever the bytes are, out comes a model or an error of ours, in little memory."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fastlayers.errors import FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights, onnx
from fastlayers.formats.onnx import parse
from fastlayers.formats.onnx.proto import GraphProto
from fastlayers.formats.source import Source

from . import onnx_build as ob
from .build import VALID
from .measure import allocations
from .onnx_build import field, function, node, repeated, varint

QUIET = settings(derandomize=True, deadline=None, max_examples=60, database=None)


def rich() -> bytes:
    """A small model with some of everything, what is needed last so that no truncation is whole."""
    inner = ob.graph([node("Mul", "x w", "k"), node("Neg", "k", "z")], "", "z", [ob.tensor(np.ones(1, "f4"), "own")])
    nodes = [
        node("Constant", "", "c", value=np.arange(3, dtype="i8")),
        node("Constant", "", "q", value=ob.Tensor(ob.tensor_raw((3,), 22, field(9, b"\x21\x03")))),
        node("If", "b", "h", name="if", then_branch=inner, else_branch=inner),
        node("F", "h", "y", domain="my", axis=1),
        node("Clip", "y _ w", "r", ints=[1, -2], floats=[0.5], strings=["a"]),
    ]
    initializers = [
        ob.tensor(np.ones((2, 1), "f4"), "w"),
        ob.tensor_raw((3,), 7, ob.packed(7, [1, -1, 300]), name="n"),
        ob.tensor_raw((2,), 8, field(6, "a"), field(6, "b"), name="s"),
    ]
    sparse = ob.sparse(ob.tensor(np.ones(1, "f4"), "sp"), ob.tensor(np.array([2])), (2, 2))
    inputs = [ob.value_info("x", ("n", 2)), ob.value_info("b", (), 9)]
    graph = ob.graph(nodes, inputs, "r", initializers, extra=field(15, sparse) + field(13, ob.value_info("h", None)))
    f = function("F", "a", "r", [node("Relu", "a", "r", ob.reference("axis", "axis"))])
    return ob.model(graph, field(14, ob.entry("k", "v")), functions=[f], imports="my")


def walk(graph: GraphProto) -> None:
    """Looks at everything."""
    for array in graph.initializers.values():
        assert not array.flags.writeable and array.flags.aligned and array.flags.c_contiguous
        array.tobytes()
    for n in graph.nodes:
        for value in n.attributes.values():
            if isinstance(value, GraphProto):
                walk(value)
            elif isinstance(value, np.ndarray):
                assert not value.flags.writeable
                value.tobytes()


def check(content: bytes) -> bool:
    """Reads it; True if that gave a model."""
    try:
        model = ob.read(content, max_bytes=1 << 22)
    except (FormatError, UnsupportedError, LimitError):
        return False
    walk(model.graph)
    return True


def test_truncated_at_every_byte() -> None:
    content = rich()
    assert check(content)
    for length in range(len(content)):
        assert not check(content[:length]), length


def test_every_bit_flipped() -> None:
    content = bytearray(rich())
    for position in range(len(content)):
        for bit in range(8):
            content[position] ^= 1 << bit
            check(bytes(content))
            content[position] ^= 1 << bit


def test_flipped_bits_cost_little_memory() -> None:
    content, rng = bytearray(rich()), random.Random(2)
    with allocations() as measured:
        for _ in range(300):
            position, bit = rng.randrange(len(content)), rng.randrange(8)
            content[position] ^= 1 << bit
            check(bytes(content))
            content[position] ^= 1 << bit
    assert measured.peak < 8 << 20


def test_bytes_inserted_removed_or_replaced() -> None:
    content, rng = rich(), random.Random(0)
    for _ in range(500):
        at, size = rng.randrange(len(content)), rng.choice((1, 2, 4, 8))
        value = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size), content[at : at + size] * 2, varint(1 << 63)))
        check(content[:at] + value + content[at + size :])
        check(content[:at] + value + content[at:])
        check(content[:at] + content[at + size :])


@QUIET
@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    check(content)
    check(b"\x08\x08\x12\x00" + field(7, content))
    check(b"\x08\x08\x12\x00" + field(7, field(1, content)))
    check(b"\x08\x08\x12\x00" + field(7, field(1, field(4, "A") + field(5, content))))
    check(b"\x08\x08\x12\x00" + field(7, field(5, content)))
    check(b"\x08\x08\x12\x00" + field(7, field(11, content)))
    check(b"\x08\x08\x12\x00" + field(7, b"") + field(25, content))


@st.composite
def messages(draw: Any, depth: int = 4) -> bytes:
    """Well-made messages of small field numbers, so that many mean something."""
    out = b""
    for _ in range(draw(st.integers(0, 4))):
        number = draw(st.sampled_from([*range(1, 16), 20, 21, 22, 25]))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            out += field(number, draw(st.sampled_from([0, 1, 2, 4, 5, 7, 8, 300, -1, 1 << 62])))
        elif kind == 1:
            out += field(number, draw(st.sampled_from([b"", b"a", b"x", b"Constant", b"\0\0\0\0", b"\xff"])))
        elif depth:
            out += field(number, draw(messages(depth - 1)))
    return out


@QUIET
@given(messages())
def test_any_messages(content: bytes) -> None:
    check(b"\x08\x08\x12\x00" + content + field(8, field(2, 17)))
    check(b"\x08\x08\x12\x00" + field(7, content) + field(8, field(2, 17)))
    check(b"\x08\x08\x12\x00" + field(7, field(1, field(4, "If") + field(5, content))) + field(8, field(2, 17)))
    check(b"\x08\x08\x12\x00" + field(7, field(5, content)) + field(8, field(2, 17)))


DTYPES = st.sampled_from(["<f4", "<f8", "<f2", "<i8", "<i4", "<u2", "u1", "?"]).map(np.dtype)
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)))
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@QUIET
@given(st.dictionaries(NAMES, ARRAYS, min_size=1, max_size=4))
def test_round_trip(arrays: dict[str, np.ndarray]) -> None:
    weights = load_weights(ob.model(ob.graph(initializers=[ob.tensor(array, name) for name, array in arrays.items()])))
    assert list(weights) == list(arrays)
    for name, array in arrays.items():
        assert weights[name].dtype == array.dtype and weights[name].shape == array.shape
        assert weights[name].tobytes() == array.tobytes()


def many(number: int, message: bytes, count: int = 5_000) -> bytes:
    """A graph of the same field again and again."""
    return ob.model(field(number, message) * count)


def numbered(number: int, make: Any, count: int = 3_000) -> bytes:
    """A graph of a field with another name each time."""
    return ob.model(repeated(number, (make(f"{i:x}") for i in range(count))))


# The smallest messages of each sort, many of them: what they become must be counted.
FLOODS: dict[str, bytes] = {
    "nodes": many(1, field(4, "A")),
    "nodes that write": numbered(1, lambda name: field(2, name) + field(4, "A")),
    "nodes with an attribute": many(1, field(4, "A") + field(5, ob.attribute("a", 1))),
    "nodes with a tensor": many(1, field(4, "A") + field(5, ob.attribute("a", np.float32(1).reshape(1)))),
    "attributes": ob.model(field(1, field(4, "A") + repeated(5, (ob.attribute(f"{i:x}", 1) for i in range(3_000))))),
    "empty attributes": many(1, field(4, "A") + repeated(5, [b""] * 3_000), 1),
    "external entries": many(5, repeated(13, [b""] * 3_000) + field(14, 1) + field(2, 1), 1),
    "segments": many(5, repeated(3, [b""] * 3_000) + field(2, 1), 1),
    "inputs of a node": many(1, field(4, "A") + repeated(1, [""] * 5_000), 1),
    "numbers of an attribute": many(1, field(4, "A") + field(5, ob.attribute_raw("a", 7, repeated(8, [300] * 5_000))), 1),
    "packed values": many(1, field(4, "A") + field(5, ob.attribute_raw("a", 7, ob.packed(8, [300] * 5_000))), 1),
    "strings of an attribute": many(1, field(4, "A") + field(5, ob.attribute_raw("a", 8, repeated(9, [b"ab"] * 5_000))), 1),
    "initializers": numbered(5, lambda name: ob.tensor(np.zeros(1, "f4"), name)),
    "empty initializers": numbered(5, lambda name: ob.tensor_raw((0,), 1, name=name)),
    "bfloat16 initializers": numbered(5, lambda name: ob.tensor_raw((1,), 16, field(9, b"ab"), name=name)),
    "sparse initializers": numbered(
        15, lambda name: ob.sparse(ob.tensor(np.zeros(0, "f4"), name), ob.tensor(np.zeros(0, "i8")), (1,)), 1_000
    ),
    "inputs": many(11, field(1, "a")),
    "shapes": many(11, ob.value_info("a", (1,))),
    "sizes": many(11, ob.value_info("a", [""] * 5_000), 1),
    "value_info": numbered(13, lambda name: field(1, name)),
    "strings": ob.model(field(5, ob.tensor_raw((5_000,), 8, repeated(6, [b"ab"] * 5_000), name="a"))),
    "runs of numbers": ob.model(field(5, ob.tensor_raw((5_000,), 7, ob.packed(7, [1]) * 5_000, name="a"))),
    "refused tensors": numbered(5, lambda name: ob.tensor_raw((1,), 14, name=name)),
    "unknown fields": many(900, b"a"),
    "metadata": ob.model(b"") + b"".join(field(14, ob.entry(f"{i:x}", "")) for i in range(3_000)),
    "imports": ob.model(b"") + b"".join(field(8, field(1, f"{i:x}") + field(2, 1)) for i in range(3_000)),
    "functions": ob.model(b"", functions=[field(1, f"{i:x}") for i in range(1_000)]),
}


@pytest.mark.parametrize("case", FLOODS)
@pytest.mark.sampled(4)
def test_a_flood_of_messages_costs_no_more_than_it_is_charged(case: str) -> None:
    content = FLOODS[case]

    def attempt(limit: int) -> None:
        with contextlib.suppress(FormatError, UnsupportedError, LimitError):
            ob.read(content, max_bytes=limit)

    attempt(1 << 30)  # imports
    for limit in (1 << 19, 1 << 30):
        with allocations() as measured:
            attempt(limit)
        # What is not counted: items of lists, at most 16 bytes for each of the file.
        assert measured.peak < limit + 16 * len(content) + (1 << 18)


def test_the_number_of_nodes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_NODES", 1000)
    inner = ob.graph([node("Neg", "x", f"z{i}") for i in range(499)], "", "z0")
    nodes = [node("If", "c", "y", then_branch=inner), *(node("Neg", "x", f"v{i}") for i in range(500))]
    assert len(ob.read(ob.model(ob.graph(nodes, "x c", "y"))).graph.nodes) == 501
    with pytest.raises(LimitError, match="has more than 1000 nodes"):
        ob.read(ob.model(ob.graph([*nodes, node("Neg", "x", "more")], "x c", "y")))


def test_a_million_nodes_are_refused() -> None:
    content = many(1, b"", 1_000_000)
    with allocations() as measured, pytest.raises(FormatError, match="has no op_type"):
        ob.read(content)
    assert measured.peak < 1 << 20


def test_content_that_is_not_onnx_is_not_taken_for_it() -> None:
    for kind, content in VALID.items():
        assert onnx.sniff(Source(memoryview(content), "")) is (kind == "onnx")
    assert not onnx.sniff(Source(memoryview(b"\x08\x08"), ""))
    for content in (b"\x08\x00\x12\x00", b"\x08\x1f\x12\x00", b"\x08\x08\x13\x00", b"\x0a\x08\x12\x00"):
        with pytest.raises(FormatError, match="is of no known format"):
            load_weights(content)

"""TensorFlow Lite files that are damaged, that are, or that want too much: always an error of ours, in little memory and time."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlayers as fl
from fastlayers.errors import Error, FormatError, LimitError, ShapeError, UnsupportedError
from fastlayers.formats import load_weights

from .measure import allocations
from .test_tflite import goldens
from .tflite_build import Field, Net, Table, Writer, single, small

QUIET = settings(derandomize=True, deadline=None, max_examples=150, database=None)
SMALL = small()
X = np.random.default_rng(0).normal(size=(1, 4, 4, 2)).astype(np.float32)
MODELS = {
    "small": (SMALL, [X]),
    "sparse": goldens()["network of half and sparse weights"][:2],
    "sizes": goldens()["network of open sizes"][:2],
    "branches": goldens()["network with branches, then"][:2],
}


def attempt(content: bytes, feeds: list[np.ndarray] | None = None) -> Any:
    """Loads it both ways, and runs it; None if an error of ours came."""
    try:
        for array in load_weights(content, max_bytes=1 << 20).values():
            array.tobytes()
    except (FormatError, UnsupportedError, LimitError):
        pass
    try:
        model = fl.load(content, max_bytes=1 << 20)
        return None if feeds is None or len(feeds) != len(model.inputs) else model(*feeds)
    except Error:
        return None


@pytest.mark.parametrize("kind", MODELS)
def test_truncated_at_every_byte(kind: str) -> None:
    """What ends in padding may lose some of it; then the answers stay."""
    content, feeds = MODELS[kind]
    whole = attempt(content, feeds)
    assert whole is not None
    for length in range(len(content)):
        cut = attempt(content[:length], feeds)
        if cut is not None:
            assert len(content) - length < 64, length
            for got, want in zip(*([a] if isinstance(a, np.ndarray) else a for a in (cut, whole)), strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.sampled(4)
def test_bits_flipped(kind: str) -> None:
    content, feeds = MODELS[kind]
    damaged, rng = bytearray(content), random.Random(0)
    for position in rng.sample(range(len(damaged)), 500):
        bit = 1 << rng.randrange(8)
        damaged[position] ^= bit
        attempt(bytes(damaged), feeds)
        damaged[position] ^= bit


def test_damage_takes_little_memory() -> None:
    damaged, rng = bytearray(SMALL), random.Random(1)
    with allocations() as measured:
        for position in rng.sample(range(len(damaged)), 150):
            damaged[position] ^= 0xFF
            attempt(bytes(damaged), [X])
            damaged[position] ^= 0xFF
    assert measured.peak < 16 << 20


@QUIET
@given(st.data())
def test_numbers_replaced(data: st.DataObject) -> None:
    content = MODELS[data.draw(st.sampled_from(sorted(MODELS)))][0]
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = 4 * data.draw(st.integers(0, len(content) // 4 - 1))
        value = data.draw(st.sampled_from([0, 1, 2, 4, 255, 65535, 1 << 31, (1 << 32) - 1]) | st.integers(0, (1 << 32) - 1))
        struct.pack_into("<I", damaged, at, value)
    attempt(bytes(damaged))


@QUIET
@given(st.binary(max_size=300))
def test_any_bytes_behind_the_identifier(content: bytes) -> None:
    attempt(content[:4].ljust(4, b"\0") + b"TFL3" + content[4:])


# ---- is --------------------------------------------------------------------------------------------------------------


def edited(change: Callable[[Net, Table], None], net: Net | None = None) -> bytes:
    """A network whose tables `change` has edited."""
    if net is None:
        net = Net()
        x, w = net.tensor((2, 3), name="x"), net.constant(np.ones((4, 3), np.float32), "w")
        y = net.tensor((2, 4), name="y")
        net.op("FULLY_CONNECTED", [x, w], [y])
        net.inputs, net.outputs = [x], [y]
    root = net.root()
    change(net, root)
    return Writer().file(root)


def put(table: Table, number: int, code: str, value: Any) -> None:
    table[number] = Field(code, value)


LIES: dict[str, tuple[Callable[[Net, Table], None], type[Error], str]] = {
    "version": (lambda n, r: put(r, 0, "I", 4), UnsupportedError, "version 4"),
    "no graph": (lambda n, r: put(r, 2, "tables", []), FormatError, "holds no graph"),
    "no outputs": (lambda n, r: put(r[2].value[0], 2, "[i", []), FormatError, "no outputs"),
    "a code that is not there": (lambda n, r: put(n.operators[0], 0, "I", 7), FormatError, "has the code 7, the file has 1"),
    "an input that is not there": (
        lambda n, r: put(n.operators[0], 1, "[i", [0, 9]),
        FormatError,
        r"inputs are the tensors \(0, 9\)",
    ),
    "an input below": (lambda n, r: put(n.operators[0], 1, "[i", [0, -2]), FormatError, r"expected -1 to 2"),
    "an output that is missing": (lambda n, r: put(n.operators[0], 2, "[i", [-1]), FormatError, "outputs are the tensors"),
    "a graph's input": (lambda n, r: put(r[2].value[0], 1, "[i", [3]), FormatError, "inputs or outputs are the tensors"),
    "a result that is an input": (lambda n, r: put(n.operators[0], 2, "[i", [0]), FormatError, "a second time"),
    "a result that is a constant": (lambda n, r: put(n.operators[0], 2, "[i", [1]), FormatError, "a second time"),
    "a buffer that is not there": (lambda n, r: put(n.tensors[1], 2, "I", 5), FormatError, "has the buffer 5, the file has 2"),
    "weights of another size": (
        lambda n, r: put(n.tensors[1], 0, "[i", [4, 4]),
        FormatError,
        r"48 bytes, float32 of shape \[4, 4\] takes 64",
    ),
    "a size below 0": (lambda n, r: put(n.tensors[1], 0, "[i", [-4, 3]), FormatError, "expected sizes from 0 up"),
    "a shape beyond all": (lambda n, r: put(n.tensors[1], 0, "[i", [1 << 30] * 4), FormatError, "beyond any memory"),
    "a signature of another rank": (lambda n, r: put(n.tensors[0], 7, "[i", [-1]), FormatError, "as many axes"),
    "too many axes": (lambda n, r: put(n.tensors[0], 0, "[i", [1] * 40), UnsupportedError, "40 dimensions"),
    "a type that is not there": (lambda n, r: put(n.tensors[1], 1, "b", 99), UnsupportedError, "not numeric"),
    "text": (lambda n, r: put(n.tensors[0], 1, "b", 5), UnsupportedError, "not numeric"),
    "options of another operator": (
        lambda n, r: put(n.operators[0], 3, "B", 1),
        FormatError,
        "options are of type 1: expected 8",
    ),
    "an activation that is not there": (
        lambda n, r: put(n.operators[0], 4, "table", {0: Field("b", 9)}),
        UnsupportedError,
        "activation number 9",
    ),
    "shuffled weights": (
        lambda n, r: put(n.operators[0], 4, "table", {1: Field("b", 1)}),
        UnsupportedError,
        "weights of format 1",
    ),
    "data elsewhere": (lambda n, r: put(n.tensors[1], 10, "I", 1), UnsupportedError, "another file"),
    "data beyond the end": (
        lambda n, r: put(r, 4, "tables", [{}, {1: Field("Q", 1 << 40), 2: Field("Q", 48)}]),
        FormatError,
        "begins at 1099511627776",
    ),
    "an endless size": (
        lambda n, r: put(r, 4, "tables", [{}, {1: Field("Q", 8), 2: Field("Q", (1 << 64) - 1)}]),
        FormatError,
        "truncated",
    ),
    "blocks of scales": (
        lambda n, r: put(n.tensors[1], 4, "table", {2: Field("[f", [1.0]), 4: Field("B", 2)}),
        UnsupportedError,
        "uses custom or block-wise quantization",
    ),
    "zero points of another number": (
        lambda n, r: put(n.tensors[1], 4, "table", {2: Field("[f", [1.0] * 3), 3: Field("[q", [0, 0])}),
        FormatError,
        "expected as many",
    ),
    "a scale that is none": (
        lambda n, r: put(n.tensors[1], 4, "table", {2: Field("[f", [float("nan")])}),
        FormatError,
        "finite scales",
    ),
    "metadata of no buffer": (
        lambda n, r: put(r, 6, "tables", [{0: Field("text", "a"), 1: Field("I", 9)}]),
        FormatError,
        "buffer 9",
    ),
    "a signature of no graph": (lambda n, r: put(r, 7, "tables", [{4: Field("I", 3)}]), FormatError, "is of graph 3"),
    "a signature of no tensor": (
        lambda n, r: put(r, 7, "tables", [{0: Field("tables", [{1: Field("I", 77)}])}]),
        FormatError,
        "its values are the tensors",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(lie: str) -> None:
    change, kind, text = LIES[lie]
    with pytest.raises(kind, match=text):
        fl.load(edited(change))


@pytest.mark.parametrize("shape", [(0, 1 << 30, 1 << 30, 1 << 30), (1 << 30, 1 << 20)])
def test_a_state_beyond_any_memory(shape: tuple[int, ...]) -> None:
    net = Net()
    x = net.tensor((2,), name="x")
    net.op("ADD", [x, net.tensor(shape, variable=True)], [net.tensor((2,))])
    net.inputs, net.outputs = [x], [2]
    with pytest.raises((FormatError, LimitError)):
        fl.load(net.file())


def test_a_value_that_nobody_makes() -> None:
    net = Net()
    x, y = net.tensor((2,), name="x"), net.tensor((2,), name="y")
    net.op("ADD", [x, y], [net.tensor((2,))])
    net.inputs, net.outputs = [x], [2]
    with pytest.raises(FormatError, match="'y' is read, and no input, data or operator before gives it"):
        fl.load(net.file())


def test_all_that_is_unsupported_in_one_error() -> None:
    net = Net()
    x = net.tensor((2, 2), name="x")
    names = [("SVDF", 2), ("FlexErf", 1), ("HASHTABLE", 1), ("FlexErf", 1), ("RELU", 1)]
    at = x
    for name, count in names:
        for _ in range(count):
            made = net.tensor((2, 2))
            net.op(name, [at], [made])
            at = made
    net.inputs, net.outputs = [x], [at]
    with pytest.raises(UnsupportedError) as caught:
        fl.load(net.file())
    lines = str(caught.value).splitlines()[1:]
    assert lines == ["  operator CUSTOM 'FlexErf': 2 times", "  operator HASHTABLE: 1 time", "  operator SVDF: 2 times"]


def test_a_graph_that_calls_itself() -> None:
    net = Net()
    x, c, y = net.tensor((2,), name="x"), net.tensor((), "bool", name="c"), net.tensor((2,), name="y")
    net.op("IF", [c, x], [y], then_subgraph_index=1, else_subgraph_index=1)
    net.inputs, net.outputs = [c, x], [y]
    other = Net(net.buffers, net.codes)
    a, b = other.tensor((2,), name="a"), other.tensor((2,), name="b")
    k = other.constant(np.array(True), "k")
    other.op("IF", [k, a], [b], then_subgraph_index=1, else_subgraph_index=1)
    other.inputs, other.outputs = [a], [b]
    with pytest.raises(FormatError, match="graph 1 calls itself"):
        fl.load(net.file(other))


def test_graphs_that_double() -> None:
    """Each graph calls the next one twice: 2 ** 30 operators of 30."""
    net, others = Net(), []
    graphs = [net]
    for _ in range(30):
        others.append(Net(net.buffers, net.codes))
    graphs += others
    for i, graph in enumerate(graphs):
        x, c = graph.tensor((2,), name="x"), graph.constant(np.array(True), "c") if i else graph.tensor((), "bool", name="c")
        y = graph.tensor((2,), name="y")
        if i < 30:
            graph.op("IF", [c, x], [y], then_subgraph_index=i + 1, else_subgraph_index=i + 1)
        else:
            graph.op("RELU", [x], [y])
        graph.inputs, graph.outputs = [x] if i else [c, x], [y]
    start = time.perf_counter()
    with pytest.raises(LimitError, match="more than 8 times what the file has"):
        fl.load(net.file(*others))
    assert time.perf_counter() - start < 5


def test_the_same_bytes_again_and_again() -> None:
    """Every reference of a vector leads to one operator, whose inputs are many."""
    operators: list[Table] = [{1: Field("[i", [0] * 4000)}, *({} for _ in range(3000))]
    graph = {0: Field("tables", [{}]), 3: Field("tables", operators)}
    root = {0: Field("I", 3), 1: Field("tables", [{}]), 2: Field("tables", [graph]), 4: Field("tables", [{}])}
    data = bytearray(Writer().file(root))
    start = data.index(struct.pack("<I", 3001)) + 4
    first = start + struct.unpack_from("<I", data, start)[0]
    for i in range(3001):
        struct.pack_into("<I", data, start + 4 * i, first - (start + 4 * i))
    with pytest.raises(FormatError, match="again and again"):
        fl.load(bytes(data))


def test_results_that_no_memory_holds() -> None:
    content = single("TILE", [np.zeros((2, 2), np.float32)], {1: np.array([1 << 30, 1 << 30], np.int32)}, shapes=[(1, 1)])
    with pytest.raises((LimitError, ShapeError)):
        fl.load(content)(np.zeros((2, 2), np.float32))


def test_widened_weights_are_paid_for() -> None:
    net = Net()
    x, w = net.tensor((1, 64), name="x"), net.constant(np.zeros((512, 64), np.float16), "w")
    f, y = net.tensor((512, 64), name="f"), net.tensor((1, 512), name="y")
    net.op("DEQUANTIZE", [w], [f])
    net.op("FULLY_CONNECTED", [x, f], [y])
    net.inputs, net.outputs = [x], [y]
    assert fl.load(net.file())(np.ones((1, 64), np.float32)).shape == (1, 512)
    with pytest.raises(LimitError, match="max_bytes"):
        fl.load(net.file(), max_bytes=100_000)


# ---- sparse data -------------------------------------------------------------------------------------------------------


def sparse_file(**changes: Any) -> bytes:
    """A matrix (3, 4) whose columns are compressed, with some of its description replaced."""
    d = {
        "order": [0, 1],
        "blocks": [],
        "rows": 3,
        "segments": [0, 1, 1, 3],
        "indices": [2, 0, 3],
        "values": 3,
        "kind": 1,
        **changes,
    }
    levels: list[Table] = [
        {0: Field("b", 0), 1: Field("i", d["rows"])},
        {
            0: Field("b", d["kind"]), 1: Field("i", 4), 2: Field("B", 1), 3: Field("table", {0: Field("[i", d["segments"])}),
            4: Field("B", 3), 5: Field("table", {0: Field("[B", d["indices"])}),
        },
    ]  # fmt: skip
    described = {0: Field("[i", d["order"]), 1: Field("[i", d["blocks"]), 2: Field("tables", levels[: d.get("levels", 2)])}
    net = Net()
    data = np.arange(1, 1 + d["values"], dtype=np.float32).tobytes()
    w = net.tensor((3, 4), "float32", data, "w", sparsity=described)
    net.outputs = [w]
    return net.file()


def test_sparse_weights() -> None:
    np.testing.assert_array_equal(load_weights(sparse_file())["w"], [[0, 0, 1, 0], [0, 0, 0, 0], [2, 0, 0, 3]])


@pytest.mark.parametrize(
    "changes",
    [
        {"order": [0, 0]},
        {"order": [0]},
        {"order": [0, 2]},
        {"blocks": [5]},
        {"blocks": [0]},
        {"levels": 1},
        {"rows": 2},
        {"rows": 4},
        {"rows": -1},
        {"rows": 1 << 30},
        {"segments": [0, 1, 1]},
        {"segments": [1, 1, 1, 3]},
        {"segments": [0, 2, 1, 3]},
        {"segments": [0, 1, 1, 4]},
        {"segments": []},
        {"indices": [2, 0, 4]},
        {"indices": [2, 0]},
        {"values": 2},
        {"values": 4},
        {"kind": 0},
    ],
    ids=str,
)
def test_sparse_weights_that_lie(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        load_weights(sparse_file(**changes))


def test_sparse_weights_are_paid_for() -> None:
    net = Net()
    none: Table = {0: Field("[i", [0, 0])}
    empty: Table = {0: Field("b", 1), 2: Field("B", 1), 3: Field("table", none), 4: Field("B", 1)}
    empty[5] = Field("table", {0: Field("[i", [])})
    levels: list[Table] = [{0: Field("b", 0), 1: Field("i", 1)}, empty]
    described = {0: Field("[i", [0, 1]), 2: Field("tables", levels)}
    net.tensor((1, 1 << 28), "float32", b"\0\0\0\0", "w", sparsity=described)
    with pytest.raises((LimitError, FormatError)), allocations() as measured:
        load_weights(net.file(), max_bytes=1 << 20)
    assert measured.peak < 4 << 20


# ---- weights -----------------------------------------------------------------------------------------------------------


def test_weights_by_name_as_they_are_stored() -> None:
    net = Net()
    net.constant(np.array([[1, -2]], np.int8), "q", scale=(0.5,), zero=(3,))
    net.constant(np.array([1.5], np.float16), "h")
    net.tensor((3,), "int4", b"\x7f\x08", "nibbles")
    net.tensor((2,), "bfloat16", np.array([0x3F80, 0xC000], np.uint16).tobytes(), "b")
    net.tensor((1,), "text", b"abc", "text")
    net.tensor((4,), name="no data")
    other = Net(net.buffers, net.codes)
    other.constant(np.array([4], np.int64), "h")
    found = load_weights(net.file(other))
    assert {name: (a.dtype.name, a.tolist()) for name, a in found.items()} == {
        "q": ("int8", [[1, -2]]),
        "main/h": ("float16", [1.5]),
        "nibbles": ("int8", [-1, 7, -8]),
        "b": ("float32", [1.0, -2.0]),
        "graph 1/h": ("int64", [4]),
    }


def test_the_file_is_used_in_place(tmp_path: Any) -> None:
    net = Net()
    net.constant(np.arange(1000, dtype=np.float32), "w")
    path = tmp_path / "model"
    path.write_bytes(net.file())
    found = load_weights(path, max_bytes=10_000)["w"]
    assert found[999] == 999 and not found.flags.owndata


def test_a_network_is_named_where_weights_are_meant_and_otherwise() -> None:
    assert fl.load(SMALL, format="tflite")(X).shape == (1, 2)
    with pytest.raises(FormatError, match="format='onnx' was asked for"):
        fl.load(SMALL, format="onnx")
    assert list(load_weights(SMALL, format="tflite")) == ["w", "b", "axes"]


def test_signatures_and_metadata() -> None:
    model = fl.load(SMALL)
    assert model.metadata["description"] == "made by a test"
    assert '"scores": "z"' in model.metadata["signatures"]
    assert [(s.name, s.shape) for s in model.inputs] == [("x", (None, 4, 4, 2))]
    assert model(np.concatenate([X, X])).shape == (2, 2)

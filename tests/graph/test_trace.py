"""Recording functions and running what was recorded: names, constants, errors, and a real network recorded whole."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional as F
from fastlayers.graph import Graph, Input, Node, execute, trace
from fastlayers.kernels.table import UNARY

SILERO = Path(__file__).parent.parent / "goldens" / "silero_vad_16k.npz"


def run(function: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """What a function gives when it is recorded and run."""
    graph = trace(function, *(Input(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)))
    return list(execute(graph, {f"x{i}": a for i, a in enumerate(arrays)}).values())


def test_operators_and_numpy_functions_are_recorded() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 2, (3, 4)).astype(np.float32) for _ in range(2))
    functions: list[Any] = [
        lambda x, y: x + y,
        lambda x, y: 1 - x,
        lambda x, y: x - 1,
        lambda x, y: 2 * x * y,
        lambda x, y: x / y + 1 / x,
        lambda x, y: -x,
        lambda x, y: +x,
        lambda x, y: x**2 + y**1 + y**0.5,
        lambda x, y: np.sqrt(x * x + y * y),
        lambda x, y: np.exp(x) - np.log(y) + np.tanh(x),
        lambda x, y: np.negative(np.square(x)),
        lambda x, y: np.add(b, x) + a,
        lambda x, y: np.float32(2) * x + b[0],
        lambda x, y: x.reshape(2, 6),
        lambda x, y: x.reshape((2, -1)),
        lambda x, y: x.T,
        lambda x, y: x.transpose(),
        lambda x, y: x.transpose((1, 0)),
        lambda x, y: x.transpose(1, 0),
        lambda x, y: x.mean() + y.sum(-1) - np.mean(x, 1),
        lambda x, y: x.max((0, -1), keepdims=True) * np.min(y, axis=0) + np.max(x) - x.min(()),
        lambda x, y: (x > y).sum(0) + (x > y).mean(),
    ]
    for function in functions:
        np.testing.assert_allclose(run(function, a, b)[0], function(a, b), rtol=1e-6)


KEYS: list[Any] = [
    0, -1, slice(1, None), slice(None, None, -2), (slice(None), 2), (..., 0), (0, ..., slice(1, 3)), None, ...,
    (slice(None), None, 1), (1, 2, 3), (), (np.int64(1), slice(0, 0)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(key: Any) -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    np.testing.assert_array_equal(run(lambda s: s[key] + 0, x)[0], x[key])


REFUSED: list[tuple[str, Any]] = [
    (r"a decision by value \(if, while, and, or, not\)", lambda x: 1 if x else 0),
    (r"float\(\)", float),
    (r"int\(\)", int),
    (r"complex\(\)", complex),
    ("use as an index", lambda x: [1, 2][x]),
    ("conversion to an array", np.asarray),
    ("conversion to an array", lambda x: np.zeros(3) + np.asarray(x)),
    ("iteration", list),
    ("iteration", lambda x: [*x]),
    (r"len\(\)", len),
    ("in", lambda x: 3 in x),
    (r"numpy\.sin", np.sin),
    (r"numpy\.add with \['out'\]", lambda x: np.add(x, 1, out=np.zeros(3))),
    (r"numpy\.matmul", lambda x: np.ones((3, 3)) @ x),
    (r"numpy\.prod", np.prod),
    (r"numpy\.sum", lambda x: np.sum(x, dtype=np.float64)),
    (r"numpy\.add\.reduce", np.add.reduce),
    (r"numpy\.concatenate", lambda x: np.concatenate([x, x])),
    (r"\*\* 3", lambda x: x**3),
]


@pytest.mark.parametrize(("text", "use"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_needs_the_numbers_is_refused(text: str, use: Any) -> None:
    with pytest.raises(fl.UnsupportedError, match=rf"^trace: {text} of the symbolic value Symbol\(x float32\['n', 3\]\).*; \w+"):
        use(Input("x", ("n", 3)))


def test_indexes_that_cannot_be_recorded() -> None:
    x = Input("x", (3, 4))
    for key in ([0, 1], np.array([True]), 1.5, True):
        with pytest.raises(fl.UnsupportedError, match="getitem: an index of type"):
            x[key]
    with pytest.raises(fl.ShapeError, match=r"getitem: .* has 2 axes, the index has 3 entries"):
        x[0, 0, 0]
    with pytest.raises(fl.ShapeError, match="select: index 3 is out of range"):
        x[3]


def test_inputs_are_checked() -> None:
    for shape in (3, "n", (1.5,), (-1,), (True,)):
        with pytest.raises(fl.ShapeError, match="Input: shape of 'x'"):
            Input("x", shape)  # type: ignore[arg-type]
    for dtype in (np.complex64, "float31", object):
        with pytest.raises(fl.DTypeError, match=r"Input: dtype of 'x' is .*: expected a boolean, an integer or a real dtype"):
            Input("x", (1,), dtype)
    for name in (3, "", None):
        with pytest.raises(fl.DTypeError, match="Input: name is"):
            Input(name, (1,))  # type: ignore[arg-type]


def test_names_of_values_outputs_and_constants() -> None:
    scale = np.array([2.0, 3.0], np.float32)

    def function(x: Any, y: Any) -> Any:
        z = F.relu(x) * scale
        return F.relu(z * scale), y, z, z

    graph = trace(function, Input("x", (2,)), Input("relu", (2,)))
    assert [value.name for value in graph.inputs] == ["x", "relu"]
    assert set(graph.constants) == {"const"}, "one array is one constant"
    names = [value.name for value in graph.outputs]
    assert len(set(names)) == 4
    assert len({name for node in graph.nodes for name in node.outputs}) == len(graph.nodes)
    x = np.array([1.0, -1.0], np.float32)
    got = execute(graph, {"x": x, "relu": x + 1})
    for a, b in zip(got.values(), function(x, x + 1), strict=True):
        np.testing.assert_array_equal(a, b)


def test_outputs_can_be_named_and_nested() -> None:
    graph = trace(lambda x: {"a": x, "b": (x + 1, [x + 2])}, Input("x", (2,)))
    assert len(graph.outputs) == 3
    assert graph.outputs[0].name == "a" and graph.outputs[1].name == "b_0" and graph.outputs[2].name == "b_1_0"
    x = np.ones(2, np.float32)
    got = execute(graph, {"x": x})
    assert [float(v[0]) for v in got.values()] == [1, 2, 3]
    assert not any(np.shares_memory(v, x) for v in got.values())


def test_inputs_may_be_arrays_and_nested() -> None:
    cell = fl.LSTMCell(2, 3)
    cell.load_state_dict({name: np.ones(shape) for name, shape in cell.tensor_shapes().items()})
    x, h, c = np.ones((1, 2)), np.zeros((1, 3)), np.zeros((1, 3))
    graph = trace(cell, x, (Input("h", ("n", 3)), c))
    assert [value.name for value in graph.inputs] == ["input_0", "h", "input_2"]
    assert {"weight_ih", "weight_hh", "bias_ih", "bias_hh"} <= set(graph.constants)
    for a, b in zip(execute(graph, {"input_0": x, "h": h, "input_2": c}).values(), cell(x, (h, c)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_leads_nowhere_is_left_out() -> None:
    graph = trace(lambda x: (F.exp(x), F.relu(x))[1], Input("x", (2,)))
    assert [node.op for node in graph.nodes] == ["Relu"]


def test_long_chains_are_recorded() -> None:
    def function(x: Any) -> Any:
        for _ in range(3000):
            x = x + 1
        return x

    np.testing.assert_array_equal(run(function, np.zeros(1, np.float32))[0], [3000])


def test_constants_are_copies_that_nobody_can_change() -> None:
    memory = np.ones(2, np.float32)
    offset = memory.view()
    offset.flags.writeable = False  # but its base can be written
    graph = trace(lambda x: x + offset, Input("x", (2,)))
    memory[...] = 9
    np.testing.assert_array_equal(execute(graph, {"x": [0, 0]})["add"], [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        graph.constants["const"][...] = 0


def test_graphs_are_frozen_and_can_be_copied() -> None:
    graph = trace(lambda x: F.linear(x, np.ones((2, 2)), activation=fl.LeakyReLU(0.2)), Input("x", ("n", 2)))
    assert graph.nodes[0].attributes == {"activation": (UNARY["leaky_relu"].code, 0.2, 0.0)}
    changes: list[tuple[Any, str]] = [(graph, "nodes"), (graph.nodes[0], "op")]
    for value, name in changes:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(value, name, None)
    for mapping in (graph.constants, graph.nodes[0].attributes, graph.values):
        with pytest.raises(TypeError):
            mapping["new"] = 1  # type: ignore[index]
    twin = copy.deepcopy(graph)
    np.testing.assert_array_equal(execute(twin, {"x": np.ones((3, 2))})["linear"], np.full((3, 2), 2))
    assert repr(twin) == repr(graph)


def test_trace_refuses_what_it_cannot_record() -> None:
    x = Input("x", (2,))
    cases: list[tuple[Any, tuple[Any, ...], str]] = [
        (lambda x: 3, (x,), "the function returned int"),
        (lambda x: np.ones(2), (x,), "the function returned ndarray"),
        (lambda a, b: a + b, (x, Input("x", (2,))), "inputs are named"),
        (lambda a: a, (x + 1,), "is the result of an operation"),
        (lambda a: a + Input("y", (2,)), (x,), "not one of the inputs"),
        (lambda a: Input("y", (2,)), (x,), "not one of the inputs"),
    ]
    for function, inputs, text in cases:
        with pytest.raises(fl.UnsupportedError, match=f"trace: .*{text}"):
            trace(function, *inputs)


def test_feeds_are_checked() -> None:
    graph = trace(lambda x, y: F.concat([x, y]), Input("x", ("n", 3)), Input("y", ("n", None), np.int64))
    x, y = np.ones((2, 3)), np.ones((2, 3), np.int32)
    assert execute(graph, {"x": x, "y": y})["concat"].shape == (4, 3)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"x": x}, fl.ArgumentError, r"feeds lack \['y'\]"),
        ({"x": x, "y": y, 1: x}, fl.ArgumentError, r"\[1\] too many"),  # type: ignore[dict-item]
        ({"x": x, "y": y, "z": x}, fl.ArgumentError, r"\['z'\] too many"),
        ({"x": x[:, :2], "y": y}, fl.ShapeError, r"feed 'x' has shape \(2, 2\): expected \('n', 3\)"),
        ({"x": x, "y": y[:1]}, fl.ShapeError, r"feed 'y' has shape \(1, 3\): expected \('n', None\) with \{'n': 2\}"),
        ({"x": x[0], "y": y}, fl.ShapeError, r"feed 'x' has shape \(3,\)"),
        ({"x": x, "y": x}, fl.DTypeError, "feed 'y' has dtype float64: expected one that casts to int64"),
        ({"x": x * 1j, "y": y}, fl.DTypeError, "feed 'x' has dtype complex128"),
    ]
    for feeds, kind, text in wrong:
        with pytest.raises(kind, match=text):
            execute(graph, feeds)


def test_outputs_can_be_selected() -> None:
    graph = trace(lambda x: F.relu(F.exp(x) - 1), Input("x", (2,)))
    x = np.array([-1.0, 1.0], np.float32)
    got = execute(graph, {"x": x}, outputs=["relu", "exp", "x"])
    assert list(got) == ["relu", "exp", "x"]
    assert not np.shares_memory(got["x"], x)
    with pytest.raises(fl.ArgumentError, match=r"outputs has \['nothing'\]"):
        execute(graph, {"x": x}, outputs=["nothing"])


def test_unknown_operations_are_refused() -> None:
    known = trace(F.relu, Input("x", (2,)))
    graph = Graph(known.inputs, known.outputs, (Node("warp", ("x",), ("relu",), {}),), {})
    with pytest.raises(fl.UnsupportedError, match=r"warp \(relu\): there is no such operator"):
        execute(graph, {"x": np.ones(2)})


class Silero(fl.Layer):
    """The network of fastlayers/data, one frame; names as in its file."""

    def __init__(self) -> None:
        self.stft_conv = fl.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = fl.Conv1d(129, 128, 3, padding=1, activation="relu")
        self.conv2 = fl.Conv1d(128, 64, 3, stride=2, padding=1, activation="relu")
        self.conv3 = fl.Conv1d(64, 64, 3, stride=2, padding=1, activation="relu")
        self.conv4 = fl.Conv1d(64, 128, 3, padding=1, activation="relu")
        self.lstm_cell = fl.LSTMCell(128, 128)
        self.final_conv = fl.Conv1d(128, 1, 1, activation="sigmoid")

    def forward(self, x: Any, h: Any, c: Any) -> Any:
        x = F.pad(x[:, None], (0, 64), mode="reflect")
        x = self.stft_conv(x)
        re, im = x[:, :129], x[:, 129:]
        x = np.sqrt(re * re + im * im)
        x = self.conv4(self.conv3(self.conv2(self.conv1(x))))
        h, c = self.lstm_cell(x[:, :, 0], (h, c))
        return {"probability": self.final_conv(F.relu(h)[:, :, None])[:, 0, 0], "h_out": h, "c_out": c}


def test_a_real_network_is_recorded_whole(variant: str) -> None:
    """The network of silero-vad with its state as inputs and outputs, frame by frame, against its golden numbers."""
    net = Silero()
    weights = fl.load_weights(fl.example("silero_vad"))
    net.load_state_dict({name: weights[name] for name in net.tensor_shapes()})
    state = (Input("h", ("n", 128)), Input("c", ("n", 128)))
    graph = trace(net, Input("x", ("n", 576)), *state)
    assert set(net.tensor_shapes()) <= set(graph.constants)
    assert graph.outputs[0].shape == ("n",)
    with np.load(SILERO) as golden:
        frames, want = golden["in_frames"][:, None], golden["out_0"][:, None]
    h = c = np.zeros((1, 128), np.float32)
    for frame, probability in zip(frames, want, strict=True):
        eager = net(frame, h, c)
        got = execute(graph, {"x": frame, "h": h, "c": c})
        np.testing.assert_allclose(got["probability"], probability, rtol=0, atol=1e-5)
        for name, array in got.items():
            np.testing.assert_array_equal(array, eager[name])
        h, c = got["h_out"], got["c_out"]

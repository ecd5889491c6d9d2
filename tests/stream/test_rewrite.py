"""Every cut of a sequence gives the bits of the whole: recurrent layers, convolutions, pools, sums, and nets of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional as F
from fastlayers.ir.graph import Graph
from tests.program.graphs import graph, node, normal

from .nets import LENGTH, compiled, conv_lstm, filled, padded_convolutions, pieces, run, tcn

NTC, NCT, TNC = ("n", "time", 4), ("n", 4, "time"), ("time", "n", 4)


def gated() -> Any:
    linear, norm = filled(fl.Linear(4, 8)), filled(fl.LayerNorm(8))
    return lambda x: F.glu(norm(linear(x)), -1) * F.sigmoid(x)


def padded(before: int, kernel: int) -> Any:
    conv = filled(fl.Conv1d(4, 3, kernel))
    return lambda x: F.relu(conv(F.pad(x, (before, 0))))


def uneven() -> Any:
    """Two paths that do not give as many steps."""
    a, b = filled(fl.Conv1d(4, 4, 3)), filled(fl.Conv1d(4, 4, 5, padding=1))
    return lambda x: a(x) + b(x)


def with_last_state() -> Any:
    layer = filled(fl.GRU(4, 4, batch_first=True))
    return lambda x: layer(x)[0] + F.permute(layer(x)[1], (1, 0, 2))


POSITIONS = normal(23, 4)


def recurrent(kind: Any, **more: Any) -> Any:
    layer = filled(kind(4, 5, **more))
    return lambda x: layer(x)[0]


NETS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lstm": (recurrent(fl.LSTM), TNC),
    "lstm, batch first, two layers": (recurrent(fl.LSTM, num_layers=2, batch_first=True), NTC),
    "lstm, projected": (recurrent(fl.LSTM, proj_size=3), TNC),
    "gru": (recurrent(fl.GRU), TNC),
    "gru, batch first": (recurrent(fl.GRU, batch_first=True), NTC),
    "rnn": (recurrent(fl.RNN), TNC),
    "rnn, relu, two layers": (recurrent(fl.RNN, nonlinearity="relu", num_layers=2, batch_first=True), NTC),
    "valid convolution": (filled(fl.Conv1d(4, 3, 3)), NCT),
    "one tap": (filled(fl.Conv1d(4, 3, 1)), NCT),
    "stride": (filled(fl.Conv1d(4, 3, 5, stride=3)), NCT),
    "stride of the kernel": (filled(fl.Conv1d(4, 3, 4, stride=4)), NCT),
    "dilation and groups": (filled(fl.Conv1d(4, 4, 3, dilation=3, groups=2)), NCT),
    "depthwise": (filled(fl.Conv1d(4, 4, 5, groups=4)), NCT),
    "channels last": (filled(fl.Conv1d(4, 3, 3, layout="nhwc")), NTC),
    "padded, strides": (padded_convolutions(), NCT),
    "dilated residual net": (tcn(), NCT),
    "padded more than the kernel reaches": (padded(7, 3), NCT),
    "padded, one tap": (padded(2, 1), NCT),
    "max pool": (fl.MaxPool1d(3), NCT),
    "max pool, overlapping": (fl.MaxPool1d(3, stride=1), NCT),
    "average pool": (fl.AvgPool1d(4, stride=2), NCT),
    "average pool, single steps": (fl.AvgPool1d(3, stride=1), NCT),
    "lp pool": (fl.LPPool1d(2, 3, stride=2), NCT),
    "normalized, gated": (gated(), NTC),
    "batch normalization": (fl.Sequential(filled(fl.Conv1d(4, 6, 3)), filled(fl.BatchNorm1d(6)), fl.ReLU()), NCT),
    "image whose width is time": (
        fl.Sequential(filled(fl.Conv2d(1, 3, (3, 4), padding=(1, 0))), fl.ReLU(), fl.MaxPool2d((2, 1)),
                      filled(fl.Conv2d(3, 2, 3, stride=(1, 2)))), ("n", 1, 6, "time"),
    ),
    "features of one number": (lambda x: F.softmax(F.unsqueeze(F.reshape(x, (1, -1, 2, 2)), 0)[0], -1), (1, "time", 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_every_cut_gives_the_bits_of_the_whole(name: str, variant: str) -> None:
    function, shape = NETS[name]
    model = compiled(function, *shape)
    axis = shape.index("time")
    x = normal(*(LENGTH if d == "time" else 2 if d == "n" else d for d in shape))
    whole = np.asarray(model(x))
    stream = model.stream()
    alone = stream(x)
    assert alone.shape == whole.shape
    np.testing.assert_array_equal(alone, whole)
    cuts = list(pieces(LENGTH))
    for sizes in cuts if variant.startswith("aot") else cuts[::7]:
        stream.reset()
        (parts,) = run(stream, x, sizes, axis)
        time = _time_axis(parts, whole)
        np.testing.assert_array_equal(np.concatenate(parts, time), whole, err_msg=f"{sizes}")


def _time_axis(parts: Any, whole: np.ndarray) -> int:
    """The axis along which the pieces make up the whole."""
    fits = [i for i in range(whole.ndim) if sum(p.shape[i] for p in parts) == whole.shape[i]
            and all(p.shape[:i] + p.shape[i + 1 :] == whole.shape[:i] + whole.shape[i + 1 :] for p in parts)]  # fmt: skip
    assert fits, ([p.shape for p in parts], whole.shape)
    return fits[0]


def test_nets_of_several_kinds_and_their_states(variant: str) -> None:
    model = compiled(conv_lstm(), *NCT)
    x = normal(2, 4, 41)
    whole = model(x)
    stream = model.stream()
    for sizes in ([41], [1] * 41, [3, 0, 5, 33], [20, 21], [6, 7, 28]):
        stream.reset()
        y, h, c = run(stream, x, sizes, 2)
        np.testing.assert_array_equal(np.concatenate(y, 1), whole[0])
        np.testing.assert_array_equal(h[-1], whole[1])  # the state after the last step so far
        np.testing.assert_array_equal(c[-1], whole[2])


def test_two_threads_give_the_same_bits() -> None:
    model = compiled(conv_lstm(), *NCT)
    x = normal(9, 4, 200)
    found = []
    for threads in (1, 2):
        model.num_threads = threads
        found.append(np.concatenate(run(model.stream(), x, [70, 1, 129], 2)[0], 1))
    np.testing.assert_array_equal(*found)


def cumsum(**more: Any) -> Graph:
    return graph({"x": ("n", "time")}, [node("y = CumSum(x, axis)", **more)], ["y"], {"axis": np.array(-1)})


@pytest.mark.parametrize("exclusive", [0, 1])
def test_cumulative_sums(variant: str, exclusive: int) -> None:
    model = fl.Model(cumsum(exclusive=exclusive))
    x = normal(3, LENGTH)
    for sizes in list(pieces(LENGTH))[::3]:
        (parts,) = run(model.stream(), x, sizes, 1)
        np.testing.assert_array_equal(np.concatenate(parts, 1), model(x))


def test_onnx_operators_with_states_and_shapes_computed_from_shapes(variant: str) -> None:
    """An LSTM as torch exports it: its first state is zeros of the batch's size, expanded."""
    nodes = [
        node("s = Shape(x)"), node("n = Gather(s, one)", axis=0), node("n1 = Unsqueeze(n, zero)"),
        node("hs = Concat(one1, n1, five)", axis=0), node("h0 = Expand(nothing, hs)"),
        node("y, -, - = LSTM(x, w, r, b, -, h0, c0)", hidden_size=5), node("z = Squeeze(y, one1)"),
        node("t = Gather(s, zero0)", axis=0), node("t1 = Unsqueeze(t, zero)"), node("rs = Concat(t1, minus, five)", axis=0),
        node("out = Reshape(z, rs)"),
    ]  # fmt: skip
    nodes[5] = type(nodes[5])("LSTM", ("x", "w", "r", "b", None, "h0", "c0"), ("y", "", ""), {"hidden_size": 5})
    constants = {
        "w": normal(1, 20, 4), "r": normal(1, 20, 5), "b": normal(1, 40), "c0": normal(1, 2, 5, seed=4), "one": np.array(1),
        "zero": [0], "zero0": np.array(0), "one1": [1], "five": [5], "minus": [-1],
        "nothing": np.full((1, 1, 1), 0.5, np.float32),
    }  # fmt: skip
    model = fl.Model(graph({"x": ("time", "n", 4)}, nodes, ["out"], constants))
    x = normal(LENGTH, 2, 4)
    for sizes in list(pieces(LENGTH))[::4]:
        (parts,) = run(model.stream(), x, sizes, 0)
        np.testing.assert_array_equal(np.concatenate(parts, 0), model(x))


def test_an_embedding_and_a_gru() -> None:
    table, gru = filled(fl.Embedding(10, 4)), filled(fl.GRU(4, 3, batch_first=True))
    model = fl.compile(lambda ids: gru(table(ids))[0], fl.graph.Input("ids", ("n", "steps"), np.int64))
    ids = np.random.default_rng(1).integers(0, 10, (2, LENGTH))
    (parts,) = run(model.stream(), ids, [4, 1, 0, LENGTH - 5], 1)
    np.testing.assert_array_equal(np.concatenate(parts, 1), model(ids))


def test_fixed_sizes_along_time_are_opened() -> None:
    """A network for 23 steps takes any number of them as a stream."""
    conv, lin = filled(fl.Conv1d(4, 6, 3)), filled(fl.Linear(6, 2))
    model = compiled(lambda x: lin(F.permute(conv(x), (0, 2, 1))), 1, 4, LENGTH)
    with pytest.raises(fl.ArgumentError, match=r"the time axis .* is ambiguous"):
        model.stream()
    (parts,) = run(model.stream(axis=2), normal(1, 4, LENGTH), [1, 5, 17], 2)
    np.testing.assert_array_equal(np.concatenate(parts, 1), model(normal(1, 4, LENGTH)))


# ---- what looks ahead -----------------------------------------------------------------------------------------------------

LOOKS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "bidirectional": (recurrent(fl.LSTM, bidirectional=True), TNC, r"LSTM .* goes both ways"),
    "padded after": (
        fl.Sequential(filled(fl.Conv1d(4, 4, 3)), filled(fl.Conv1d(4, 4, 3, padding=1)), filled(fl.Conv1d(4, 4, 3, padding=1))),
        NCT, r"Conv \(conv1d_1\) looks ahead: it is padded with 1 after the last step",
    ),
    "softmax over time": (lambda x: F.softmax(x, -1), NCT, r"Softmax .* goes over all steps"),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x, x, x), ("n", 2, "time", 4),
        r"\(scaled_dot_product_attention\) looks at the whole",
    ),
    "global pool": (lambda x: F.adaptive_avg_pool1d(x, 1), NCT, r"averages over all steps|looks at the whole"),
    "log-softmax over time": (lambda x: F.log_softmax(x, 2), NCT, r"goes over all steps"),
    "backwards": (lambda x: F.relu(x[:, ::-1]), NTC, r"reads the steps backwards"),
    "the last step": (lambda x: F.relu(x[:, -1]), NTC, r"takes single steps out of the sequence"),
    "the first steps": (lambda x: F.relu(x[:, :5]), NTC, r"ends at step 5"),
    "group normalization": (filled(fl.GroupNorm(2, 4)), NCT, r"normalizes over all steps"),
    "positions": (lambda x: x + POSITIONS, NTC, r"is another one at every step"),
    "paths of other lengths": (uneven(), NCT, r"adds values whose steps come at different times"),
    "the state at every step": (with_last_state(), NTC, r"joins a value that is known after the last step with single steps"),
    "a gap between strides": (filled(fl.Conv1d(4, 4, 2, stride=3)), NCT, r"leaves out steps: its stride 3"),
    "reflected": (lambda x: F.pad(x, (2, 0), "reflect"), NCT, r"expected a constant"),
    "flattened": (lambda x: F.flatten(x, 1), NTC, r"steps"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_what_looks_ahead_is_refused_by_name(name: str) -> None:
    function, shape, text = LOOKS[name]
    with pytest.raises(fl.UnsupportedError, match=text) as caught:
        compiled(function, *shape).stream()
    assert str(caught.value).startswith("stream: ")


def test_graphs_within_are_refused() -> None:
    then, other = graph({}, [node("a = Neg(x)")], ["a"]), graph({}, [node("b = Relu(x)")], ["b"])
    nodes = [node("y = If(c)", then_branch=then, else_branch=other)]
    model = fl.Model(graph({"x": ("n", "time"), "c": ((), np.bool_)}, nodes, ["y"]))
    with pytest.raises(fl.UnsupportedError, match=r"If \(y\) has subgraphs that read values which change over time"):
        model.stream(axis=1, input="x")


def recognizer(length: object) -> fl.Model:
    """Text recognition as torch exports it: features of a picture's columns are its channels times its rows, by their sizes."""
    nodes = [
        node("h = Conv(x, w, b)", pads=(1, 0, 1, 0)), node("p = MaxPool(h)", kernel_shape=(2, 1), strides=(2, 1)),
        node("s = Shape(p)"), node("n = Gather(s, i0)"), node("c = Gather(s, i1)"), node("f = Gather(s, i2)"),
        node("t = Gather(s, i3)"), node("r = Transpose(p)", perm=(0, 3, 1, 2)), node("k = Mul(c, f)"),
        node("n1 = Unsqueeze(n, zero)"), node("t1 = Unsqueeze(t, zero)"), node("k1 = Unsqueeze(k, zero)"),
        node("z = Concat(n1, t1, k1)", axis=0), node("q = Reshape(r, z)"), node("y = Relu(q)"),
    ]  # fmt: skip
    constants = {f"i{i}": np.array(i) for i in range(4)} | {"zero": np.array([0]), "w": normal(4, 1, 3, 3), "b": normal(4)}
    return fl.Model(graph({"x": ("n" if length == "time" else 2, 1, 10, length)}, nodes, ["y"], constants))


@pytest.mark.parametrize("length", ["time", LENGTH])
def test_shapes_computed_from_sizes(length: object) -> None:
    """With a length that the graph knows, passes have put it into a constant."""
    model, x = recognizer(length), normal(2, 1, 10, LENGTH)
    (parts,) = run(model.stream(axis=3), x, [1, 0, 5, LENGTH - 6], 3)
    np.testing.assert_array_equal(np.concatenate(parts, 1), model(x))


def test_networks_with_winograd_convolutions() -> None:
    """The whole may take another algorithm, a stream does not; precision="strict" never does."""
    conv = filled(fl.Conv2d(32, 32, 3, padding=(1, 0)))
    x = normal(1, 32, 24, 40)
    whole = []
    for precision in ("default", "strict"):
        model = fl.compile(conv, fl.graph.Input("x", (1, 32, 24, "time")), precision=precision)
        assert ("winograd" in model.kernel_names({"x": x.shape})) == (precision == "default")
        whole.append(model(x))
        (parts,) = run(model.stream(), x, [3, 1, 36], 3)
        got = np.concatenate(parts, 3)
        np.testing.assert_allclose(got, whole[0], rtol=0, atol=2e-5 * abs(whole[0]).max())
    np.testing.assert_array_equal(got, whole[1])


@pytest.mark.parametrize(
    ("text", "attributes", "constants", "error"),
    [
        ("y = ReduceSum(x, axes)", {"keepdims": 0}, {"axes": np.array([], np.int64)}, "goes over all steps"),
        ("y = ReduceMax(x)", {}, {}, "goes over all steps"),
        ("y = ArgMax(x)", {"axis": 1}, {}, "goes over all steps"),
        ("y = CumSum(x, axis)", {"reverse": 1}, {"axis": np.array(1)}, "goes backwards"),
        ("y = Slice(x, s, e, a)", {}, {"s": [1], "e": [1 << 40], "a": [1]}, "takes the steps from 1 on"),
        ("y = Concat(x, x)", {"axis": 1}, {}, "puts something before the first step"),
        ("y = Tile(x, r)", {}, {"r": [1, 2, 1]}, "not known to go step by step"),
        ("y = Add(x, p)", {}, {"p": np.ones((2, 1), np.float32)}, "another one at every step"),
        ("y = MatMul(x, p)", {}, {"p": np.ones((2, 4, 3), np.float32)}, ""),
        ("y = Transpose(x)", {"perm": (0, 2, 1)}, {}, ""),
        ("y = ReduceSum(x, axes)", {"keepdims": 0}, {"axes": np.array([2])}, ""),
        ("y = ArgMax(x)", {"axis": 2, "keepdims": 0}, {}, ""),
        ("y = Slice(x, s, e, a)", {}, {"s": [0, 1], "e": [(1 << 31) - 1, 3], "a": [1, 2]}, ""),
        ("y = Unsqueeze(x, a)", {}, {"a": [1, 3]}, ""),
        ("y = TopK(x, k)", {}, {"k": [2]}, ""),
        ("y = Gather(x, i)", {"axis": 2}, {"i": np.array([[0, 1], [2, 3]])}, ""),
        ("y = Split(x, -)", {"axis": 2, "num_outputs": 1}, {}, ""),
        ("y = LayerNormalization(x, p)", {}, {"p": np.ones(4, np.float32)}, ""),
        ("y = Reshape(x, p)", {}, {"p": [0, 0, 2, 2]}, ""),
        ("y = Reshape(x, p)", {}, {"p": [-1, 2, 2]}, "mixes steps with other axes"),
        ("y = Clip(x, p)", {}, {"p": np.float32(0)}, ""),
    ],
)
def test_single_operators(text: str, attributes: dict[str, Any], constants: dict[str, Any], error: str) -> None:
    made = graph({"x": (2, "time", 4)}, [node(text, **attributes)], ["y"], constants)
    model = fl.Model(made)
    if error:
        with pytest.raises(fl.UnsupportedError, match=error):
            model.stream()
        return
    x = normal(2, LENGTH, 4)
    for sizes in ([LENGTH], [0, 1, 4, 0, LENGTH - 5], [1] * LENGTH):
        (parts,) = run(model.stream(), x, sizes, 1)
        whole = model(x)
        np.testing.assert_array_equal(np.concatenate(parts, _time_axis(parts, whole)), whole)


def test_graphs_whose_attributes_lack_something_are_ours_to_refuse() -> None:
    model = fl.Model(graph({"x": (2, "time", 4)}, [node("h = Relu(x)"), node("y = Transpose(h)", perm=(0, 1))], ["y"]),
                     fl.model.model.Options(optimize=False))  # fmt: skip
    with pytest.raises(fl.ShapeError, match=r"stream: Transpose \(y\)"):
        model.stream()

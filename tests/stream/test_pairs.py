"""Networks whose states are inputs and outputs: how they are found, what they begin as, and that they are fed back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.model.specs import TensorSpec
from fastlayers.stream.axes import times
from fastlayers.stream.pairs import find
from tests.program.graphs import node, normal

from .nets import compiled, conv_lstm

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


def spec(name: str, *shape: Any, dtype: Any = F32) -> TensorSpec:
    return TensorSpec(name, shape, np.dtype(dtype))


NAMES = [
    ("state", "stateN"), ("h", "hn"), ("h0", "hn"), ("h_0", "h_n"), ("c0", "cn"), ("h", "h_out"), ("state_in", "state_out"),
    ("in_state", "out_state"), ("state", "new_state"), ("prev_state", "next_state"), ("prev_state", "state"),
    ("past_key_values.0.key", "present.0.key"), ("past_key_values.11.value", "present_key_values.11.value"),
    ("past_0", "present_0"), ("past_key_self_3", "present_key_self_3"), ("cache", "new_cache"), ("cache_in", "cache_out"),
    ("hidden", "hidden_out"), ("hidden_state", "hidden_state_next"), ("state_0_in", "state_0_out"), ("init_h", "final_h"),
    ("h0", "h"), ("cache_k", "updated_cache_k"), ("input_states_1", "output_states_1"),
    ("att_cache", "r_att_cache"), ("cache_last_channel", "cache_last_channel_next"),
    ("cache_last_channel_len", "cache_last_channel_next_len"), ("lstm_hidden_in_1", "lstm_hidden_out_1"),
    ("cached_key_0", "new_cached_key_0"), ("tra_cache", "tra_cache_out"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), NAMES)
def test_names_that_belong_together(before: str, after: str) -> None:
    inputs = [spec("input_ids", "n", "t", dtype=I64), spec(before, "n", 4)]
    outputs = [spec("logits", "n", "t", 9), spec(after, "n", 4)]
    assert find(inputs, outputs) == {before: after}


def test_names_that_do_not() -> None:
    assert find([spec("x", 1, 4)], [spec("y", 1, 4)]) == {}
    assert find([spec("noisy", 1, 4), spec("mask", 1, 4)], [spec("clean", 1, 4), spec("gain", 1, 4)]) == {}
    assert find([spec("input", 1, 4)], [spec("output", 1, 4)]) == {}
    assert find([spec("state", 2, 4)], [spec("stateN", 3, 4)]) == {}  # another fixed size
    assert find([spec("state", 2, 4)], [spec("stateN", 2, 4, dtype=I64)]) == {}
    assert find([spec("state", 2, 4)], [spec("stateN", 2, 4, 1)]) == {}


def test_many_layers() -> None:
    kinds = ("key", "value")
    ins = [spec(f"past_key_values.{i}.{k}", "n", 2, "past", 8) for i in range(12) for k in kinds]
    outs = [spec(f"present.{i}.{k}", "n", 2, "total", 8) for i in range(12) for k in kinds]
    assert find([spec("input_ids", "n", "t", dtype=I64), *ins], [spec("logits", "n", "t", 5), *outs]) == {
        a.name: b.name for a, b in zip(ins, outs, strict=True)
    }


def test_what_could_be_either_must_be_named() -> None:
    with pytest.raises(
        fl.ArgumentError, match=r"input 'h' may be the state that any of the outputs \['hn', 'h_out'\] gives: name it"
    ):
        find([spec("h", 1, 4)], [spec("hn", 1, 4), spec("h_out", 1, 4)])
    with pytest.raises(fl.ArgumentError, match=r"output 'hn' may be the state of any of the inputs \['h', 'h0'\]"):
        find([spec("x", 1, 4), spec("h", 1, 4), spec("h0", 1, 4)], [spec("hn", 1, 4)])
    with pytest.raises(fl.ArgumentError, match=r"by their names all inputs would be states"):
        find([spec("cache", 1, 4), spec("state", 1, 4)], [spec("cache_out", 1, 4), spec("state_out", 1, 4)])
    ins, outs = (spec("audio", 1, 4), spec("state", 1, 4)), (spec("audio_out", 1, 4), spec("state_out", 1, 4))
    assert find(ins, outs) == {"state": "state_out"}


# ---- whole streams ---------------------------------------------------------------------------------------------------------


def counter() -> fl.Model:
    """state' = tanh(x + state / 2), y = 2 state'."""
    graph = Graph(
        (Value("x", ("n", 3), F32), Value("state", ("n", 3), F32)), (Value("y", ("n", 3), F32), Value("stateN", ("n", 3), F32)),
        (node("h = Mul(state, half)"), node("s = Add(x, h)"), node("stateN = Tanh(s)"), node("y = Add(stateN, stateN)")),
        {"half": np.float32(0.5)},
    )  # fmt: skip
    return fl.Model(graph)


def test_a_state_is_fed_back(variant: str) -> None:
    model, stream = counter(), counter().stream()
    assert [v.name for v in stream.inputs] == ["x"] and [v.name for v in stream.outputs] == ["y"]
    state = np.zeros((2, 3), np.float32)
    for i in range(4):
        x = normal(2, 3, seed=i)
        y, state = model(x, state)
        np.testing.assert_array_equal(stream(x), y)
        np.testing.assert_array_equal(stream.state["state"], state)
    assert list(stream.run({"x": x})) == ["y"]


def test_states_can_be_set_kept_cloned_and_reset() -> None:
    stream = counter().stream(initial={"state": np.ones((1, 3))})
    x = normal(1, 3)
    first = stream(x)
    kept, other = stream.state, stream.clone()
    second = stream(x)
    np.testing.assert_array_equal(other(x), second)
    assert not np.array_equal(first, second)
    stream.reset()
    np.testing.assert_array_equal(stream(x), first)
    stream.state = kept
    np.testing.assert_array_equal(stream(x), second)
    kept["state"][:] = 9  # a copy: nobody's state changes
    np.testing.assert_array_equal(other.state["state"], stream.state["state"])
    stream.state = {"state": None}
    np.testing.assert_array_equal(stream(x), counter().stream()(x))
    with pytest.raises(fl.ArgumentError, match=r"'stat' is no state: expected some of \['state'\]"):
        stream.state = {"stat": x}
    with pytest.raises(fl.ShapeError, match=r"stream: state: input 'state' has shape \(3,\): expected \('n', 3\)"):
        stream.state = {"state": x[0]}
    with pytest.raises(fl.DTypeError, match="state is of type list"):
        stream.state = [x]
    with pytest.raises(fl.ArgumentError, match="'y' is no state"):
        counter().stream(initial={"y": x})


def test_a_call_that_fails_leaves_the_state_as_it_was() -> None:
    stream = counter().stream()
    stream(normal(2, 3))
    before = stream.state
    for bad in (normal(2, 4), normal(3, 3), np.zeros((2, 3), complex)):
        with pytest.raises(fl.Error):
            stream(bad)
    with pytest.raises(fl.ArgumentError, match=r"2 arrays were given: expected 1, for \['x'\]"):
        stream(normal(2, 3), normal(2, 3))
    with pytest.raises(fl.DTypeError, match=r"a dict was given: .*`run` takes them by name"):
        stream({"x": normal(2, 3)})
    with pytest.raises(fl.ArgumentError, match=r"feeds has \['z'\]: expected exactly \['x'\]"):
        stream.run({"z": normal(2, 3)})
    np.testing.assert_array_equal(stream.state["state"], before["state"])


def decoder() -> fl.Model:
    """A step of attention over all tokens so far, whose keys and values grow."""
    cache = (("n", 1, "past", 4), ("n", 1, "total", 4))
    nodes = [
        node("e = Gather(table, ids)"), node("q = Unsqueeze(e, one)"),
        node("k2 = Concat(past.key, q)", axis=2), node("v2 = Concat(past.value, q)", axis=2),
        node("kt = Transpose(k2)", perm=(0, 1, 3, 2)), node("s = MatMul(q, kt)"), node("p = Softmax(s)", axis=-1),
        node("y = MatMul(p, v2)"), node("present.key = Identity(k2)"), node("present.value = Identity(v2)"),
    ]  # fmt: skip
    return fl.Model(
        Graph(
            (Value("ids", ("n", "t"), I64), Value("past.key", cache[0], F32), Value("past.value", cache[0], F32)),
            (Value("y", None, F32), Value("present.key", cache[1], F32), Value("present.value", cache[1], F32)),
            tuple(Node(n.op, n.inputs, n.outputs, n.attributes) for n in nodes),
            {"table": normal(10, 4), "one": np.array([1])},
        )
    )


def test_caches_that_grow_begin_without_entries(variant: str) -> None:
    stream = decoder().stream()
    ids = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
    table = normal(10, 4).astype(np.float64)[ids]
    for t in range(5):
        y = stream(ids[:, t : t + 1])
        score = np.einsum("nd,nkd->nk", table[:, t], table[:, : t + 1])
        p = np.exp(score - score.max(-1, keepdims=True))
        want = np.einsum("nk,nkd->nd", p / p.sum(-1, keepdims=True), table[:, : t + 1])
        np.testing.assert_allclose(y[:, 0, 0], want, rtol=0, atol=1e-5)
        assert stream.state["past.key"].shape == (2, 1, t + 1, 4)


def test_a_list_as_a_state() -> None:
    nodes = (node("histN = SequenceInsert(hist, x)"), node("y = ConcatFromSequence(histN)", axis=0))
    inputs = (Value("x", ("n",), F32), Value("hist", None, F32, "sequence(tensor)"))
    stream = fl.Model(Graph(inputs, (Value("y", None, F32), Value("histN", None, F32, "sequence(tensor)")), nodes, {})).stream()
    for i in range(1, 4):
        np.testing.assert_array_equal(stream(np.ones(2)), np.ones(2 * i))
    assert [a.shape for a in stream.state["hist"]] == [(2,)] * 3
    stream.state = {"hist": [np.zeros(1)]}
    np.testing.assert_array_equal(stream(np.ones(2)), [0, 1, 1])
    stream.reset()
    np.testing.assert_array_equal(stream(np.ones(2)), np.ones(2))


def test_pairs_that_are_named() -> None:
    graph = Graph(
        (Value("x", (2,), F32), Value("a", (2,), F32)), (Value("b", (2,), F32), Value("z", (2,), F32)),
        (node("b = Add(x, a)"), node("z = Neg(b)")), {},
    )  # fmt: skip
    model = fl.Model(graph)
    stream = model.stream(state={"a": "b"})
    for total in (1, 2, 3):
        np.testing.assert_array_equal(stream(np.ones(2)), [-total, -total])
    for state, text in (
        ({"q": "b"}, r"state has 'q', which is no input: expected some of \['x', 'a'\]"),
        ({"a": "q"}, "state has 'q', which is no output"),
        ({"a": "b", "x": "b"}, "names an output twice"),
        (["a"], "expected a dict of names"),
    ):
        with pytest.raises(fl.ArgumentError, match=text):
            model.stream(state=state)  # type: ignore[arg-type]
    with pytest.raises(fl.ArgumentError, match="state and axis or input were given"):
        model.stream(state={"a": "b"}, axis=0)


def test_which_axis_is_time() -> None:
    def model(*shapes: Any) -> fl.Model:
        inputs = tuple(Value(f"x{i}", s, F32) for i, s in enumerate(shapes))
        nodes = tuple(node(f"y{i} = Relu(x{i})") for i in range(len(shapes)))
        return fl.Model(Graph(inputs, tuple(Value(f"y{i}", None, F32) for i in range(len(shapes))), nodes, {}))

    assert times(model(("n", "seq_len", 4)).inputs, None, None) == {"x0": 1}
    assert times(model(("T", "N", 4)).inputs, None, None) == {"x0": 0}
    assert times(model(("batch", 4, "anything")).inputs, None, None) == {"x0": 2}
    assert times(model((1, "q", 4), (3,)).inputs, None, None) == {"x0": 1}
    assert times(model(("n", "frames"), ("n", "frames", 2)).inputs, None, None) == {"x0": 1, "x1": 1}
    assert times(model(("n", "a", "b")).inputs, "b", None) == {"x0": 2}
    assert times(model(("n", "a", "b")).inputs, -1, None) == {"x0": 2}
    assert times(model(("n", "a"), ("n", "a")).inputs, "a", ["x1"]) == {"x1": 1}
    for how, text in (
        ({}, r"the time axis of input 'x0' of shape \('n', 'a', 'b'\) is ambiguous: name it, for example axis=1"),
        ({"axis": "q"}, "axis is 'q', no size of"),
        ({"axis": 3}, r"axis is 3, but input 'x0' has the shape"),
        ({"axis": 1.5}, "expected the number of an axis"),
        ({"axis": 1, "input": "y"}, r"there is no 'y': expected some of \['x0'\]"),
    ):
        with pytest.raises(fl.ArgumentError, match=text) as caught:
            model(("n", "a", "b")).stream(**how)  # type: ignore[arg-type]
        assert (caught.type is fl.ShapeError) == (how == {"axis": 3})
    with pytest.raises(fl.ArgumentError, match=r"several inputs.*pass input="):
        model((2, 3), (2, 3)).stream(axis=1)


def rewritten() -> fl.Stream:
    return compiled(conv_lstm(), 2, 4, "time").stream()


def test_states_of_rewritten_networks_go_on_elsewhere() -> None:
    """After any number of steps, none included."""
    x = normal(2, 4, 30)
    for at in range(13):
        stream = rewritten()
        assert set(stream.state.values()) == {None}
        if at:
            stream(x[:, :, :at])
        other = rewritten()
        other(x[:, :, 3:20])
        other.state = stream.state
        for found, want in zip(other(x[:, :, at:]), stream(x[:, :, at:]), strict=True):
            np.testing.assert_array_equal(found, want)


def test_states_of_another_shape_are_refused() -> None:
    stream, x = rewritten(), normal(2, 4, 9)
    stream(x)
    state = stream.state
    assert len(state) == 4  # two histories, h and c
    for name, value in state.items():
        assert value is not None
        wrong = [value[0], value[None], np.zeros(()), np.delete(value, 0, 0), np.repeat(value, 3, 1), np.repeat(value, 3, 2)]
        for other in wrong:
            with pytest.raises(fl.ShapeError, match=rf"stream: state '{name}' has shape .*: expected \("):
                stream.state = {name: other}
        with pytest.raises(fl.DTypeError, match=rf"stream: state: input '{name}' has dtype complex128"):
            stream.state = {name: value.astype(complex)}
    with pytest.raises(fl.ArgumentError, match=r"'state' is no state: expected some of \["):
        stream.state = {"state": np.zeros((2, 4, 2))}
    np.testing.assert_equal(stream.state, state)


def test_a_state_of_another_batch_is_told_by_the_next_piece() -> None:
    stream, x = compiled(conv_lstm(), "n", 4, "time").stream(), normal(2, 4, 9)
    stream(x)
    state = stream.state
    for name, value in state.items():
        assert value is not None
        stream.state = {**state, name: np.take(value, [0], value.shape.index(2) if "history" in name else 1)}
        with pytest.raises(fl.ShapeError):
            stream(x)

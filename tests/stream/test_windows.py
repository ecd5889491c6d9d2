"""Pieces of any length for networks that take windows: the same windows however the sequence is cut."""

from __future__ import annotations

import copy
import io
import pickle  # noqa: TID251 - of our own making
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model.custom import forget
from fastlayers.model.stream_windows import WindowStream
from tests.each import each
from tests.program.graphs import graph, node, normal

SIZE, OVERLAP = 5, 3


def summing() -> fl.Model:
    """Windows, and a state that sums them up: what comes out depends on every window and on their order."""
    nodes = [node("sum = Add(x, state)"), node("stateN = Mul(sum, half)"), node("y = Add(sum, sr)")]
    specs: Any = {"x": ("batch", 8), "state": ("batch", 8), "sr": ()}
    return fl.Model(graph(specs, nodes, ["y", "stateN"], {"half": np.float32(0.5)}))


def by_hand(sound: np.ndarray, rate: float) -> list[np.ndarray]:
    model, state = summing(), np.zeros((1, 8), np.float32)
    padded = np.concatenate([np.zeros((1, OVERLAP), np.float32), sound], axis=1)
    found = []
    for at in range(0, padded.shape[1] - 7, SIZE):
        y, state = model(padded[:, at : at + 8], state, rate)
        found.append(y)
    return found


def cut(sound: np.ndarray, lengths: list[int]) -> list[np.ndarray]:
    pieces, at, i = [], 0, 0
    while at < sound.shape[-1]:
        pieces.append(sound[..., at : at + lengths[i % len(lengths)]])
        at, i = at + lengths[i % len(lengths)], i + 1
    return pieces


@pytest.mark.parametrize("lengths", [[1], [5], [8], [3, 0, 11], [64]])
@pytest.mark.parametrize("axes", [1, 2])
def test_windows_do_not_depend_on_the_pieces(lengths: list[int], axes: int) -> None:
    sound = normal(1, 64)
    stream = summing().stream(size=SIZE, overlap=OVERLAP)
    assert isinstance(stream, WindowStream)
    found = [y for piece in cut(sound if axes == 2 else sound[0], lengths) for y in stream(piece, 2.0)]
    want = by_hand(sound, 2.0)
    assert len(found) == len(want) == 12
    np.testing.assert_array_equal(np.stack(found), np.stack(want))
    filled = by_hand(np.concatenate([sound, np.zeros((1, 1), np.float32)], axis=1), 2.0)
    np.testing.assert_array_equal(stream.flush(), filled[12:])
    assert stream.flush() == [] and set(stream.state.values()) == {None}
    np.testing.assert_array_equal(stream(sound, 2.0), want)  # it begins again


def test_sound_in_16_bits_is_scaled() -> None:
    sound = np.array([-32768, 32767, 1, 0, 16384] * 3, np.int16)
    scaled = (sound / 32768).astype(np.float32)
    got = summing().stream(size=SIZE, overlap=OVERLAP)(sound, 0)
    np.testing.assert_array_equal(got, by_hand(scaled[None], 0))
    for dtype in (np.float64, np.float16):
        np.testing.assert_array_equal(
            summing().stream(size=SIZE, overlap=OVERLAP)(scaled.astype(dtype), 0),
            by_hand(scaled.astype(dtype)[None].astype("f4"), 0),
        )
    whole = np.arange(15)  # other integers keep their values
    np.testing.assert_array_equal(
        summing().stream(size=SIZE, overlap=OVERLAP)(whole, 0), by_hand(whole[None].astype(np.float32), 0)
    )


def test_plain_streams_tell_of_windows_and_refuse_sound_in_16_bits() -> None:
    """Numbers a thousand times too large, or pieces of a length that only the network knows, are no way to begin."""
    stream = summing().stream()
    with pytest.raises(fl.DTypeError, match="input 'x' has dtype int16, and float32 is expected: divide sound by 32768"):
        stream(np.zeros((1, 8), np.int16), 0)
    with pytest.raises(fl.ShapeError, match=r"stream\(size=, overlap=\) cuts pieces of any length"):
        stream(np.zeros((1, 5), np.float32), 0)
    assert stream(np.zeros((1, 8), np.uint8), 0).shape == (1, 8)


def test_integers_stay_integers() -> None:
    model = fl.Model(graph({"x": ((1, 4), np.int16)}, [node("y = Identity(x)")], ["y"]))
    assert model.stream(size=4)(np.arange(8, dtype=np.int16))[1].tolist() == [[4, 5, 6, 7]]


def test_by_name_and_any_axis() -> None:
    model = fl.Model(graph({"x": (2, 4, 3), "k": (3,)}, [node("y = Add(x, k)"), node("z = Neg(y)")], ["y", "z"]))
    x, k = normal(2, 9, 3), normal(3)
    stream = model.stream(size=2, overlap=2, input="x")  # the axis is the one that has 4 positions
    found = [*stream.run({"x": x[:, :5], "k": k}), *stream.run({"x": x[:, 5:], "k": k})]
    before = np.concatenate([np.zeros((2, 2, 3), np.float32), x], axis=1)
    assert len(found) == 4
    for i, results in enumerate(found):
        np.testing.assert_array_equal(results["y"], before[:, 2 * i : 2 * i + 4] + k)
        np.testing.assert_array_equal(results["z"], -results["y"])
    assert isinstance(stream(x, k)[0], tuple)
    open_batch = fl.Model(graph({"x": ("n", 4, 3)}, [node("y = Neg(x)")], ["y"])).stream(size=2, overlap=2)
    open_batch(x)
    with pytest.raises(fl.ShapeError, match=r"what came before had \(2, 2, 3\): expected the same sizes but along axis 1"):
        open_batch(x[:1])


def test_a_failing_call_changes_nothing() -> None:
    stream, sound = summing().stream(size=SIZE, overlap=OVERLAP), normal(1, 40)
    first = stream(sound[:, :13], 2.0)
    again = stream.clone()
    with pytest.raises(fl.ShapeError):
        stream(sound[:, 13:], np.ones(2))
    with pytest.raises(fl.TimeoutError):
        stream(sound[:, 13:], 2.0, timeout=0)
    with pytest.raises(fl.ShapeError, match=r"input 'x' has shape \(2, 1, 5\): expected \(1, 'any'\)"):
        stream(np.ones((2, 1, 5)), 2.0)
    rest = stream(sound[:, 13:], 2.0)
    np.testing.assert_array_equal([*first, *rest], by_hand(sound, 2.0))
    np.testing.assert_array_equal(again(sound[:, 13:], 2.0), rest)
    stream.reset()
    np.testing.assert_array_equal(stream(sound, 2.0), by_hand(sound, 2.0))


def test_a_failure_in_the_middle_of_a_piece_changes_nothing() -> None:
    calls = []

    @fl.operator("Fails", "tests.windows")
    def fails(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) == 3:
            raise fl.ShapeError("the third window")
        return x

    def step(x: Any, state: Any) -> dict[str, Any]:
        both = fl.functional.add(fails(x), state)
        return {"y": both, "stateN": fl.functional.multiply(both, 0.5)}

    try:
        model = fl.compile(step, fl.graph.Input("x", (1, 8)), fl.graph.Input("state", (1, 8)))
        sound = normal(1, 33)
        calls.clear()
        stream = model.stream(size=SIZE, overlap=OVERLAP)
        first = stream(sound[:, :6])
        with pytest.raises(fl.ShapeError, match="the third window"):
            stream(sound[:, 6:])  # after one that went well
        rest = stream(sound[:, 6:])
        np.testing.assert_array_equal([*first, *rest], model.stream(size=SIZE, overlap=OVERLAP)(sound))
    finally:
        forget("Fails", "tests.windows")


def test_pieces_are_copied() -> None:
    stream, sound = summing().stream(size=SIZE, overlap=OVERLAP), normal(1, 10)
    piece = sound[:, :4].copy()
    stream(piece, 1.0)
    piece[:] = np.nan
    np.testing.assert_array_equal(stream(sound[:, 4:], 1.0), by_hand(sound, 1.0))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"size": 0}, fl.ArgumentError, "size is 0: expected an int of at least 1"),
        ({"size": 2.5}, fl.DTypeError, "size"),
        ({"size": 4, "overlap": -1}, fl.ArgumentError, "overlap is -1"),
        ({"overlap": 4}, fl.ArgumentError, "there is no size"),
        ({"size": 4, "overlap": 3}, fl.ArgumentError, r"has the shape \('batch', 8\): expected size \+ overlap, which are 7"),
        (
            {"size": 4, "overlap": 3, "axis": 1},
            fl.ArgumentError,
            r"takes 8 steps along axis 1: expected size \+ overlap to be that, not 7",
        ),
        ({"size": 5, "overlap": 3, "input": "q"}, fl.ArgumentError, "input is 'q'"),
        ({"size": 5, "overlap": 3, "input": ["x"]}, fl.DTypeError, "expected one name"),
        ({"size": 5, "overlap": 3, "axis": 4}, fl.ShapeError, "axis is 4"),
    ],
)
def test_errors(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        summing().stream(**options)


def test_no_guess_between_inputs() -> None:
    model = fl.Model(graph({"a": (1, 4), "b": (1, 4)}, [node("y = Add(a, b)")], ["y"]))
    with pytest.raises(fl.ArgumentError, match=r"inputs \['a', 'b'\]: say with input= which is cut"):
        model.stream(size=4)


def test_the_representation_says_what_is_cut() -> None:
    assert "windows of 5 after 3 along axis 1" in repr(summing().stream(size=SIZE, overlap=OVERLAP))


# ---- state --------------------------------------------------------------------------------------------------------------


def speaking() -> fl.Model:
    """Samples and a gain that is another one in every call; a batch of any size."""
    nodes = [node("sum = Add(x, state)"), node("stateN = Mul(sum, half)"), node("y = Mul(sum, gain)")]
    specs: Any = {"x": ("batch", 8), "state": ("batch", 8), "gain": ("batch", 1)}
    return fl.Model(graph(specs, nodes, ["y", "stateN"], {"half": np.float32(0.5)}))


def talking(**more: Any) -> WindowStream:
    return speaking().stream(size=SIZE, overlap=OVERLAP, input="x", **more)


@each("at", range(18))
def test_a_state_is_all_that_a_clone_has(at: int) -> None:
    """Through a file, before the first piece, within a window and at its end, into another stream."""
    sound, gains = normal(1, 33), normal(2, 1, 1)

    def rest(stream: WindowStream) -> list[Any]:
        return [*stream.clone().flush(), *stream(sound[:, at:], gains[1]), *stream.flush()]

    stream = talking()
    if at:
        stream(sound[:, :at], gains[0])
    want, state = rest(stream.clone()), stream.state
    file = io.BytesIO()
    np.savez(file, **{name: value for name, value in state.items() if value is not None})
    file.seek(0)
    restored = talking()
    restored.state = dict(np.load(file))
    begun = talking(initial=state)
    other = talking()
    other(sound[:, ::-1][:, :11], gains[1])
    other.state = state
    copies = (restored, begun, other, pickle.loads(pickle.dumps(stream)), copy.copy(stream), copy.deepcopy(stream))
    for found in copies:
        assert found.state.keys() == state.keys()
        np.testing.assert_array_equal(rest(found), want)
    begun.reset()
    np.testing.assert_array_equal(rest(begun), want)
    np.testing.assert_array_equal(rest(stream), want)  # what the others did is nothing to it


def test_what_a_caller_changes_later_is_not_kept() -> None:
    stream, gain = talking(), np.ones((1, 1), np.float32)
    stream(normal(3), gain)
    want = stream.clone().flush()
    gain[:] = np.nan
    state = stream.state
    state["x~waiting"][:] = np.nan
    np.testing.assert_array_equal(stream.flush(), want)


@each(
    "state, error, message",
    [
        ({"x~waiting": np.zeros((1, 5))}, fl.ShapeError, r"'x~waiting' has 5 steps along axis 1: expected less than 5"),
        ({"x~overlap": np.zeros((1, 2))}, fl.ShapeError, r"'x~overlap' has 2 steps along axis 1: expected 3"),
        (
            {"x~overlap": np.zeros((2, 3))},
            fl.ShapeError,
            r"stream: state: input 'x~overlap' has shape \(2, 3\): expected \(1, '\?'\)",
        ),
        ({"x~waiting": np.zeros(4)}, fl.ShapeError, r"stream: state: input 'x~waiting' has shape \(4,\)"),
        ({"x~waiting": np.zeros((1, 4), np.int16)}, fl.DTypeError, r"'x~waiting' has dtype int16: expected float32"),
        ({"x~waiting": "sound"}, fl.DTypeError, r"stream: state: input 'x~waiting'"),
        ({"state": np.zeros((1, 7))}, fl.ShapeError, r"stream: state: input 'state' has shape \(1, 7\)"),
        (
            {"conv~history": np.zeros((1, 4, 2))},
            fl.ArgumentError,
            r"'conv~history' is no state: expected some of \['state', 'x~overlap'",
        ),
        ({"x": np.zeros((1, 8))}, fl.ArgumentError, r"'x' is no state"),
        ({3: None}, fl.ArgumentError, r"3 is no state"),
        ([("state", None)], fl.DTypeError, r"state is of type list"),
    ],
)
def test_states_of_others_are_refused(state: Any, error: type[Exception], message: str) -> None:
    """All or nothing: what is right next to it is not set either."""
    stream = talking()
    stream(normal(1, 12), normal(1, 1))
    before = stream.state
    good = {"gain": np.full((1, 1), 7.0)}
    with pytest.raises(error, match=message):
        stream.state = {**good, **state} if isinstance(state, dict) else state
    for name, value in stream.state.items():
        np.testing.assert_array_equal(value, before[name])


def test_flush_of_a_state_without_the_other_inputs() -> None:
    stream = talking()
    stream.state = {"x~waiting": np.ones((1, 2))}
    with pytest.raises(fl.ArgumentError, match=r"flush: the state that was set has samples that wait, but lacks \['gain'\]"):
        stream.flush()
    assert len(stream([[1.0, 1.0, 1.0]], [[1.0]])) == 1


# ---- shapes -------------------------------------------------------------------------------------------------------------


@each("shape", [(100, 2), (2, 100), (100, 1), (1, 2, 100), (1, 100, 2), (100, 2, 1), (2, 0), (0, 100), (1, 1, 1, 100)])
@each("dtype", [np.float64, np.int16])
def test_sound_of_several_channels_is_no_batch(shape: tuple[int, ...], dtype: Any) -> None:
    stream = talking()
    text = rf"input 'x' has shape \({', '.join(map(str, shape))}\): expected \(1, 'any'\), leading 1s may be left out; "
    text += "sound has one channel"
    with pytest.raises(fl.ShapeError, match=text):
        stream(np.zeros(shape, dtype), [[1.0]])
    assert stream(np.zeros(0), [[1.0]]) == stream(np.zeros((1, 0)), [[1.0]]) == stream([], [[1.0]]) == []


def test_several_sequences_at_once() -> None:
    sound, gain = normal(3, 40), normal(3, 1)
    stream = talking(batch=3)
    found = [*stream(sound[:, :13], gain), *stream(sound[:, 13:], gain)]
    assert len(found) == 8
    for i in range(3):
        one = talking()
        np.testing.assert_array_equal(one(sound[i], gain[i : i + 1]), [y[i : i + 1] for y in found])
    for piece in (sound[:2], sound[0], sound.T):
        with pytest.raises(fl.ShapeError, match=r"expected \(3, 'any'\), leading 1s may be left out$"):
            stream(piece, gain)
    for batch, error in ((0, fl.ArgumentError), (-1, fl.ArgumentError), (1.5, fl.DTypeError), ("2", fl.DTypeError)):
        with pytest.raises(error, match="batch"):
            talking(batch=batch)
    with pytest.raises(fl.ArgumentError, match=r"batch is 2, and there is no size"):
        speaking().stream(batch=2)
    fixed = fl.Model(graph({"x": (1, 4)}, [node("y = Neg(x)")], ["y"]))
    with pytest.raises(fl.ArgumentError, match=r"batch is 2, and input 'x' has the shape \(1, 4\): expected the size of axis 0"):
        fixed.stream(size=4, batch=2)

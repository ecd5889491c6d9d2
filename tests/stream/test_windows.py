"""Pieces of any length for networks that take windows: the same windows however the sequence is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model.custom import forget
from fastlayers.model.stream_windows import WindowStream
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
    assert stream.flush() == [] and stream.state == {"state": None}
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
    with pytest.raises(fl.ShapeError, match=r"pieces before had \(2, 3, 3\): expected the same sizes but along axis 1"):
        open_batch(x[:1])


def test_a_failing_call_changes_nothing() -> None:
    stream, sound = summing().stream(size=SIZE, overlap=OVERLAP), normal(1, 40)
    first = stream(sound[:, :13], 2.0)
    again = stream.clone()
    with pytest.raises(fl.ShapeError):
        stream(sound[:, 13:], np.ones(2))
    with pytest.raises(fl.TimeoutError):
        stream(sound[:, 13:], 2.0, timeout=0)
    with pytest.raises(fl.ShapeError, match=r"input 'x' has shape \(2, 1, 5\): expected \('batch', 'any'\)"):
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
        ({"size": 5, "overlap": 3, "input": "q"}, fl.ShapeError, "input is 'q'"),
        ({"size": 5, "overlap": 3, "input": ["x"]}, fl.DTypeError, "expected one name"),
        ({"size": 5, "overlap": 3, "axis": 4}, fl.ShapeError, "axis is 4"),
    ],
)
def test_errors(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        summing().stream(**options)


def test_no_guess_between_inputs() -> None:
    model = fl.Model(graph({"a": (1, 4), "b": (1, 4)}, [node("y = Add(a, b)")], ["y"]))
    with pytest.raises(fl.ShapeError, match=r"inputs \['a', 'b'\]: say with input= which is cut"):
        model.stream(size=4)


def test_the_representation_says_what_is_cut() -> None:
    assert "windows of 5 after 3 along axis 1" in repr(summing().stream(size=SIZE, overlap=OVERLAP))

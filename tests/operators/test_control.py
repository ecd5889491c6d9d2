"""If, Loop, Scan and SequenceMap through conversion and programs; limits; bodies that are refused."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import DTypeError, FormatError, LimitError, ShapeError
from fastlayers.kernels import dispatch
from fastlayers.operators import meter
from fastlayers.operators.meter import Meter
from fastlayers.program import Program

from .models import graph, info, model, node, to_graph

X = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
YES, NO = np.array(True), np.array(False)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def i64(value: Any) -> np.ndarray:
    return np.array(value, np.int64)


def run(main: Any, *values: Any, opset: int = 17, meter: Meter | None = None) -> list[Any]:
    """A model's outputs, twice, so that what was cached is used."""
    program = Program(to_graph(model(main, opset)), dispatch.variant())
    first = program.evaluate(values, meter or Meter())
    for a, b in zip(first, program.evaluate(values, Meter()), strict=True):
        np.testing.assert_array_equal(a, b)
    return list(first)


def loop(nodes: Sequence[Any], states: int, scans: int = 0, count: str = "m", cond: str = "") -> SimpleNamespace:
    """y0.. (states), z0.. (what grows) from x0..: the body makes v0_out.., s0.. from i, c, v0..; and may set c_out."""
    made = {o for n in nodes for o in n.outputs}
    keeps = [] if "c_out" in made else [node("Identity", ["c"], ["c_out"])]
    body = graph(
        [*keeps, *nodes],
        [info(n) for n in ("i", "c", *(f"v{k}" for k in range(states)))],
        ["c_out", *(f"v{k}_out" for k in range(states)), *(f"s{k}" for k in range(scans))],
    )
    outputs = [*(f"y{k}" for k in range(states)), *(f"z{k}" for k in range(scans))]
    inputs = [*filter(None, (count, cond)), *(f"x{k}" for k in range(states))]
    main = [node("Loop", [count, cond, *(f"x{k}" for k in range(states))], outputs, body=body)]
    return graph(main, [info(n) for n in inputs], outputs)


# ---- Loop --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_loop_by_count(variant: str, rounds: int) -> None:
    body = [node("Cast", ["i"], ["f"], to=1), node("Add", ["v0", "f"], ["v0_out"]), node("Neg", ["v0_out"], ["s0"])]
    y, z = run(loop(body, 1, 1), i64(rounds), X)
    total, parts = X.copy(), []
    for i in range(rounds):
        total = total + np.float32(i)
        parts.append(-total)
    np.testing.assert_array_equal(y, total)
    np.testing.assert_array_equal(z, np.array(parts, np.float32).reshape(rounds, 5, 4))


def test_loop_while(variant: str) -> None:
    body = [
        node("Mul", ["v0", "v1"], ["v0_out"]), node("Identity", ["v1"], ["v1_out"]),
        node("ReduceMax", ["v0_out"], ["top"], keepdims=0), node("Greater", ["top", "v1"], ["c_out"]),
    ]  # fmt: skip
    y, half = run(loop(body, 2, count="", cond="go"), YES, np.abs(X), np.array(0.5, np.float32))
    want = np.abs(X)
    while True:
        want = want * np.float32(0.5)
        if want.max() <= 0.5:
            break
    np.testing.assert_array_equal(y, want)
    assert half == np.float32(0.5)
    y, _ = run(loop(body, 2, count="", cond="go"), NO, np.abs(X), np.array(0.5, np.float32))
    np.testing.assert_array_equal(y, np.abs(X))


def test_loop_whose_state_grows(variant: str) -> None:
    (y,) = run(loop([node("Concat", ["v0", "v0"], ["v0_out"], axis=0)], 1), i64(3), X)
    np.testing.assert_array_equal(y, np.tile(X, (8, 1)))


def test_loop_whose_sizes_depend_on_the_round(variant: str) -> None:
    """A slice that ends at the number of the round."""
    one = node("Constant", [], ["one"], value_ints=[1])
    body = [
        one, node("Reshape", ["i", "one"], ["i1"]), node("Add", ["i1", "one"], ["end"]), node("Sub", ["i1", "i1"], ["begin"]),
        node("Slice", ["v0", "begin", "end"], ["part"]), node("ReduceSum", ["part"], ["s0"], keepdims=0),
        node("Identity", ["v0"], ["v0_out"]),
    ]  # fmt: skip
    _, z = run(loop(body, 1, 1), i64(4), X)
    np.testing.assert_allclose(z, [X[: i + 1].sum() for i in range(4)], rtol=1e-5, atol=1e-6)


def test_loop_in_loop_reads_values_of_both(variant: str) -> None:
    inner = graph(
        [node("Identity", ["c2"], ["c2_out"]), node("Add", ["u", "v0"], ["a"]), node("Mul", ["a", "w"], ["u_out"])],
        [info("i2"), info("c2"), info("u")],
        ["c2_out", "u_out"],
    )
    body = [node("Loop", ["m", "", "v0"], ["v0_out"], body=inner)]
    main = loop(body, 1)
    main.initializers["w"] = f32(0.25)
    (y,) = run(main, i64(3), X)
    want = X
    for _ in range(3):
        u = want
        for _ in range(3):
            u = (u + want) * np.float32(0.25)
        want = u
    np.testing.assert_allclose(y, want, rtol=1e-6)


def test_rounds_are_limited() -> None:
    endless = loop([node("Identity", ["v0"], ["v0_out"])], 1, count="", cond="go")
    with pytest.raises(LimitError, match=r"Loop \(y0\): its loop, with all others of this run, takes more than 10 iterations"):
        run(endless, YES, X, meter=Meter(10))
    run(loop([node("Identity", ["v0"], ["v0_out"])], 1), i64(10), X, meter=Meter(10))


def test_what_grows_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "MOST_BYTES", 1000)
    body = [node("Identity", ["v0"], ["v0_out"]), node("Neg", ["v0"], ["s0"])]
    run(loop(body, 1, 1), i64(12), X)
    with pytest.raises(LimitError, match="takes more than 1000 bytes"):
        run(loop(body, 1, 1), i64(13), X)
    with pytest.raises(LimitError, match="hands more than 1000 bytes"):
        run(loop([node("Concat", ["v0", "v0"], ["v0_out"], axis=0)], 1), i64(60), X)


def test_depth_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "DEEPEST", 1)
    monkeypatch.setattr("fastlayers.program.program.DEEPEST", 0)  # all in stages
    inner = graph([node("Identity", ["c2"], ["o"]), node("Neg", ["u"], ["n"])], [info("i2"), info("c2"), info("u")], ["o", "n"])
    with pytest.raises(LimitError, match="more than 1 deep"):
        run(loop([node("Loop", ["m", "", "v0"], ["v0_out"], body=inner)], 1), i64(2), X)


def test_a_result_that_grows_must_grow_evenly() -> None:
    body = [node("Concat", ["v0", "v0"], ["v0_out"], axis=0), node("Neg", ["v0"], ["s0"])]
    with pytest.raises(ShapeError, match=r"Loop \(y0\): a result that grows .* shape \(10, 4\) .* after one of shape \(5, 4\)"):
        run(loop(body, 1, 1), i64(2), X)


def test_conditions_must_be_one_boolean() -> None:
    with pytest.raises(ShapeError, match=r"its condition after a round has shape \(5, 4\)"):
        run(loop([node("Identity", ["v0"], ["v0_out"]), node("Cast", ["v0"], ["c_out"], to=9)], 1), i64(2), X)
    with pytest.raises(ShapeError, match="number of iterations is not a single integer"):
        run(loop([node("Identity", ["v0"], ["v0_out"])], 1), X, X)


# ---- Scan --------------------------------------------------------------------------------------------------------------


def scan(states: int, scanned: int, nodes: Sequence[Any], outputs: int, inputs: Sequence[str] = (), **more: Any) -> Any:
    body = graph(
        nodes, [info(n) for n in (*(f"a{k}" for k in range(states)), *(f"b{k}" for k in range(scanned)))],
        [*(f"a{k}_out" for k in range(states)), *(f"o{k}" for k in range(outputs))],
    )  # fmt: skip
    names = list(inputs) or [f"x{k}" for k in range(states + scanned)]
    made = [f"y{k}" for k in range(states + outputs)]
    return graph([node("Scan", names, made, body=body, num_scan_inputs=scanned, **more)], [info(n) for n in names if n], made)


SUM = [node("Add", ["a0", "b0"], ["a0_out"]), node("Neg", ["a0_out"], ["o0"])]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
@pytest.mark.parametrize("out_back", [0, 1])
def test_scan_along_axes_and_backwards(axis: int, back: int, out_axis: int, out_back: int) -> None:
    main = scan(
        1, 1, SUM, 1, scan_input_axes=(axis,), scan_input_directions=(back,), scan_output_axes=(out_axis,),
        scan_output_directions=(out_back,),
    )  # fmt: skip
    moved = np.moveaxis(X, axis, 0)
    total, parts = np.zeros(moved.shape[1], np.float32), []
    for row in moved[::-1] if back else moved:
        total = total + row
        parts.append(-total)
    last, all_ = run(main, np.zeros(moved.shape[1], np.float32), X)
    np.testing.assert_array_equal(last, total)
    np.testing.assert_array_equal(all_, np.moveaxis(np.stack(parts[::-1] if out_back else parts), 0, out_axis))


def test_scan_of_several(variant: str) -> None:
    nodes = [
        node("MatMul", ["b0", "w"], ["h"]), node("Add", ["h", "a0"], ["h2"]), node("Tanh", ["h2"], ["a0_out"]),
        node("Max", ["a1", "b1"], ["a1_out"]), node("Mul", ["a0_out", "b1"], ["o0"]), node("Identity", ["b1"], ["o1"]),
    ]  # fmt: skip
    main = scan(2, 2, nodes, 2)
    w = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    main.initializers["w"] = w
    rows, gates = X[:, None], np.abs(X[:, :3])[:, None]
    state, top, out, same = run(main, np.zeros((1, 3), np.float32), np.zeros((1, 3), np.float32), rows, gates)
    want, parts = np.zeros((1, 3), np.float32), []
    for row, gate in zip(rows, gates, strict=True):
        want = np.tanh(row @ w + want)
        parts.append(want * gate)
    np.testing.assert_allclose(state, want, rtol=0, atol=1e-6)
    np.testing.assert_allclose(out, parts, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(top, gates.max(0))
    np.testing.assert_array_equal(same, gates)


def test_scan_of_nothing() -> None:
    last, all_ = run(scan(1, 1, SUM, 1), np.ones(4, np.float32), X[:0])
    np.testing.assert_array_equal(last, np.ones(4))
    assert all_.shape == (0, 4)


def test_scan_of_batches_as_in_opset_8() -> None:
    x = np.stack([X, -X, 2 * X])
    main = scan(1, 1, SUM, 1, ("lengths", "x0", "x1"))
    last, all_ = run(main, i64([5, 2, 0]), np.zeros((3, 4), np.float32), x, opset=8)
    sums = [np.cumsum(row, 0, np.float32) for row in x]
    np.testing.assert_allclose(last, [sums[0][4], sums[1][1], np.zeros(4)], rtol=1e-6)
    assert all_.shape == (3, 5, 4)
    np.testing.assert_allclose(all_[1, :2], -sums[1][:2], rtol=1e-6)
    assert not all_[1, 2:].any() and not all_[2].any()
    last, _ = run(scan(1, 1, SUM, 1, ("", "x0", "x1"), directions=(1,)), np.zeros((3, 4), np.float32), x, opset=8)
    np.testing.assert_allclose(last, [s[-1] for s in sums], rtol=1e-5)
    with pytest.raises(ShapeError, match="sequence_lens has values from 0 to 6: expected 0 to 5"):
        run(main, i64([6, 2, 0]), np.zeros((3, 4), np.float32), x, opset=8)


def test_what_is_scanned_together_has_one_length() -> None:
    nodes = [node("Add", ["b0", "b1"], ["o0"])]
    with pytest.raises(ShapeError, match=r"Scan \(y0\): the inputs to be scanned have lengths \[3, 5\]"):
        run(scan(0, 2, nodes, 1), X, X[:3])
    with pytest.raises(ShapeError, match="has no axis 2"):
        run(scan(1, 1, SUM, 1, scan_input_axes=(2,)), f32(0), X)
    with pytest.raises(ShapeError, match="scan_input_directions is"):
        run(scan(1, 1, SUM, 1, scan_input_directions=(2,)), f32(0), X)


# ---- If, SequenceMap ---------------------------------------------------------------------------------------------------


def test_branches_of_different_shapes_by_numbers(variant: str) -> None:
    then = graph([node("Transpose", ["x"], ["t"], perm=(1, 0))], [], ["t"])
    other = graph([node("Concat", ["x", "x"], ["t"], axis=1)], [], ["t"])
    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0), node("Constant", [], ["zero"], value_float=0.0),
        node("Greater", ["s", "zero"], ["c"]), node("If", ["c"], ["h"], then_branch=then, else_branch=other),
        node("Relu", ["h"], ["y"]),
    ]  # fmt: skip
    main = graph(nodes, [info("x")], ["y"])
    for x in (np.abs(X), -np.abs(X)):
        np.testing.assert_array_equal(run(main, x)[0], np.maximum(x.T if x.sum() > 0 else np.hstack([x, x]), 0))


def test_map_over_sequences(variant: str) -> None:
    body = graph([node("Add", ["p", "q"], ["s"]), node("Shape", ["p"], ["t"])], [info("p"), info("q")], ["s", "t"])
    seq = info("xs")
    seq.kind = "sequence(tensor)"
    main = graph([node("SequenceMap", ["xs", "x"], ["ys", "ts"], body=body)], [seq, info("x")], ["ys", "ts"])
    given = [X[:1], X[:2], X[:5]]
    ys, ts = Program(to_graph(model(main, 17)), dispatch.variant()).evaluate([given, X[:1]], Meter())
    for y, t, x in zip(ys, ts, given, strict=True):
        np.testing.assert_array_equal(y, x + X[:1])
        np.testing.assert_array_equal(t, x.shape)
    with pytest.raises(DTypeError, match=r"SequenceMap \(ys\): input 0 is no sequence"):
        run(main, X, X[:1])


# ---- refused when the model is read --------------------------------------------------------------------------------------


def test_bodies_with_other_counts_are_refused() -> None:
    few = graph([node("Identity", ["c"], ["o"])], [info("i"), info("c")], ["o"])
    main = graph([node("Loop", ["m", "", "x"], ["y"], body=few)], [info("m"), info("x")], ["y"])
    with pytest.raises(FormatError, match=r"Loop \(y\): body has 2 inputs and 1 outputs: expected 3 and at least 2"):
        to_graph(model(main, 17))
    body = graph([node("Identity", ["c"], ["o"])], [info("i"), info("c")], ["o"])
    with pytest.raises(FormatError, match=r"Loop \(y\): has 1 outputs, more than its body gives"):
        to_graph(model(graph([node("Loop", ["m"], ["y"], body=body)], [info("m")], ["y"]), 17))
    with pytest.raises(FormatError, match=r"Scan \(y0\): num_scan_inputs is 3: expected 1 to 2"):
        to_graph(model(_with(scan(1, 1, SUM, 1), num_scan_inputs=3), 17))
    with pytest.raises(FormatError, match="a value that its first iteration needs is left out"):
        to_graph(model(graph([node("Loop", ["m", "", "", "x"], ["y"], body=few)], [info("m"), info("x")], ["y"]), 17))


def _with(main: Any, **attributes: Any) -> Any:
    main.nodes[0].attributes.update(attributes)
    return main


def test_bodies_that_read_what_is_not_there_are_refused() -> None:
    body = [node("Add", ["v0", "nowhere"], ["v0_out"])]
    with pytest.raises(FormatError, match=r"Add \(v0_out\): reads 'nowhere'"):
        to_graph(model(loop(body, 1), 17))

"""Branches and loops as steps of a bound program, held to the same graphs in stages, bit for bit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.model.custom import forget
from fastlayers.model.model import Model, Options
from fastlayers.program import Program

from .graphs import graph, node, normal

pytestmark = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")

VOID = np.dtype(np.void)
Feeds = Mapping[str, Any]


def body(inputs: str, nodes: list[Node], outputs: str, constants: Mapping[str, Any] | None = None) -> Graph:
    """A graph among attributes: what it takes and gives has no shapes."""
    arrays = {name: np.asarray(array) for name, array in (constants or {}).items()}
    values = [tuple(Value(name, None, VOID) for name in names.split()) for names in (inputs, outputs)]
    return Graph(*values, tuple(nodes), arrays)


def i64(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def branch() -> tuple[Graph, list[Feeds]]:
    """Products of different weights."""
    then = body("", [node("a = Linear(x, w)"), node("o = Relu(a)")], "o x")
    other = body("", [node("b = Linear(x, v)"), node("c = Linear(b, w)")], "c k", {"k": normal(3, 8)})
    nodes = [
        node("s = ReduceSum(x)", keepdims=0), node("c0 = Greater(s, zero)"),
        node("y, z = If(c0)", then_branch=then, else_branch=other), node("r = Relu(y)"),
    ]  # fmt: skip
    made = graph({"x": ((3, 8))}, nodes, ["r", "y", "z"], {"zero": np.float32(0), "w": normal(8, 8), "v": normal(8, 8, seed=1)})
    return made, [{"x": np.abs(normal(3, 8))}, {"x": -np.abs(normal(3, 8))}]


def loop(count: str = "m", cond: str = "-", stays: bool = True, known: int | None = None, parts: bool = False) -> Graph:
    """Rounds of a product, whose weights are outside, and of a value that is swapped with another."""
    nodes = [node("a = Linear(h, w)"), node("t = Tanh(a)"), node("h2 = Add(t, x)")]
    outputs = "c g2 h"
    if not stays:
        nodes += [node("c2 = Less(i, limit)")]
        outputs = "c2 g2 h"
    nodes += [node("g2 = Add(h2, g)")]
    if parts:
        nodes += [node("p = Softmax(h2)", axis=-1)]
        outputs += " p i x"
    inner = body("i c h g", nodes, outputs)
    results = "y, z" + (", p, q, x2" if parts else "")
    names = [name.strip() for name in results.split(",")]
    constants: dict[str, Any] = {"w": normal(8, 8) / 3, "limit": i64(2)}
    if known is not None:
        constants["m"] = i64(known)
    given: dict[str, Any] = {"x": (3, 8), "g": (3, 8)}
    given.update({} if known is not None or count == "-" else {"m": ((), np.int64)})
    given.update({} if cond == "-" else {"go": ((), np.bool_)})
    return graph(
        given, [node(f"{results} = Loop({count}, {cond}, x, g)", body=inner), node("o = Linear(z, w)")], [*names, "o"], constants
    )


def feeds(**more: Any) -> Feeds:
    return {"x": normal(3, 8), "g": normal(3, 8, seed=2), **more}


def nest() -> tuple[Graph, list[Feeds]]:
    """A loop in a branch in a loop."""
    inner = body("j d v", [node("v2 = Sin(v)")], "d v2")
    then = body("", [node("t = Loop(m, -, h)", body=inner)], "t")
    other = body("", [node("e = Neg(h)")], "e")
    outer = body(
        "i c h",
        [node("s = ReduceSum(h)", keepdims=0), node("k = Greater(s, zero)"),
         node("o = If(k)", then_branch=then, else_branch=other), node("h2 = Add(o, x)")],
        "c h2",
    )  # fmt: skip
    made = graph({"x": (5,), "m": ((), np.int64)}, [node("y = Loop(m, -, x)", body=outer)], ["y"], {"zero": np.float32(0.25)})
    return made, [{"x": normal(5), "m": i64(m)} for m in (0, 1, 2, 3, 7)]


def scan(backwards: bool = False, length: int = 5) -> tuple[Graph, list[Feeds]]:
    """A recurrent layer by hand, over two sequences."""
    steps = [node("a = Linear(h, w)"), node("b = Add(a, u)"), node("c = Add(b, v)"), node("h2 = Tanh(c)"), node("o = Neg(h2)")]
    inner = body("h g u v", steps, "h2 g o u")
    more: dict[str, Any] = {"num_scan_inputs": 2}
    if backwards:
        more |= {"scan_input_directions": (1, 0), "scan_output_directions": (0, 1)}
    nodes = [node("y, g2, p, q = Scan(x, g, s, t)", body=inner, **more), node("r = Relu(p)")]
    given = {"x": (3, 8), "g": (2,), "s": (length, 3, 8), "t": (length, 1, 8)}
    made = graph(given, nodes, ["y", "g2", "p", "q", "r"], {"w": normal(8, 8) / 3})
    return made, [{name: normal(*shape, seed=seed) for name, shape in given.items()} for seed in (0, 1)]


CASES: dict[str, Callable[[], tuple[Graph, list[Feeds]]]] = {
    "branch": branch,
    "loop of any number of rounds": lambda: (loop(), [feeds(m=i64(m)) for m in (0, 1, 2, 3, 8, -3)]),
    "loop that ends by itself": lambda: (loop("-", "-", stays=False), [feeds()]),
    "loop with a condition": lambda: (
        loop("m", "go", stays=False), [feeds(m=i64(9), go=np.array(go)) for go in (True, False)],
    ),
    "loop of four rounds with parts": lambda: (loop(known=4, parts=True), [feeds()]),
    "loop of no rounds with parts": lambda: (loop(known=0, parts=True), [feeds()]),
    "loop of one round with parts": lambda: (loop(known=1, parts=True), [feeds()]),
    "nested": nest,
    "scan": scan,
    "scan backwards": lambda: scan(backwards=True),
    "scan of one part": lambda: scan(backwards=True, length=1),
    "scan of nothing": lambda: scan(length=0),
}  # fmt: skip


def in_stages(monkeypatch: pytest.MonkeyPatch, made: Graph, optimized: bool, threads: int = 1) -> Model:
    monkeypatch.setattr("fastlayers.program.program.DEEPEST", 0)
    model = Model(made, Options(optimize=optimized, bodies=optimized))
    model.num_threads = threads
    return model


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_stages(name: str, optimized: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made, given = CASES[name]()
    strict = Model(made, Options(optimize=optimized, bodies=optimized, native=True))  # no stages, nothing in NumPy
    two = Model(made, Options(optimize=optimized, bodies=optimized))
    two.num_threads = 2
    found = [[model.run(x) for x in given] for model in (strict, two)]
    again = [strict.run(x) for x in given]
    with monkeypatch.context() as patch:
        staged = in_stages(patch, made, optimized)
        wanted = [staged.run(x) for x in given]
        assert staged._main.binding(list(given[0].values())).staged
    for results in (*found, again):
        for got, want in zip(results, wanted, strict=True):
            for key, array in want.items():
                assert got[key].dtype == array.dtype
                np.testing.assert_array_equal(got[key], array, err_msg=key)


@pytest.mark.parametrize("name", ["branch", "nested", "loop of four rounds with parts"])
def test_results_belong_to_the_caller(name: str) -> None:
    made, given = CASES[name]()
    model = Model(made)
    first = {key: array.copy() for key, array in model.run(given[0]).items()}
    for array in model.run(given[0]).values():
        assert array.flags.writeable and array.flags.owndata
        array.fill(9)
    for key, array in model.run(given[0]).items():
        np.testing.assert_array_equal(array, first[key])


UNSETTLED: dict[str, tuple[Callable[[], Graph], Feeds]] = {
    "parts of an unknown number of rounds": (lambda: loop(parts=True), feeds(m=i64(3))),
    "parts of a loop that ends by itself": (lambda: loop(known=5, stays=False, parts=True), feeds()),
    "a state that grows": (
        lambda: graph(
            {"x": (1, 2), "m": ((), np.int64)},
            [node("y = Loop(m, -, x)", body=body("i c h", [node("h2 = Concat(h, h)", axis=0)], "c h2"))],
            ["y"],
        ),
        {"x": normal(1, 2), "m": i64(3)},
    ),
    "branches of different sizes": (
        lambda: graph(
            {"x": (3,), "u": ()},
            [node("d = Greater(u, u)"),
             node("y = If(d)", then_branch=body("", [node("a = Concat(x, x)", axis=0)], "a"),
                  else_branch=body("", [node("b = Neg(x)")], "b"))],
            ["y"],
        ),
        {"x": normal(3), "u": np.float32(1)},
    ),
    "a step in numpy": (
        lambda: graph(
            {"x": (3, 3), "m": ((), np.int64)},
            [node("y = Loop(m, -, x)", body=body("i c h", [node("h2 = Det(h)"), node("h3 = Add(h2, h)")], "c h3"))],
            ["y"],
        ),
        {"x": normal(3, 3), "m": i64(3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSETTLED)
def test_what_does_not_fit_runs_in_stages(name: str) -> None:
    make, given = UNSETTLED[name]
    made = make()
    model = Model(made)
    names = [value.name for value in made.inputs]
    assert model._main.binding([np.asarray(given[name]) for name in names]).staged
    with fl.kernels.use("reference"):
        wanted = Model(made).run(given)
    for key, array in model.run(given).items():
        assert array.shape == wanted[key].shape
        np.testing.assert_allclose(array, wanted[key], rtol=0, atol=1e-5)


def test_rounds_are_counted_over_all_loops() -> None:
    made, _ = nest()
    x = {"x": np.full(5, 3.0, np.float32)}
    Model(made, Options(rounds=50)).run({**x, "m": i64(4)})
    with pytest.raises(fl.LimitError, match=r"Loop \(y\): its loop, with all others of this run, takes more than 12 iterations"):
        Model(made, Options(rounds=12)).run({**x, "m": i64(4)})


def test_rounds_of_parts_count_with_those_of_stages() -> None:
    """A loop that is a step, in the body of one that is not."""
    inner = body("j d v", [node("v2 = Sin(v)")], "d v2")
    steps = [node("t = Loop(m, -, h)", body=inner), node("s = ReduceSum(t)", keepdims=0), node("p = Reshape(s, one)")]
    outer = body("i c h", steps, "c t p", {"one": np.array([1])})
    made = graph({"x": (5,), "m": ((), np.int64)}, [node("y, z = Loop(m, -, x)", body=outer)], ["y", "z"])
    given = {"x": normal(5), "m": i64(6)}
    model = Model(made, Options(rounds=42))  # 6 and 6 times 6
    assert model.run(given)["z"].shape == (6, 1) and model._main.binding(list(given.values())).staged
    with pytest.raises(fl.LimitError, match="takes more than 41 iterations"):
        Model(made, Options(rounds=41)).run(given)


def test_an_endless_loop_ends_at_the_deadline_and_lets_others_run() -> None:
    inner = body("i c h", [node("h2 = Sin(h)"), node("c2 = Or(c, c)")], "c2 h2")
    model = Model(graph({"x": (4,)}, [node("y = Loop(-, -, x)", body=inner)], ["y"]), Options(rounds=1 << 40))
    ticks = []
    done = threading.Event()

    def other() -> None:
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        with pytest.raises(fl.TimeoutError):
            model.run({"x": normal(4)}, timeout=0.5)
    finally:
        done.set()
        thread.join()
    assert len(ticks) > 3


def test_reports_show_what_is_inside() -> None:
    made, given = branch()
    report = Model(made).report({"x": (3, 8)})
    rows = [(row.step.op, row.depth) for row in report.steps]
    assert not report.staged and ("If", 0) in rows and rows.count(("Linear", 1)) == 3
    counted = Model(loop(known=4, parts=True)).profile(feeds(), runs=3)
    (linear,) = [row for row in counted.steps if row.step.op == "Linear" and row.depth]
    assert linear.rounds == 4 and linear.best > 0 and "times" in counted.text()
    (whole,) = [row for row in counted.steps if row.step.op == "Loop"]
    assert whole.rounds == 1 and report.multiply_adds >= 3 * 3 * 64
    del given


def test_weights_of_bodies_are_packed_once() -> None:
    model = Model(loop())
    for m in (1, 2, 3):
        model.run(feeds(m=i64(m)))
    (inner,) = [program for found in model._main.nested.values() for program, _ in found.forms]
    assert isinstance(inner, Program) and len(inner.known.weights) == 1


def test_rounds_of_a_model_that_runs_within_do_not_count() -> None:
    """A user's function runs a loop of its own between two of ours."""
    inner = body("j d v", [node("v2 = Sin(v)")], "d v2")

    def loops(steps: list[Node], rounds: int) -> Model:
        return Model(graph({"x": (5,), "m": ((), np.int64)}, steps, ["y"]), Options(rounds=rounds))

    within = loops([node("y = Loop(m, -, x)", body=inner)], 100)
    fl.operator("Within")(lambda x: within.run({"x": x, "m": i64(40)})["y"])
    try:
        steps = [node("a = Loop(m, -, x)", body=inner), node("b = ::Within(a)"), node("y = Loop(m, -, b)", body=inner)]
        given = {"x": normal(5), "m": i64(6)}
        assert loops(steps, 12).run(given)["y"].shape == (5,)
        with pytest.raises(fl.LimitError, match="takes more than 11 iterations"):
            loops(steps, 11).run(given)
    finally:
        forget("Within")

"""Results whose sizes a run counts: steps of a program where only the caller reads them, the end of a segment elsewhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.ir.graph import Graph
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model, Options
from fastlayers.operators.builder import Call
from fastlayers.program import Program, binder

from .graphs import graph, node, normal
from .test_program import program, run

INT, BOOL = np.dtype(np.int64), np.dtype(np.bool_)
needs_engine = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")


def above() -> Graph:
    """Positions of what is above zero, and the rows with a sum above zero."""
    nodes = [
        node("h = Relu(x)"), node("i = NonZero(h)"), node("s = ReduceSum(x, last)", keepdims=0), node("c = Greater(s, zero)"),
        node("r = Compress(h, c)", axis=0),
    ]  # fmt: skip
    return graph({"x": ("n", "m")}, nodes, ["h", "i", "r"], {"last": [-1], "zero": np.float32(0)})


def check(made: Program, x: np.ndarray) -> None:
    h, i, r = run(made, x)
    np.testing.assert_array_equal(h, np.maximum(x, 0))
    np.testing.assert_array_equal(i, np.array(np.nonzero(x > 0)))
    np.testing.assert_array_equal(r, np.maximum(x, 0)[x.sum(1) > 0])
    for array in (h, i, r):
        assert array.flags.writeable and array.flags.c_contiguous and array.flags.aligned


def counted(made: Program) -> list[bool]:
    return [kept.bound is not None and kept.bound.counting for kept in made.bindings.values()]


def test_sizes_that_differ_from_run_to_run(variant: str) -> None:
    made = program(above())
    for n, m, seed in ((5, 4, 0), (5, 4, 1), (0, 4, 0), (5, 4, 2), (33, 7, 0), (3, 0, 0), (5, 4, 3)):
        check(made, normal(n, m, seed=seed))
    check(made, np.full((5, 4), -1, np.float32))
    check(made, np.full((5, 4), 1, np.float32))
    assert all(counted(made)) == variant.startswith("aot")


@needs_engine
def test_a_step_each_and_no_stages() -> None:
    with fl.kernels.use("aot"):
        made = program(above(), native=True)
        check(made, normal(5, 4))
        assert made.made_stages is None
        (kept,) = made.bindings.values()
        plan = made.plan(*kept.made_for)
        assert [call.kernel for call in plan.calls if isinstance(call, Call)][-1] == "compress"


def test_unique_and_all_its_results(variant: str) -> None:
    for names in ("y", "y, first", "y, first, which", "y, first, which, counts"):
        last = names.split(", ")
        for ordered in (0, 1):
            made = program(graph({"x": (("n",), INT)}, [node(f"{names} = Unique(x)", sorted=ordered)], last))
            for x in ([3, 1, 3, 3, -7], [], [1 << 50, 5, 5], [5]):
                array = np.array(x, np.int64)
                got = run(made, array)
                _, first, which, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True)
                order = np.argsort(first) if not ordered else np.arange(len(first))
                want = [
                    array[first[order]],
                    first[order],
                    np.argsort(order)[which.reshape(-1)] if len(x) else which,
                    counts[order],
                ]
                for a, b in zip(got, want, strict=False):
                    np.testing.assert_array_equal(a, b)


def test_the_result_of_which_sizes_are_known_is_read_on(variant: str) -> None:
    """Unique says where each element is, and that has as many elements as x."""
    nodes = [node("y, first, which, counts = Unique(x)"), node("z = Add(which, x)")]
    made = program(graph({"x": (("n",), INT)}, nodes, ["y", "z"]))
    y, z = run(made, np.array([4, 4, 2, 9]))
    np.testing.assert_array_equal(y, [2, 4, 9])
    np.testing.assert_array_equal(z, [5, 5, 2, 11])
    assert all(counted(made)) == variant.startswith("aot")


def test_what_reads_a_counted_result_is_the_next_segment(variant: str) -> None:
    nodes = [
        node("c = Greater(x, zero)"), node("i = NonZero(c)"), node("d = Less(x, zero)"), node("j = NonZero(d)"),
        node("s = Shape(j)"), node("t = Squeeze(i, first)"), node("g = Gather(x, t)"), node("y = Relu(g)"),
    ]  # fmt: skip
    made = program(graph({"x": ("n",)}, nodes, ["y", "s"], {"zero": np.float32(0), "first": [0]}))
    for seed in range(4):
        x = normal(20, seed=seed)
        y, s = run(made, x)
        np.testing.assert_array_equal(y, x[x > 0])
        np.testing.assert_array_equal(s, [1, (x < 0).sum()])
    assert bool(made.stages.cuts) != variant.startswith("aot")


def test_a_result_that_is_given_twice(variant: str) -> None:
    made = program(graph({"x": ("n",)}, [node("i = NonZero(x)")], ["i", "i"]))
    for got in run(made, np.array([0, 2, 3], np.float32)):
        np.testing.assert_array_equal(got, [[1, 2]])


@needs_engine
def test_what_would_take_much_more_room_than_it_needs_runs_in_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    with fl.kernels.use("aot"):
        made = program(above())
        check(made, normal(5, 4))
        monkeypatch.setattr(binder, "COUNTED_BYTES", 1000)
        check(made, normal(50, 4))  # of a program that counts already
        check(made, normal(4, 5))
        assert counted(made) == [True, False, True]


@needs_engine
def test_results_do_not_hold_on_to_room_that_they_leave(threads: int) -> None:
    with fl.kernels.use("aot"):
        made = program(graph({"x": ("n",)}, [node("i = NonZero(x)")], ["i"]))
        x = np.zeros(100_000, np.float32)
        x[77] = 1
        (i,) = run(made, x)
        held = i if i.base is None else i.base
        assert i.tolist() == [[77]] and held.nbytes < 1000


def test_the_callers_own_arrays(variant: str) -> None:
    model = Model(graph({"x": ("n",)}, [node("i = NonZero(x)")], ["i"]), Options(None))
    x = np.array([0, 1, 0, 2], np.float32)
    out = np.zeros((1, 2), np.int64)
    assert model.run({"x": x}, out={"i": out})["i"] is out
    assert out.tolist() == [[1, 3]]
    with pytest.raises(ShapeError, match=r"out for 'i' has shape \(1, 4\): expected \(1, 2\)"):
        model.run({"x": x}, out={"i": np.zeros((1, 4), np.int64)})


def test_in_a_loop_and_in_a_branch(variant: str) -> None:
    """Bodies count nothing: what comes after them is bound to the sizes that they give."""
    body = graph({"k": ((), INT), "go": ((), BOOL), "z": (("a",), INT)}, [
        node("p = NonZero(x)"), node("q = Squeeze(p, first)"), node("w = Concat(z, q)", axis=0), node("on = Identity(go)"),
    ], ["on", "w"], {"first": [0]})  # fmt: skip
    nodes = [node("y = Loop(n, -, start)", body=body)]
    made = program(graph({"x": ("n",), "start": (("a",), INT)}, nodes, ["y"], {"n": np.int64(2)}))
    (y,) = run(made, np.array([0, 1, 2], np.float32), np.array([9]))
    np.testing.assert_array_equal(y, [9, 1, 2, 1, 2])
    sides = [graph({}, [node(f"{name} = NonZero({name}0)"), node(f"{name}0 = Relu(x)")][::-1], [name]) for name in ("a", "b")]
    made = program(graph({"x": ("n",), "c": ((), BOOL)}, [node("y = If(c)", then_branch=sides[0], else_branch=sides[1])], ["y"]))
    for x in ([-1.0, 1], [1.0, 1]):
        (y,) = run(made, np.array(x, np.float32), np.array(True))
        np.testing.assert_array_equal(y, np.array(np.nonzero(np.array(x) > 0)))


def test_boxes(variant: str) -> None:
    constants = {"most": [3], "overlap": np.float32([0.5]), "least": np.float32([0.2])}
    made = program(
        graph({"b": (1, "n", 4), "s": (1, 1, "n")}, [node("y = NonMaxSuppression(b, s, most, overlap, least)")], ["y"], constants)
    )
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3], [5, 5, 6, 6]]], np.float32)
    for scores, want in (([0.9, 0.8, 0.7, 0.6], [0, 2, 3]), ([0.1, 0.3, 0.1, 0.1], [1]), ([0.0] * 4, [])):
        (y,) = run(made, boxes, np.array([[scores]], np.float32))
        assert y[:, 2].tolist() == want and y.shape == (len(want), 3)
    assert all(counted(made)) == variant.startswith("aot")


@needs_engine
def test_from_many_threads_at_once() -> None:
    with fl.kernels.use("aot"):
        made = program(above())
        arrays = [normal(40, 6, seed=seed) for seed in range(40)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda x: check(made, x), arrays * 5))

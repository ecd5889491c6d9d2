"""The loop over a program's steps among users' functions, threads, forks, errors, and arrays of unusual shapes."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional as F
from fastlayers.kernels import dispatch
from fastlayers.model.custom import forget

from .graphs import graph, node, normal
from .test_program import program, run


class Hook:
    """The operator of a test: it calls `does` with its input, and gives its input.

    `alone` is hook(x), `model` relu(hook(relu(hook(x)) + 1)).
    """

    def __init__(self) -> None:
        self.does: Callable[[np.ndarray], Any] = lambda x: None

        @fl.operator("Hook")
        def hook(x: np.ndarray) -> np.ndarray:
            self.does(x)
            return x

        record = fl.graph.Input("x", ("n", 3))
        self.model = fl.compile(lambda x: F.relu(hook(F.relu(hook(x)) + 1.0)), record)
        self.alone = fl.compile(hook, record)


@pytest.fixture
def hook() -> Iterator[Hook]:
    yield Hook()
    forget("Hook")


def by_hand(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + 1


def test_a_users_function_runs_its_own_model(hook: Hook) -> None:
    depth = threading.local()

    def again(x: np.ndarray) -> None:
        depth.now = getattr(depth, "now", 0) + 1
        if depth.now < 4:
            for rows in (1, 2):  # the same binding, and another
                np.testing.assert_array_equal(hook.model(normal(rows, 3)), by_hand(normal(rows, 3)))
        depth.now -= 1

    hook.does = again
    with ThreadPoolExecutor(3) as pool:
        for result in pool.map(lambda _: hook.model(normal(2, 3)), range(6)):
            np.testing.assert_array_equal(result, by_hand(normal(2, 3)))


def test_an_error_in_the_middle_of_a_run(hook: Hook) -> None:
    def fail(x: np.ndarray) -> None:
        raise KeyError("mine")

    nothing, kept = hook.does, _kept()
    for _ in range(20):
        hook.does = fail
        with pytest.raises(KeyError, match="mine"):
            hook.model(normal(2, 3))
        hook.does = nothing
        np.testing.assert_array_equal(hook.model(normal(2, 3)), by_hand(normal(2, 3)))
    assert _kept() == kept


def _kept() -> int:
    if not dispatch.levels():
        return 0
    from fastlayers.kernels.aot import _engine

    return int(_engine.memory_kept())


def test_arrays_that_a_users_function_keeps_outlive_the_run(hook: Hook) -> None:
    found: list[np.ndarray] = []
    hook.does = found.append
    for call in (hook.model, hook.model, lambda x: hook.model.run({"x": x})):
        found.clear()
        call(np.full((40000, 3), 7, np.float32))  # large enough that its memory goes back to the system
        others = [np.zeros((40000, 3), np.float32) for _ in range(4)]
        assert (found[0] == 7).all() and len(others) == 4
        assert found[0].base is not None and found[1].base is not None


def test_feeds_may_change_while_a_users_function_runs(hook: Hook) -> None:
    feeds: dict[str, np.ndarray] = {}
    spoiled: list[np.ndarray] = []

    def change(x: np.ndarray) -> None:
        feeds["x"] = np.zeros((0, 3), np.float32)
        spoiled.append(np.full((40000, 3), -1, np.float32))

    hook.does = change
    for _ in range(3):
        feeds["x"] = np.full((40000, 3), 5, np.float32)
        (result,) = hook.alone.run(feeds).values()
        assert (result == 5).all()
        assert len(spoiled) == 1
        spoiled.clear()


@pytest.mark.skipif(not dispatch.levels(), reason="numbers of threads are the compiled engine's")
def test_a_run_within_a_run_leaves_its_number_of_threads_alone(hook: Hook) -> None:
    from fastlayers.kernels.aot import _engine

    inner = fl.compile(lambda x: F.relu(x), fl.graph.Input("x", ("n", 3)))
    limits: list[int] = []
    other = program(graph({"x": ("n", 3)}, [node("y = Relu(x)")], ["y"]))

    def within(x: np.ndarray) -> None:
        limits.append(_engine.thread_limit())
        other.binding([x]).run([x], None, 1)  # with a limit of its own
        inner(x)
        inner.run({"x": x})
        limits.append(_engine.thread_limit())

    hook.does = within
    for threads in (1, 0, 2):
        hook.model.num_threads = threads
        for _ in range(2):  # through the general way in, and the fast one
            limits.clear()
            hook.model(normal(2, 3))
            assert limits == [threads] * 4
        assert _engine.thread_limit() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_in_the_middle_of_a_run(hook: Hook) -> None:
    parent, children = os.getpid(), []
    weight = normal(256, 256)
    wide = fl.compile(lambda x: F.linear(F.relu(x), weight), fl.graph.Input("x", ("n", 256)))
    want = wide(normal(512, 256))  # two threads' work

    def fork(x: np.ndarray) -> None:
        if os.getpid() == parent:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                children.append(os.fork())

    hook.does = fork
    status = 1
    try:
        good = np.array_equal(hook.model(normal(2, 3)), by_hand(normal(2, 3))) and np.array_equal(wide(normal(512, 256)), want)
        status = int(not good)
    finally:
        if os.getpid() != parent:
            os._exit(status)
    assert good
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]


# ---- shapes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["Relu", "Hardmax", "Identity"])  # a kernel, numpy, a copy
def test_many_axes(op: str, variant: str) -> None:
    made = program(graph({"x": (1,) * 32}, [node(f"y = {op}(x)")], ["y"]))
    assert run(made, np.zeros((1,) * 32, np.float32))[0].shape == (1,) * 32


needs_numpy_2 = pytest.mark.skipif(int(np.__version__.partition(".")[0]) < 2, reason="numpy has no arrays of more than 32 axes")


@needs_numpy_2
@pytest.mark.parametrize("axes", [33, 64])
def test_more_axes_than_programs_take(axes: int, variant: str) -> None:
    x = np.zeros((1,) * axes, np.float32)
    for op in ("Relu", "Hardmax", "Identity"):
        made = program(graph({"x": (1,) * axes}, [node(f"y = {op}(x)")], ["y"]))
        with pytest.raises(fl.UnsupportedError, match=f"{axes} axes: at most 32"):
            run(made, x)
    for inputs, constants in (({"x": (1,) * axes}, {}), ({}, {"x": x})):
        nodes = [node("y = Reshape(x, s)"), node("z = Relu(y)")]
        made = program(graph(inputs, nodes, ["z"], {**constants, "s": np.array([1])}))
        for _ in range(3):
            assert run(made, *([x] if inputs else []))[0].shape == (1,)


@needs_numpy_2
@pytest.mark.parametrize("axes", [33, 64])
def test_functions_of_many_axes(axes: int, variant: str) -> None:
    x = np.full((1,) * (axes - 1) + (2,), -2, np.float32)
    assert F.relu(x).shape == x.shape and not F.relu(x).any()
    np.testing.assert_array_equal(F.linear(x, np.eye(2, dtype=np.float32)), x)
    np.testing.assert_array_equal(F.softmax(x, -1), np.full(x.shape, 0.5))


def test_nothing_to_hold(variant: str) -> None:
    """No steps, no elements, no arena."""
    made = program(graph({"x": ("n", 3)}, [], ["x"]))
    for n in (0, 2, 0):
        np.testing.assert_array_equal(run(made, normal(n, 3))[0], normal(n, 3))
    nodes = [node("a = Linear(x, w)"), node("b = Relu(a)"), node("y = Add(b, x)")]
    empty = program(graph({"x": ("n", 0)}, nodes, ["y"], {"w": normal(0, 0)}))
    for n in (0, 3, 0):
        assert run(empty, normal(n, 0))[0].shape == (n, 0)


def test_many_inputs_and_outputs(variant: str) -> None:
    """More than the way in through the stack takes."""
    names = [f"x{i}" for i in range(50)]
    nodes = [node(f"y{i} = Relu(x{i})") for i in range(50)]
    made = program(graph(dict.fromkeys(names, ("n",)), nodes, [f"y{i}" for i in range(50)]))
    for n in (3, 0, 5):
        given = [normal(n, seed=i) for i in range(50)]
        for got, x in zip(run(made, *given), given, strict=True):
            np.testing.assert_array_equal(got, np.maximum(x, 0))

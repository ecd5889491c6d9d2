"""Programs: what sizes settle, where memory is, which calls remain; in every variant."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph
from fastlayers.kernels import dispatch
from fastlayers.program import Program
from fastlayers.program.steps import steps

from .graphs import graph, node, normal
from .guarded import check_layout


def program(made: Graph, native: bool = False) -> Program:
    return Program(made, dispatch.variant(), native)


def run(made: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    given = [np.ascontiguousarray(a) for a in arrays]
    return list(made.binding(given).run(given))


def network() -> Graph:
    """A few layers with a branch that is added at the end."""
    nodes = [
        node("h = Linear(x, w, b)"),
        node("r = Relu(h)"),
        node("s = Softmax(r)", axis=-1),
        node("t = Linear(s, w)"),
        node("y = Add(t, r)"),
    ]
    return graph({"x": ("n", 8)}, nodes, ["y"], {"w": normal(8, 8), "b": normal(8, seed=1)})


def by_hand(x: np.ndarray) -> np.ndarray:
    w, b = normal(8, 8).astype(np.float64), normal(8, seed=1)
    r = np.maximum(x @ w.T + b, 0)
    e = np.exp(r - r.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ w.T + r


def test_network_in_every_variant(variant: str) -> None:
    made = program(network(), native=True)
    for rows in (1, 5, 0, 17, 5):
        x = normal(rows, 8)
        (y,) = run(made, x)
        np.testing.assert_allclose(y, by_hand(x), rtol=0, atol=1e-5)  # sums of 8 products of numbers near 1
        assert y.flags.writeable and y.flags.c_contiguous and y.dtype == np.float32


def test_results_are_fresh(variant: str) -> None:
    made, x = program(network()), normal(5, 8)
    first = run(made, x)[0]
    kept = first.copy()
    second = run(made, normal(5, 8, seed=9))[0]
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


def test_intermediate_results_share_places() -> None:
    nodes = [node(f"v{i + 1} = Linear(v{i}, w)") for i in range(10)]
    made = program(graph({"v0": (64, 64)}, nodes, ["v10"], {"w": normal(64, 64)}))
    plan = made.binding([normal(64, 64)]).plan
    assert plan is not None and plan.arena == 2 * 64 * 64 * 4  # one is read while the other is written


def test_buffers_that_live_at_once_do_not_overlap() -> None:
    rng = np.random.default_rng(5)
    nodes, names = [], ["x"]
    for i in range(60):
        a, b = rng.choice(names, 2)
        nodes.append(node(f"v{i} = Add({a}, {b})"))
        names.append(f"v{i}")
    made = program(graph({"x": ("n", 3)}, nodes, names[-4:]))
    plan = made.binding([normal(7, 3)]).plan
    assert plan is not None
    check_layout(plan.calls, plan.arena)
    values = {"x": normal(7, 3)}
    for made_node in nodes:
        values[made_node.outputs[0]] = values[made_node.inputs[0]] + values[made_node.inputs[1]]
    for name, got in zip(names[-4:], run(made, values["x"]), strict=True):
        np.testing.assert_allclose(got, values[name], rtol=1e-6)


def test_what_is_joined_again_and_again_is_written_once() -> None:
    """As a DenseNet does: each layer reads all that was made before it."""
    nodes, parts = [node("v0 = Relu(x)"), node("v1 = Neg(v0)")], ["v0", "v1"]
    for i in range(2, 7):
        nodes += [
            node(f"c{i} = Concat({', '.join(parts)})", axis=1), node(f"m{i} = ReduceMax(c{i}, axis)", keepdims=1),
            node(f"v{i} = Sigmoid(m{i})"),
        ]  # fmt: skip
        parts.append(f"v{i}")
    made = program(graph({"x": (1, 3, 5)}, [*nodes, node(f"y = Concat({', '.join(parts)})", axis=1)], ["y"], {"axis": [1]}))
    x = normal(1, 3, 5)
    values = [np.maximum(x, 0), -np.maximum(x, 0)]
    for _ in range(5):
        values.append(1 / (1 + np.exp(-np.concatenate(values, 1).max(1, keepdims=True))))
    np.testing.assert_allclose(run(made, x)[0], np.concatenate(values, 1), rtol=1e-6)
    plan = made.binding([x]).plan
    assert plan is not None and not [call for call in plan.calls if call.kernel == "copy"]
    check_layout(plan.calls, plan.arena)


def test_sizes_computed_from_sizes() -> None:
    nodes = [
        node("s = Shape(x)"), node("n = Slice(s, i0, i1)"), node("t = Concat(n, minus)", axis=0), node("y = Reshape(x, t)"),
    ]  # fmt: skip
    made = program(graph({"x": ("n", 3, 4)}, nodes, ["y"], {"i0": [0], "i1": [1], "minus": [-1]}), native=False)
    for n in (1, 2, 5):
        (y,) = run(made, normal(n, 3, 4))
        np.testing.assert_array_equal(y, normal(n, 3, 4).reshape(n, 12))
    plan = made.binding([normal(2, 3, 4)]).plan
    assert plan is not None and len(plan.calls) == 1  # the copy to the output


def branches() -> Graph:
    then = graph({}, [node("a = Linear(x, w)")], ["a"], {"w": np.eye(3, dtype=np.float32) * 2})
    other = graph({}, [node("b = Relu(x)")], ["b"])
    nodes = [node("c = Equal(mode, two)"), node("y = If(c)", then_branch=then, else_branch=other)]
    return graph({"x": ("n", 3), "mode": ((), np.int64)}, nodes, ["y"], {"two": np.int64(2)})


def test_branch_by_the_number_of_an_input(variant: str) -> None:
    made = program(branches(), native=True)
    assert made.by_value == (1,)
    x = normal(4, 3)
    for mode, want in ((2, x * 2), (3, np.maximum(x, 0)), (2, x * 2)):
        np.testing.assert_array_equal(run(made, x, np.array(mode))[0], want)


def test_branch_by_values_that_are_not_known(variant: str) -> None:
    then, other = (
        graph({}, [node("a = Neg(x)")], ["a"]),
        graph({}, [node("b = Linear(x, w)")], ["b"], {"w": np.eye(2, dtype=np.float32)}),
    )
    nodes = [
        node("s = ReduceSum(x)", keepdims=0), node("c = Greater(s, zero)"), node("y = If(c)", then_branch=then,
        else_branch=other),
    ]  # fmt: skip
    made = program(graph({"x": ("n", 2)}, nodes, ["y"], {"zero": np.float32(0)}))
    for x in (np.ones((3, 2), np.float32), -np.ones((3, 2), np.float32)):
        np.testing.assert_array_equal(run(made, x)[0], -x if x.sum() > 0 else x)
    strict = program(made.graph, native=True)
    if variant.startswith("aot"):  # a step with both branches as bodies
        np.testing.assert_array_equal(run(strict, np.ones((3, 2), np.float32))[0], -np.ones((3, 2)))
        return
    with pytest.raises(fl.UnsupportedError, match=r"require_native: the model must run in stages: If \(y\)"):
        run(strict, np.ones((3, 2), np.float32))


def test_size_by_numbers_runs_in_stages() -> None:
    made = program(graph({"x": ("n",)}, [node("i = NonZero(x)"), node("y = Transpose(i)", perm=(1, 0))], ["y"]))
    np.testing.assert_array_equal(run(made, np.array([0, 1, 0, 2], np.float32))[0], [[1], [3]])


def test_numpy_step_between_native_ones(variant: str, caplog: pytest.LogCaptureFixture) -> None:
    nodes = [node("a = Linear(x, w)"), node("b = CumProd(a, one)"), node("y = Linear(b, w)")]
    made = program(graph({"x": ("n", 4)}, nodes, ["y"], {"w": normal(4, 4), "one": np.array(1)}))
    w = normal(4, 4).astype(np.float64)
    np.testing.assert_allclose(run(made, normal(3, 4))[0], np.cumprod(normal(3, 4) @ w.T, axis=1) @ w.T, rtol=0, atol=1e-5)
    with caplog.at_level("INFO", "fastlayers"):
        run(program(made.graph), normal(3, 4))
    assert [record.getMessage() for record in caplog.records] == ["these steps run in numpy: CumProd (b)"]
    with pytest.raises(fl.UnsupportedError, match=r"require_native: these steps would run in numpy: CumProd \(b\)"):
        run(program(made.graph, native=True), normal(3, 4))


def test_outputs_that_are_inputs_constants_views_or_twice_the_same() -> None:
    nodes = [node("r = Reshape(x, s)"), node("h = Linear(x, w)"), node("v = Reshape(h, s)"), node("i = Identity(h)")]
    constants = {"s": np.array([-1]), "w": np.eye(2, dtype=np.float32)}
    made = program(graph({"x": ("n", 2)}, nodes, ["x", "w", "r", "h", "v", "i"], constants))
    x = normal(3, 2)
    results = run(made, x)
    for got, want in zip(results, (x, np.eye(2), x.reshape(-1), x, x.reshape(-1), x), strict=True):
        np.testing.assert_array_equal(got, want)
    for i, a in enumerate((*results, x, constants["w"])):
        assert not any(np.shares_memory(a, b) for b in (*results, x, constants["w"])[:i])


def test_copies_to_outputs_are_no_steps_of_nodes() -> None:
    nodes = [node("r = Reshape(x, s)"), node("h = Linear(x, w)"), node("i = Identity(h)"), node("c = Identity(z)")]
    constants = {"s": np.array([-1]), "w": np.eye(2, dtype=np.float32)}
    made = program(graph({"x": ("n", 2), "z": ((1,), np.complex128)}, nodes, ["r", "h", "i", "x", "c"], constants), native=True)
    plan = made.binding([normal(3, 2), np.zeros(1, np.complex128)]).plan
    assert plan is not None
    found = steps(plan)
    assert [s.op for s in found][:2] == ["Reshape", "Linear"]
    assert found[-1].op == "(copies to outputs)"
    assert len(found[-1].calls) == 4


def test_bindings_are_bounded_by_their_bytes(variant: str) -> None:
    made = program(network())
    kept, most = made.bindings, 300_000
    kept.most = most
    for n in range(600):
        made.binding([normal(n, 8)])
        assert kept.nbytes <= most
    assert 5 < len(kept) < 500
    made.binding([normal(1, 8)])
    last = list(kept._found)[-1]
    for n in range(600, 1200):
        made.binding([normal(n, 8)])
        made.binding([normal(1, 8)])  # what runs now and then stays
    assert last in kept._found


def test_many_threads_at_once(variant: str) -> None:
    made = program(network())
    wanted = {n: run(made, normal(n, 8))[0] for n in range(1, 9)}
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        start.wait()
        for n in np.random.default_rng(seed).integers(1, 9, 50):
            np.testing.assert_array_equal(run(made, normal(int(n), 8))[0], wanted[int(n)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_errors_name_the_node() -> None:
    made = program(graph({"x": ("n", "k")}, [node("y = Linear(x, w)")], ["y"], {"w": normal(4, 4)}))
    with pytest.raises(fl.ShapeError, match=r"Linear \(y\): x has shape .*expected x of shape"):
        run(made, normal(2, 3))
    with pytest.raises(fl.UnsupportedError, match=r"Frobnicate \(y\): there is no such operator"):
        run(program(graph({"x": (1,)}, [node("y = Frobnicate(x)")], ["y"])), normal(1))

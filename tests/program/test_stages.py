"""Graphs that no sizes settle: what runs natively between the nodes that run alone, what is cached, and what is refused."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.ir.graph import Graph, Value
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model, Options
from fastlayers.operators.builder import PythonCall
from fastlayers.passes import optimize
from fastlayers.program import Program
from fastlayers.program.segment import Binding

from .graphs import FLOAT, graph, node, normal
from .test_program import program, run

INT = np.dtype(np.int64)


def rows() -> Graph:
    """The rows of a product whose sums are above zero, through another product."""
    nodes = [
        node("h = Linear(x, w)"), node("s = ReduceSum(h, last)", keepdims=0), node("c = Greater(s, zero)"),
        node("i = NonZero(c)"), node("j = Squeeze(i, first)"), node("g = Gather(h, j)"), node("r = Relu(g)"),
        node("y = Linear(r, w)"), node("k = Shape(r)"), node("n = Size(r)"),
    ]  # fmt: skip
    constants = {"w": normal(4, 4), "last": [-1], "first": [0], "zero": np.float32(0)}
    return graph({"x": ("n", 4)}, nodes, ["y", "k", "n"], constants)


def by_hand(x: np.ndarray) -> np.ndarray:
    w = normal(4, 4).astype(np.float64)
    h = x @ w.T
    return np.maximum(h[h.sum(-1) > 0], 0) @ w.T


def test_what_lies_between_cuts_is_bound(variant: str) -> None:
    made = program(rows())
    for n in (7, 3, 0, 7):
        y, k, size = run(made, normal(n, 4))
        want = by_hand(normal(n, 4))
        np.testing.assert_allclose(y, want, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(k, want.shape)
        assert size == want.size
    assert made.stages.cuts == (set() if variant.startswith("aot") else {3})  # what counts ends a segment
    parts = made.stages.parts
    assert sorted(parts) == [0, 4]
    assert all(not b.staged for part in parts.values() for b in part.program.bindings.values())
    assert parts[4].outputs == ("y", "k", "n")


def test_weights_of_the_whole_are_packed_once() -> None:
    made = program(rows())
    run(made, normal(7, 4))
    packed = len(made.known.weights)
    for n in (1, 2, 3):
        run(made, normal(n, 4))
    assert len(made.known.weights) == packed
    assert all(part.program.known.weights is made.known.weights for part in made.stages.parts.values())


def classes(count: int) -> Graph:
    """For each class the rows of x whose value for it is above zero, one class after the other, as detectors have them."""
    nodes = []
    for k in range(count):
        nodes += [
            node(f"s{k} = Gather(x, k{k})", axis=1), node(f"c{k} = Greater(s{k}, zero)"), node(f"i{k} = NonZero(c{k})"),
            node(f"j{k} = NonZero(c{k})"), node(f"t{k} = Transpose(i{k})"), node(f"u{k} = Transpose(j{k})"),
            node(f"v{k} = GatherND(s{k}, t{k})"), node(f"r{k} = GatherND(x, u{k})"),
        ]  # fmt: skip
    nodes += [node(f"y = Concat({', '.join(f'r{k}' for k in range(count))})", axis=0)]
    nodes += [node(f"z = Concat({', '.join(f'v{k}' for k in range(count))})", axis=0)]
    constants = {f"k{k}": np.array(k) for k in range(count)} | {"zero": np.float32(0)}
    return graph({"x": ("n", count)}, nodes, ["y", "z"], constants)


@pytest.mark.parametrize("optimized", [False, True])
def test_nodes_whose_results_have_sizes_of_values_run_together(variant: str, optimized: bool) -> None:
    made = classes(7)
    made = program(optimize(made) if optimized else made)
    for n in (9, 1, 0, 9):
        x = normal(n, 7)
        x[:, 3] = -1  # of a class that no row has, nothing is gathered
        y, z = run(made, x)
        np.testing.assert_array_equal(y, np.concatenate([x[x[:, k] > 0] for k in range(7)]))
        np.testing.assert_array_equal(z, np.concatenate([x[x[:, k] > 0, k] for k in range(7)]))
    assert len(made.stages.cuts) == (0 if variant.startswith("aot") else 7 if optimized else 14)
    assert len(made.stages.parts) == 2
    bindings = [Binding(part.program, b) for part in made.stages.parts.values() for b in part.program.bindings.values()]
    assert not any(isinstance(call, PythonCall) for b in bindings for call in b.plan.calls)


def test_bindings_of_very_many_inputs_are_dropped_too() -> None:
    names = [f"x{i}" for i in range(200)]
    made = program(graph(dict.fromkeys(names, ("n", 2)), [node(f"y = Concat({', '.join(names)})", axis=0)], ["y"], {}))
    made.bindings.most = 1
    for n in (1, 2, 3, 4):
        (y,) = run(made, *[normal(n, 2, seed=i) for i in range(200)])
        np.testing.assert_array_equal(y, np.concatenate([normal(n, 2, seed=i) for i in range(200)]))
    assert len(made.bindings) < 4


def decoder(rounds: str = "m") -> Graph:
    """Rounds of two products whose weights are outside, and the state of each."""
    body = Graph(
        tuple(Value(n, None, np.dtype(np.void)) for n in ("i", "c", "h")),
        tuple(Value(n, None, np.dtype(np.void)) for n in ("c2", "h2", "part")),
        (node("c2 = Identity(c)"), node("a = Linear(h, w, b)"), node("t = Tanh(a)"), node("u = Linear(t, w)"),
         node("h2 = Add(u, x)"), node("part = Softmax(h2)", axis=-1)),
        {},
    )  # fmt: skip
    nodes = [node("h0 = Relu(x)"), node(f"y, z = Loop({rounds}, -, h0)", body=body), node("o = Linear(z, w)")]
    constants = {"w": normal(8, 8) / 4, "b": normal(8)}
    return graph({"x": ("n", 8), "m": ((), np.int64)}, nodes, ["y", "o"], constants)


def decoded(x: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    w, b = (normal(8, 8) / 4).astype(np.float64), normal(8)
    h, parts = np.maximum(x, 0).astype(np.float64), []
    for _ in range(rounds):
        h = np.tanh(h @ w.T + b) @ w.T + x
        e = np.exp(h - h.max(-1, keepdims=True))
        parts.append(e / e.sum(-1, keepdims=True))
    return h, np.array(parts) @ w.T


@pytest.mark.parametrize("optimized", [False, True])
def test_a_loop_runs_bound_programs(variant: str, optimized: bool) -> None:
    model = Model(decoder(), Options(optimize=optimized, bodies=optimized))
    for n, rounds in ((3, 5), (2, 4), (3, 5)):
        y, o = model(normal(n, 8), np.array(rounds))
        want = decoded(normal(n, 8), rounds)
        np.testing.assert_allclose(y, want[0], rtol=0, atol=1e-5)
        np.testing.assert_allclose(o, want[1], rtol=0, atol=1e-5)
    (body,) = model._main.stages.bodies.values()
    ((inner, _),) = body._forms.values()
    assert len(inner.bindings) == 2 and all(not b.staged for b in inner.bindings.values())
    if variant.startswith("aot"):
        assert len(inner.known.weights) == 2 and all(b.bound is not None for b in inner.bindings.values())


def test_two_thread_counts_give_the_same_bits() -> None:
    results = []
    for threads in (1, 2):
        model = Model(decoder())
        model.num_threads = threads
        results.append(model(normal(70, 8), np.array(6)))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_many_threads_at_once() -> None:
    model = Model(decoder())
    wanted = {n: Model(decoder())(normal(n, 8), np.array(n))[1] for n in range(1, 7)}
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        start.wait()
        for n in np.random.default_rng(seed).integers(1, 7, 30):
            np.testing.assert_array_equal(model(normal(int(n), 8), np.array(int(n)))[1], wanted[int(n)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_results_belong_to_the_caller() -> None:
    """Values that pass through a loop untouched are not the inputs or the model's own constants."""
    body = Graph(
        tuple(Value(n, None, np.dtype(np.void)) for n in ("i", "c", "h", "g")),
        tuple(Value(n, None, np.dtype(np.void)) for n in ("c", "h", "w")),
        (),
        {},
    )
    made = graph({"x": ("n", 8), "m": ((), np.int64)}, [node("y, z = Loop(m, -, x, x)", body=body)], ["y", "z"], {"w": normal(8)})
    model, x = Model(made), normal(2, 8)
    y, z = model(x, np.array(3))
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, normal(8))
    for array in (y, z):
        assert array.flags.writeable and not np.shares_memory(array, x) and not np.shares_memory(array, made.constants["w"])


def test_a_state_may_change_its_rank_and_dtype(variant: str) -> None:
    body = Graph(
        tuple(Value(n, None, np.dtype(np.void)) for n in ("i", "c", "h")),
        tuple(Value(n, None, np.dtype(np.void)) for n in ("c", "h2")),
        (node("g = Unsqueeze(h, first)"), node("h2 = Cast(g)", to=11)),
        {"first": np.array([0])},
    )
    model = Model(graph({"x": ("n",), "m": ((), np.int64)}, [node("y = Loop(m, -, x)", body=body)], ["y"]))
    for rounds in (2, 3):
        y = model(normal(4), np.array(rounds))
        assert (y.shape, y.dtype) == ((1,) * rounds + (4,), np.float64)
        np.testing.assert_array_equal(y.reshape(-1), normal(4))


def test_what_a_body_reads_keeps_its_name_when_values_are_folded() -> None:
    """The value that a loop reads of the graph around it is another one's copy, which folding takes out."""
    body = Graph(
        tuple(Value(n, None, np.dtype(np.void)) for n in ("i", "c", "h")),
        tuple(Value(n, None, np.dtype(np.void)) for n in ("c", "h2")),
        (node("h2 = Add(h, copy)"),),
        {},
    )
    nodes = [node("copy = Identity(x)"), node("y = Loop(m, -, x)", body=body)]
    made = optimize(graph({"x": ("n",), "m": ((), np.int64)}, nodes, ["y"]))
    np.testing.assert_array_equal(run(program(made), normal(3), np.array(2))[0], normal(3) * 3)


def test_rounds_are_an_argument_of_load(tmp_path) -> None:  # type: ignore[no-untyped-def]
    Model(decoder()).save(tmp_path / "m.safetensors")
    with pytest.raises(fl.LimitError, match="takes more than 3 iterations: pass a larger max_rounds to load"):
        fl.load(tmp_path / "m.safetensors", max_rounds=3)(normal(1, 8), np.array(4))
    np.testing.assert_allclose(
        fl.load(tmp_path / "m.safetensors", max_rounds=4)(normal(1, 8), np.array(4))[0], decoded(normal(1, 8), 4)[0], atol=1e-5
    )
    with pytest.raises(fl.ArgumentError, match="max_rounds is -1"):
        fl.load(tmp_path / "m.safetensors", max_rounds=-1)


def test_native_steps_alone_are_no_stages() -> None:
    with pytest.raises(fl.UnsupportedError, match=r"require_native: the model must run in stages: Loop \(y\)"):
        run(program(decoder(), native=True), normal(2, 8), np.array(1))


def test_intermediate_results_and_given_memory() -> None:
    model = Model(decoder())
    out = np.empty((3, 8), np.float32)
    found = model.run({"x": normal(3, 8), "m": np.array(2)}, ["z", "h0", "y"], out={"y": out})
    assert found["y"] is out and found["z"].shape == (2, 3, 8)
    np.testing.assert_array_equal(found["h0"], np.maximum(normal(3, 8), 0))
    assert found["z"].dtype == FLOAT


def test_a_variant_is_kept() -> None:
    with fl.kernels.use("reference"):
        made = Program(decoder(), dispatch.variant())
    with fl.kernels.use("reference"):
        want = run(made, normal(2, 8), np.array(3))
    for a, b in zip(run(made, normal(2, 8), np.array(3)), want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_passes_know_what_comes_out_of_a_loop() -> None:
    """A product after a loop takes in what follows it; what changes its rank from round to round is unknown."""
    body = Graph(
        tuple(Value(n, None, np.dtype(np.void)) for n in ("i", "c", "h")),
        tuple(Value(n, None, np.dtype(np.void)) for n in ("c", "h2", "part")),
        (node("h2 = Tanh(h)"), node("part = Add(h, x)")),
        {},
    )
    grows = Graph(
        tuple(Value(n, None, np.dtype(np.void)) for n in ("i2", "c3", "g")),
        tuple(Value(n, None, np.dtype(np.void)) for n in ("c3", "g2")),
        (node("g2 = Unsqueeze(g, zero)"),),
        {},
    )
    nodes = [
        node("y, z = Loop(m, -, x)", body=body), node("a = MatMul(y, w)"), node("b = Add(a, bias)"), node("r = Relu(b)"),
        node("p = MatMul(z, w)"), node("q = Add(p, bias)"), node("u = Loop(m, -, x)", body=grows),
    ]  # fmt: skip
    constants = {"w": normal(8, 8), "bias": normal(8), "zero": np.array([0])}
    made = graph({"x": ("n", 8), "m": ((), np.int64)}, nodes, ["r", "q", "u"], constants)
    assert [n.op for n in optimize(made).nodes] == ["Loop", "Linear", "Linear", "Loop"]
    x = normal(3, 8)
    for a, b in zip(Model(made)(x, np.array(2)), Model(made, Options(optimize=False))(x, np.array(2)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_passes_know_what_branches_give() -> None:
    then, other = (graph({}, [node(f"{n} = {op}(x)")], [n]) for n, op in (("a", "Neg"), ("b", "Relu")))
    nodes = [
        node("s = ReduceSum(x)", keepdims=0), node("c = Greater(s, zero)"),
        node("h = If(c)", then_branch=then, else_branch=other), node("m = MatMul(h, w)"), node("y = Add(m, bias)"),
    ]  # fmt: skip
    made = graph({"x": ("n", 8)}, nodes, ["y"], {"w": normal(8, 8), "bias": normal(8), "zero": np.float32(0)})
    assert [n.op for n in optimize(made).nodes][-2:] == ["If", "Linear"]


def test_a_size_that_an_input_gives_begins_a_segment(variant: str) -> None:
    """Sums over segments, as tf2onnx writes them: how many there are is a value, and then part of a binding."""
    nodes = [
        node("m = ReduceMax(ids, first)", keepdims=0), node("n = Add(m, one)"), node("o = OneHot(ids, n, values)", axis=0),
        node("y = MatMul(o, x)"),
    ]  # fmt: skip
    constants = {"first": [0], "one": 1, "values": np.float32([0, 1])}
    made = program(graph({"x": ("n", 3), "ids": (("n",), INT)}, nodes, ["y"], constants))
    for count, segments in ((300, 4), (300, 2), (257, 1), (300, 4)):  # more than belong to a binding by their values
        x, ids = normal(count, 3), np.arange(count) % segments
        (y,) = run(made, x, ids)
        want = [x[ids == i].sum(axis=0) for i in range(segments)]
        np.testing.assert_allclose(y, want, rtol=0, atol=1e-4)
    assert not made.stages.cuts
    assert sorted(made.stages.parts) == [0, 2]


def test_a_cut_of_sizes_that_it_has_had_looks_at_its_values() -> None:
    """Boxes of the same number: their scores, and a threshold that is none."""
    nodes = [node("k = NonMaxSuppression(boxes, scores, most, overlap)"), node("y = Cast(k)", to=6)]
    inputs = {"boxes": (1, "n", 4), "scores": (1, 1, "n"), "overlap": ()}
    made = program(graph(inputs, nodes, ["y"], {"most": 5}))
    boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])
    for scores, overlap, want in (([0.5, 0.7, 0.1], 0.5, [1, 2]), ([0.7, 0.5, 0.9], 0.5, [2, 0]), ([1, 2, 3], 0.99, [2, 1, 0])):
        (y,) = run(made, boxes, np.float32([[scores]]), np.float32(overlap))
        assert y[:, 2].tolist() == want
    with pytest.raises(ShapeError, match="iou_threshold is 2"):
        run(made, boxes, np.float32([[scores]]), np.float32(2))

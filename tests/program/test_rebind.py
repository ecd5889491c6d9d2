"""Bindings that are made of earlier ones: the same calls at the same places as if they were made again, and less work."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from fastlayers.graph import Graph
from fastlayers.kernels import dispatch, table
from fastlayers.program import Program, binder
from fastlayers.program import segment as programs

from .graphs import graph, node, normal

pytestmark = pytest.mark.skipif(not dispatch.current().startswith("aot/"), reason="the engine is not compiled")


def program(made: Graph) -> Program:
    return Program(made, dispatch.variant())


def places(made: Program, feeds: list[np.ndarray]) -> Any:
    """Where all operands are, but for constants, whose addresses differ."""
    binding = made.binding(feeds)
    return [[(space, offset if space != 1 else 0) for space, offset in call] for call in binding.bound.places()]


def kernels(made: Program, feeds: list[np.ndarray]) -> list[Any]:
    plan = made.binding(feeds).plan
    assert plan is not None
    return [(getattr(call, "kernel", "numpy"), call.node) for call in plan.calls]


def decoder(layers: int = 3) -> Graph:
    """Layers with a cache that grows: present = past and one more row."""
    nodes, constants = [], {"w": normal(8, 8), "g": np.ones(8, np.float32), "b": np.zeros(8, np.float32)}
    inputs: dict[str, Any] = {"x": ("n", 8)}
    outputs, x = [], "x"
    for i in range(layers):
        inputs[f"past{i}"] = ("t", 8)
        nodes += [
            node(f"k{i} = Linear({x}, w)"), node(f"all{i} = Concat(past{i}, k{i})", axis=0),
            node(f"turned{i} = Transpose(all{i})", perm=(1, 0)),
            node(f"s{i} = MatMul({x}, turned{i})"), node(f"p{i} = Softmax(s{i})", axis=-1), node(f"o{i} = MatMul(p{i}, all{i})"),
            node(f"r{i} = Add(o{i}, {x})"), node(f"y{i} = Relu(r{i})"),
        ]  # fmt: skip
        outputs.append(f"all{i}")
        x = f"y{i}"
    return graph(inputs, nodes, [x, *outputs], constants)


def nested() -> Graph:
    """Parts within parts, one value twice, and results in place: of three sizes, any may change alone."""
    nodes = [
        node("a = Relu(x)"), node("b = Neg(y)"), node("ab = Concat(a, b)", axis=0), node("c = Exp(z)"),
        node("abc = Concat(ab, c)", axis=0), node("twice = Concat(abc, abc)", axis=0), node("d = Sigmoid(a)"),
        node("e = Add(d, a)"), node("f = Mul(e, d)"), node("flat = Reshape(f, minus)"), node("s = Shape(z)"),
        node("r = Expand(one, s)"), node("g = Add(c, r)"),
    ]  # fmt: skip
    constants = {"minus": np.array([-1]), "one": np.float32(1)}
    return graph({"x": ("n", 4), "y": ("m", 4), "z": ("k", 4)}, nodes, ["abc", "twice", "flat", "g", "b"], constants)


def steered() -> Graph:
    """Sizes, a weight and a branch by integers; kernels that change with the size."""
    then, other = graph({}, [node("u = Linear(x, w)")], ["u"]), graph({}, [node("v = Neg(x)")], ["v"])
    nodes = [
        node("c = Greater(k, three)"), node("h = If(c)", then_branch=then, else_branch=other),
        node("e = Concat(k1, k1)", axis=0), node("w0 = Slice(w, zero, e)"), node("s = Shape(w0)"),
        node("ones = ConstantOfShape(s)", value=np.ones(1, np.float32)), node("part = Slice(x, z1, k1, axis)"),
        node("q = MatMul(part, w0)"), node("o = MatMul(part, ones)"), node("y = Add(q, o)"),
    ]  # fmt: skip
    nodes.insert(2, node("k1 = Reshape(k, minus)"))
    constants = {
        "w": normal(6, 6), "three": np.array(3), "zero": np.array([0, 0]), "z1": np.array([0]), "axis": np.array([1]),
        "minus": np.array([-1]),
    }  # fmt: skip
    return graph({"x": ("n", 6), "k": ((), np.int64)}, nodes, ["h", "y"], constants)


def feeds_of(made: Graph, *sizes: int) -> list[np.ndarray]:
    if made.inputs[-1].name == "k":
        return [normal(sizes[0], 6), np.array(sizes[1])]
    rows = [sizes[0], *[sizes[1]] * (len(made.inputs) - 1)] if len(sizes) == 2 else list(sizes)
    return [normal(n, v.shape[1], seed=i) for i, (n, v) in enumerate(zip(rows, made.inputs, strict=True))]  # type: ignore[arg-type]


WALKS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "decoder": (decoder, [(5, 0), (1, 5), (1, 6), (1, 7), (1, 6), (2, 6), (1, 0), (1, 1), (0, 3), (1, 300), (1, 8)]),
    "nested": (nested, [(3, 4, 5), (3, 4, 6), (2, 4, 6), (2, 1, 6), (2, 0, 6), (0, 0, 6), (0, 0, 0), (7, 1, 1), (7, 1, 2)]),
    "steered": (steered, [(3, 2), (3, 4), (3, 5), (2, 5), (2, 1), (900, 1), (900, 6), (1, 6), (0, 6), (5, 0)]),
}


@pytest.mark.parametrize("name", WALKS)
def test_as_if_made_anew(name: str) -> None:
    make, walk = WALKS[name]
    made = make()
    walked = program(made)
    again = 0
    for sizes in [*walk, *walk[::-1], *walk[::2]]:
        walked.bindings.clear()
        feeds, anew = feeds_of(made, *sizes), program(made)
        assert places(walked, feeds) == places(anew, feeds), sizes
        assert kernels(walked, feeds) == kernels(anew, feeds), sizes
        again += len(walked._traces[0].fresh) < len(anew._traces[0].fresh)
        for got, want in zip(walked.binding(feeds).run(feeds), anew.binding(feeds).run(feeds), strict=True):
            np.testing.assert_array_equal(got, want)
    assert again > 3  # or this test says nothing


def test_only_what_differs_is_bound_again() -> None:
    made = program(decoder(6))
    for n in (3, 4, 5):
        made.binding(feeds_of(made.graph, 1, n))
    route, fresh = made._traces[0].route, made._traces[0].fresh
    assert {route.entries[at].node.op for at in fresh} == {"Concat", "Transpose", "MatMul", "Softmax"}
    assert len(fresh) == 6 * 5


def test_callers_that_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    made, bound = program(decoder()), []
    monkeypatch.setattr(programs, "bind", lambda *given: bound.append(given[1]) or binder.bind(*given))
    for n in range(2, 30):
        made.binding(feeds_of(made.graph, 1, n))  # a token
        if n % 9 == 2:
            made.binding(feeds_of(made.graph, n, 0))  # and now and then a prompt
    assert len(bound) == 1  # the rest is made of what was there


def test_what_is_packed_for_one_binding_goes_with_it() -> None:
    made = program(steered())
    for n, k in ((3, 2), (3, 4), (3, 5)):
        made.binding(feeds_of(made.graph, n, k)).run(feeds_of(made.graph, n, k))
    assert {key[1] for key in made.known.weights._packed} == {"linear_pack"} and len(
        made.known.weights
    ) == 1  # Linear's, whose weight is constant


def test_ledgers_balance() -> None:
    made = program(decoder())
    for n in range(20):
        made.binding(feeds_of(made.graph, 1, n))
    ledger = made.bindings.ledger
    assert ledger.nbytes > 20_000
    made.bindings.clear()
    made._traces = ()
    assert ledger.nbytes == 0


@pytest.mark.parametrize("kind", ["bound", "stages"])
def test_programs_go_when_they_are_dropped(kind: str) -> None:
    gc.collect()
    gc.disable()
    try:
        if kind == "bound":
            made = program(steered())
            feeds = feeds_of(made.graph, 3, 2)
        else:
            made = program(graph({"x": ("n",)}, [node("i = NonZero(x)"), node("y = Transpose(i)", perm=(1, 0))], ["y"]))
            feeds = [np.array([0, 1, 0, 2], np.float32)]
        for _ in range(3):
            made.binding(feeds).run(feeds)
        gone = weakref.ref(made)
        del made
        assert gone() is None
    finally:
        gc.enable()


def layers_of(count: int) -> Graph:
    """Layers that differ in weights alone, but for another activation, one without a bias, and one with another's weights."""
    nodes, constants, x = [], {}, "x"
    for i in range(count):
        constants |= {f"w{i}": normal(8, 8, seed=i), f"b{i}": normal(8, seed=i), f"g{i}": normal(8, seed=i + 50)}
        more = {"activation": (table.UNARY["relu"].code, 0.0, 0.0)} if i == 2 else {}
        bias, weight = "-" if i == 3 else f"b{i}", "w1" if i == 4 else f"w{i}"
        nodes.append(node(f"h{i} = Linear({x}, {weight}, {bias})", **more))
        nodes.append(node(f"l{i} = LayerNormalization(h{i}, g{i}, b{i})", axis=-1, epsilon=1e-5))
        nodes.append(node(f"y{i} = Linear(l{i}, w{i}, b{i}, {x})"))
        x = f"y{i}"
    return graph({"x": ("n", "t", 8)}, nodes, [x, "h1"], constants)


def test_layers_of_other_weights_are_bound_as_the_first_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its own weights: the bits of a program that was never bound to other sizes."""
    made, lowered = program(layers_of(8)), []
    whole = binder._Binder.node
    monkeypatch.setattr(binder._Binder, "node", lambda self, at, *rest: (lowered.append(at), whole(self, at, *rest))[1])
    for n, t in ((2, 3), (2, 4), (1, 9), (3, 1), (0, 5), (2, 3), (1, 300)):
        lowered.clear()
        x = normal(n, t, 8)
        binding = made.binding([x])
        if (n, t) not in ((2, 3), (2, 4)):
            assert len(lowered) <= 8  # of 24
        fresh = program(layers_of(8)).binding([x])
        for got, want in zip(binding.run([x]), fresh.run([x]), strict=True):
            np.testing.assert_array_equal(got.view(np.int32), want.view(np.int32))
        assert places(made, [x]) == places(program(layers_of(8)), [x])

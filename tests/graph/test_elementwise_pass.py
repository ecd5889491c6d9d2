"""Trees of elementwise operators as one node: what goes into one, and that no bit changes, in one step or many."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import passes
from fastlayers.errors import Error
from fastlayers.ir.graph import Graph, Node
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model
from fastlayers.passes import optimize
from fastlayers.program import Program, merged
from fastlayers.program.compiled import Chunks
from tests.program.graphs import graph, node, normal

from .rewrites import check, default

C = {"a": np.float32(0.8), "b": np.float32(0.04), "h": np.float32(0.5), "one": np.float32(1), "row": normal(40),
     "column": normal(24, 1), "plane": normal(1, 24, 40), "two": np.float32(2)}  # fmt: skip
TREES = {
    "gelu": ["c = Mul(x, x)", "d = Mul(c, x)", "e = Mul(d, b)", "f = Add(x, e)", "g = Mul(f, a)", "t = Tanh(g)",
             "u = Add(t, one)", "v = Mul(x, u)", "y = Mul(v, h)"],
    "gate": ["s = Sigmoid(x)", "t = Tanh(z)", "u = Mul(s, t)", "k = Exp(u)", "y = Sub(k, u)"],
    "scales": ["s = Mul(z, row)", "t = Add(s, column)", "u = Add(t, x)", "v = Div(u, plane)", "w = Max(v, a)", "y = Min(w, one)"],
    "choices": ["s = Add(x, z)", "t = Where(m, s, row)", "u = Cast(m)", "v = Mul(t, u)", "w = Neg(v)", "y = Pow(w, two)"],
    "fused": ["s = Add(x, z)", "t = Relu(s)", "u = Mul(t, z)", "v = Clip(u, b, one)", "w = Sub(v, x)", "k = Sigmoid(w)",
              "l = Abs(k)", "y = Add(l, row)"],
    "powers of elements": ["s = Abs(x)", "t = Pow(s, row)", "u = Sqrt(t)", "v = Add(u, z)", "y = Mul(v, v)"],
    "without a kernel": ["s = Atan(x)", "t = Sinh(s)", "u = Mul(t, z)", "v = Add(u, row)", "y = Mul(v, v)"],
}  # fmt: skip
SIZES = ((24, 40), (1, 24, 40), (3, 24, 40), (2, 5, 24, 40), (70, 24, 40))


def ops(made: Graph) -> list[str]:
    return [n.op for n in made.nodes]


def nodes(name: str) -> list[Node]:
    return [node(text, **({"to": 1} if " Cast(" in text else {})) for text in TREES[name]]


def given(shape: tuple[int, ...], seed: int = 0) -> dict[str, np.ndarray]:
    m = np.random.default_rng(seed).integers(0, 2, shape).astype(np.bool_)
    return {"x": normal(*shape, seed=seed), "z": normal(*shape, seed=seed + 1), "m": m}


def model(name: str, shape: Sequence[Any], whole: bool = True, result: Sequence[str] = ("y",)) -> Model:
    inputs = {"x": (tuple(shape), np.float32), "z": (tuple(shape), np.float32), "m": (tuple(shape), np.bool_)}
    made = graph({k: (v[0], np.dtype(v[1])) for k, v in inputs.items()}, nodes(name), result, C)
    with pytest.MonkeyPatch.context() as patch:
        if not whole:
            patch.setattr(passes, "PASSES", tuple(p for p in passes.PASSES if p.name != "elementwise"))
        return Model(made)


def steps(made: Model, feeds: dict[str, np.ndarray]) -> list[Any]:
    """What the records of Elementwise become: None where the calls stay."""
    program = made._main
    found = []
    trace = program_trace(program, feeds)
    chunks = Chunks(program.variant.steps, len(program.graph.inputs), len(program.graph.outputs), None)
    for record in trace:
        if record.placed is not None and record.placed.node.op == "Elementwise":
            found.append(chunks.merged(record))
    return found


def program_trace(program: Program, feeds: dict[str, np.ndarray]) -> list[Any]:
    from fastlayers.operators import Spec
    from fastlayers.program.binder import bind

    specs = [Spec(feeds[v.name].shape, feeds[v.name].dtype) for v in program.graph.inputs]
    with program.variant.bound():
        return bind(program.graph, specs, [None] * len(specs), program.pack).lowered


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("name", TREES)
def test_one_node_with_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged, "FEWEST_NEAR", 2)
    monkeypatch.setattr(merged, "FEWEST_FAR", 2)
    for shape in SIZES[name == "scales" :]:  # its plane would add an axis
        feeds = given(shape)
        tree, plain = model(name, shape), model(name, shape, whole=False)
        assert ops(tree._main.graph) == ["Elementwise"]
        want = plain.run(feeds)["y"]
        for threads in (1, 2):
            tree.num_threads = threads
            same_bits(tree.run(feeds)["y"], want)
        for value in (np.nan, np.inf, -np.inf, -0.0):
            odd = {**feeds, "x": feeds["x"].copy()}
            odd["x"].reshape(-1)[:: max(7, feeds["x"].size // 11)] = value
            same_bits(tree.run(odd)["y"], plain.run(odd)["y"])
        if tree.variant.startswith("aot"):
            (found,) = steps(tree, feeds)
            assert (found is None) == (name in ("without a kernel", "powers of elements"))
    read_only = {k: v.copy() for k, v in feeds.items()}
    for array in read_only.values():
        array.flags.writeable = False
    same_bits(tree.run(read_only)["y"], want)
    assert all((read_only[k] == feeds[k]).all() for k in feeds)


@pytest.mark.parametrize("name", ["gelu", "scales", "choices"])
def test_sizes_around_blocks_and_batches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample alone has the bits that it has among others; and blocks end where they may."""
    monkeypatch.setattr(merged, "FEWEST_NEAR", 2)
    tree, plain = model(name, ("n", 24, 40)), model(name, ("n", 24, 40), whole=False)
    assert ops(tree._main.graph) == ["Elementwise"]
    feeds = given((37, 24, 40))
    want = plain.run(feeds)["y"]
    for count in (0, 1, 2, 3, 17, 18, 19, 36, 37):
        part = {k: v[:count] for k, v in feeds.items()}
        same_bits(tree.run(part)["y"], want[:count])


def test_sizes_that_are_no_multiples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged, "FEWEST_NEAR", 2)
    texts = ["s = Mul(x, r)", "t = Add(s, c)", "u = Tanh(t)", "y = Mul(u, x)"]
    for rows, columns in itertools.product((1, 2, 3, 13, 300), (1, 2, 15, 16, 17, 127, 511, 513, 1023, 2047, 2049, 4099)):
        constants = {"r": normal(columns), "c": normal(rows, 1)}
        made = graph({"x": ("n", columns)}, [node(t) for t in texts], ["y"], constants)
        x = normal(rows, columns)
        results = []
        for form in (made, optimize(graph({"x": (rows, columns)}, [node(t) for t in texts], ["y"], constants))):
            results.append(Program(form, dispatch.variant()).binding([x]).run([x])[0])
        same_bits(results[1], results[0])


def test_an_operand_that_is_another_part_of_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result must not be written over what other elements still need."""
    monkeypatch.setattr(merged, "FEWEST_NEAR", 2)
    texts = ["h = Exp(x)", "f = Slice(h, nought, one1, nought)", "t = Mul(h, f)", "u = Tanh(t)", "v = Sub(u, f)",
             "w = Div(v, two)", "k = Exp(w)", "y = Sub(h, k)", "q = Softmax(y)"]  # fmt: skip
    for rows in (3, 600):
        constants = {"nought": np.array([0]), "one1": np.array([1]), "two": np.float32(2)}
        made = graph({"x": (rows, 520)}, [node(t) for t in texts], ["q"], constants)
        x = normal(rows, 520)
        got = Program(optimize(made), dispatch.variant()).binding([x]).run([x])[0]
        want = Program(optimize(made, strict=True), dispatch.variant()).binding([x]).run([x])[0]
        same_bits(got, want)


def test_what_stays_apart() -> None:
    big = {"x": (24, 40)}
    for texts, result in (
        (["s = Exp(x)", "y = Mul(s, x)"], ["y"]),  # two nodes
        (["s = Exp(x)", "t = Mul(s, x)", "y = Sub(t, s)"], ["y", "s", "t"]),  # others need them
        (["s = Exp(c)", "t = Mul(s, two)", "u = Neg(t)", "v = Abs(u)", "y = Add(v, x)"], ["y"]),  # of another shape
    ):
        inputs = {**big, "c": (24, 1)} if "c)" in texts[0] else big
        found = check(inputs, [node(t) for t in texts], C, result)
        assert "Elementwise" not in ops(found), texts
    texts = ["s = Exp(x)", "t = Mul(s, x)", "u = Abs(t)", "y = Add(u, x)"]
    for shape in ((3, 8), (None, 40)):  # small, or nobody knows
        assert "Elementwise" not in ops(optimize(graph({"x": shape}, [node(t) for t in texts], ["y"])))


def test_long_trees_become_several_nodes() -> None:
    texts = ["v0 = Exp(x)", *(f"v{i + 1} = {'Mul' if i % 2 else 'Add'}(v{i}, x)" for i in range(60)), "y = Tanh(v60)"]
    found = check({"x": (24, 40)}, [node(t) for t in texts])
    assert ops(found) == ["Exp", "Elementwise", "Elementwise", "Elementwise"]


def test_saved_and_loaded_again(tmp_path: Any) -> None:
    for name in ("gelu", "scales"):
        made = model(name, ("n", 24, 40))
        made.save(tmp_path / "tree.safetensors")
        again = fl.load(tmp_path / "tree.safetensors")
        assert "Elementwise" in ops(again._main.graph)
        feeds = given((3, 24, 40))
        feeds = {v.name: feeds[v.name] for v in again.inputs}
        same_bits(again.run(feeds)["y"], made.run(given((3, 24, 40)))["y"])


def test_streams() -> None:
    made = graph({"x": ((1, "time", 40), np.dtype(np.float32))}, [node(t) for t in TREES["gelu"]], ["y"], C)
    whole = Model(made)
    assert ops(whole._main.graph) == ["Elementwise"]
    x = normal(1, 30, 40)
    stream = whole.stream()
    same_bits(np.concatenate([stream(x[:, a:b]) for a, b in ((0, 1), (1, 20), (20, 30))], 1), whole(x))


def body(*texts: str, result: str = "y") -> Graph:
    made = graph({"x": (3, 4)}, [node(t) for t in texts], [result])
    return Graph(made.inputs, made.outputs, made.nodes, {}, None)


@pytest.mark.parametrize(
    "attributes",
    [{}, {"body": 3}, {"body": body()}, {"body": body("y = Softmax(x)")}, {"body": body("s = Exp(x)", result="y")},
     {"body": body("y = Add(x, z)")}, {"body": body("y = If(x)")}, {"body": Graph((), body("y = Exp(x)").outputs, (), {}, None)}],
    ids=str,
)  # fmt: skip
def test_bodies_that_are_none(attributes: dict[str, Any]) -> None:
    made = graph({"x": (3, 4)}, [Node("Elementwise", ("x",), ("y",), attributes)], ["y"])
    with pytest.raises(Error, match="Elementwise"):
        Program(made, dispatch.variant()).binding([normal(3, 4)])


def test_variants_without_steps_run_the_calls() -> None:
    with fl.kernels.use("reference"):
        tree = model("scales", (3, 24, 40))
        assert ops(tree._main.graph) == ["Elementwise"]
        want = model("scales", (3, 24, 40), whole=False).run(given((3, 24, 40)))["y"]
        same_bits(tree.run(given((3, 24, 40)))["y"], want)
    assert default()

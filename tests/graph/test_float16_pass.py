"""Networks of float16: computed in float32 by kernels, rounded where the graph shows float16 values, as exact as can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model
from fastlayers.passes import optimize
from fastlayers.program import Program
from fastlayers.program.steps import steps
from tests.program.graphs import graph, node, normal

from .rewrites import default, ops, outputs

HALF = np.dtype(np.float16)
SMALL = HALF.type(2.0**-10)
EPS = 2.0**-11  # of a rounding to float16, as a part of the number


def half(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (normal(*shape, seed=seed) * scale).astype(HALF)


def wide(array: np.ndarray) -> np.ndarray:
    """An array, in float64 if it is one of float16."""
    return array.astype(np.float64) if array.dtype == HALF else array


def in_float64(made: Graph, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the graph gives in float64, nothing being rounded."""
    nodes = []
    for n in made.nodes:
        attributes = {k: 11 if k == "to" and v == 10 else v for k, v in n.attributes.items()}
        nodes.append(Node(n.op, n.inputs, n.outputs, attributes))
    inputs = tuple(v._replace(dtype=np.dtype(np.float64)) if v.dtype == HALF else v for v in made.inputs)
    form = Graph(inputs, made.outputs, tuple(nodes), {k: wide(v) for k, v in made.constants.items()}, None)
    return outputs(form, [wide(a) for a in given], "reference")


def in_numpy(made: Graph, given: Sequence[np.ndarray]) -> set[str]:
    """The operators that run in numpy."""
    plan = Program(made, dispatch.variant()).binding(given).plan
    assert plan is not None
    return {s.op for s in steps(plan) if "numpy" in s.kernels}


def check(
    inputs: Mapping[str, Any],
    nodes: Sequence[Node],
    constants: Mapping[str, Any],
    given: Sequence[np.ndarray],
    result: Sequence[str] = ("y",),
    near: float = 2 * EPS,
    strict: bool = True,
) -> Graph:
    """The graph after all passes, whose results are near those in float64: a rounding, and what sums of float32 lose. `near`: of
    the largest element. `strict`: whether they are so too if every operator rounds.
    """
    made = graph(
        {k: v if len(v) == 2 and isinstance(v[0], tuple) else (v, HALF) for k, v in inputs.items()}, nodes, result, constants
    )
    want = in_float64(made, given)
    found = optimize(made)
    for variant in dict.fromkeys(("reference", default())):
        for form in (found, optimize(found)):
            for got, exact in zip(outputs(form, given, variant), want, strict=True):
                assert got.dtype == (HALF if exact.dtype.kind == "f" else exact.dtype)
                assert got.shape == exact.shape
                np.testing.assert_allclose(
                    got.astype(np.float64), exact, rtol=0, atol=near * max(np.abs(exact).max(initial=0), EPS)
                )
    if not strict:
        return found
    for got, exact in zip(outputs(optimize(made, strict=True), given, default()), want, strict=True):
        # A rounding after every operator.
        np.testing.assert_allclose(
            got.astype(np.float64), exact, rtol=0, atol=4 * len(nodes) * EPS * max(np.abs(exact).max(initial=0), EPS)
        )
    return found


CONV = {"w": half(6, 3, 3, 3, scale=0.3), "b": half(6, seed=4)}
IMAGE = (2, 3, 7, 6)


def test_a_convolution_is_fused_and_computed_in_float32() -> None:
    nodes = [node("h = Conv(x, w, b)", pads=(1, 1, 1, 1)), node("r = Relu(h)"), node("p = MaxPool(r)", kernel_shape=(2, 2)),
             node("y = GlobalAveragePool(p)")]  # fmt: skip
    for count in (0, 1, 2):
        found = check({"x": ("n", *IMAGE[1:])}, nodes, CONV, [half(count, *IMAGE[1:])])
        assert ops(found) == ["Cast", "Conv", "MaxPool", "GlobalAveragePool", "Cast"]
        assert not in_numpy(found, [half(count, *IMAGE[1:])])


def test_products_norms_and_attention() -> None:
    w = {k: half(8, 8, seed=i, scale=0.4) for i, k in enumerate(("wq", "wk", "wv"))}
    norm = {"g": half(8, seed=7), "s": half(8, seed=8), "f": HALF.type(0.35)}
    nodes = [node("n = LayerNormalization(x, g, s)", axis=-1)]
    for k in "qkv":
        nodes += [node(f"{k} = MatMul(n, w{k})")]
    nodes += [node("t = Transpose(k)", perm=(0, 2, 1)), node("a = MatMul(q, t)"), node("c = Mul(a, f)"),
              node("p = Softmax(c)", axis=-1), node("m = MatMul(p, v)"), node("y = Add(m, x)")]  # fmt: skip
    found = check({"x": (2, 5, 8)}, nodes, w | norm, [half(2, 5, 8)])
    assert "ScaledAttention" in ops(found)
    assert not in_numpy(found, [half(2, 5, 8)])


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(op: str) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    weights = {"w": half(1, gates * 5, 3, scale=0.5), "r": half(1, gates * 5, 5, scale=0.4), "b": half(1, gates * 10, scale=0.3)}
    found = check({"x": (4, 2, 3)}, [node(f"y, h = {op}(x, w, r, b)", hidden_size=5)], weights, [half(4, 2, 3)], ("y", "h"))
    assert not in_numpy(found, [half(4, 2, 3)])


def test_what_moves_elements_moves_two_bytes() -> None:
    nodes = [node("t = Transpose(x)", perm=(1, 0)), node("r = Reshape(t, shape)"), node("y = Gather(r, at)", axis=0)]
    constants = {"shape": np.array([6, -1]), "at": np.array([2, 0])}
    given = half(4, 9)
    found = check({"x": (4, 9)}, nodes, constants, [given])
    assert ops(found) == ["Transpose", "Reshape", "Gather"]
    np.testing.assert_array_equal(outputs(found, [given], default())[0], given.T.reshape(6, -1)[[2, 0]])
    table = check({"i": ((3,), np.dtype(np.int64))}, [node("e = Gather(table, i)"), node("y = Mul(e, e)")], {"table": half(9, 4)},
                  [np.array([8, 0, 3])])  # fmt: skip
    assert ops(table) == ["Gather", "Cast", "Mul", "Cast"]
    assert table.constants["table"].dtype == HALF


def test_moving_what_was_computed_rounds_nothing() -> None:
    nodes = [node("a = Mul(x, x)"), node("t = Transpose(a)", perm=(1, 0)), node("y = Mul(t, s)")]
    found = check({"x": (3, 4)}, nodes, {"s": SMALL}, [half(3, 4, scale=300)], strict=False)  # a is beyond 65504
    assert ops(found) == ["Cast", "Mul", "Transpose", "Mul", "Cast"]


def test_a_past_is_joined_to_in_float16() -> None:
    nodes = [node("k = MatMul(x, w)"), node("present = Concat(past, k)", axis=1), node("t = Transpose(present)", perm=(0, 2, 1)),
             node("y = MatMul(x, t)")]  # fmt: skip
    given = [half(1, 1, 4), half(1, 3, 4, seed=1)]
    found = check({"x": (1, 1, 4), "past": (1, "p", 4)}, nodes, {"w": half(4, 4)}, given, ("y", "present"), near=8 * EPS)
    kinds = {n.outputs[0]: n.op for n in found.nodes}
    assert kinds["present"] == "Concat"
    np.testing.assert_array_equal(outputs(found, given, default())[1][:, :3], given[1])


# ---- what is too large ---------------------------------------------------------------------------------------------------


def run(nodes: Sequence[Node], given: np.ndarray, result: Sequence[str] = ("y",), strict: bool = False) -> list[np.ndarray]:
    made = graph({"x": (given.shape, given.dtype)}, nodes, result, {"small": SMALL})
    return outputs(optimize(made, strict=strict), [given], default())


def test_infinity_where_float16_is_seen_and_not_between() -> None:
    x = np.array([300, -300, 200, np.nan, np.inf, -np.inf], HALF)
    nodes = [node("h = Mul(x, x)"), node("y = Mul(h, small)")]
    np.testing.assert_array_equal(
        run(nodes, x)[0], np.array([300**2 / 1024, 300**2 / 1024, 40000 / 1024, np.nan, np.inf, np.inf], HALF)
    )
    shown = run(nodes, x, ("y", "h"))
    np.testing.assert_array_equal(shown[1], np.array([np.inf, np.inf, 40000, np.nan, np.inf, np.inf], HALF))
    np.testing.assert_array_equal(
        shown[0], np.array([300**2 / 1024, 300**2 / 1024, 40000 / 1024, np.nan, np.inf, np.inf], HALF)
    )  # to nobody else
    strict = run(nodes, x, strict=True)[0]
    np.testing.assert_array_equal(strict, np.array([np.inf, np.inf, 40000 / 1024, np.nan, np.inf, np.inf], HALF))


def test_a_cast_to_float16_rounds() -> None:
    x = np.array([65504, 65519.9, 65520, -1e9, 1 + 2.0**-12, np.nan], np.float32)
    nodes = [node("c = Cast(x)", to=10), node("y = Cast(c)", to=1)]
    for strict in (False, True):
        np.testing.assert_array_equal(
            run(nodes, x, strict=strict)[0], np.array([65504, 65504, np.inf, -np.inf, 1, np.nan], np.float32)
        )
    nodes = [node("c = Cast(x)", to=10), node("h = Mul(c, small)"), node("y = Cast(h)", to=1)]
    assert np.isinf(run(nodes, x)[0][[2, 3]]).all()
    np.testing.assert_array_equal(
        run([node("c = Cast(x)", to=10), node("y = Relu(c)")], np.array([1e6, -1e6], np.float32))[0], [np.inf, 0]
    )


@pytest.mark.parametrize("cast", ["Cast(s)", "CastLike(s, small)"])
def test_a_cast_of_what_was_computed_rounds_for_those_that_read_it(cast: str) -> None:
    x = np.array([300, 200, 1 + 2.0**-10, 1.5], np.float32)
    nodes = [node("s = Mul(x, x)"), node(f"c = {cast}", to=10), node("h = Mul(c, small)"), node("y = Cast(h)", to=1)]
    want = np.array([np.inf, 40000, HALF.type(1 + 2.0**-9), 2.25], np.float32) / 1024  # 2**-20 is lost
    for strict in (False, True):
        np.testing.assert_array_equal(run(nodes, x, strict=strict)[0], want)


def test_a_cast_of_a_softmax_does_not_stand_between_products() -> None:
    """As transformers that compute softmax in float32 are exported."""
    nodes = [node("s = MatMul(q, k)"), node("f = Cast(s)", to=1), node("p = Softmax(f)", axis=-1), node("c = Cast(p)", to=10),
             node("y = MatMul(c, v)")]  # fmt: skip
    found = check({"q": (2, 5, 4), "k": (2, 4, 6), "v": (2, 6, 4)}, nodes, {}, [half(2, 5, 4), half(2, 4, 6), half(2, 6, 4)])
    assert "ScaledAttention" in ops(found)


def test_a_value_that_was_cast_and_comes_back_is_the_same() -> None:
    nodes = [node("h = Mul(x, x)"), node("c = Cast(h)", to=1), node("d = Cast(c)", to=11), node("b = Cast(d)", to=10),
             node("y = Mul(b, small)")]  # fmt: skip
    made = graph({"x": ((3,), HALF)}, nodes, ["y"], {"small": SMALL})
    found = optimize(made)
    assert ops(found) == ["Cast", "Mul", "Mul", "Cast"]
    np.testing.assert_array_equal(
        outputs(found, [np.array([300, 3, -0.1], HALF)], default())[0],
        outputs(
            optimize(graph({"x": ((3,), HALF)}, [node("h = Mul(x, x)"), node("y = Mul(h, small)")], ["y"], {"small": SMALL})),
            [np.array([300, 3, -0.1], HALF)],
            default(),
        )[0],
    )
    back = [node("c = Cast(x)", to=1), node("y = Cast(c)", to=10)]
    assert ops(optimize(graph({"x": ((3,), HALF)}, back, ["y"]))) in (["Identity"], ["Cast", "Cast"])


def test_integers_that_float16_cannot_hold() -> None:
    made = graph(
        {"x": ((3,), np.dtype(np.int64))},
        [node("h = Cast(x)", to=10), node("y = Mul(h, small)")],
        ["y"],
        {"small": HALF.type(0.5)},
    )
    got = outputs(optimize(made), [np.array([2049, 100000, -7])], default())[0]
    np.testing.assert_array_equal(got, np.array([1024, np.inf, -3.5], HALF))


# ---- what is not computed in float32 -------------------------------------------------------------------------------------


def branch(name: str, *nodes: Node) -> Graph:
    return Graph((), (Value(name, None, HALF),), nodes, {})


def test_branches_get_float16() -> None:
    nodes = [node("h = Mul(x, x)"), Node("If", ("c",), ("b",), {"then_branch": branch("t", node("t = Add(h, x)")),
                                                               "else_branch": branch("e", node("e = Neg(h)"))}),
             node("y = Mul(b, small)")]  # fmt: skip
    made = graph({"x": ((4,), HALF), "c": ((), np.dtype(np.bool_))}, nodes, ["y"], {"small": HALF.type(0.001)})
    model = Model(made)
    x = np.array([3, -2, 0.5, 300], HALF)
    for c, want in ((True, [0.012, 0.002, 0.00075, np.inf]), (False, [-0.009, -0.004, -0.00025, -np.inf])):
        got = model.run({"x": x, "c": np.array(c)})["y"]
        assert got.dtype == HALF
        np.testing.assert_allclose(got, np.array(want, HALF), rtol=4 * EPS)


def test_loops_get_float16() -> None:
    inputs = (Value("i", (), np.dtype(np.int64)), Value("go", (), np.dtype(np.bool_)), Value("state", (2,), HALF))
    made = (Value("more", None, np.dtype(np.bool_)), Value("next", None, HALF))
    body = Graph(inputs, made, (node("more = Identity(go)"), node("d = Mul(state, h)"), node("next = Add(d, x)")), {})
    nodes = [node("h = Mul(x, x)"), Node("Loop", ("n", None, "x"), ("s",), {"body": body}), node("y = Mul(s, s)")]
    whole = graph({"x": ((2,), HALF), "n": ((), np.dtype(np.int64))}, nodes, ["y"])
    x = np.array([0.5, -1.25], HALF)
    for n in (0, 1, 3):
        got, want = (Model(whole, fl.model.model.Options(optimize=o)).run({"x": x, "n": np.array(n)})["y"] for o in (True, False))
        assert got.dtype == HALF
        np.testing.assert_allclose(got, want, rtol=8 * EPS)


def test_a_users_operator_gets_float16() -> None:
    seen = []

    def run(x: np.ndarray) -> np.ndarray:
        seen.append(x.dtype)
        return x + x

    from fastlayers.operators._base import OPERATORS, register

    register("test::Twice16", lambda n: [n.spec(0)], lambda n, x: (run(x),))
    try:
        nodes = [node("h = Relu(x)"), node("t = test::Twice16(h)"), node("y = Relu(t)")]
        made = graph({"x": ((3,), HALF)}, nodes, ["y"])
        got = outputs(optimize(made), [np.array([1, -1, 40000], HALF)], default())[0]
    finally:
        del OPERATORS["test::Twice16"]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(got, np.array([2, 0, np.inf], HALF))
    assert set(seen) == {HALF}


# ---- whole models --------------------------------------------------------------------------------------------------------


def network(size: Any = "n") -> Graph:
    nodes = [node("h = Conv(x, w, b)"), node("r = Relu(h)"), node("y = MatMul(r, m)")]
    made = graph({"x": ((1, 3, size), HALF)}, nodes, ["y"], {"w": half(6, 3, 3, scale=0.3), "b": half(6), "m": half(5, 4)})
    return Graph(made.inputs, (Value("y", (1, 6, 4), HALF),), made.nodes, made.constants, None)


def test_saved_and_loaded_again(tmp_path: Any) -> None:
    x = half(1, 3, 7)
    model = Model(network(7))
    want = model(x)
    model.save(tmp_path / "half.safetensors")
    again = fl.load(tmp_path / "half.safetensors", require_native=model.variant.startswith("aot"))
    assert again.inputs[0].dtype == again.outputs[0].dtype == HALF
    np.testing.assert_array_equal(again(x), want)


def test_a_value_between_is_float16_for_who_asks() -> None:
    found = Model(network(7)).run({"x": half(1, 3, 7)}, ["r", "y"])
    assert found["r"].dtype == found["y"].dtype == HALF


def test_streams() -> None:
    nodes = [node("h = Conv(x, w, b)", pads=(2, 0)), node("y = Relu(h)")]
    made = graph({"x": ((1, 3, "time"), HALF)}, nodes, ["y"], {"w": half(6, 3, 3, scale=0.3), "b": half(6)})
    model, x = Model(made), half(1, 3, 11)
    stream = model.stream()
    pieces = [stream(x[:, :, a:b]) for a, b in ((0, 4), (4, 5), (5, 11))]
    assert {p.dtype for p in pieces} == {HALF}
    np.testing.assert_array_equal(np.concatenate(pieces, 2), model(x))


def test_batches_and_threads_leave_the_bits() -> None:
    nodes = [node("h = MatMul(x, w)"), node("y = Tanh(h)")]
    model = Model(graph({"x": (("n", 300), HALF)}, nodes, ["y"], {"w": half(300, 70, scale=0.1)}))
    x = half(5, 300)
    want = model(x)
    for i in range(5):
        np.testing.assert_array_equal(model(x[i : i + 1]), want[i : i + 1])
    model.num_threads = 1
    np.testing.assert_array_equal(model(x), want)


@pytest.mark.onnx
@pytest.mark.onnxruntime
def test_as_onnxruntime() -> None:
    """Its casts stand elsewhere, so that some roundings differ: two units of float16 in the last place of the largest element."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    arrays = {
        "w": half(8, 3, 3, 3, scale=0.3), "b": half(8), "shape": np.array([16, 8]), "m": half(8, 8, scale=0.4), "mb": half(8),
        "g": half(8),
        "s": half(8, seed=2), "table": half(20, 8), "st": np.array([0, 0]), "en": np.array([4, 12]),
    }  # fmt: skip
    make = helper.make_node
    nodes = [
        make("Conv", ["x", "w", "b"], ["a"], pads=[1] * 4), make("Relu", ["a"], ["r"]),
        make("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), make("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
        make("Reshape", ["t", "shape"], ["q"]), make("MatMul", ["q", "m"], ["mm"]), make("Add", ["mm", "mb"], ["sum"]),
        make("LayerNormalization", ["sum", "g", "s"], ["ln"], axis=-1), make("Gather", ["table", "ids"], ["e"]),
        make("Add", ["ln", "e"], ["z"]), make("Sigmoid", ["z"], ["sg"]), make("Mul", ["z", "sg"], ["sw"]),
        make("Cast", ["sw"], ["c32"], to=1), make("Exp", ["c32"], ["ex"]), make("Cast", ["ex"], ["c16"], to=10),
        make("Softmax", ["c16"], ["sm"]),
        make("Concat", ["sm", "z"], ["cc"], axis=-1), make("Slice", ["cc", "st", "en"], ["y"]),
    ]  # fmt: skip
    info = helper.make_tensor_value_info
    made = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT16, (1, 3, 8, 8)), info("ids", TensorProto.INT64, (16,))],
        [info("y", TensorProto.FLOAT16, None), info("c16", TensorProto.FLOAT16, None)],
        [numpy_helper.from_array(a, k) for k, a in arrays.items()],
    )  # fmt: skip
    data = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    feeds = {"x": half(1, 3, 8, 8), "ids": np.arange(16)}
    want = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    for options in ({}, {"precision": "strict"}):
        got = fl.load(data, **options).run(feeds)
        for a, b in zip(got.values(), want, strict=True):
            assert a.dtype == b.dtype == HALF
            np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=0, atol=4 * EPS * np.abs(b).max())

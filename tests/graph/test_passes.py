"""Rewrites of graphs: what is fused and what is not, and that the numbers stay, whatever the variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph.ir import Graph, Node
from fastlayers.graph.passes import PASSES, optimise
from fastlayers.graph.passes.fold import apply as fold
from fastlayers.graph.passes.layout import LARGEST_DEPTHWISE
from fastlayers.kernels import _dispatch
from fastlayers.kernels.table import UNARY
from fastlayers.program import Program
from tests.program.graphs import graph, node, normal

FLOAT, I64 = np.float32, np.int64
Made = tuple[Graph, list[np.ndarray]]


def f32(*values: float) -> np.ndarray:
    return np.array(values, FLOAT)


def outputs(made: Graph, given: Sequence[np.ndarray], variant: str) -> list[np.ndarray]:
    with fl.kernels.use(variant):
        program = Program(made, _dispatch.variant())
        return list(program.binding(given).run(list(given)))


def default() -> str:
    return _dispatch.variant().name


def same(made: Graph, given: Sequence[np.ndarray]) -> Graph:
    """The graph after all passes. Each pass alone and all of them give what the graph as written gives under the reference."""
    wanted = outputs(made, given, "reference")
    changed = optimise(made)
    forms = [made, optimise(made, strict=True), changed]
    for change in PASSES:
        from fastlayers.graph.passes._net import Net

        net = Net(made, {}, {})
        fold(net)
        change.apply(net)
        forms.append(net.graph())
    for form in forms:
        assert form.inputs == made.inputs
        assert form.outputs == made.outputs
        for variant in ("reference", default()):
            for got, want in zip(outputs(form, given, variant), wanted, strict=True):
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                if want.dtype.kind == "f" and want.size:
                    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * max(1.0, np.abs(want).max()))
                else:
                    np.testing.assert_array_equal(got, want)
    return changed


def ops(made: Graph) -> list[str]:
    return [n.op for n in made.nodes]


def check(
    inputs: Mapping[str, tuple[int, ...]],
    nodes: Sequence[Node],
    constants: Mapping[str, Any] | None = None,
    result: Sequence[str] = ("y",),
) -> Graph:
    """The fused graph of nodes whose inputs have these sizes: with the sizes in the graph, and with a name for the first one."""
    given = [normal(*shape, seed=i) for i, shape in enumerate(inputs.values())]
    found = same(graph(inputs, nodes, result, constants), given)
    opened = {name: ("n", *shape[1:]) if shape else () for name, shape in inputs.items()}
    assert ops(same(graph(opened, nodes, result, constants), given)) == ops(found)
    return found


def activation(made: Node) -> tuple[int, ...] | None:
    return made.attributes.get("activation")


# ---- linear --------------------------------------------------------------------------------------------------------------

W, B = normal(5, 4), normal(4)


def test_gemm_becomes_linear() -> None:
    for attributes, weight in (({}, W), ({"transB": 1}, np.ascontiguousarray(W.T)), ({"alpha": 0.5, "beta": -2.0}, W)):
        for bias in (None, B, B[None], f32(2.0), np.float32(3)):
            constants = {"w": weight} | ({} if bias is None else {"b": bias})
            text = "y = Gemm(x, w)" if bias is None else "y = Gemm(x, w, b)"
            assert ops(check({"x": (3, 5)}, [node(text, **attributes)], constants)) == ["Linear"]


def test_gemm_that_stays() -> None:
    assert ops(check({"x": (5, 3)}, [node("y = Gemm(x, w)", transA=1)], {"w": W})) == ["Gemm"]
    assert ops(check({"x": (3, 5)}, [node("y = Gemm(x, w, b)")], {"w": W, "b": normal(3, 4)})) == ["Gemm"]
    assert ops(check({"x": (3, 5), "b": (4,)}, [node("y = Gemm(x, w, b)")], {"w": W})) == ["Gemm"]
    assert ops(check({"x": (3, 5), "w": (5, 4)}, [node("y = Gemm(x, w)")])) == ["Gemm"]
    made = graph({"x": ((2, 5), np.float64)}, [node("y = Gemm(x, w)")], ["y"], {"w": W.astype(float)})
    assert ops(optimise(made)) == ["Gemm"]


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (5,)])
def test_matmul_and_bias_become_linear(shape: tuple[int, ...]) -> None:
    for text in ("y = Add(h, b)", "y = Add(b, h)"):
        found = check({"x": shape}, [node("h = MatMul(x, w)"), node(text)], {"w": W, "b": B})
        assert ops(found) == ["Linear"]
        assert len(found.nodes[0].inputs) == 3


def test_what_is_no_bias_is_added() -> None:
    nodes = [node("h = MatMul(x, w)"), node("y = Add(h, b)")]
    for bias in (normal(3, 1), normal(3, 4), np.float32(2), normal(2, 1, 4)):
        assert len(check({"x": (3, 5)}, nodes, {"w": W, "b": bias}).nodes) == 2
    assert ops(check({"x": (3, 5)}, nodes, {"w": W, "b": B}, ("y", "h"))) == ["Linear", "Add"]
    other = node("z = Relu(h)")
    assert "Add" in ops(check({"x": (3, 5)}, [*nodes, other], {"w": W, "b": B}, ("y", "z")))


def test_product_of_two_inputs_stays() -> None:
    assert ops(check({"x": (3, 5), "w": (5, 4)}, [node("y = MatMul(x, w)")])) == ["MatMul"]
    assert ops(check({"x": (3, 5)}, [node("y = MatMul(w, x)")], {"w": normal(4, 3)})) == ["MatMul"]
    assert ops(check({"x": (2, 3, 5)}, [node("y = MatMul(x, w)")], {"w": normal(2, 5, 4)})) == ["MatMul"]


# ---- batch normalisation -------------------------------------------------------------------------------------------------

C = 6
BN = {"s": normal(C) + 2, "t": normal(C, seed=1), "m": normal(C, seed=2), "v": np.abs(normal(C, seed=3)) + 0.5}
CONV = {"w": normal(C, 3, 3, 3) / 5, "b": normal(C, seed=4)}
IMAGE = (2, 3, 7, 6)
PADS = {"pads": (1, 1, 1, 1)}


@pytest.mark.parametrize("bias", [", b", ""])
def test_batch_norm_goes_into_conv(bias: str) -> None:
    nodes = [node(f"h = Conv(x, w{bias})", **PADS), node("y = BatchNormalization(h, s, t, m, v)", epsilon=0.01)]
    assert ops(check({"x": IMAGE}, nodes, CONV | BN)) == ["Conv"]
    grouped = [node(f"h = Conv(x, w{bias})", group=3), node("y = BatchNormalization(h, s, t, m, v)")]
    assert ops(check({"x": IMAGE}, grouped, CONV | BN | {"w": normal(C, 1, 3, 3)})) == ["Conv"]


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("bias", [", b", ""])
def test_batch_norm_goes_into_transposed_conv(bias: str, group: int) -> None:
    constants = {"w": normal(4, C // group, 3, 2), "b": normal(C, seed=4)}
    nodes = [node(f"h = ConvTranspose(x, w{bias})", group=group, strides=(2, 2)), node("y = BatchNormalization(h, s, t, m, v)")]
    assert ops(check({"x": (2, 4, 5, 3)}, nodes, constants | BN)) == ["ConvTranspose"]


def test_batch_norm_goes_into_gemm() -> None:
    nodes = [node("h = Gemm(x, w)"), node("y = BatchNormalization(h, s, t, m, v)")]
    assert ops(check({"x": (3, 5)}, nodes, {"w": normal(5, C)} | BN)) == ["Linear"]


def test_batch_norm_alone_becomes_affine() -> None:
    for shape in ((2, C), (2, C, 5), (2, C, 4, 3)):
        assert ops(check({"x": shape}, [node("y = BatchNormalization(x, s, t, m, v)")], BN)) == ["Affine"]
    nodes = [node("h = Relu(x)"), node("y = BatchNormalization(h, s, t, m, v)")]
    assert ops(check({"x": (2, C, 5)}, nodes, BN)) == ["Relu", "Affine"]


def test_batch_norm_after_a_value_that_others_need() -> None:
    nodes = [node("h = Conv(x, w, b)"), node("y = BatchNormalization(h, s, t, m, v)")]
    assert ops(check({"x": IMAGE}, nodes, CONV | BN, ("y", "h"))) == ["Conv", "Affine"]
    found = check({"x": IMAGE}, [*nodes, node("z = Neg(h)")], CONV | BN, ("y", "z"))
    assert sorted(ops(found)) == ["Affine", "Conv", "Neg"]


def test_batch_norm_of_features_of_a_sequence_stays_apart() -> None:
    # Linear's features are the last axis, batch normalisation's channels axis 1.
    nodes = [node("h = MatMul(x, w)"), node("y = BatchNormalization(h, s, t, m, v)")]
    assert ops(check({"x": (2, C, 5)}, nodes, {"w": normal(5, C)} | BN)) == ["Linear", "Affine"]


def test_multiplication_and_addition_a_channel_go_into_conv() -> None:
    for shape in ((C, 1, 1), (1, C, 1, 1), (1,), ()):
        constants = CONV | {"k": normal(*shape, seed=7) + 2}
        for op, texts in (("Mul", ("h, k", "k, h")), ("Add", ("h, k", "k, h")), ("Sub", ("h, k",)), ("Div", ("h, k",))):
            for text in texts:
                found = check({"x": IMAGE}, [node("h = Conv(x, w, b)"), node(f"y = {op}({text})")], constants)
                assert ops(found) == ["Conv"], (op, text, shape)


def test_what_is_not_a_channel_stays() -> None:
    nodes = [node("h = Conv(x, w, b)"), node("y = Mul(h, k)")]
    for k in (normal(4), normal(5, 4), normal(1, 1, 5, 1), normal(2, C, 1, 1), normal(1, 2, C, 5, 4)):
        assert ops(same(graph({"x": IMAGE}, nodes, ["y"], CONV | {"k": k}), [normal(*IMAGE)])) == ["Conv", "Mul"]
    assert "Sub" in ops(check({"x": IMAGE}, [node("h = Conv(x, w, b)"), node("y = Sub(k, h)")], CONV | {"k": normal(C, 1, 1)}))
    assert "Div" in ops(check({"x": IMAGE}, [node("h = Conv(x, w, b)"), node("y = Div(k, h)")], CONV | {"k": normal(C, 1, 1)}))


def test_scale_and_shift_go_into_affine() -> None:
    nodes = [node("a = BatchNormalization(x, s, t, m, v)"), node("b = Mul(a, k)"), node("y = Add(b, k)")]
    assert ops(check({"x": (2, C, 5)}, nodes, BN | {"k": normal(C, 1)})) == ["Affine"]


# ---- gates ---------------------------------------------------------------------------------------------------------------

HALF, ONE, ROOT = np.float32(0.5), np.float32(1), np.float32(np.sqrt(2))
NUMBERS = {"half": HALF, "one": ONE, "root": ROOT, "inverse": np.float32(1 / ROOT), "two": np.float32(2)}
GELUS = {
    "product, then half": ["p = Mul(x, o)", "y = Mul(p, half)"],
    "half first": ["p = Mul(half, x)", "y = Mul(p, o)"],
    "half first, the other way": ["p = Mul(x, half)", "y = Mul(o, p)"],
    "half of the error part": ["p = Mul(o, half)", "y = Mul(x, p)"],
    "half of the error part, the other way": ["p = Mul(half, o)", "y = Mul(p, x)"],
    "divided by two": ["p = Mul(x, o)", "q = Div(p, two)", "y = Identity(q)"],
    "x divided by two": ["p = Div(x, two)", "y = Mul(p, o)"],
    "product the other way": ["p = Mul(o, x)", "y = Mul(half, p)"],
}


@pytest.mark.parametrize("scaled", ["d = Div(x, root)", "d = Mul(x, inverse)", "d = Mul(inverse, x)"])
@pytest.mark.parametrize("sum_", ["o = Add(e, one)", "o = Add(one, e)"])
@pytest.mark.parametrize("order", [k for k in GELUS if k != "divided by two"])
def test_gelu(order: str, sum_: str, scaled: str) -> None:
    nodes = [node(t) for t in (scaled, "e = Erf(d)", sum_, *GELUS[order])]
    assert ops(check({"x": (3, 7)}, nodes, NUMBERS)) == ["Gelu"]


def test_what_is_not_gelu() -> None:
    nodes = [node(t) for t in ("d = Div(x, two)", "e = Erf(d)", "o = Add(e, one)", "p = Mul(x, o)", "y = Mul(p, half)")]
    assert "Gelu" not in ops(check({"x": (3, 7)}, nodes, NUMBERS))
    nodes = [node(t) for t in ("d = Div(x, root)", "e = Erf(d)", "o = Add(e, one)", "p = Mul(z, o)", "y = Mul(p, half)")]
    assert "Gelu" not in ops(check({"x": (3, 7), "z": (3, 7)}, nodes, NUMBERS))
    nodes = [node(t) for t in ("d = Div(x, root)", "e = Erf(d)", "o = Add(e, one)", "p = Mul(x, o)", "y = Mul(p, half)")]
    for wanted in ("d", "e", "o", "p"):
        assert "Gelu" not in ops(check({"x": (3, 7)}, nodes, NUMBERS, ("y", wanted)))


def test_gates() -> None:
    for text in ("y = Mul(x, s)", "y = Mul(s, x)"):
        assert ops(check({"x": (3, 7)}, [node("s = Sigmoid(x)"), node(text)])) == ["Swish"]
        hard = node("s = HardSigmoid(x)", alpha=1 / 6, beta=0.5)
        assert ops(check({"x": (3, 7)}, [hard, node(text)])) == ["HardSwish"]
    assert ops(check({"x": (3, 7)}, [node("s = HardSigmoid(x)"), node("y = Mul(x, s)")])) == ["HardSigmoid", "Mul"]
    assert ops(check({"x": (3, 7), "z": (3, 7)}, [node("s = Sigmoid(x)"), node("y = Mul(z, s)")])) == ["Sigmoid", "Mul"]
    assert ops(check({"x": (3, 7)}, [node("s = Sigmoid(x)"), node("y = Mul(x, s)")], result=("y", "s"))) == ["Sigmoid", "Mul"]


@pytest.mark.parametrize(
    "order", ["c = Clip(a, lo, hi)|d = Div(c, six)|y = Mul(x, d)", "c = Clip(a, lo, hi)|d = Mul(x, c)|y = Div(d, six)"]
)
def test_hardswish_spelt_out(order: str) -> None:
    nodes = [node("a = Add(x, three)"), *(node(t) for t in order.split("|"))]
    found = check({"x": (3, 7)}, nodes, {"three": np.float32(3), "lo": np.float32(0), "hi": np.float32(6), "six": np.float32(6)})
    assert ops(found) == ["HardSwish"]


def test_what_is_not_hardswish() -> None:
    numbers = {"three": np.float32(3), "lo": np.float32(0), "hi": np.float32(6), "six": np.float32(6)}
    texts = ["a = Add(x, three)", "c = Clip(a, lo, hi)", "d = Div(c, six)"]
    for last in (["y = Mul(z, d)"], ["q = Mul(x, x)", "y = Mul(q, d)"], ["q = Div(x, z)", "y = Mul(q, d)"], ["y = Div(d, x)"]):
        assert "HardSwish" not in ops(check({"x": (3, 7), "z": (3, 7)}, [node(t) for t in (*texts, *last)], numbers))
    for last in (["e = Mul(x, d)", "y = Div(e, z)"], ["e = Mul(d, x)", "q = Div(x, z)", "y = Mul(e, q)"]):
        assert "HardSwish" in ops(check({"x": (3, 7), "z": (3, 7)}, [node(t) for t in (*texts, *last)], numbers))
    assert "HardSwish" not in ops(
        check({"x": (3, 7)}, [node(t) for t in (*texts, "y = Mul(x, d)")], numbers | {"hi": np.float32(5)})
    )
    for wanted in ("a", "c", "d"):
        assert "HardSwish" not in ops(check({"x": (3, 7)}, [node(t) for t in (*texts, "y = Mul(x, d)")], numbers, ("y", wanted)))


# ---- layer normalisation -------------------------------------------------------------------------------------------------

LN = {"axes": np.array([-1]), "p2": np.float32(2), "eps": np.float32(1e-5), "w": normal(8) + 1, "b": normal(8)}
NORMED = [
    "m = ReduceMean(x, axes)",
    "d = Sub(x, m)",
    "q = Pow(d, p2)",
    "v = ReduceMean(q, axes)",
    "e = Add(v, eps)",
    "r = Sqrt(e)",
    "n = Div(d, r)",
]


@pytest.mark.parametrize("square", ["q = Pow(d, p2)", "q = Mul(d, d)", "twice"])
@pytest.mark.parametrize("weights", [[], ["y = Mul(n, w)"], ["k = Mul(w, n)", "y = Add(k, b)"], ["y = Add(n, b)"]])
def test_layer_norm(square: str, weights: list[str]) -> None:
    texts = list(NORMED)
    if square == "twice":
        texts[2:3] = ["d2 = Sub(x, m)", "q = Pow(d2, p2)"]
    else:
        texts[2] = square
    if not weights:
        texts[-1] = "y = Div(d, r)"
    assert ops(check({"x": (2, 3, 8)}, [node(t) for t in (*texts, *weights)], LN)) == ["LayerNormalization"]


def test_layer_norm_that_is_none() -> None:
    nodes = [node(t) for t in (*NORMED[:-1], "y = Div(d, r)")]
    over_rows = LN | {"axes": np.array([1])}
    assert "LayerNormalization" not in ops(check({"x": (2, 3, 8)}, nodes, over_rows))
    other_mean = [node("m = ReduceMean(z, axes)"), *nodes[1:]]
    assert "LayerNormalization" not in ops(check({"x": (2, 3, 8), "z": (2, 3, 8)}, other_mean, LN))
    # The weights of what others need, and weights of another shape, stay behind.
    more = [*(node(t) for t in NORMED), node("y = Mul(n, w)")]
    assert ops(check({"x": (2, 3, 8)}, more, LN, ("y", "n"))) == ["LayerNormalization", "Mul"]
    assert ops(check({"x": (2, 3, 8)}, more, LN | {"w": normal(3, 1)})) == ["LayerNormalization", "Mul"]


def test_weights_of_a_layer_norm_that_is_one_operation() -> None:
    nodes = [node("n = LayerNormalization(x, w)"), node("y = Add(n, b)")]
    assert ops(check({"x": (2, 3, 8)}, nodes, LN)) == ["LayerNormalization"]


# ---- attention -----------------------------------------------------------------------------------------------------------

Q = {"q": (2, 2, 5, 4), "k": (2, 2, 6, 4), "v": (2, 2, 6, 3)}
SCALE = {"s": np.float32(0.5), "d": np.float32(2)}
TURN = node("t = Transpose(k)", perm=(0, 1, 3, 2))
LAST = [node("p = Softmax(c)", axis=-1), node("y = MatMul(p, v)")]
SCORES = {
    "no scale": ["c = MatMul(q, t)"],
    "scale behind": ["a = MatMul(q, t)", "c = Mul(a, s)"],
    "scale in front of the scores": ["a = MatMul(q, t)", "c = Mul(s, a)"],
    "divided": ["a = MatMul(q, t)", "c = Div(a, d)"],
    "queries scaled": ["a = Mul(q, s)", "c = MatMul(a, t)"],
    "keys scaled": ["a = Mul(t, s)", "c = MatMul(q, a)"],
    "both scaled": ["a = Mul(q, s)", "a2 = Mul(t, s)", "c = MatMul(a, a2)"],
    "mask": ["a = MatMul(q, t)", "c = Add(a, mask)"],
    "scale and mask": ["a = MatMul(q, t)", "a2 = Mul(a, s)", "c = Add(a2, mask)"],
    "division and mask in front": ["a = MatMul(q, t)", "a2 = Div(a, d)", "c = Add(mask, a2)"],
}


@pytest.mark.parametrize("kind", SCORES)
def test_attention(kind: str) -> None:
    masked = {"mask": (2, 1, 5, 6)} if "mask" in kind else {}
    nodes = [TURN, *(node(t) for t in SCORES[kind]), *LAST]
    found = check(Q | masked, nodes, SCALE)
    assert ops(found) == ["ScaledAttention"]
    assert len(found.nodes[0].inputs) == 3 + len(masked)
    # Keys that come as (b, h, d, s) already are read as they are.
    found = check(Q | {"k": (2, 2, 4, 6)} | masked, [node("t = Identity(k)"), *nodes[1:]], SCALE)
    assert ops(found) == ["ScaledAttention"]
    assert found.nodes[0].attributes["transposed"]


def test_attention_of_three_axes_and_constant_mask() -> None:
    nodes = [node("t = Transpose(k)", perm=(0, 2, 1)), node("a = MatMul(q, t)"), node("c = Add(a, m)"), *LAST]
    hidden = np.triu(np.full((5, 6), -np.inf, FLOAT), 2)
    sizes = {name: shape[1:] for name, shape in Q.items()}
    assert ops(check(sizes, nodes, {"m": hidden})) == ["ScaledAttention"]


def test_attention_before_opset_13() -> None:
    nodes = [TURN, node("c = MatMul(q, t)"), node("p = Softmax(c)", axis=3, flatten=True), LAST[1]]
    assert ops(check(Q, nodes)) == ["ScaledAttention"]
    nodes[2] = node("p = Softmax(c)", axis=2, flatten=True)
    assert "Softmax" in ops(check(Q, nodes))


def test_attention_of_heads() -> None:
    """As exporters split heads: keys go straight to (b, h, d, s), which leaves one turn of the usual kind."""
    nodes = [
        node("q = Transpose(q4)", perm=(0, 2, 1, 3)), node("t = Transpose(k4)", perm=(0, 2, 3, 1)), node("v = Transpose(v4)",
             perm=(0, 2, 1, 3)),
        node("a = MatMul(q, t)"), node("c = Mul(a, s)"), *LAST,
    ]  # fmt: skip
    found = check({"q4": (2, 5, 2, 4), "k4": (2, 6, 2, 4), "v4": (2, 6, 2, 3)}, nodes, SCALE)
    assert ops(found) == ["Transpose", "Transpose", "Transpose", "ScaledAttention"]


def test_attention_that_stays() -> None:
    nodes = [TURN, node("a = MatMul(q, t)"), node("c = Mul(a, s)"), *LAST]
    for wanted in ("a", "c", "p"):
        assert "Softmax" in ops(check(Q, nodes, SCALE, ("y", wanted)))
    wrong_axis = [*nodes[:-2], node("p = Softmax(c)", axis=2), LAST[1]]
    assert "Softmax" in ops(check(Q, wrong_axis, SCALE))
    a_head_a_scale = check(Q, nodes, {"s": normal(2, 1, 1) + 2})
    assert "Softmax" in ops(a_head_a_scale)
    # Keys that others need stay, and are still read as they are.
    assert "Transpose" in ops(check(Q, nodes, SCALE, ("y", "t")))


def test_attention_whose_batches_or_mask_broadcast() -> None:
    nodes = [TURN, node("a = MatMul(q, t)"), node("c = Add(a, mask)"), *LAST]
    for q, k, v, mask in (
        ((2, 2, 5, 4), (2, 1, 6, 4), (2, 1, 6, 3), (1, 1, 5, 6)),
        ((1, 2, 5, 4), (1, 2, 6, 4), (1, 2, 6, 3), (3, 1, 5, 6)),
        ((2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 3), (6,)),
    ):
        shapes = {"q": q, "k": k, "v": v, "mask": mask}
        same(graph(shapes, nodes, ["y"], SCALE), [normal(*s, seed=i) for i, s in enumerate(shapes.values())])


# ---- activations ---------------------------------------------------------------------------------------------------------

ACTIVATIONS: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("Relu(h)", {}, ("relu",)), ("Sigmoid(h)", {}, ("sigmoid",)), ("Tanh(h)", {}, ("tanh",)), ("HardSwish(h)", {},
         ("hardswish",)),
    ("Softsign(h)", {}, ("softsign",)), ("Mish(h)", {}, ("mish",)), ("Erf(h)", {}, ("erf",)), ("Exp(h)", {}, ("exp",)),
    ("LeakyRelu(h)", {"alpha": 0.25}, ("leaky_relu", 0.25)), ("Elu(h)", {}, ("elu", 1.0)), ("Elu(h)", {"alpha": 0.5}, ("elu",
         0.5)),
    ("Selu(h)", {}, ("selu",)), ("HardSigmoid(h)", {}, ("hardsigmoid", 0.2, 0.5)), ("Gelu(h)", {}, ("gelu",)),
    ("Gelu(h)", {"approximate": "tanh"}, ("gelu_tanh",)), ("Softplus(h)", {}, ("softplus",)), ("Swish(h)", {}, ("silu",)),
    ("Clip(h, zero, six)", {}, ("clip", 0.0, 6.0)), ("Clip(h, -, six)", {}, ("clip", -np.inf, 6.0)), ("Clip(h, zero)", {},
         ("clip", 0.0, np.inf)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "attributes", "kind"), ACTIVATIONS, ids=[f"{a[0]}{a[1] or ''}" for a in ACTIVATIONS])
def test_activation_goes_into_what_comes_before(text: str, attributes: dict[str, Any], kind: tuple[Any, ...]) -> None:
    limits = {"zero": np.float32(0), "six": np.float32(6)}
    act = node(f"y = {text}", **attributes)
    for nodes, inputs, constants in (
        ([node("h = Conv(x, w, b)")], {"x": IMAGE}, CONV),
        ([node("h = ConvTranspose(x, w)")], {"x": IMAGE}, {"w": normal(3, C, 2, 2)}),
        ([node("h = Gemm(x, w)")], {"x": (3, 5)}, {"w": W}),
        ([node("h = BatchNormalization(x, s, t, m, v)")], {"x": (2, C, 5)}, BN),
        ([node("h = Add(x, z)")], {"x": (3, 5), "z": (3, 5)}, {}),
    ):
        found = check(inputs, [*nodes, act], {**constants, **limits})
        assert len(found.nodes) == 1
        code = activation(found.nodes[0])
        assert code is not None
        assert code[0] == UNARY[kind[0]].code
        if len(kind) > 1:
            np.testing.assert_allclose(code[1 : len(kind)], kind[1:])


def test_activation_that_stays() -> None:
    nodes = [node("h = Conv(x, w, b)"), node("y = Relu(h)")]
    assert ops(check({"x": IMAGE}, nodes, CONV, ("y", "h"))) == ["Conv", "Relu"]
    assert sorted(ops(check({"x": IMAGE}, [*nodes, node("z = Neg(h)")], CONV, ("y", "z")))) == ["Conv", "Neg", "Relu"]
    assert ops(check({"x": IMAGE}, [*nodes[:1], node("r = Relu(h)"), node("y = Tanh(r)")], CONV)) == ["Conv", "Tanh"]
    weights = {"x": IMAGE, "w": (C, 3, 3, 3)}
    assert ops(check(weights, [node("h = Conv(x, w)"), node("y = Relu(h)")])) == ["Conv", "Relu"]
    assert ops(check({"x": IMAGE}, [*nodes[:1], node("y = Swish(h)", alpha=2.0)], CONV)) == ["Conv", "Swish"]
    assert ops(check({"x": IMAGE, "lo": ()}, [*nodes[:1], node("y = Clip(h, lo)")], CONV)) == ["Conv", "Clip"]
    doubles = graph({"x": ((2, 3), np.float64)}, [node("h = Add(x, x)"), node("y = Relu(h)")], ["y"])
    assert ops(optimise(doubles)) == ["Add", "Relu"]


# ---- residuals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sum_", ["s = Add(h, z)", "s = Add(z, h)", "s = Sum(h, z)"])
def test_residual(sum_: str) -> None:
    nodes = [node("h = Conv(x, w, b)", **PADS), node(sum_), node("y = Relu(s)")]
    found = check({"x": IMAGE, "z": (2, C, 7, 6)}, nodes, CONV)
    assert ops(found) == ["Conv"]
    assert len(found.nodes[0].inputs) == 4
    assert activation(found.nodes[0]) == (UNARY["relu"].code, 0.0, 0.0)
    nodes = [node("h = MatMul(x, w)"), node(sum_), node("y = Relu(s)")]
    assert ops(check({"x": (3, 5), "z": (3, 4)}, nodes, {"w": W})) == ["Linear"]


def test_residual_of_two_layers_goes_into_the_later_one() -> None:
    nodes = [node("h = Conv(x, w, b)", **PADS), node("g = Conv(x, w, b)", **PADS), node("y = Add(g, h)")]
    found = check({"x": IMAGE}, nodes, CONV)
    assert ops(found) == ["Conv", "Conv"]
    assert found.nodes[1].inputs[3] == "h"


def test_residual_block() -> None:
    nodes = [
        node("a = Conv(x, w, b)", **PADS), node("a1 = BatchNormalization(a, s, t, m, v)"), node("r = Relu(a1)"),
        node("h = Conv(r, u)", **PADS), node("h1 = BatchNormalization(h, s, t, m, v)"), node("j = Add(h1, r)"),
             node("y = Relu(j)"),
    ]  # fmt: skip
    assert ops(check({"x": IMAGE}, nodes, CONV | BN | {"u": normal(C, C, 3, 3) / 7})) == ["Conv", "Conv"]


def test_residual_that_turns_out_to_broadcast() -> None:
    nodes = [node("h = Conv(x, w, b)", **PADS), node("j = Add(h, z)"), node("y = Relu(j)")]
    made = graph({"x": ("n", 3, "i", "j"), "z": ("m", C, "k", "l")}, nodes, ["y"], CONV)
    for shape in ((2, C, 7, 6), (1, C, 7, 6), (2, C, 1, 1), (2, C, 7, 1)):
        assert ops(same(made, [normal(*IMAGE), normal(*shape, seed=1)])) == ["Conv"]
    made = graph(
        {"x": ("n", 5), "z": ("m", 4)}, [node("h = MatMul(x, w)"), node("j = Add(h, z)"), node("y = Relu(j)")], ["y"], {"w": W}
    )
    for rows in (3, 1):
        assert ops(same(made, [normal(3, 5), normal(rows, 4, seed=1)])) == ["Linear"]


def test_residual_that_makes_the_result_larger() -> None:
    """The layer's own result is broadcast: known sizes keep the sum apart, open ones must still be right."""
    nodes = [node("h = MatMul(x, w)"), node("y = Add(h, z)")]
    same(graph({"x": (1, 5), "z": (3, 4)}, nodes, ["y"], {"w": W}), [normal(1, 5), normal(3, 4, seed=1)])
    same(graph({"x": ("n", 5), "z": ("m", 4)}, nodes, ["y"], {"w": W}), [normal(1, 5), normal(3, 4, seed=1)])
    nodes = [node("h = Conv(x, w, b)", **PADS), node("y = Add(h, z)")]
    same(
        graph({"x": ("n", 3, "i", "j"), "z": ("m", C, "k", "l")}, nodes, ["y"], CONV),
        [normal(1, 3, 7, 6), normal(2, C, 7, 6, seed=1)],
    )


def test_residual_that_stays() -> None:
    nodes = [node("h = Conv(x, w, b)", **PADS), node("y = Add(h, z)")]
    z = {"z": (2, C, 7, 6)}
    assert ops(check({"x": IMAGE, **z}, nodes, CONV, ("y", "h"))) == ["Conv", "Add"]
    assert ops(check({"x": IMAGE, "z": (C, 1, 1)}, nodes, CONV)) == ["Conv", "Add"]
    assert "Add" in ops(check({"x": IMAGE}, nodes, CONV | {"z": normal(2, C, 7, 6)}))
    act_first = [node("h = Conv(x, w, b)", **PADS), node("r = Relu(h)"), node("y = Add(r, z)")]
    assert ops(check({"x": IMAGE, **z}, act_first, CONV)) == ["Conv", "Add"]
    assert ops(check({"x": IMAGE}, [nodes[0], node("y = Add(h, h)")], CONV)) == ["Conv", "Add"]
    three = [nodes[0], node("y = Sum(h, z, z)")]
    assert ops(check({"x": IMAGE, **z}, three, CONV)) == ["Conv", "Sum"]


# ---- layout --------------------------------------------------------------------------------------------------------------

CHAIN = {
    "w": normal(C, 3, 3, 3) / 5,
    "u": normal(C, C, 3, 3) / 7,
    "p": normal(C, C, 1, 1) / 2,
    "d": normal(C, 1, 3, 3),
    "e": normal(C, 1, 5, 5),
}
FIRST, SECOND = node("a = Conv(x, w)", **PADS), node("y = Conv(b, u)", **PADS)


def layouts(made: Graph) -> dict[str, tuple[bool, bool]]:
    return {n.outputs[0]: (n.attributes.get("x_last", False), n.attributes.get("out_last", False)) for n in made.nodes}


def test_chain_of_convs_is_channels_last_inside() -> None:
    nodes = [FIRST, node("b = Conv(a, p)"), SECOND]
    assert layouts(check({"x": IMAGE}, nodes, CHAIN)) == {"a": (False, True), "b": (True, True), "y": (True, False)}


@pytest.mark.parametrize(
    "between",
    [
        "Abs(a)",
        "Neg(a)",
        "MaxPool(a)",
        "AveragePool(a)",
        "LRN(a)",
        "BatchNormalization(a, s, t, m, v)",
        "Conv(a, d)",
        "Clip(a, zero)",
        "Add(a, a)",
    ],
)
def test_what_is_between_convs_takes_part(between: str) -> None:
    attributes: dict[str, Any] = {}
    if "Pool" in between:
        attributes = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    elif "LRN" in between:
        attributes = {"size": 3}
    elif "Conv" in between:
        attributes = {"group": C, **PADS}
    nodes = [FIRST, node("a0 = Neg(a)"), node(f"b = {between.replace('(a', '(a0')}", **attributes), SECOND]
    found = check({"x": IMAGE}, nodes, CHAIN | BN | {"zero": np.float32(0)})
    assert layouts(found)["a"] == (False, True)
    assert layouts(found)["y"] == (True, False)


def test_convs_around_a_residual_block() -> None:
    nodes = [FIRST, node("h = Conv(a, u)", **PADS), node("b = Add(h, a)"), node("k = Abs(b)"), node("y = Conv(k, u)", **PADS)]
    found = check({"x": IMAGE}, nodes, CHAIN)
    assert layouts(found)["b"] == (True, True)
    assert layouts(found)["y"] == (True, False)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pool_reads_channels_last(op: str) -> None:
    found = check({"x": IMAGE}, [FIRST, node(f"g = {op}(a)"), node("y = Flatten(g)")], CHAIN)
    assert layouts(found)["a"] == (False, True)
    assert found.nodes[1].attributes["x_last"]


def test_pool_over_a_whole_map_is_global() -> None:
    made = graph({"x": IMAGE}, [node("y = AveragePool(x)", kernel_shape=(7, 6))], ["y"])
    assert ops(same(made, [normal(*IMAGE)])) == ["GlobalAveragePool"]
    padded = graph({"x": IMAGE}, [node("y = AveragePool(x)", kernel_shape=(7, 6), pads=(1, 0, 1, 0))], ["y"])
    assert ops(same(padded, [normal(*IMAGE)])) == ["AveragePool"]


def test_what_keeps_channels_first() -> None:
    concat = [FIRST, node("c = Conv(x, w)", **PADS), node("b = Concat(a, c)", axis=1), node("y = Conv(b, k)")]
    found = check({"x": IMAGE}, concat, CHAIN | {"k": normal(4, 2 * C, 1, 1)})
    assert not any(any(v) for v in layouts(found).values())
    assert not any(any(v) for v in layouts(check({"x": IMAGE}, [FIRST, node("b = Abs(a)"), SECOND], CHAIN, ("y", "b"))).values())
    assert not any(any(v) for v in layouts(check({"x": IMAGE}, [FIRST, node("y = Softmax(a)", axis=1)], CHAIN)).values())
    tied = [FIRST, node("b = Mul(a, k)"), SECOND]
    assert not any(layouts(check({"x": IMAGE}, tied, CHAIN | {"k": normal(7, 6)}))["a"])
    large = [FIRST, node("b = Conv(a, e)", group=C, pads=(2, 2, 2, 2)), SECOND]
    assert CHAIN["e"][0].size > LARGEST_DEPTHWISE
    assert not any(any(v) for v in layouts(check({"x": IMAGE}, large, CHAIN)).values())


def test_sequences_and_volumes() -> None:
    for axes, size in ((1, (9,)), (3, (4, 5, 3))):
        ones = (1,) * axes
        constants = {"w": normal(C, 3, *(3,) * axes) / 5, "u": normal(C, C, *(3,) * axes) / 7}
        nodes = [node("a = Conv(x, w)", pads=ones * 2), node("b = Abs(a)"), node("y = Conv(b, u)", pads=ones * 2)]
        found = check({"x": (2, 3, *size)}, nodes, constants)
        assert layouts(found)["y"] == (True, False)


# ---- folding -------------------------------------------------------------------------------------------------------------


def test_constants_are_computed() -> None:
    found = check({"x": (2, 3)}, [node("c = Add(k, k)"), node("d = Neg(c)"), node("y = Add(x, d)")], {"k": normal(3)})
    assert ops(found) == ["Add"]
    assert len(found.constants) == 1
    found = same(graph({"x": (2, 3)}, [node("y = Add(k, k)"), node("z = Neg(x)")], ["y", "z"], {"k": normal(3)}), [normal(2, 3)])
    assert "Add" not in ops(found)


def test_sizes_are_followed() -> None:
    nodes = [
        node("s = Shape(x)"),
        node("n = Gather(s, zero)"),
        node("u = Unsqueeze(n, axes)"),
        node("t = Concat(u, rest)", axis=0),
        node("y = Reshape(x, t)"),
    ]
    constants = {"zero": np.int64(0), "axes": np.array([0]), "rest": np.array([-1])}
    made = graph({"x": (2, 3, 4)}, nodes, ["y"], constants)
    assert ops(same(made, [normal(2, 3, 4)])) == ["Reshape"]
    same(graph({"x": ("n", 3, 4)}, nodes, ["y"], constants), [normal(2, 3, 4)])


def test_what_does_nothing_goes() -> None:
    nodes = [
        node("a = Identity(x)"),
        node("b = Dropout(a)"),
        node("c = Cast(b)", to=1),
        node("d = Concat(c)", axis=0),
        node("e = Reshape(d, s)"),
        node("y = Neg(e)"),
    ]
    assert ops(check({"x": (2, 3)}, nodes, {"s": np.array([-1, 3])})) == ["Neg"]
    found = check({"x": (2, 3)}, [node("y = Identity(x)")])
    assert ops(found) == ["Identity"]  # an output keeps its name
    assert ops(check({"x": (2, 3)}, [node("y = Neg(x)"), node("z = Exp(x)")])) == ["Neg"]  # nobody reads z


def test_branches_of_known_conditions() -> None:
    then, other = graph({}, [node("a = Neg(x)")], ["a"]), graph({}, [node("b = Frobnicate(x)")], ["b"])
    nodes = [node("y = If(c)", then_branch=then, else_branch=other)]
    found = check({"x": (2, 3)}, nodes, {"c": np.array(True)})
    assert [op for op in ops(found) if op != "Identity"] == ["Neg"]


def test_branches_read_values_that_would_be_fused_away() -> None:
    then, other = graph({}, [node("a = Neg(h)")], ["a"]), graph({}, [node("b = Exp(i)")], ["b"])
    nodes = [
        node("h = Conv(x, w, b0)"),
        node("r = Relu(h)"),
        node("i = Identity(r)"),
        node("y = If(c)", then_branch=then, else_branch=other),
    ]
    made = graph({"x": IMAGE, "c": ((), np.bool_)}, nodes, ["y", "r"], {"w": CONV["w"], "b0": CONV["b"]})
    for flag in (True, False):
        assert ops(same(made, [normal(*IMAGE), np.array(flag)])) == ["Conv", "Relu", "If"]


def test_strict_fuses_nothing() -> None:
    nodes = [
        node("i = Identity(x)"),
        node("h = Conv(i, w, b)"),
        node("n = BatchNormalization(h, s, t, m, v)"),
        node("y = Relu(n)"),
    ]
    assert ops(optimise(graph({"x": IMAGE}, nodes, ["y"], CONV | BN), strict=True)) == ["Conv", "BatchNormalization", "Relu"]


def test_the_graph_itself_never_changes() -> None:
    nodes = [node("h = Conv(x, w, b)"), node("n = BatchNormalization(h, s, t, m, v)"), node("y = Relu(n)")]
    made = graph({"x": IMAGE}, nodes, ["y"], CONV | BN)
    before, arrays = repr(made), {name: a.copy() for name, a in made.constants.items()}
    optimise(made)
    assert repr(made) == before
    for name, a in made.constants.items():
        np.testing.assert_array_equal(a, arrays[name])

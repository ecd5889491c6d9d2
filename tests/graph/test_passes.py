"""Rewrites of products, normalizations, gates and attention: what is fused and what is not, and that the values stay."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fastlayers import passes
from fastlayers.errors import FormatError
from fastlayers.ir.graph import Graph
from fastlayers.passes import fold, normalization_affine, optimize
from fastlayers.passes import linear as _linear
from fastlayers.passes._net import Net
from tests.each import each
from tests.program.graphs import graph, node, normal

from .rewrites import BN, CONV, FLOAT, IMAGE, PADS, B, C, W, activation, check, default, f32, ops, outputs, same

# ---- linear --------------------------------------------------------------------------------------------------------------


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
    assert ops(optimize(made)) == ["Gemm"]


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


# ---- batch normalization -------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("op", "factor"), [("Div", 0.0), ("Mul", 3e38), ("Mul", np.inf)])
@pytest.mark.parametrize("layer", ["Conv", "ConvTranspose"])
def test_factors_that_make_weights_infinite_stay(layer: str, op: str, factor: float) -> None:
    """Sums over infinite weights are NaN, where a sum that is multiplied afterwards has a sign, or is finite."""
    w = normal(4, 4, 3, 3)
    w[:, :, 1, 1] = 2
    nodes = [node(f"h = {layer}(x, w)"), node(f"y = {op}(h, c)")]
    made = graph({"x": (2, 4, 5, 3)}, nodes, ["y"], {"w": w, "c": f32(*[factor] * 4).reshape(4, 1, 1)})
    _stays(made, [layer, op])


def test_an_affine_that_makes_weights_infinite_stays() -> None:
    constants = {name: array[:3] for name, array in BN.items()} | {"s": f32(3e38, 3e38, 3e38), "w": 2 + abs(normal(5, 3, 3, 3))}
    nodes = [node("h = BatchNormalization(x, s, t, m, v)"), node("y = Conv(h, w)")]
    _stays(graph({"x": IMAGE}, nodes, ["y"], constants), ["Affine", "Conv"])


def _stays(made: Graph, expected: list[str]) -> None:
    """Passes leave the operators, and with them NaN, infinities and what is finite."""
    changed, x = optimize(made), 1e-3 * normal(*made.inputs[0].shape)
    assert sorted(n.op for n in changed.nodes) == sorted(expected)
    with np.errstate(all="ignore"):
        (want,), (got,) = outputs(made, [x], "reference"), outputs(changed, [x], default())
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want[np.isfinite(want)]).max(initial=0))


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
    # Linear's features are the last axis, batch normalization's channels axis 1.
    nodes = [node("h = MatMul(x, w)"), node("y = BatchNormalization(h, s, t, m, v)")]
    assert ops(check({"x": (2, C, 5)}, nodes, {"w": normal(5, C)} | BN)) == ["Linear", "Affine"]


def test_multiplication_and_addition_a_channel_go_into_conv() -> None:
    for shape in ((C, 1, 1), (1, C, 1, 1), (1,), ()):
        constants = CONV | {"k": normal(*shape, seed=7) + 2}
        for op, texts in (("Mul", ("h, k", "k, h")), ("Add", ("h, k", "k, h")), ("Sub", ("h, k",)), ("Div", ("h, k",))):
            for text in texts:
                found = check({"x": IMAGE}, [node("h = Conv(x, w, b)"), node(f"y = {op}({text})")], constants)
                assert ops(found) == ["Conv"], (op, text, shape)


def test_weights_are_multiplied_for_factors_alone() -> None:
    f = normal(C, 1, 1, seed=7)
    texts = ["h = Conv(x, w, b)", "k = Add(h, f)", "m = Mul(k, f)", "y = Sub(m, f)"]
    for last, multiplied in ((2, False), (3, True), (4, True)):
        made = graph({"x": IMAGE}, [node(text) for text in texts[:last]], [texts[last - 1][0]], CONV | {"f": f})
        net = Net(made, {}, {})
        fold.apply(net)
        normalization_affine.apply(net)
        (found,) = [array for array in net.constants.values() if array.ndim == 4]  # what it was before is not in memory too
        assert np.shares_memory(found, made.constants["w"]) != multiplied


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
@pytest.mark.sampled(6)
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


SLOPE, CUBE = np.float32(np.sqrt(2 / np.pi)), np.float32(0.044715)
TANHS = {
    "GPT-2": "c = Pow(x, three)|a = Mul(c, cube)|s = Add(x, a)|i = Mul(s, slope)|t = Tanh(i)|o = Add(t, one)"
             "|h = Mul(x, half)|y = Mul(h, o)",
    "JAX": "q = Mul(x, x)|c = Mul(q, x)|a = Mul(cube, c)|s = Add(a, x)|i = Mul(slope, s)|t = Tanh(i)|o = Add(one, t)"
           "|h = Mul(half, o)|y = Mul(x, h)",
    "BLOOM": "l = Mul(x, slope)|a = Mul(x, cube)|q = Mul(a, x)|s = Add(q, one)|i = Mul(l, s)|t = Tanh(i)|o = Add(t, one)"
             "|h = Mul(x, half)|y = Mul(h, o)",
    "a half of each": "q = Mul(x, x)|a = Mul(q, cube)|s = Add(a, one)|u = Mul(s, slope)|i = Mul(u, x)|t = Tanh(i)"
                      "|g = Mul(t, half)|o = Add(g, half)|y = Mul(o, x)",
    "divided": "c = Pow(x, three)|a = Mul(c, cube)|s = Add(x, a)|i = Mul(s, slope)|t = Tanh(i)|o = Add(t, one)"
               "|h = Mul(x, o)|y = Div(h, two)",
}  # fmt: skip
OF_TANH = NUMBERS | {"slope": SLOPE, "cube": CUBE, "three": np.float32(3)}


@each("form", TANHS)
def test_gelu_by_tanh(form: str) -> None:
    nodes = [node(text) for text in TANHS[form].split("|")]
    found = check({"x": (3, 7)}, nodes, OF_TANH)
    assert ops(found) == ["Gelu"] and found.nodes[0].attributes == {"approximate": "tanh"}
    for wanted in ("t", "i", "o"):
        assert "Gelu" not in ops(check({"x": (3, 7)}, nodes, OF_TANH, ("y", wanted)))
    for other in ({"cube": np.float32(0.0448)}, {"slope": HALF}, {"half": ONE, "two": ONE}, {"slope": np.full((1, 1, 1), SLOPE)}):
        assert "Gelu" not in ops(check({"x": (3, 7)}, nodes, OF_TANH | other))


TOKENS = (
    "t = Transpose(x)",
    "m = Reshape(t, map)",
    "h = Conv(m, w, b)",
    "f = Reshape(h, flat)",
    "u = Transpose(f)",
    "y = Relu(u)",
)
SHAPES = {"map": np.array([-1, 3, 3, 4]), "flat": np.array([0, C, 12])}


def test_maps_that_were_tokens_are_read_where_they_are() -> None:
    nodes = [node(t, **({"perm": (0, 2, 1)} if "Transpose" in t else PADS if "Conv" in t else {})) for t in TOKENS]
    found = check({"x": (2, 12, 3)}, nodes, CONV | SHAPES)
    assert ops(found) == ["Reshape", "Identity", "Conv", "Identity", "Reshape"]
    (conv,) = [n for n in found.nodes if n.op == "Conv"]
    assert conv.attributes["x_last"] and conv.attributes["out_last"] and activation(conv)
    for wanted in "tmhfu":  # with their own values, and before the activation
        check({"x": (2, 12, 3)}, nodes, CONV | SHAPES, ("y", wanted))
    turned = [nodes[0], node("m = Reshape(t, map)"), *nodes[2:]]
    other = CONV | SHAPES | {"map": np.array([-1, 3, 2, 6])}  # still 12 tokens
    assert "Transpose" not in ops(check({"x": (2, 12, 3)}, turned, other))
    wider = CONV | {"map": np.array([-1, 3, 6, 4]), "flat": np.array([0, C, 24])}  # 6 channels are no 3
    assert "Transpose" in ops(check({"x": (2, 12, 6)}, nodes, wider))


@each("perm", [(0, 3, 1, 2), (0, 3, 2, 1)])
def test_images_with_channels_last_are_read_where_they_are(perm: tuple[int, ...]) -> None:
    found = check({"x": (2, 7, 6, 3)}, [node("t = Transpose(x)", perm=perm), node("y = Conv(t, w, b)", **PADS)], CONV)
    assert ("Identity" in ops(found)) == (perm == (0, 3, 1, 2))


def test_function_after_a_view_goes_before_it() -> None:
    nodes = [node("h = MatMul(x, w)"), node("r = Reshape(h, shape)"), node("y = Relu(r)")]
    constants = {"w": normal(4, 6), "shape": np.array([3, -1])}
    assert ops(check({"x": (2, 3, 4)}, nodes, constants)) == ["Linear", "Reshape"]
    for wanted in ("h", "r"):
        assert "Relu" in ops(check({"x": (2, 3, 4)}, nodes, constants, ("y", wanted)))


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


# ---- layer normalization -------------------------------------------------------------------------------------------------

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
    for op, shape in itertools.product(("Mul", "Add"), ((), (1,), (1, 1), (0,))):  # a number is no weight
        nodes = [node("n = LayerNormalization(x, w)"), node(f"y = {op}(n, c)")]
        if shape != (0,):
            check({"x": (2, 3, 8)}, nodes, LN | {"c": normal(*shape)})
        check({"x": (2, 3, 1)}, nodes, {"w": normal(1), "c": normal(*shape)})
    nodes = [node("n = LayerNormalization(x, w)"), node("y = Add(n, b)")]
    assert ops(check({"x": (2, 3, 8)}, nodes, LN)) == ["LayerNormalization"]


# ---- attention -----------------------------------------------------------------------------------------------------------

Q = {"q": (2, 2, 5, 4), "k": (2, 2, 6, 4), "v": (2, 2, 6, 3)}
SCALE = {"s": np.float32(0.5), "d": np.float32(2)}
TURN = node("t = Transpose(k)", perm=(0, 1, 3, 2))
LAST = [node("p = Softmax(c)", axis=-1), node("y = MatMul(p, v)")]
SCORES = {
    "no scale": ["c = MatMul(q, t)"],
    "scale after": ["a = MatMul(q, t)", "c = Mul(a, s)"],
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
        ((1, 2, 5, 4), (2, 1, 6, 4), (1, 1, 6, 3), (2, 1, 5, 6)),
        # The mask repeats the one query, the one key, or both.
        ((1, 2, 1, 4), (1, 2, 6, 4), (1, 2, 6, 3), (1, 2, 5, 6)),
        ((1, 2, 5, 4), (1, 2, 1, 4), (1, 2, 6, 3), (1, 1, 5, 6)),
        ((1, 2, 1, 4), (1, 1, 1, 4), (1, 2, 6, 3), (3, 1, 5, 6)),
        ((1, 2, 5, 4), (1, 2, 1, 4), (1, 2, 1, 3), (1, 2, 5, 1)),
    ):
        shapes = {"q": q, "k": k, "v": v, "mask": mask}
        given = [normal(*s, seed=i) for i, s in enumerate(shapes.values())]
        for turned in (nodes, [node("t = Identity(k)"), *nodes[1:]]):
            if turned is not nodes:
                given[1] = np.ascontiguousarray(np.swapaxes(given[1], -1, -2))
                shapes["k"] = given[1].shape
            for sizes in (shapes, {name: tuple(f"{name}{i}" for i in range(len(s))) for name, s in shapes.items()}):
                found = same(graph(sizes, turned, ["y"], SCALE), given)
                assert "ScaledAttention" in ops(found)


# ---- passes that fail ----------------------------------------------------------------------------------------------------


def test_a_pass_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its changes so far too; a load is never refused for its sake. What memory lacks is said all the same."""
    made = graph({"x": (3, 5)}, [node("h = Gemm(x, w)"), node("s = Sigmoid(h)"), node("y = Mul(h, s)")], ["y"], {"w": W})

    def half(net: Net) -> None:
        linear(net)
        raise error

    linear = _linear.apply
    monkeypatch.setattr(_linear, "apply", half)
    for error in (IndexError("tuple index out of range"), RecursionError(), FormatError("of ours")):
        assert ops(optimize(made)) == ["Gemm", "Swish"]
        monkeypatch.setattr(passes, "RAISES", True)
        with pytest.raises(type(error)):
            optimize(made)
        monkeypatch.setattr(passes, "RAISES", False)
    error = MemoryError()
    with pytest.raises(MemoryError):
        optimize(made)


def test_words_of_a_sum_are_no_words_of_the_layer_that_takes_it_in() -> None:
    """A file may have any attribute anywhere."""
    nodes = [
        node("h = Conv(x, w, b)", **PADS),
        node("k = Conv(x, w, b)", **PADS),
        node("y = Add(h, k)", auto_pad="VALID", group=3),
    ]
    assert ops(check({"x": IMAGE}, nodes, CONV)) == ["Conv", "Conv"]


def test_bytes_whose_steps_are_not_positive_stay_floats() -> None:
    """They turn the order of values round, or cannot be divided by."""
    for step in (-0.5, 0.0, np.inf, np.nan):
        constants = {"s": np.float32(step), "z": np.int8(1)}
        nodes = [
            node("f = DequantizeLinear(x, s, z)"),
            node("m = MaxPool(f)", kernel_shape=(2, 2)),
            node("y = QuantizeLinear(m, s, z)"),
        ]
        made = graph({"x": ((1, 2, 4, 4), np.int8)}, nodes, ["y"], constants)
        assert "MaxPool" in ops(optimize(made))
        given = [np.arange(-16, 16, dtype=np.int8).reshape(1, 2, 4, 4)]
        np.testing.assert_array_equal(outputs(optimize(made), given, "reference")[0], outputs(made, given, "reference")[0])


# ---- what is asked for twice ---------------------------------------------------------------------------------------------


def test_what_is_computed_twice_is_computed_once() -> None:
    nodes = [node("a = Sin(x)"), node("b = Sin(x)"), node("c = Softmax(a)", axis=1), node("d = Softmax(b)", axis=1),
             node("y = MatMul(c, d)")]  # fmt: skip
    assert ops(check({"x": (4, 4)}, nodes)) == ["Sin", "Softmax", "MatMul"]
    # Equal constants of other names, and one of two that the graph gives.
    chosen = [node("a = Gather(x, i)", axis=0), node("b = Gather(x, j)", axis=0), node("y = MatMul(a, b)")]
    indices = {"i": np.array([2, 0, 1, 1]), "j": np.array([2, 0, 1, 1])}
    assert ops(check({"x": (4, 4)}, chosen, indices)) == ["Gather", "MatMul"]
    assert ops(check({"x": (4, 4)}, chosen, indices, ("y", "a"))) == ["Gather", "MatMul"]


def test_what_only_looks_alike_is_computed_twice() -> None:
    both = [node("a = Softmax(x)", axis=1), node("b = Softmax(x)", axis=0), node("y = MatMul(a, b)")]
    assert len(ops(check({"x": (4, 4)}, both))) == 3
    zeros = [node("a = Elu(x)", alpha=0.0), node("b = Elu(x)", alpha=-0.0), node("y = MatMul(a, b)")]
    assert len(ops(check({"x": (4, 4)}, zeros))) == 3
    chosen = [node("a = Gather(x, i)", axis=0), node("b = Gather(x, j)", axis=0), node("y = MatMul(a, b)")]
    for other in (np.array([2, 0, 1, 0]), np.array([2, 0, 1, 1], np.int32)):
        assert len(ops(check({"x": (4, 4)}, chosen, {"i": np.array([2, 0, 1, 1]), "j": other}))) == 3
    assert len(ops(check({"x": (4, 4)}, chosen[:2], {"i": np.array([2, 0]), "j": np.array([2, 0])}, ("a", "b")))) == 2
    drawn = [node("a = RandomNormalLike(x)"), node("b = RandomNormalLike(x)"), node("y = Sub(a, b)")]
    assert len(ops(optimize(graph({"x": (4, 4)}, drawn, ["y"])))) == 3

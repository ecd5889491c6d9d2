"""Activations, residuals, layouts and folding: what is fused and what is not, and that the values stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers import passes
from fastlayers.ir.graph import Graph, Node
from fastlayers.kernels.table import UNARY, Activation
from fastlayers.operators.conv import LARGEST_DEPTHWISE
from fastlayers.passes import optimize
from tests.each import each
from tests.program.graphs import graph, node, normal

from .rewrites import BN, CONV, IMAGE, PADS, C, W, activation, check, default, ops, outputs, same

# ---- activations ---------------------------------------------------------------------------------------------------------

ACTIVATIONS: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("Relu(h)", {}, ("relu",)), ("Sigmoid(h)", {}, ("sigmoid",)), ("Tanh(h)", {}, ("tanh",)), ("HardSwish(h)", {},
         ("hardswish",)),
    ("Softsign(h)", {}, ("softsign",)), ("Mish(h)", {}, ("mish",)), ("Erf(h)", {}, ("erf",)), ("Exp(h)", {}, ("exp",)),
    ("LeakyRelu(h)", {"alpha": 0.25}, ("leaky_relu", 0.25)), ("Elu(h)", {}, ("elu", 1.0)), ("Elu(h)", {"alpha": 0.5}, ("elu",
         0.5)),
    ("Selu(h)", {}, ("selu",)), ("HardSigmoid(h)", {}, ("hardsigmoid", 0.2, 0.5)), ("Gelu(h)", {}, ("gelu",)),
    ("Gelu(h)", {"approximate": "tanh"}, ("gelu_tanh",)), ("Swish(h)", {}, ("silu",)),
    ("Celu(h)", {"alpha": 0.5}, ("celu", 0.5)), ("ThresholdedRelu(h)", {"alpha": 0.5}, ("threshold", 0.5, 0.0)),
    ("Shrink(h)", {"lambd": 0.25, "bias": 0.5}, ("shrink", 0.25, 0.5)), ("Swish(h)", {"alpha": 2.0}, ("quick_gelu", 2.0)),
    ("Softplus(h)", {}, ("softplus", 1.0, np.inf)), ("Neg(h)", {}, ("negative",)), ("Abs(h)", {}, ("abs",)),
    ("Sin(h)", {}, ("sin",)),
    ("Clip(h, zero, six)", {}, ("clip", 0.0, 6.0)), ("Clip(h, -, six)", {}, ("clip", -np.inf, 6.0)), ("Clip(h, zero)", {},
         ("clip", 0.0, np.inf)),
]  # fmt: skip


# A node for every function that kernels take as an epilogue: those that no operator has are `Activate`'s.
NODES = {
    "relu": "Relu(h)", "clip": "Clip(h, zero, six)", "leaky_relu": "LeakyRelu(h)", "elu": "Elu(h)", "selu": "Selu(h)",
    "sigmoid": "Sigmoid(h)", "tanh": "Tanh(h)", "gelu": "Gelu(h)", "silu": "Swish(h)", "hardsigmoid": "HardSigmoid(h)",
    "hardswish": "HardSwish(h)", "softplus": "Softplus(h)", "softsign": "Softsign(h)", "mish": "Mish(h)", "exp": "Exp(h)",
    "log": "Log(h)", "erf": "Erf(h)", "sqrt": "Sqrt(h)", "square": "Pow(h, two)", "negative": "Neg(h)", "abs": "Abs(h)",
    "reciprocal": "Reciprocal(h)", "floor": "Floor(h)", "ceil": "Ceil(h)", "round": "Round(h)", "sign": "Sign(h)",
    "sin": "Sin(h)", "cos": "Cos(h)", "celu": "Celu(h)", "shrink": "Shrink(h)", "threshold": "ThresholdedRelu(h)",
}  # fmt: skip
LIMITS = {"zero": np.float32(0), "six": np.float32(6), "two": np.float32(2)}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_every_function_of_the_kernels_is_fused_and_kept_channels_last(name: str) -> None:
    """As the operator that has it, and by its number: alone it gives the same bits where it is fused."""
    own = Activation(UNARY[name].code, *UNARY[name].defaults)
    forms = [node("y = Activate(h)", activation=tuple(own))]
    if name in NODES:
        forms.append(node(f"y = {NODES[name]}"))
    x = normal(*IMAGE)
    for act in forms:
        first = node("h = Conv(x, w, b)", **PADS)
        apart = graph({"x": IMAGE}, [first, act], ["y"], CONV | LIMITS)
        fused = optimize(apart)
        assert ops(fused) == ["Conv"], act
        assert fused.nodes[0].attributes["activation"][0] == own.code
        np.testing.assert_array_equal(outputs(fused, [x], default())[0], outputs(apart, [x], default())[0])
        kept = Node(act.op, ("t", *act.inputs[1:]), ("b",), act.attributes)
        between = [FIRST, node("t = Atan(a)"), kept, SECOND]
        inside = optimize(graph({"x": IMAGE}, between, ["y"], CHAIN | LIMITS))
        assert layouts(inside)["y"] == (True, False), act


@pytest.mark.parametrize(("text", "attributes", "kind"), ACTIVATIONS, ids=[f"{a[0]}{a[1] or ''}" for a in ACTIVATIONS])
@pytest.mark.sampled(4)
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
    assert ops(check({"x": IMAGE}, [*nodes[:1], node("y = Celu(h)", alpha=-2.0)], CONV)) == ["Conv", "Celu"]
    assert ops(check({"x": IMAGE, "lo": ()}, [*nodes[:1], node("y = Clip(h, lo)")], CONV)) == ["Conv", "Clip"]
    doubles = graph({"x": ((2, 3), np.float64)}, [node("h = Add(x, x)"), node("y = Relu(h)")], ["y"])
    assert ops(optimize(doubles)) == ["Add", "Relu"]


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
    "e": normal(C, 1, 9, 9),
}
FIRST, SECOND = node("a = Conv(x, w)", **PADS), node("y = Conv(b, u)", **PADS)


def layouts(made: Graph) -> dict[str, tuple[bool, bool]]:
    return {n.outputs[0]: (n.attributes.get("x_last", False), n.attributes.get("out_last", False)) for n in made.nodes}


def test_chain_of_convs_is_channels_last_inside() -> None:
    nodes = [FIRST, node("b = Conv(a, p)"), SECOND]
    assert layouts(check({"x": IMAGE}, nodes, CHAIN)) == {"a": (False, True), "b": (True, True), "y": (True, False)}


def test_of_a_value_of_which_nothing_is_known_the_channels_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the rest of the graph has its layouts: the pass must not fail for it, which would leave it out as a whole."""
    then, other = graph({}, [node("i = Neg(y)")], ["i"]), graph({}, [node("i = Reshape(y, s)")], ["i"])
    nodes = [FIRST, node("b = Conv(a, p)"), SECOND, node("h = If(c)", then_branch=then, else_branch=other)]
    nodes += [node("z = Conv(h, u)", **PADS)]
    made = graph({"x": IMAGE, "c": ((), np.bool_), "s": ((None,), np.int64)}, nodes, ["z"], CHAIN)
    monkeypatch.setattr(passes, "RAISES", True)
    shape = np.array([IMAGE[0], C, *IMAGE[2:]])
    for flag in (True, False):
        found = layouts(same(made, [normal(*IMAGE), np.array(flag), shape]))
        assert found["a"] == (False, True)
        assert found["z"] == (False, False)


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
    nodes = [FIRST, node("a0 = Atan(a)"), node(f"b = {between.replace('(a', '(a0')}", **attributes), SECOND]
    found = check({"x": IMAGE}, nodes, CHAIN | BN | {"zero": np.float32(0)})
    assert layouts(found)["a"] == (False, True)
    assert layouts(found)["y"] == (True, False)


def test_convs_around_a_residual_block() -> None:
    nodes = [FIRST, node("h = Conv(a, u)", **PADS), node("b = Add(h, a)"), node("k = Atan(b)"), node("y = Conv(k, u)", **PADS)]
    found = check({"x": IMAGE}, nodes, CHAIN)
    assert layouts(found)["b"] == (True, True)
    assert layouts(found)["y"] == (True, False)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pool_reads_channels_last(op: str) -> None:
    found = check({"x": IMAGE}, [FIRST, node(f"g = {op}(a)"), node("y = Flatten(g)")], CHAIN)
    assert layouts(found)["a"] == (False, True)
    assert found.nodes[1].attributes["x_last"]


@each("keep", [0, 1])
def test_reduction_of_maps_reads_channels_last(keep: int) -> None:
    nodes = [node("h = Conv(x, w, b)", **PADS), node("y = ReduceMean(h, a)", keepdims=keep)]
    for axes, last in (([2, 3], True), ([-1, -2], True), ([3], False), ([1, 2, 3], False), ([1], False)):
        found = check({"x": IMAGE}, nodes, CONV | {"a": np.array(axes)})
        assert layouts(found)["h"][1] == found.nodes[1].attributes.get("x_last", False) == last


def test_constants_of_channels_go_with_channels_last() -> None:
    around = "h = Conv(x, w, b)", "y = Conv(k, u)"
    for text in ("k = Mul(h, c)", "k = Sub(c, h)", "k = PRelu(h, c)", "k = Max(h, c, h)"):
        for shape in ((C, 1, 1), (1, C, 1, 1)):
            nodes = [node(around[0], **PADS), node("r = Sin(h)"), node(text.replace("(h", "(r")), node(around[1], **PADS)]
            found = check({"x": IMAGE}, nodes, CONV | {"u": normal(C, C, 3, 3) / 5, "c": normal(*shape)})
            assert layouts(found)["y"][0], (text, shape)
    for shape in ((6,), (7, 1), (C, 7, 1), (1, C, 1, 6)):  # of columns, of rows, of several axes
        nodes = [node(around[0], **PADS), node("r = Sin(h)"), node("k = Mul(r, c)"), node(around[1], **PADS)]
        found = check({"x": IMAGE}, nodes, CONV | {"u": normal(C, C, 3, 3) / 5, "c": normal(*shape)})
        assert not layouts(found)["y"][0], shape


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
    large = [FIRST, node("b = Conv(a, e)", group=C, pads=(4, 4, 4, 4)), SECOND]
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
    assert ops(optimize(graph({"x": IMAGE}, nodes, ["y"], CONV | BN), strict=True)) == ["Conv", "BatchNormalization", "Relu"]


def test_the_graph_itself_never_changes() -> None:
    nodes = [node("h = Conv(x, w, b)"), node("n = BatchNormalization(h, s, t, m, v)"), node("y = Relu(n)")]
    made = graph({"x": IMAGE}, nodes, ["y"], CONV | BN)
    before, arrays = repr(made), {name: a.copy() for name, a in made.constants.items()}
    optimize(made)
    assert repr(made) == before
    for name, a in made.constants.items():
        np.testing.assert_array_equal(a, arrays[name])


def test_folded_constants_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastlayers.passes.fold.LARGEST", 50)
    nodes = [node("a = ConstantOfShape(n)"), node("b = ConstantOfShape(n)"), node("c = Add(x, a)"), node("y = Add(c, b)")]
    found = optimize(graph({"x": (16,)}, nodes, ["y"], {"n": np.array([16])}))
    assert ops(found).count("ConstantOfShape") == 1


def test_folding_does_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastlayers.passes.fold._WORK", 3000)
    monkeypatch.setattr("fastlayers.passes.fold._WORK_TIMES", 0)
    nodes = [node(f"m{i} = MatMul(w, w)") for i in range(5)]
    found = optimize(graph({}, nodes, [f"m{i}" for i in range(5)], {"w": np.ones((8, 8), np.float32)}))
    assert ops(found).count("Linear") == 1  # 512 products and 192 values each

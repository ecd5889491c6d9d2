"""Graphs of QuantizeLinear and DequantizeLinear: which operators they become, which stay, and that the values are those of the
float operators between them, or a step away where sums are rounded otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fastlayers.ir.graph import Graph, Node
from fastlayers.passes import optimize
from tests.program.graphs import graph, node, normal

from .rewrites import default, ops, outputs
from .test_fusion import LIMITS, NODES

U8, I8 = np.uint8, np.int8
# Scales and zero points of x, y and z; weights of bytes.
CONSTANTS: dict[str, np.ndarray] = {
    "xs": np.float32(0.02), "xz": U8(120), "ys": np.float32(0.05), "yz": U8(101), "zs": np.float32(0.03), "zz": U8(7),
    "ws": np.float32(0.01), "wz": I8(0), "each": np.linspace(0.005, 0.02, 6).astype(np.float32), "eachz": np.zeros(6, I8),
    "w": np.random.default_rng(0).integers(-127, 128, (6, 4, 3, 3)).astype(I8),
    "m": np.random.default_rng(1).integers(-127, 128, (5, 6)).astype(I8),
    "b": np.random.default_rng(2).integers(-999, 999, 6).astype(np.int32), "bs": np.float32(0.02) * np.float32(0.01),
    "bf": normal(6), "u": np.random.default_rng(3).integers(0, 256, (1, 4, 1, 1)).astype(U8),
}  # fmt: skip
IMAGE, ROWS = (2, 4, 7, 6), (3, 5)
X = ["xq = QuantizeLinear(x, xs, xz)", "xd = DequantizeLinear(xq, xs, xz)"]
Y = ["q = QuantizeLinear(h, ys, yz)", "y = DequantizeLinear(q, ys, yz)"]
WEIGHTS = "wd = DequantizeLinear(w, ws, wz)"


def lines(*text: str | Node) -> list[Node]:
    return [node(t) if isinstance(t, str) else t for t in text]


def changed(
    shape: tuple[int, ...], text: Sequence[str | Node], steps: int = 1, results: Sequence[str] = ("y",),
    more: Mapping[str, Any] | None = None,
) -> list[str]:  # fmt: skip
    """The operators after the pass, of a graph whose results stay within so many steps of 0.05 of those before it."""
    constants = {**CONSTANTS, **(more or {})}
    used = {name for t in lines(*text) for name in t.inputs}
    made: Graph = graph({"x": shape}, lines(*text), list(results), {k: v for k, v in constants.items() if k in used})
    given = [normal(*shape)]
    wanted = outputs(made, given, "reference")
    after = optimize(made)
    for variant in ("reference", default()):
        for got, want in zip(outputs(after, given, variant), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=steps * 0.05 * 1.001 if steps else 2e-6)
    assert not [op for op in ops(optimize(made, strict=True)) if op.startswith(("QLinear", "QGemm", "Byte"))]
    return ops(after)


def test_convolutions() -> None:
    want = ["QuantizeLinear", "QLinearConv", "DequantizeLinear"]
    assert changed(IMAGE, [*X, WEIGHTS, "h = Conv(xd, wd)", *Y]) == want
    each = node("wd = DequantizeLinear(w, each, eachz)", axis=0)
    bias = "bd = DequantizeLinear(b, bs)"
    assert changed(IMAGE, [*X, each, node("h = Conv(xd, wd, bf)", pads=(1, 1, 1, 1), strides=(2, 1)), *Y]) == want
    assert changed(IMAGE, [*X, WEIGHTS, bias, "h = Conv(xd, wd, bd)", *Y]) == want
    assert changed(IMAGE, [*X, WEIGHTS, "bd = DequantizeLinear(b, zs)", "h = Conv(xd, wd, bd)", *Y]) == want


def test_what_follows_a_convolution() -> None:
    """A Relu is no more where 0 is the least number, else a table; so is a Clip."""
    convolution = [*X, WEIGHTS, "c = Conv(xd, wd, bf)"]
    relu = changed(IMAGE, [*convolution, "h = Relu(c)", *Y], more={"yz": U8(0)})
    assert relu == ["QuantizeLinear", "QLinearConv", "DequantizeLinear"]
    table = ["QuantizeLinear", "QLinearConv", "ByteTable", "DequantizeLinear"]
    assert changed(IMAGE, [*convolution, "h = Relu(c)", *Y]) == table
    bounds = {"low": np.float32(-0.4), "high": np.float32(1.1)}
    assert changed(IMAGE, [*convolution, "h = Clip(c, low, high)", *Y], more=bounds) == table
    assert changed(IMAGE, [*convolution, "h = Clip(c, -, high)", *Y], more=bounds) == table


def test_convolutions_that_stay() -> None:
    """Of floats on one side, with a result that others read too, or weights whose scales are along another axis."""
    stays = ["QuantizeLinear", "DequantizeLinear", "Conv", "QuantizeLinear", "DequantizeLinear"]
    inputs = node("wd = DequantizeLinear(w, each4, each4z)", axis=1)
    more = {"each4": np.linspace(0.005, 0.02, 4).astype(np.float32), "each4z": np.zeros(4, I8)}
    assert changed(IMAGE, [*X, inputs, "h = Conv(xd, wd)", *Y], more=more) == stays
    assert "Conv" in changed(IMAGE, [WEIGHTS, "h = Conv(x, wd)", *Y])
    assert "Conv" in changed(IMAGE, [*X, WEIGHTS, "h = Conv(xd, wd)", *Y], results=("y", "h"))
    sizes = {"ys": np.full(6, 0.05, np.float32), "yz": np.full(6, 101, U8)}
    assert "Conv" in changed(IMAGE, [*X, WEIGHTS, "h = Conv(xd, wd)", *Y], more=sizes)


def test_products() -> None:
    weights = "wd = DequantizeLinear(m, ws, wz)"
    assert changed(ROWS, [*X, weights, "h = MatMul(xd, wd)", *Y]) == ["QuantizeLinear", "QLinearMatMul", "DequantizeLinear"]
    assert changed((2, 3, 5), [*X, weights, "y = MatMul(xd, wd)"], 0) == ["QuantizeLinear", "MatMulIntegerToFloat"]
    assert changed(ROWS, [*X, weights, "h = Gemm(xd, wd, bf)", *Y]) == ["QuantizeLinear", "QGemm", "DequantizeLinear"]
    turned = {"m": np.ascontiguousarray(CONSTANTS["m"].T)}
    each = node("wd = DequantizeLinear(m, each, eachz)", axis=0)
    floats = changed(ROWS, [*X, each, "bd = DequantizeLinear(b, bs)", node("y = Gemm(xd, wd, bd)", transB=1)], 0, more=turned)
    assert floats == ["QuantizeLinear", "MatMulIntegerToFloat"]
    assert "Linear" in changed(ROWS, [*X, weights, node("y = Gemm(xd, wd)", alpha=0.5)], 0)


def test_products_of_two_computed_matrices() -> None:
    """Both with one scale, and a result of bytes: else they stay."""
    turned = ["uq = QuantizeLinear(x, zs, zz)", "ud = DequantizeLinear(uq, zs, zz)", node("t = Transpose(ud)", perm=(0, 2, 1))]
    pairs = ["tq = QuantizeLinear(t, zs, zz)", "td = DequantizeLinear(tq, zs, zz)", "h = MatMul(xd, td)"]
    made = changed((2, 3, 5), [*X, *turned, *pairs, *Y])
    assert "QLinearMatMul" in made and "MatMul" not in made
    assert "MatMul" in changed((2, 3, 5), [*X, *turned, *pairs, "y = Neg(h)"])


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_two_operands(op: str) -> None:
    other = ["zq = QuantizeLinear(x, zs, zz)", "zd = DequantizeLinear(zq, zs, zz)"]
    found = changed(IMAGE, [*X, *other, f"h = {op}(xd, zd)", *Y], 1 if op == "Mul" else 0)
    assert found == ["QuantizeLinear", "QuantizeLinear", f"QLinear{op}", "DequantizeLinear"]
    constant = "zd = DequantizeLinear(u, zs, zz)"
    found = changed(IMAGE, [*X, constant, f"h = {op}(zd, xd)", *Y], 1 if op == "Mul" else 0)
    assert found == ["QuantizeLinear", f"QLinear{op}", "DequantizeLinear"]
    assert op in changed(IMAGE, [*X, f"h = {op}(xd, x)", *Y], 0)


def test_pools_and_means() -> None:
    for text, op in (
        (node("h = AveragePool(xd)", kernel_shape=(3, 2), pads=(1, 0, 1, 0), strides=(2, 2)), "QLinearAveragePool"),
        (node("h = GlobalAveragePool(xd)"), "QLinearGlobalAveragePool"),
        (node("h = ReduceMean(xd, axes)"), "QLinearReduceMean"),
        (node("h = Softmax(xd)", axis=1), "QLinearSoftmax"),
        (node("h = Concat(xd, xd)", axis=1), "QLinearConcat"),
    ):
        found = changed(IMAGE, [*X, text, *Y], 1, more={"axes": np.array([1, 3])})
        assert found == ["QuantizeLinear", op, "DequantizeLinear"]


def test_tables_give_the_same_numbers() -> None:
    table = ["QuantizeLinear", "ByteTable", "DequantizeLinear"]
    for text in ("Sigmoid(xd)", "Relu(xd)", "HardSwish(xd)", "Tanh(xd)", "Exp(xd)", "Clip(xd, low)"):
        assert changed(IMAGE, [*X, f"h = {text}", *Y], 0, more={"low": np.float32(0.1)}) == table
    assert changed(IMAGE, [*X, "q = QuantizeLinear(xd, ys, yz)", "y = DequantizeLinear(q, ys, yz)"], 0) == table
    assert "LeakyRelu" in changed(IMAGE, [*X, "h = LeakyRelu(xd)", *Y], 0, ("y", "h"))


@pytest.mark.parametrize("name", sorted(NODES.keys() - {"log", "sqrt"}))  # no byte stands for their NaN
def test_every_function_of_the_kernels_becomes_a_table(name: str) -> None:
    text = NODES[name].replace("(h", "(xd")
    found = changed(IMAGE, [*X, f"h = {text}", *Y], 0, more=LIMITS)
    assert found == ["QuantizeLinear", "ByteTable", "DequantizeLinear"]


def test_a_constant_that_widens_the_result_is_no_parameter_of_a_table() -> None:
    wide = {"two": np.full((1,) * (len(IMAGE) + 1), 2, np.float32)}
    assert "Pow" in changed(IMAGE, [*X, "h = Pow(xd, two)", *Y], 0, more=wide)


def test_what_moves_bytes() -> None:
    pool = node("h = MaxPool(xd)", kernel_shape=(2, 2), strides=(2, 2))
    assert changed(IMAGE, [*X, pool, *Y], 0) == ["QuantizeLinear", "MaxPool", "ByteTable", "DequantizeLinear"]
    again = ["q = QuantizeLinear(h, xs, xz)", "y = DequantizeLinear(q, xs, xz)"]
    assert changed(IMAGE, [*X, pool, *again], 0) == ["QuantizeLinear", "MaxPool", "DequantizeLinear"]
    turned = node("h = Transpose(xd)", perm=(0, 2, 3, 1))
    assert changed(IMAGE, [*X, turned, *again], 0) == ["QuantizeLinear", "Transpose", "DequantizeLinear"]
    assert changed(IMAGE, [*X, "q = QuantizeLinear(xd, xs, xz)", again[1]], 0) == ["QuantizeLinear", "DequantizeLinear"]


def test_weights_alone_become_floats() -> None:
    """Where nothing but weights is quantized, they are floats before the model runs."""
    assert changed(IMAGE, [WEIGHTS, "y = Conv(x, wd)"], 0) == ["Conv"]
    turned = [
        node("wd = DequantizeLinear(m, ws, wz)"),
        node("wt = Transpose(wd)", perm=(1, 0)),
        node("y = Gemm(x, wt)", transB=1),
    ]
    assert changed(ROWS, turned, 0) == ["Linear"]


def test_dynamic_products() -> None:
    text = [
        "q, s, z = DynamicQuantizeLinear(x)", "t = MatMulInteger(q, m, z, wz)", node("f = Cast(t)", to=1), "a = Mul(s, ws)",
        "y = Mul(f, a)",
    ]  # fmt: skip
    assert changed(ROWS, text, 0) == ["DynamicQuantizeLinear", "MatMulIntegerToFloat"]
    assert "MatMulInteger" in changed(ROWS, text, 0, ("y", "f"))

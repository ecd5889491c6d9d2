"""Every pass on its own pattern with one thing changed, each thing in turn: what it does not know, it leaves as it was.

A few changes of every other graph are tried where that graph is tested, in `rewrites.same`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import Error
from fastlayers.ir.graph import Graph
from fastlayers.passes import PASSES
from tests.program.graphs import graph, node, normal

from .changed import Changed, changes, unharmed
from .rewrites import BN, CONV, IMAGE, PADS, B, C, W
from .test_passes import GELUS, LN, NORMED, NUMBERS, OF_TANH, SHAPES, TANHS, TOKENS

EVERY = 10**6
I8, F16 = np.dtype(np.int8), np.dtype(np.float16)
SCALES = {"s": np.float32(0.05), "z": np.int8(3), "t": np.float32(0.1), "u": np.int8(-2)}
QUERIES = {"q": (2, 2, 5, 4), "k": (2, 2, 6, 4), "v": (2, 2, 6, 3), "mask": (2, 1, 5, 6)}
COLUMN_ROW = normal(C, 1, 7, 1) * normal(C, 1, 1, 7, seed=1)


def lines(*texts: str, **attributes: Mapping[str, Any]) -> list[Any]:
    """Nodes; attributes by the name of an operator."""
    return [node(text, **attributes.get(text.split("= ")[1].split("(")[0], {})) for text in texts]


Pattern = tuple[Mapping[str, Any], Sequence[Any], Mapping[str, Any]]
PATTERNS: dict[str, Pattern] = {
    "padding": ({"x": IMAGE}, lines("p = Pad(x, pads, zero)", "y = Conv(p, w, b)"),
                CONV | {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 2]), "zero": np.float32(0)}),
    "linear": ({"x": (3, 5)}, lines("h = MatMul(x, w)", "y = Add(h, b)"), {"w": W, "b": B}),
    "gemm": ({"x": (3, 5)}, lines("y = Gemm(x, w, b)", Gemm={"alpha": 0.5}), {"w": W, "b": B}),
    "normalization_affine": ({"x": IMAGE}, lines("h = Conv(x, w, b)", "n = BatchNormalization(h, s, t, m, v)", "k = Mul(n, f)",
                                   "y = Sub(k, f)"), CONV | BN | {"f": normal(C, 1, 1)}),
    "activation_gated": ({"x": (3, 7)}, lines("d = Div(x, root)", "e = Erf(d)", "o = Add(e, one)",
                                              *GELUS["half first"]), NUMBERS),
    "gelu by tanh": ({"x": (3, 7)}, lines(*TANHS["JAX"].split("|")), OF_TANH),
    "activation after a view": ({"x": (2, 3, 5)}, lines("h = MatMul(x, w)", "r = Reshape(h, whole)", "y = Clip(r, zero, one)"),
                                {"w": W, "whole": np.array([3, -1]), "zero": np.float32(0), "one": np.float32(1)}),
    "layout_tokens": ({"x": (2, 12, 3)}, lines(*TOKENS, Transpose={"perm": (0, 2, 1)}, Conv=PADS), CONV | SHAPES),
    "swish": ({"x": (3, 7)}, lines("s = HardSigmoid(x)", "y = Mul(x, s)", HardSigmoid={"alpha": 1 / 6, "beta": 0.5}), {}),
    "normalization": ({"x": (3, 8)}, lines(*NORMED, "k = Mul(n, w)", "y = Add(k, b)"), LN),
    "rms_norm": ({"x": (3, 8)}, lines("s = Pow(x, two)", "m = ReduceMean(s, axis)", "t = Add(m, e)",
                                      "r = Sqrt(t)", "i = Reciprocal(r)",
                                      "n = Mul(x, i)", "y = Mul(n, w)", ReduceMean={"keepdims": 1}),
                 {"two": np.float32(2), "axis": np.array([-1]), "e": np.float32(1e-5), "w": normal(8) + 2}),
    "weights": ({"x": (3, 8)}, lines("n = LayerNormalization(x, ones)", "k = Mul(n, w)", "y = Add(k, b)"),
                LN | {"ones": np.ones(8, np.float32)}),
    "attention": (QUERIES, lines("t = Transpose(k)", "a = MatMul(q, t)", "f = Mul(a, s)", "c = Add(f, mask)", "p = Softmax(c)",
                                 "y = MatMul(p, v)", Transpose={"perm": (0, 1, 3, 2)}, Softmax={"axis": -1}),
                  {"s": np.float32(0.5)}),
    "attention of torch": (QUERIES, lines("r = Reshape(k, flat)", "u = Transpose(r)", "t = Reshape(u, whole)", "f = Mul(t, s)",
                                          "a = MatMul(q, f)", "c = Add(a, mask)", "p = Softmax(c)", "n = IsNaN(p)",
                                          "w = Where(n, zero, p)", "y = MatMul(w, v)", Transpose={"perm": (0, 2, 1)},
                                          Softmax={"axis": -1}),
                           {"s": np.float32(0.5), "zero": np.float32(0), "flat": np.array([-1, 6, 4]),
                            "whole": np.array([2, 2, 4, 6])}),
    "elementwise": ({"x": (24, 40), "z": (24, 40)}, lines("s = Mul(x, row)", "t = Add(s, z)", "u = Atan(t)",
                                                          "k = Clip(u, low, high)", "v = Mul(k, x)", "w = Pow(v, two)",
                                                          "y = Sub(w, column)"),
                    {"row": normal(40), "column": normal(24, 1), "low": np.float32(-1), "high": np.float32(0.5),
                     "two": np.float32(2)}),
    "selected": ({"x": (2, 5, 8), "mask": (2, 1, 1, 5)},
                 lines("q = Linear(x, w)", "k = Linear(x, v)", "a = Attention(q, k, x, mask)", "o = Linear(a, w, b, x)",
                       "n = LayerNormalization(o, b, b)", "y = Gather(n, last)",
                       Attention={"q_num_heads": 2, "kv_num_heads": 2}, Gather={"axis": 1}),
                 {"w": normal(8, 8), "v": normal(8, 8, seed=1), "b": normal(8), "last": np.array(-1)}),
    "activation": ({"x": IMAGE}, lines("h = Conv(x, w, b)", "y = Clip(h, zero, six)"),
                    CONV | {"zero": np.float32(0), "six": np.float32(6)}),
    "residual": ({"x": IMAGE}, lines("h = Conv(x, w, b)", "g = Conv(x, w, b)", "k = Add(h, g)", "y = Relu(k)", Conv=PADS), CONV),
    "layout": ({"x": IMAGE}, lines("h = Conv(x, w, b)", "k = Atan(h)", "m = MaxPool(k)", "c = Max(m, m)", "g = Conv(c, u)",
                                   "a = GlobalAveragePool(g)", "y = Flatten(a)", Conv=PADS, MaxPool={"kernel_shape": (2, 2)}),
               CONV | {"u": normal(C, C, 3, 3) / 5}),
    "repeated": ({"x": (3, 8)}, lines("a = Softmax(x)", "b = Softmax(x)", "c = Gather(a, i)", "d = Gather(b, j)",
                                      "y = MatMul(c, d)", Softmax={"axis": -1}, Gather={"axis": 1}),
                 {"i": np.array([2, 0, 1]), "j": np.array([2, 0, 1])}),
    "conv_separable": ({"x": (1, C, 20, 20)}, lines("h = Conv(x, k, b)", "y = Relu(h)", Conv={"group": C, "pads": (3, 3, 3, 3)}),
                  {"k": COLUMN_ROW, "b": normal(C)}),
    "float16": ({"x": ((1, 3, 6, 6), F16)}, [*lines("f = Conv(x, w, b)", "c = Cast(f)", "k = Sin(c)", "t = Transpose(k)",
                                                    Cast={"to": 1}, Transpose={"perm": (1, 0, 3, 2)}),
                                             node("h = Cast(t)", to=10), node("y = Add(h, one)")],
                {"w": (normal(4, 3, 3, 3) / 3).astype(F16), "b": normal(4).astype(F16), "one": F16.type(1)}),
    "quantized": ({"x": ((1, 3, 6, 6), I8)}, lines("f = DequantizeLinear(x, s, z)", "m = MaxPool(f)", "a = Elu(m)",
                                                   "y = QuantizeLinear(a, t, u)", MaxPool={"kernel_shape": (2, 2)}), SCALES),
    "quantized product": ({"x": ((3, 5), I8)}, lines("f = DequantizeLinear(x, s, z)", "g = DequantizeLinear(w, t)",
                                                     "h = MatMul(f, g)", "y = QuantizeLinear(h, t, u)"),
                          SCALES | {"w": np.arange(-10, 10, dtype=np.int8).reshape(5, 4)}),
    "quantized weights": ({"x": (3, 20)}, lines("g = DequantizeLinear(w, s)", "t = Transpose(g)", "y = Gemm(x, t, b)",
                                                DequantizeLinear={"axis": 1, "block_size": 16}, Transpose={"perm": (1, 0)}),
                          {"w": (np.arange(80) % 16 - 8).astype(np.int8).reshape(4, 20), "b": normal(4),
                           "s": np.linspace(0.1, 0.8, 8, dtype=np.float32).reshape(4, 2)}),
}  # fmt: skip


def values(inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """Normal values of these shapes."""
    given = []
    for i, shape in enumerate(inputs.values()):
        sizes, dtype = shape if isinstance(shape[-1], np.dtype) else (shape, np.dtype(np.float32))
        values = normal(*sizes, seed=i)
        given.append(values.astype(dtype) if dtype.kind == "f" else (values * 40).clip(-128, 127).astype(dtype))
    return given


def made(name: str) -> tuple[Graph, list[np.ndarray]]:
    inputs, nodes, constants = PATTERNS[name]
    return graph(inputs, nodes, ["y"], constants), values(inputs)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.sampled(5)
def test_a_pattern_with_one_thing_changed(name: str) -> None:
    whole, given = made(name)
    unharmed(Changed(whole, given, "as it is"))
    every = changes(whole, given, EVERY)
    assert len(every) > 50
    for other in every:
        unharmed(other)


def test_every_pass_has_a_pattern() -> None:
    assert {change.name for change in PASSES} <= set(PATTERNS)


def test_harm_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that changes numbers, one that fails, and one whose result runs in numpy."""
    from fastlayers.passes import _net, linear

    whole = Changed(*made("linear"), "as it is")

    def renamed(op: str, **attributes: Any) -> Any:
        def change(net: _net.Net) -> None:
            for at, found in net.each("MatMul"):
                net.replace(at, _net.Node(op, found.inputs, found.outputs, attributes))

        return change

    def failing(net: _net.Net) -> None:
        raise IndexError

    for change, error in (
        (renamed("MatMulNBits"), (AssertionError, Error)),
        (renamed("FusedMatMul", alpha=2.0), AssertionError),
        (renamed("Einsum", equation="ij,jk->ik", slow=True), None),
        (failing, IndexError),
    ):
        monkeypatch.setattr(linear, "apply", change)
        if error is None:
            unharmed(whole)
        else:
            with pytest.raises(error):  # type: ignore[arg-type]
                unharmed(whole)

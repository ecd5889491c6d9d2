"""RMS normalization that exporters spell out, and weights that are normalized once, when a graph is loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.passes import optimize
from tests.program.graphs import graph, node, normal

from .rewrites import check, default, ops, outputs, same

NUMBERS = {"two": np.float32(2), "one": np.float32(1), "half": np.float32(-0.5), "e": np.float32(1e-5), "axis": np.array([-1]),
           "w": normal(8) + 2}  # fmt: skip
MEAN = [node("s = Pow(x, two)"), node("m = ReduceMean(s, axis)", keepdims=1), node("t = Add(m, e)")]
ROOT = node("r = Sqrt(t)")
ENDS = {
    "reciprocal": [ROOT, node("i = Reciprocal(r)"), node("n = Mul(x, i)")],
    "the other way round": [ROOT, node("i = Reciprocal(r)"), node("n = Mul(i, x)")],
    "division": [ROOT, node("n = Div(x, r)")],
    "one divided": [ROOT, node("i = Div(one, r)"), node("n = Mul(x, i)")],
    "power": [node("i = Pow(t, half)"), node("n = Mul(x, i)")],
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("weight", ["y = Mul(n, w)", "y = Mul(w, n)", "y = Neg(n)"])
@pytest.mark.sampled(4)
def test_rms_normalization(end: str, weight: str) -> None:
    for square in ("s = Pow(x, two)", "s = Mul(x, x)"):
        for total in ("t = Add(m, e)", "t = Add(e, m)"):
            found = check({"x": (3, 8)}, [node(square), MEAN[1], node(total), *ENDS[end], node(weight)], NUMBERS)
            assert ops(found) == ["RMSNormalization"] + ["Neg"] * ("Neg" in weight)


@pytest.mark.parametrize(
    "nodes",
    [
        [*MEAN, ROOT, node("y = Div(r, x)")],
        [*MEAN, ROOT, node("y = Mul(x, r)")],
        [*MEAN, node("i = Pow(t, two)"), node("y = Mul(x, i)")],
        [node("s = Mul(x, z)"), *MEAN[1:], ROOT, node("y = Div(x, r)")],
        [node("s = Pow(x, half)"), *MEAN[1:], ROOT, node("y = Div(x, r)")],
        [*MEAN[:2], node("t = Sub(m, e)"), ROOT, node("y = Div(x, r)")],
        [MEAN[0], node("m = ReduceMean(s, axis)", keepdims=0), MEAN[2], node("q = Unsqueeze(t, axis)"), node("r = Sqrt(q)"),
         node("y = Div(z, r)")],
        [*MEAN, ROOT, node("y = Div(z, r)")],
        [*MEAN, ROOT, node("i = Div(two, r)"), node("y = Mul(x, i)")],
    ],
    ids=str,
)  # fmt: skip
def test_what_stays(nodes: list[Any]) -> None:
    made = graph({"x": (3, 8), "z": (3, 8)}, nodes, ["y"], NUMBERS)
    given = [np.abs(normal(3, 8)) + 0.1, normal(3, 8, seed=1)]
    assert "RMSNormalization" not in ops(same(made, given))


def test_other_axes_stay() -> None:
    assert "RMSNormalization" not in ops(
        check({"x": (8, 8)}, [*MEAN, *ENDS["division"][:1], node("y = Div(x, r)")], NUMBERS | {"axis": np.array([0])})
    )


@pytest.mark.parametrize(
    "op", ["InstanceNormalization", "LayerNormalization", "RMSNormalization", "BatchNormalization", "GroupNormalization"]
)
def test_weights_that_are_normalized_are_constants(op: str) -> None:
    """As networks without normalization standardize their weights: more than 8192 of them, whose pairs would be too many."""
    rows, columns = 40, 1152
    w = normal(40, 128, 3, 3)
    vectors = {"one": np.ones(rows, np.float32), "nought": np.zeros(rows, np.float32), "wide": np.ones(columns, np.float32)}
    calls = {
        "LayerNormalization": "n = LayerNormalization(f, wide)",
        "RMSNormalization": "n = RMSNormalization(f, wide)",
        "BatchNormalization": "n = BatchNormalization(f, one, nought, nought, one)",
    }
    call = calls.get(op, f"n = {op}(f, one, nought)")
    attributes = {"num_groups": 4} if op == "GroupNormalization" else {}
    nodes = [node("f = Reshape(w, flat)"), node(call, **attributes), node("k = Reshape(n, whole)"), node("y = Conv(x, k)")]
    constants = vectors | {"w": w, "flat": np.array([1, rows, columns]), "whole": np.array(w.shape)}
    made = graph({"x": (1, 128, 6, 6)}, nodes, ["y"], constants)
    found = optimize(made)
    assert ops(found) == ["Conv"]
    x = normal(1, 128, 6, 6)
    want = outputs(made, [x], "reference")[0]
    np.testing.assert_allclose(outputs(found, [x], default())[0], want, atol=1e-5 * np.abs(want).max())

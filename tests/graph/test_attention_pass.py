"""Attention as torch.onnx writes it: keys turned as matrices of one batch, and 0 in place of weights that are NaN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fastlayers.ir.graph import Graph, Node
from fastlayers.passes import optimize
from tests.program.graphs import graph, node, normal

from .rewrites import check, default, ops, outputs

INF = np.float32(np.inf)
Q = {"q": (2, 2, 5, 4), "k": (2, 2, 6, 4), "v": (2, 2, 6, 3), "m": (2, 1, 5, 6)}
ZERO = {"zero": np.float32(0), "s": np.float32(0.7)}
TARGETS = {"flat": np.array([-1, 6, 4]), "whole": np.array([2, 2, 4, 6])}
PLAIN = [node("t = Transpose(k)", perm=(0, 1, 3, 2)), node("a = Mul(q, s)"), node("b = Mul(t, s)"), node("c = MatMul(a, b)"),
         node("d = Add(c, m)"), node("p = Softmax(d)", axis=-1)]  # fmt: skip
CHOICE = [node("n = IsNaN(p)"), node("w = Where(n, zero, p)"), node("y = MatMul(w, v)")]
TURNS = [node("r = Reshape(k, flat)"), node("u = Transpose(r)", perm=(0, 2, 1)), node("t = Reshape(u, whole)")]


def whole(nodes: Sequence[Node], constants: dict[str, np.ndarray] | None = None) -> Graph:
    return graph(Q, nodes, ["y"], ZERO | (constants or {}))


def given(**changed: np.ndarray) -> list[np.ndarray]:
    values = {name: normal(*shape, seed=i) for i, (name, shape) in enumerate(Q.items())}
    return list({**values, **changed}.values())


def test_zeros_for_weights_that_are_no_numbers() -> None:
    found = check(Q, [*PLAIN, *CHOICE], ZERO)
    assert ops(found) == ["ScaledAttention"]
    assert found.nodes[0].attributes["empty"] == 2
    for other in (np.zeros(1, np.float32), np.zeros((1, 1, 1), np.float32), np.float32(-0.0)):
        assert ops(optimize(whole([*PLAIN, *CHOICE], {"zero": other}))) == ["ScaledAttention"]


def test_the_same_numbers_for_queries_that_see_no_key_and_for_what_is_not_finite() -> None:
    made = whole([*PLAIN, *CHOICE])
    fused, plain = optimize(made), optimize(whole([*PLAIN, node("y = MatMul(p, v)")]))
    mask = np.zeros(Q["m"], np.float32)
    mask[0, 0, 2] = mask[1, 0, 4] = -INF
    assert np.isnan(outputs(plain, given(m=mask), default())[0][0, :, 2]).all()
    assert (outputs(fused, given(m=mask), default())[0][0, :, 2] == 0).all()
    for name in Q:
        for value in (np.nan, INF, -INF):
            for seen in (mask, np.zeros_like(mask), np.full_like(mask, -INF)):
                changed = {"m": seen.copy()}
                array = changed.setdefault(name, normal(*Q[name], seed=9))
                array[0, 0, 3, 1] = value
                for variant in dict.fromkeys(("reference", default())):
                    got, want = (outputs(form, given(**changed), v)[0] for form, v in ((fused, variant), (made, "reference")))
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=f"{name}: {value}")


def test_choices_that_stay() -> None:
    for nodes, constants in (
        ([*PLAIN, *CHOICE], {"zero": np.float32(1)}),
        ([*PLAIN, *CHOICE], {"zero": np.zeros(6, np.float32)}),
        ([*PLAIN, node("n = IsInf(p)"), *CHOICE[1:]], {}),
        ([*PLAIN, node("n = IsNaN(d)"), *CHOICE[1:]], {}),
        ([*PLAIN, CHOICE[0], node("w = Where(n, p, zero)"), CHOICE[2]], {}),
        (
            [*PLAIN, node("n = IsNaN(d)"), CHOICE[1], node("o = MatMul(w, v)"), node("e = MatMul(p, v)"), node("y = Add(o, e)")],
            {},
        ),
        ([*PLAIN, *CHOICE[:2], node("o = MatMul(w, v)"), node("e = MatMul(p, v)"), node("y = Add(o, e)")], {}),
    ):
        made = whole(nodes, constants)
        assert "Where" in ops(optimize(made))
        for got, want in zip(outputs(optimize(made), given(), default()), outputs(made, given(), "reference"), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    for shown in ("p", "n", "w"):
        found = check(Q, [*PLAIN, *CHOICE], ZERO, ("y", shown))
        assert "ScaledAttention" not in ops(found)


@pytest.mark.parametrize("mask", ["m", None])
def test_keys_turned_as_matrices_of_one_batch(mask: str | None) -> None:
    nodes = [*TURNS, *PLAIN[1:], node("y = MatMul(p, v)")]
    if mask is None:
        nodes = [*nodes[:6], node("p = Softmax(c)", axis=-1), nodes[-1]]
    found = optimize(whole(nodes, TARGETS))
    assert ops(found) == ["ScaledAttention"]
    assert found.nodes[0].inputs[:2] == ("q", "k") and "transposed" not in found.nodes[0].attributes
    np.testing.assert_allclose(
        outputs(found, given(), default())[0], outputs(whole(nodes, TARGETS), given(), "reference")[0], atol=1e-5
    )


def test_keys_of_open_sizes() -> None:
    """The targets of Reshape are made of the keys' own sizes."""
    sizes = [node("z = Shape(k)"), node("g = Slice(z, two, three)"), node("e = Slice(z, three, four)"),
             node("f = Concat(one, g, e)", axis=0),
             node("l = Slice(z, nought, two)"), node("h = Concat(l, e, g)", axis=0), node("r = Reshape(k, f)"),
             node("u = Transpose(r)", perm=(0, 2, 1)), node("t = Reshape(u, h)"), *PLAIN[1:], *CHOICE]  # fmt: skip
    numbers = {name: np.array([i]) for i, name in enumerate(("nought", "unused", "two", "three", "four"))} | {
        "one": np.array([-1])
    }
    shapes = {"q": ("b", 2, "s", 4), "k": ("b", 2, "t", 4), "v": ("b", 2, "t", 3), "m": ("b", 1, "s", "t")}
    made = graph(shapes, sizes, ["y"], ZERO | numbers)
    found = optimize(made)
    assert "ScaledAttention" in ops(found) and "Softmax" not in ops(found)
    for s, t in ((5, 6), (1, 6), (6, 1), (4, 4)):
        arrays = [normal(3, 2, s, 4), normal(3, 2, t, 4), normal(3, 2, t, 3), normal(3, 1, s, t)]
        np.testing.assert_allclose(outputs(found, arrays, default())[0], outputs(made, arrays, "reference")[0], atol=1e-5)


@pytest.mark.parametrize(
    "changed",
    [{"flat": np.array([-1, 4, 6]), "turn": (0, 2, 1)}, {"flat": np.array([4, 6, 4]), "whole": np.array([2, 2, 6, 4])},
     {"flat": np.array([-1, 12, 4])}, {"flat": np.array([2, 12, 4])}],
    ids=str,
)  # fmt: skip
def test_other_reshapes_stay(changed: dict[str, object]) -> None:
    targets = TARGETS | {k: v for k, v in changed.items() if k != "turn"}
    nodes = [*TURNS, *PLAIN[1:], node("y = MatMul(p, v)")]
    if list(targets["whole"]) == [2, 2, 6, 4]:  # which is no turned key: queries and keys trade places
        nodes = [*TURNS, node("y = Add(t, t)")]
    made = whole(nodes, targets)  # type: ignore[arg-type]
    found = optimize(made)
    assert not any(n.op == "ScaledAttention" and n.inputs[1] == "k" for n in found.nodes)
    np.testing.assert_allclose(outputs(found, given(), default())[0], outputs(made, given(), "reference")[0], atol=1e-5)

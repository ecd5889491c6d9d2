"""Convolutions with weights of bytes: stored so, dequantized while they are packed, with the bits of float32's."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import DTypeError, ShapeError
from fastlayers.ir.graph import Node
from fastlayers.operators import OPERATORS, Spec, View
from fastlayers.passes import optimize, quantized_weights
from tests.program.graphs import graph, node, normal

from .rewrites import default, ops, outputs

W = np.random.default_rng(0).integers(-8, 8, (6, 5, 3, 3)).astype(np.int8)


def scaled(axis: int, block: int, zeros: bool, weight: np.ndarray = W) -> tuple[list[Node], dict[str, np.ndarray]]:
    """The weights, dequantized; `block` of -1: one scale for all, 0: one for each index of the axis."""
    rng, shape = np.random.default_rng(axis + abs(block)), weight.shape
    sizes: tuple[int, ...] = () if block < 0 else (shape[axis],)
    if block > 0:
        sizes = tuple(-(-d // block) if i == axis else d for i, d in enumerate(shape))
    made = {"q": weight, "s": rng.uniform(0.01, 0.1, sizes).astype(np.float32)}
    if zeros:
        made["z"] = rng.integers(-8, 8, sizes).astype(weight.dtype) if weight.dtype == np.int8 else np.full(sizes, 9, np.uint8)
    return [node(f"w = DequantizeLinear({', '.join(made)})", axis=axis, block_size=max(block, 0))], made


def changed(nodes: list[Node], constants: dict[str, np.ndarray], monkeypatch: Any, **more: tuple[int, ...]) -> Any:
    """The graph after the pass, whose results must have the bits that they have without it."""
    shapes = {"x": (2, 5, 9, 8), **more}
    whole = graph(shapes, nodes, ["y"], constants)
    after = optimize(whole)
    with monkeypatch.context() as context:
        context.setattr(quantized_weights, "apply", lambda net: None)
        before = optimize(whole)
    given = [normal(*shape) for shape in shapes.values()]
    for variant in ("reference", default()):
        (got,), (want,) = (outputs(g, given, variant) for g in (after, before))
        np.testing.assert_array_equal(got, want)
    return after


def test_bytes_stay_in_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, block, axis, zeros in itertools.product((np.int8, np.uint8), (-1, 0, 2), (0, 1), (False, True)):
        made, constants = scaled(axis, block, zeros, (W.astype(np.int16) + 8 * (kind is np.uint8)).astype(kind))
        constants["c"] = normal(6)
        for words in ({}, {"pads": (1, 1, 1, 1)}, {"strides": (2, 2)}, {"dilations": (2, 2)}):
            after = changed([*made, node("y = Conv(x, w, c)", **words)], constants, monkeypatch)
            assert ops(after) == ["Conv"]
            assert after.constants["q"].dtype == kind
            assert not any(a.dtype == np.float32 and a.size >= W.size for a in after.constants.values())


def test_what_follows_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    made, constants = scaled(0, 0, True)
    nodes = [*made, node("a = Conv(x, w)"), node("b = Add(a, r)"), node("y = Relu(b)")]
    assert ops(changed(nodes, constants, monkeypatch, r=(2, 6, 7, 6))) == ["Conv"]


def test_groups_depthwise_and_other_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    made, constants = scaled(0, 0, True, W[:5, :1].copy())
    after = changed([*made, node("y = Conv(x, w)", group=5, pads=(1, 1, 1, 1))], constants, monkeypatch)
    assert ops(after) == ["Conv"]
    made, constants = scaled(0, 0, True, W[:, :, 0].copy())
    assert ops(changed([*made, node("y = Conv(x, w)")], constants, monkeypatch, x=(1, 5, 40))) == ["Conv"]


def test_what_becomes_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Normalizations and constants that go into the weights."""
    made, constants = scaled(0, 0, True)
    for name in "gbmv":
        constants[name] = np.abs(normal(6)) + 1
    constants["f"] = normal(6, 1, 1)
    for last in ("y = BatchNormalization(a, g, b, m, v)", "y = Mul(a, f)", "y = Add(f, a)"):
        after = changed([*made, node("a = Conv(x, w)"), node(last)], constants, monkeypatch)
        assert ops(after) == ["Conv"]
        assert len(after.nodes[0].inputs) == 3


@pytest.mark.onnx
def test_files(tmp_path: Path) -> None:
    """A saved file has the bytes, and gives the same bits; what is exported dequantizes them."""
    onnx: Any = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    big = np.random.default_rng(1).integers(-128, 128, (64, 32, 3, 3)).astype(np.int8)
    constants = {"q": big, "s": np.full(64, 0.01, np.float32), "z": np.zeros(64, np.int8)}
    helper = onnx.helper
    nodes = [helper.make_node("DequantizeLinear", list(constants), ["w"], axis=0), helper.make_node("Conv", ["x", "w"], ["y"])]
    values = [helper.make_tensor_value_info(n, 1, (1, c, d, d)) for n, c, d in (("x", 32, 12), ("y", 64, 10))]
    tensors = [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", values[:1], values[1:], tensors), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    x = normal(1, 32, 12, 12)
    model = fl.load(proto.SerializeToString())
    want = model(x)
    strict = fl.load(proto.SerializeToString(), precision="strict")
    assert [a.dtype for a in strict._main.whole_graph().constants.values() if a.size == big.size] == [np.int8]
    np.testing.assert_allclose(strict(x), want, rtol=0, atol=1e-5 * np.abs(want).max())
    expected = reference.ReferenceEvaluator(proto).run(None, {"x": x})[0]
    np.testing.assert_allclose(want, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    model.save(tmp_path / "m.safetensors")
    assert (tmp_path / "m.safetensors").stat().st_size < 1.2 * big.nbytes
    np.testing.assert_array_equal(fl.load(tmp_path / "m.safetensors")(x), want)
    model.export(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size < 1.2 * big.nbytes
    np.testing.assert_array_equal(fl.load(tmp_path / "m.onnx")(x), want)


def test_what_is_refused() -> None:
    x, q, s = Spec((1, 5, 9, 9), np.dtype(np.float32)), Spec(W.shape, np.dtype(np.int8)), Spec((6,), np.dtype(np.float32))
    wrong: list[tuple[list[Spec | None], dict[str, Any], type[Exception], str]] = [
        ([x, q._replace(dtype=np.dtype(np.int32)), None, None, s], {"axis": 0}, DTypeError, "the weights have dtype int32"),
        ([x, q, None, None, s._replace(dtype=np.dtype(np.float64))], {"axis": 0}, DTypeError, "their scales float64"),
        ([x, q, None, None, s, Spec((6,), np.dtype(np.uint8))], {"axis": 0}, DTypeError, "zero points uint8"),
        ([x, q, None, None, s._replace(shape=(5,))], {"axis": 0}, ShapeError, "the scale has 5 values"),
        ([x, q, None, None, s], {"axis": 9}, ShapeError, "axis is 9"),
        ([x, q, None, None, s], {"axis": 0, "block_size": 2}, ShapeError, "expected as many axes"),
    ]
    for inputs, attributes, error, text in wrong:
        names = tuple(None if spec is None else f"x{i}" for i, spec in enumerate(inputs))
        view = View(Node("Conv", names, ("y",), attributes), inputs, [None] * len(inputs))
        with pytest.raises(error, match=text):
            OPERATORS["Conv"].infer(view)

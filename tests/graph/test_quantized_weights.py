"""Products and tables of dequantized weights: which become those of few bits, with the same values, and which stay."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers._codes import CODES, values_of
from fastlayers.ir.graph import Node
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model, Options
from fastlayers.passes import optimize, quantized_weights
from tests.program.graphs import graph, node, normal

from .rewrites import default, ops, outputs

U8, I8 = np.uint8, np.int8
LOW = {2: -2, 4: -8, 8: -128}


def weights(
    kind: Any, bits: int, shape: tuple[int, int], axis: int, block: int, zeros: bool
) -> tuple[list[Node], dict[str, np.ndarray]]:
    """A matrix w of so many bits, dequantized; `block` of -1: one scale for all, 0: one for each index of the axis."""
    rng, low = np.random.default_rng(bits + axis), LOW[bits] if kind is I8 else 0
    sizes: tuple[int, ...] = () if block < 0 else (shape[axis],)
    if block > 0:
        sizes = tuple(-(-d // block) if i == axis else d for i, d in enumerate(shape))
    made = {"q": rng.integers(low, low + (1 << bits), shape).astype(kind), "s": rng.uniform(-0.1, 0.1, sizes).astype(np.float32)}
    made["q"].flat[:2] = low, low + (1 << bits) - 1
    if zeros:
        made["z"] = rng.integers(low, low + (1 << bits), sizes).astype(kind)
    return [node(f"w = DequantizeLinear({', '.join(made)})", axis=axis, block_size=max(block, 0))], made


def changed(
    shape: tuple[int, ...], nodes: list[Node], constants: dict[str, np.ndarray], monkeypatch: Any, bytes_pay: bool = False
) -> list[str]:
    """The operators after the pass, whose results must have the bits that they have without it in strict precision; else products
    may be of integers, and are off by less than 2^-19 of the largest result."""
    x = np.random.default_rng(0).integers(-3, 3, shape) if nodes[-1].op == "Gather" else normal(*shape)
    whole = graph({"x": (shape, x.dtype)}, nodes, ["y"], constants)
    after = optimize(whole, bytes_pay=bytes_pay)
    with monkeypatch.context() as context:
        context.setattr(quantized_weights, "apply", lambda net, bytes_pay: None)
        before = optimize(whole)
    for variant, strict in (("reference", True), (default(), True), (default(), False)):
        (got,), (want,) = (outputs(g, [x], variant, strict) for g in (after, before))
        if strict:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=0, atol=2.0**-19 * np.abs(want[np.isfinite(want)]).max(initial=0))
    return ops(after)


@pytest.mark.parametrize(("kind", "bits"), [(I8, 2), (U8, 2), (I8, 4), (U8, 4), (I8, 8), (U8, 8)])
def test_products_of_few_bits(kind: Any, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for block, zeros in itertools.product((16, 32, 48, 64, 512), (False, True)):
        for terms in (64, 100):
            made, constants = weights(kind, bits, (terms, 20), 0, block, zeros)
            assert changed((3, terms), [*made, node("y = MatMul(x, w)")], constants, monkeypatch) == ["MatMulNBits"]
            constants["c"] = normal(1, 20)
            assert changed((3, terms), [*made, node("y = Gemm(x, w, c)", beta=0.5)], constants, monkeypatch) == ["MatMulNBits"]
            made, constants = weights(kind, bits, (20, terms), 1, block, zeros)
            turned = [*made, node("t = Transpose(w)", perm=(1, 0))]
            assert changed((2, 3, terms), [*turned, node("y = MatMul(x, t)")], constants, monkeypatch) == ["MatMulNBits"]
            assert changed((3, terms), [*made, node("y = Gemm(x, w)", transB=1)], constants, monkeypatch) == ["MatMulNBits"]
            table = changed((2, 5), [*made, node("y = Gather(w, x)", axis=0)], constants, monkeypatch)
            assert table == ["GatherBlockQuantized"]


@pytest.mark.parametrize("block", [-1, 0])
def test_a_scale_for_all_or_for_each_column(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for bits, zeros in itertools.product((2, 4, 8), (False, True)):
        made, constants = weights(I8, bits, (40, 20), 1, block, zeros)
        want = "Linear" if bits == 8 else "MatMulNBits"
        assert changed((3, 40), [*made, node("y = MatMul(x, w)")], constants, monkeypatch) == [want]


@pytest.mark.parametrize("kind", [I8, U8])
@pytest.mark.parametrize("block", [-1, 0])
def test_large_matrices_of_bytes_where_they_pay(block: int, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of terms that are no multiple of a block; not those that are small, or mostly what pads them."""
    sizes = {(384, 192): True, (700, 128): True, (1000, 250): True, (256, 255): False, (700, 100): False, (8192, 16): False}
    for (terms, columns), pays in sizes.items():
        for zeros, axis in itertools.product((False, True), (0, 1)):
            made, constants = weights(kind, 8, (terms, columns) if axis else (columns, terms), axis, block, zeros)
            constants["b"] = normal(columns)
            turned = [] if axis else [node("t = Transpose(w)", perm=(1, 0))]
            nodes = [*made, *turned, node(f"p = MatMul(x, {'w' if axis else 't'})"), node("y = Add(p, b)")]
            assert changed((3, terms), nodes, constants, monkeypatch, pays) == ["MatMulNBits" if pays else "Linear"]
            assert changed((3, terms), nodes, constants, monkeypatch) == ["Linear"]
            if not pays:
                assert changed((3, terms), nodes, constants, monkeypatch, True) == ["Linear"]


def test_tables_of_bytes_stay_where_a_product_has_them() -> None:
    made, constants = weights(I8, 8, (256, 256), 0, 0, True)
    lookup, product = node("e = Gather(w, i)", axis=0), [node("t = Transpose(w)", perm=(1, 0)), node("y = MatMul(e, t)")]
    whole = graph({"i": ((3,), np.dtype(np.int64))}, [*made, lookup, *product], ["y"], constants)
    assert ops(optimize(whole, bytes_pay=True)) == ["GatherBlockQuantized", "MatMulNBits"]
    alone = graph({"i": ((3,), np.dtype(np.int64))}, [*made, lookup], ["e"], constants)
    assert ops(optimize(alone, bytes_pay=True)) == ["Gather"]


@pytest.mark.later("reference")
def test_levels_choose_whether_bytes_pay(variant: str, tmp_path: Path) -> None:
    """A model has as exact results as float32 under every variant, and so has what was saved under one, opened under any."""
    made, constants = weights(I8, 8, (600, 192), 1, 0, True)
    constants["b"] = normal(192)
    x = normal(9, 600)
    whole = graph({"x": ("n", 600)}, [*made, node("p = MatMul(x, w)"), node("y = Add(p, b)")], ["y"], constants)
    weight = (constants["q"].astype(np.float32) - constants["z"]) * constants["s"]
    want = x.astype(np.float64) @ weight.astype(np.float64) + constants["b"]
    model, strict = Model(whole, Options(variant=variant)), Model(whole, Options(variant=variant, strict=True))
    packed = dispatch.variant().multiplies_three_bytes()
    assert [n.op for n in model._main.whole_graph().nodes] == ["MatMulNBits" if packed else "Linear"]
    assert [n.op for n in strict._main.whole_graph().nodes] == ["MatMul", "Add"]
    size = sum(a.nbytes for a in model._main.whole_graph().constants.values())
    assert size < (1.15 if packed else 4.1) * weight.size
    for half, bits in ((1, 0), (0, 4)):  # what is asked for
        (only,) = (n for n in Model(whole, Options(variant=variant, half=half, bits=bits))._main.whole_graph().nodes)
        assert only.attributes.get("half", only.attributes.get("bits")) == (half or bits)
    model.save(tmp_path / "saved.safetensors", packed=False)
    for found in (model, strict, *(fl.load(tmp_path / "saved.safetensors", variant=name) for name in dispatch.available())):
        np.testing.assert_allclose(found(x), want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_zero_points_beyond_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that use four bits, about a zero point that does not."""
    made, constants = weights(U8, 4, (64, 20), 0, 32, True)
    constants["z"][0, 0] = 200
    assert changed((3, 64), [*made, node("y = MatMul(x, w)")], constants, monkeypatch) == ["MatMulNBits"]
    made, constants = weights(U8, 4, (20, 64), 1, 32, True)
    constants["z"][0, 0] = 200
    assert changed((2, 3), [*made, node("y = Gather(w, x)", axis=0)], constants, monkeypatch) == ["Gather"]


def test_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks along the other axis or of less than 16, scales of each term, factors, products with what is not constant."""
    for axis, block in ((1, 32), (0, 8), (0, 24), (0, 0)):
        made, constants = weights(I8, 4, (64, 64), axis, block, False)
        assert changed((3, 64), [*made, node("y = MatMul(x, w)")], constants, monkeypatch) == ["Linear"]
    made, constants = weights(I8, 4, (64, 64), 0, 32, False)
    assert changed((3, 64), [*made, node("y = Gemm(x, w)", alpha=0.5)], constants, monkeypatch) == ["Linear"]
    assert changed((64, 3), [*made, node("y = Gemm(x, w)", transA=1)], constants, monkeypatch) == ["Gemm"]
    assert changed((64, 3), [*made, node("y = MatMul(w, x)")], constants, monkeypatch) == ["MatMul"]
    assert changed((2, 3), [*made, node("y = Gather(w, x)", axis=0)], constants, monkeypatch) == ["Gather"]
    constants["s"][0, 0] = np.nan
    assert changed((3, 64), [*made, node("y = MatMul(x, w)")], constants, monkeypatch) == ["Linear"]


@pytest.mark.parametrize("kind", [name for name in CODES if name.startswith("FLOAT8")])
def test_floats_of_eight_bits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every code, NaN and infinity too; the same bits as with float32 of them."""
    rng, block = np.random.default_rng(0), 32
    q = rng.permutation(np.arange(64 * 20) % 256).astype(U8).reshape(64, 20)
    finite = np.isfinite(values_of(kind))
    for axis, codes in itertools.product((0, 1), (q, np.flatnonzero(finite).astype(U8)[q % finite.sum()])):
        stored = np.ascontiguousarray(codes if axis == 0 else codes.T)
        sizes = (2, 20) if axis == 0 else (20, 2)
        constants = {"q": stored, "s": rng.uniform(0.01, 0.1, sizes).astype(np.float32), "c": normal(20)}
        made = [node("w = DequantizeCodes(q, s)", axis=axis, block_size=block, codes=kind)]
        last = node("y = MatMul(x, w)") if axis == 0 else node("y = Gemm(x, w, c)", transB=1)
        assert changed((3, 64), [*made, last], constants, monkeypatch) == ["MatMulNBits"]
        if axis:
            assert changed((2, 5), [*made, node("y = Gather(w, x)")], constants, monkeypatch) == ["GatherBlockQuantized"]
    weight = rng.integers(0, 100, (6, 5, 3, 3)).astype(U8)
    made = [node("w = DequantizeCodes(q, s)", axis=0, codes=kind)]
    after = changed((1, 5, 9, 8), [*made, node("y = Conv(x, w)")], {"q": weight, "s": np.ones(6, np.float32)}, monkeypatch)
    assert after == ["Conv"]


def test_a_table_and_a_product_share_their_bytes() -> None:
    made, constants = weights(U8, 4, (20, 64), 1, 32, True)
    nodes = [*made, node("e = Gather(w, i)", axis=0), node("t = Transpose(w)", perm=(1, 0)), node("y = MatMul(e, t)")]
    after = optimize(graph({"i": ((3,), np.dtype(np.int64))}, nodes, ["y"], constants))
    assert ops(after) == ["GatherBlockQuantized", "MatMulNBits"]
    table, product = after.nodes
    assert [table.inputs[0], *table.inputs[2:]] == list(product.inputs[1:])
    assert sum(array.nbytes for array in after.constants.values()) == 20 * 32 + 20 * 2 * 4 + 20

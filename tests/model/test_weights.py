"""`load(weights=)`: what is stored in fewer bits, how far it is off, and that files, streams and batches keep its bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import cli
from fastlayers.errors import ArgumentError, ShapeError
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.kernels.halves import narrowed, widened
from fastlayers.kernels.table import HALVES
from fastlayers.operators.quantized.blocks import unpacked
from fastlayers.passes.few_bits import BLOCK, LEAST, _by_numpy, quantized

RNG = np.random.default_rng(0)
F32 = np.dtype(np.float32)
BITS = {"int8": 8, "int4": 4}
WORDS = ("bfloat16", "float16", "int8", "int4")


def normal(*shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) / 8).astype(np.float32)


def whole(numbers: np.ndarray, scales: np.ndarray, bits: int, k: int) -> np.ndarray:
    """The weights that numbers and scales stand for, (n, k)."""
    values = (unpacked(numbers, bits).astype(np.float64) - (1 << (bits - 1))) * scales[..., None]
    return np.asarray(values.reshape(len(numbers), -1)[:, :k])


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(("n", "k", "turned"), [(5, 32, False), (37, 100, False), (33, 70, True), (700, 1000, True)])
def test_no_weight_is_off_by_more_than_half_of_its_blocks_scale(bits: int, n: int, k: int, turned: bool) -> None:
    weight = normal(k, n).T if turned else normal(n, k)
    weight[0, :BLOCK] = 0
    weight[1, :BLOCK] = np.linspace(-1, 1, BLOCK)  # as far to one side as to the other
    weight[2, :BLOCK] = np.linspace(-1, 0.9, BLOCK)
    weight[3, :BLOCK] = -weight[2, :BLOCK]
    weight[4, :BLOCK] = np.float32(1e-44)
    found = quantized(weight, bits)
    got = whole(found.numbers, found.scales, bits, k)
    steps = np.repeat(np.abs(found.scales), BLOCK, 1)[:, :k]
    off = np.abs(weight - got)
    assert (off <= steps * (0.5 + 2.0**-14) + 1e-43).all()
    assert (steps <= np.abs(weight).max() / ((1 << (bits - 1)) - 1) * (1 + 1e-6)).all()
    np.testing.assert_allclose(found.rounded[1], off.max(), rtol=1e-4)
    np.testing.assert_allclose(found.rounded[0], np.linalg.norm(off) / np.linalg.norm(weight), rtol=1e-4)


@pytest.mark.parametrize("bits", [8, 4])
def test_the_compiled_engine_makes_the_numbers_of_numpy(bits: int) -> None:
    if dispatch.engine() is None:
        pytest.skip("the compiled engine is not built here")
    for n, k in ((1, 1), (5, 32), (37, 100), (33, 70), (16, 31), (300, 257)):
        bytes_ = np.zeros(4 * n * k + 1, np.uint8)
        shifted = bytes_[1:].view(np.float32).reshape(n, k)  # at an odd address, as a file may have it
        shifted[...] = normal(n, k)
        for weight in (normal(n, k), normal(k, n).T, shifted, normal(n, 2 * k)[:, ::2]):
            weight[0, :3] = (-1, 1, 0)[:k]
            got, want = quantized(weight, bits), _by_numpy(weight, bits)
            np.testing.assert_array_equal(got.numbers, want.numbers)
            np.testing.assert_array_equal(got.scales, want.scales)
            np.testing.assert_allclose(got.rounded, want.rounded, rtol=1e-4)
        for lost in (np.nan, np.inf, -np.inf):
            weight[-1, -1] = lost
            assert quantized(weight, bits) is None
            assert _by_numpy(weight, bits) is None


def stored(model: fl.Model) -> dict[str, np.ndarray]:
    return dict(model._main.whole_graph().constants)


@pytest.mark.parametrize("op", ["Gather", "Embedding"])
@pytest.mark.parametrize("word", WORDS)
def test_tables_have_few_bits_and_share_them_with_products(op: str, word: str, tmp_path: Path, variant: str) -> None:
    """Rows of a table, which turned is the matrix of a product too, as in language models."""
    table = normal(600, 64)
    nodes = [
        Node(op, ("t", "i"), ("e",), {}),
        Node("Transpose", ("t",), ("w",), {"perm": (1, 0)}),
        Node("MatMul", ("e", "w"), ("y",), {}),
    ]
    made = Graph(
        (Value("i", (2, 3), np.dtype(np.int64)),), (Value("e", None, F32), Value("y", None, F32)), tuple(nodes), {"t": table}
    )
    fl.Model(made).save(tmp_path / "plain.safetensors")
    model, ids = fl.load(tmp_path / "plain.safetensors", weights=word), np.array([[0, 599, 3], [17, 5, 5]])
    rows, products = model(ids)
    few = BITS.get(word)
    if few:
        found = quantized(table, few)
        want = whole(found.numbers, found.scales, few, 64)[ids].astype(np.float32)
    else:
        half = HALVES[word]
        want = widened(narrowed(table, half), half)[ids]
    np.testing.assert_array_equal(rows, want)
    assert 1e-6 < np.abs(rows - table[ids]).max() < 0.1
    sizes = {"int8": 1.125, "int4": 0.625}.get(word, 2) * table.size
    assert sum(a.nbytes for a in stored(model).values()) <= sizes + 64, "product and table share what they read"
    np.testing.assert_allclose(products, fl.load(tmp_path / "plain.safetensors")(ids)[1], rtol=0, atol=0.1)
    model.save(tmp_path / "few.safetensors")
    assert (tmp_path / "few.safetensors").stat().st_size < sizes + 4096
    for got, expected in zip(fl.load(tmp_path / "few.safetensors")(ids), (rows, products), strict=True):
        np.testing.assert_array_equal(got, expected)
    told = [line for line in model.summary([(2, 3)]).splitlines() if word in line and "e-" in line]
    assert len(told) == 2, "the table and the matrix"
    ids[0, 0] = -1
    if op == "Gather":
        np.testing.assert_array_equal(model(ids)[0][0, 0], rows[0, 1])
    elif few:
        with pytest.raises(ShapeError, match=r"id -1 is out of range: expected 0 to 599"):
            model(ids)


def test_what_is_compiled_takes_weights() -> None:
    net = fl.Sequential(fl.Embedding(500, 64), fl.Linear(64, 300))
    net.load_state_dict({"0.weight": normal(500, 64), "1.weight": normal(300, 64), "1.bias": normal(300)})
    given = fl.graph.Input("ids", ("n",), np.int64)
    ids = np.array([3, 499, 0])
    want = fl.compile(net, given)(ids)
    for word in WORDS:
        model = fl.compile(net, given, weights=word)
        assert 1e-6 < np.abs(model(ids) - want).max() < 0.3
        assert max(a.nbytes for a in stored(model).values()) < 4 * 300 * 64 or word in HALVES
    with pytest.raises(ArgumentError, match="compile: weights is 'int5'"):
        fl.compile(net, given, weights="int5")


def test_the_same_numbers_on_any_number_of_threads() -> None:
    weight, before = normal(3000, 200), fl.get_num_threads()
    found = []
    for count in (1, 3):
        fl.set_num_threads(count)
        found.append(quantized(weight, 4))
    fl.set_num_threads(before)
    np.testing.assert_array_equal(found[0].numbers, found[1].numbers)
    np.testing.assert_array_equal(found[0].scales, found[1].scales)


def saved(folder: Path, nodes: list[Node], constants: dict[str, np.ndarray], columns: int, inputs: int = 1) -> str:
    """A file of this graph of x (m, columns), and more inputs of the sizes of y; its output is y."""
    given = [Value("x", ("m", columns), F32), *(Value(f"x{i}", ("m", "n"), F32) for i in range(1, inputs))]
    graph = Graph(tuple(given), (Value("y", None, F32),), tuple(nodes), constants)
    fl.Model(graph).save(folder / "plain.safetensors")
    return str(folder / "plain.safetensors")


def products(op: str) -> tuple[list[Node], dict[str, np.ndarray], int]:
    """A graph of one product, its constants, and its number of inputs."""
    w, b = normal(140, 130), normal(140)
    if op == "MatMul":
        return [Node("MatMul", ("x", "w"), ("y",), {})], {"w": np.ascontiguousarray(w.T)}, 1
    if op == "Gemm":
        return [Node("Gemm", ("x", "w", "b"), ("y",), {"alpha": 0.5, "beta": 2.0, "transB": 1})], {"w": w, "b": b}, 1
    nodes = [Node("Linear", ("x", "w", "b"), ("z",), {}), Node("Add", ("z", "x1"), ("r",), {}), Node("Relu", ("r",), ("y",), {})]
    return nodes, {"w": w, "b": b}, 2


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Linear"])
def test_products_are_those_with_the_rounded_matrix(op: str, bits: int, optimize: bool, tmp_path: Path, variant: str) -> None:
    nodes, constants, inputs = products(op)
    path = saved(tmp_path, nodes, constants, 130, inputs)
    given = [normal(3, 130), *(normal(3, 140) for _ in range(1, inputs))]
    weight = constants["w"].T if op == "MatMul" else constants["w"] * np.float32(0.5 if op == "Gemm" else 1)
    found = quantized(weight, bits)
    want = given[0].astype(np.float64) @ whole(found.numbers, found.scales, bits, 130).T
    if op == "Gemm":
        want += 2 * constants["b"]
    if op == "Linear":
        want = np.maximum(want + constants["b"] + given[1], 0)
    exact = fl.load(path, weights=f"int{bits}", precision="strict", optimize=optimize)
    np.testing.assert_allclose(exact(*given), want, rtol=0, atol=2e-6)
    integer = fl.load(path, weights=f"int{bits}", optimize=optimize)
    np.testing.assert_allclose(integer(*given), want, rtol=0, atol=2e-2)
    assert np.abs(integer(*given) - want).max() > 1e-5, "x was not rounded to bytes"
    plain = fl.load(path)(*given)
    assert np.abs(exact(*given) - plain).max() > 1e-5, "the matrix was not rounded"
    # A row alone, and on any number of threads: the same bits.
    for i in range(3):
        np.testing.assert_array_equal(integer(*(a[i : i + 1] for a in given))[0], integer(*given)[i])
    alone = integer(*given)
    integer.num_threads = 1
    np.testing.assert_array_equal(integer(*given), alone)


def test_what_is_small_or_not_finite_stays(tmp_path: Path) -> None:
    huge = normal(LEAST // 128, 128)
    huge[3, 5] = np.inf
    for weight, changes in ((normal(LEAST // 128 - 1, 128), 0), (huge, 0), (normal(LEAST // 16, 16), 0), (normal(128, 128), 1)):
        path = saved(tmp_path, [Node("Linear", ("x", "w"), ("y",), {})], {"w": weight}, weight.shape[1])
        model = fl.load(path, weights="int8")
        assert model.summary([(2, weight.shape[1])]).count("MatMulNBits") == changes


def layers() -> tuple[fl.Layer, Any]:
    lstm, linear, last = fl.LSTM(24, 96, batch_first=True), fl.Linear(96, 180), fl.Linear(180, 100)
    net = fl.Sequential(lstm, linear, last)
    for layer in (lstm, linear, last):
        layer.load_state_dict({name: normal(*shape) for name, shape in layer.tensor_shapes().items()})
    return net, lambda v: last(fl.functional.gelu(linear(lstm(v)[0])))


@pytest.mark.parametrize("word", WORDS)
def test_files_streams_and_batches_keep_the_bits(word: str, tmp_path: Path, variant: str) -> None:
    _, function = layers()
    fl.compile(function, fl.graph.Input("x", ("n", "time", 24))).save(tmp_path / "a.safetensors")
    x = normal(2, 7, 24)
    model = fl.load(tmp_path / "a.safetensors", weights=word)
    want = model(x)
    assert 1e-6 < np.abs(want - fl.load(tmp_path / "a.safetensors")(x)).max() < 0.3
    model.save(tmp_path / "b.safetensors")
    large, small = (tmp_path / f"{name}.safetensors" for name in "ab")
    bound = {"int8": 0.75, "int4": 0.68}.get(word, 0.54)  # of few bits, the LSTM has none
    assert small.stat().st_size < bound * large.stat().st_size
    again = fl.load(small)
    np.testing.assert_array_equal(again(x), want)
    again.save(tmp_path / "c.safetensors")
    np.testing.assert_array_equal(fl.load(tmp_path / "c.safetensors")(x), want)
    stream = again.stream(axis="time")
    pieces = np.concatenate([stream(x[:, :3]), stream(x[:, 3:4]), stream(x[:, 4:])], 1)
    np.testing.assert_array_equal(pieces, want)
    np.testing.assert_array_equal(again(x[1:])[0], want[1])
    assert again.batch_axes() == {"x": 0, next(iter(again.outputs.names)): 0}


@pytest.mark.parametrize("word", WORDS)
def test_summary_has_sizes_and_errors_of_a_saved_file_too(word: str, tmp_path: Path) -> None:
    weight = normal(256, 128)
    path = saved(tmp_path, [Node("Linear", ("x", "w"), ("y",), {})], {"w": weight}, 128)
    model = fl.load(path, weights=word)
    model.save(tmp_path / "small.safetensors")
    tables = [m.summary([(2, 128)]).split("\n\n")[1] for m in (model, fl.load(tmp_path / "small.safetensors"))]
    assert tables[0] == tables[1]
    row = tables[0].splitlines()[2].split()
    assert word in row
    if word in ("int8", "int4"):
        found = quantized(weight, int(word[3:]))
        assert (float(row[-2]), float(row[-1])) == pytest.approx(found.rounded, rel=0.01)
    after = {"int8": 36.9, "int4": 20.5}.get(word, 65.5)
    assert f"1 matrices: 131 kB before, {after} kB after" in tables[0]
    assert "\n\n" not in fl.load(path).summary([(2, 128)])


def test_words_and_combinations_that_there_are_not(tmp_path: Path) -> None:
    for word in ("int5", "INT8", "", None, 8):
        with pytest.raises(fl.ArgumentError, match="expected one of 'float32', 'float16', 'bfloat16', 'int8', 'int4'"):
            fl.load(b"", weights=word)  # type: ignore[arg-type]
    for word, precision in (("int8", "float16"), ("float16", "bfloat16"), ("bfloat16", "strict")):
        with pytest.raises(fl.ArgumentError, match=f"load: weights is '{word}', precision is '{precision}': expected"):
            fl.load(b"", weights=word, precision=precision)


def test_the_command_converts(tmp_path: Path) -> None:
    path = saved(tmp_path, [Node("Linear", ("x", "w"), ("y",), {})], {"w": normal(256, 256)}, 256)
    target = tmp_path / "small.safetensors"
    assert cli.main(["convert", path, str(target), "--weights", "int4"]) == 0
    x = normal(2, 256)
    np.testing.assert_array_equal(fl.load(target)(x), fl.load(path, weights="int4")(x))
    assert target.stat().st_size < 0.2 * Path(path).stat().st_size

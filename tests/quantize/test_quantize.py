"""`fl.quantize`: networks of integers of those of float32, how far they are off, and what is refused."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model import quantization
from tests.each import each

from .networks import NETWORKS, filled, model, samples, short_races  # noqa: F401


def made(name: str, **options: Any) -> fl.Model:
    return fl.quantize(model(name), samples(name), **{"allow_slower": True, "max_error": 0.1, **options})


def off(name: str, got: fl.Model, count: int = 4) -> float:
    """The error as `fl.quantize` defines it, on other samples."""
    want, arrays = model(name), list(samples(name, count, 7))
    difference = sum(float(np.square(got(x) - want(x)).sum()) for x in arrays)
    return float(np.sqrt(difference / sum(float(np.square(want(x)).sum()) for x in arrays)))


def ops(made: fl.Model) -> list[str]:
    """Operators of the graph as it runs."""
    return [node.op for node in made._main.whole_graph().nodes]


RUN = {
    "convolutions": {"QLinearConv": 5, "QLinearAdd": 1, "QLinearMul": 1, "QLinearGlobalAveragePool": 2, "Conv": 0, "Gemm": 0},
    "products": {"MatMulIntegerToFloat": 3, "Linear": 0},
    "attention": {"MatMulIntegerToFloat": 6, "Linear": 0},
    "lstm": {"MatMulIntegerToFloat": 2, "LSTM": 1},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_results_are_near_and_of_integers(name: str) -> None:
    got = made(name)
    assert off(name, got) < 0.06
    assert got.quantization is not None
    assert got.quantization.error is not None and 0 < got.quantization.error < 0.05
    found = ops(got)
    assert {op: found.count(op) for op in RUN[name]} == RUN[name]
    assert "QuantizeLinear" in found


@pytest.mark.parametrize("name", NETWORKS)
def test_a_saved_network_has_the_same_bits(name: str, tmp_path: Path) -> None:
    got = made(name)
    got.save(tmp_path / "small.safetensors")
    again = fl.load(tmp_path / "small.safetensors")
    for x in samples(name, 2, 5):
        assert np.array_equal(got(x), again(x))
        assert np.array_equal(got(x[:1]), got(x)[:1])


def test_threads_change_no_bit() -> None:
    got, x = made("convolutions"), next(samples("convolutions", 1, 3))
    want, found = got(x), {}

    def run(i: int) -> None:
        found[i] = got(x)

    before = fl.get_num_threads()
    try:
        fl.set_num_threads(2)
        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        fl.set_num_threads(before)
    assert all(np.array_equal(found[i], want) for i in range(4))


def test_the_same_samples_give_the_same_network() -> None:
    first, second = made("convolutions"), made("convolutions")
    x = next(samples("convolutions", 1, 3))
    assert np.array_equal(first(x), second(x))


def test_sizes_that_are_open_stay_so() -> None:
    got = made("convolutions")
    assert got.inputs == model("convolutions").inputs
    x = np.random.default_rng(0).standard_normal((5, 3, 32, 32), np.float32)
    assert got(x).shape == (5, 10)


def test_few_layers_are_quantized_where_the_bound_is_tight() -> None:
    loose, tight = made("convolutions"), made("convolutions", max_error=0.002)
    assert tight.quantization is not None and loose.quantization is not None
    assert tight.quantization.error is not None and tight.quantization.error <= 0.002
    stays = [row for row in tight.quantization.layers if row.stored == "float32"]
    assert stays and all(row.why == "its error" for row in stays)
    assert len(stays) > len([row for row in loose.quantization.layers if row.stored == "float32"])
    assert off("convolutions", tight) < off("convolutions", loose)


def test_what_cannot_be_is_refused_with_figures() -> None:
    with pytest.raises(fl.UnsupportedError, match=r"max_error is 1\.00e-07: no layer stays within it: .* off by \d"):
        made("convolutions", max_error=1e-7)
    with pytest.raises(fl.UnsupportedError, match=r"max_error is 1\.00e-07: no matrix stays within it: in 4 bits .* off by \d"):
        fl.quantize(matrices(), weights="int4", max_error=1e-7)


def test_what_is_slower_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raced = [(1.0, 0.5)] * 8 + [(0.001, 0.002)]
    monkeypatch.setattr(quantization, "_raced", lambda *a: raced.pop(0) if len(raced) > 1 else raced[0])
    monkeypatch.setattr(quantization._Work, "measure", lambda *a: None)
    del raced[:-1]
    with pytest.raises(fl.UnsupportedError, match=r"takes 2\.000 ms a run, the float32 one 1\.000, with an error of"):
        made("products", allow_slower=False)
    assert made("products", allow_slower=True).quantization is not None


def test_layers_that_are_slower_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def raced(before: Any, after: Any, *rest: Any) -> tuple[float, float]:
        return (1.0, 2.0) if before._graph.nodes[-1].op == "Gemm" and len(before._graph.nodes) == 1 else (2.0, 1.0)

    monkeypatch.setattr(quantization, "_raced", raced)
    got = made("convolutions", allow_slower=False)
    assert got.quantization is not None
    row = got.quantization.layers[-1]
    assert (row.op, row.stored, row.why, row.seconds) == ("Gemm", "float32", "slower in integers", (1.0, 2.0))
    assert got.quantization.layers[0].seconds == (2.0, 1.0)


def test_what_is_kept_stays() -> None:
    got = made("convolutions", keep=["Gemm"])
    assert got.quantization is not None
    rows = got.quantization.layers
    assert (rows[-1].op, rows[-1].stored, rows[-1].why) == ("Gemm", "float32", "asked for")
    assert {row.why for row in rows[:-1] if row.stored == "float32"} == {"between floats"}
    named = made("convolutions", keep=[rows[0].name])
    assert named.quantization is not None and named.quantization.layers[0].why == "asked for"
    with pytest.raises(fl.ArgumentError, match="keep has 'nothing': expected the name of a layer"):
        made("convolutions", keep=["nothing"])


# ---- weights alone ------------------------------------------------------------------------------------------------------


def matrices() -> fl.Model:
    net = filled(fl.Sequential(fl.Linear(256, 128), fl.ReLU(), fl.Linear(128, 256), fl.Linear(256, 4)))
    return fl.compile(net, fl.graph.Input("x", ("n", 256)))


@each("weights", ["int8", "int4"])
def test_weights_alone(weights: str) -> None:
    plain = matrices()
    arrays = [np.random.default_rng(i).standard_normal((3, 256), np.float32) for i in range(3)]
    most = {"int8": 0.02, "int4": 0.3}[weights]
    for given in (None, arrays):
        got = fl.quantize(plain, given, max_error=most, activations=False, weights=weights, allow_slower=True)
        assert ops(got).count("MatMulNBits") == 2
        assert got.quantization is not None and (got.quantization.error is None) == (given is None)
        want = plain(arrays[0])
        assert np.linalg.norm(got(arrays[0]) - want) <= most * np.linalg.norm(want)
        assert got.quantization.bytes[1] < got.quantization.bytes[0] / 3


# ---- samples ------------------------------------------------------------------------------------------------------------


def test_samples_are_read_once_and_let_go() -> None:
    alive: list[weakref.ref[np.ndarray]] = []
    most = 0

    def given() -> Iterator[np.ndarray]:
        nonlocal most
        for x in samples("products", 100):
            array = np.array(x)
            alive.append(weakref.ref(array))
            yield array
            del array
            if len(living := [ref for ref in alive if ref() is not None]) > 4:
                gc.collect()  # which takes long among all the tests
            alive[:] = [ref for ref in living if ref() is not None]
            most = max(most, len(alive))

    got = fl.quantize(model("products"), given(), allow_slower=True)
    assert most <= 4  # those that are kept are copies
    assert got.quantization is not None and got.quantization.samples == (100, 16)


def test_samples_in_every_form() -> None:
    want = made("products")
    x = next(samples("products", 1, 9))
    for given in ([(a,) for a in samples("products")], [{"x": a} for a in samples("products")], iter(samples("products"))):
        assert np.array_equal(fl.quantize(model("products"), given, allow_slower=True)(x), want(x))


def test_progress_is_told() -> None:
    shares: list[float] = []
    made("products", progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 5


def raising() -> Iterator[np.ndarray]:
    yield next(samples("products", 1))
    raise KeyError("mine")


BAD: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "none": ([], {}, fl.ArgumentError, "there are no samples"),
    "none, weights": ([], {"activations": False}, fl.ArgumentError, "there are no samples"),
    "number": (3, {}, fl.DTypeError, "samples is of type int"),
    "dict": ({"x": np.zeros((1, 48))}, {}, fl.DTypeError, "samples is of type dict: expected an iterable of samples"),
    "shape": ([np.zeros((1, 47), np.float32)], {}, fl.ShapeError, r"sample 0: .*input 'x' has shape \(1, 47\)"),
    "later": ([np.zeros((1, 48), np.float32), np.zeros(3, np.float32)], {}, fl.ShapeError, "sample 1: "),
    "count": ([(np.zeros((1, 48)), 3)], {}, fl.ArgumentError, "sample 0 has 2 arrays: expected 1"),
    "name": ([{"y": np.zeros((1, 48))}], {}, fl.ArgumentError, "sample 0: .*lacks"),
    "nan": ([np.full((1, 48), np.nan, np.float32)], {}, fl.ArgumentError, "sample 0: input 'x' has NaN or infinity"),
    "text": (["abc"], {}, fl.DTypeError, "sample 0: "),
    "raises": (raising(), {}, KeyError, "mine"),
    "zero": (None, {"max_error": 0}, fl.ArgumentError, "max_error is 0"),
    "negative": (None, {"max_error": -0.5}, fl.ArgumentError, "max_error is -0.5"),
    "not a number": (None, {"max_error": float("nan")}, fl.ArgumentError, "max_error is nan"),
    "bits": (None, {"weights": "int2"}, fl.ArgumentError, "weights is 'int2': expected 'int8' or 'int4'"),
    "int4": ([np.zeros((1, 48))], {"weights": "int4"}, fl.ArgumentError, "weights is 'int4': expected 'int8'"),
    "keep": (None, {"keep": "Gemm"}, fl.DTypeError, "keep is the str 'Gemm': expected a list of names"),
    "progress": (None, {"progress": 3}, fl.DTypeError, "progress is of type int"),
}


@each("name", BAD)
def test_bad_arguments(name: str) -> None:
    given, options, error, match = BAD[name]
    with pytest.raises(error, match=match):
        fl.quantize(model("products"), given, **{"allow_slower": True, **options})


def test_bad_networks() -> None:
    with pytest.raises(fl.DTypeError, match="model is of type str: expected a Model"):
        fl.quantize("model.onnx")
    plain = fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", ("n", 48)))
    for given in (None, samples("products")):
        with pytest.raises(fl.UnsupportedError, match="no convolution or product of the network has fixed float32 weights"):
            fl.quantize(plain, given)
    with pytest.raises(fl.UnsupportedError, match="is quantized already: it has DequantizeLinear, QuantizeLinear"):
        fl.quantize(made("products"), samples("products"))
    with pytest.raises(fl.UnsupportedError, match="precision='strict'"):
        fl.quantize(model("products", precision="strict"), samples("products"))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_was_saved_as_it_runs(name: str, tmp_path: Path) -> None:
    model(name).save(tmp_path / "plain.safetensors")
    got = fl.quantize(fl.load(tmp_path / "plain.safetensors"), samples(name), allow_slower=True)
    assert off(name, got) < 0.06 and {"MatMulIntegerToFloat", "QLinearConv"} & set(ops(got))


def test_values_that_are_infinite_within() -> None:
    net = fl.Sequential(fl.Linear(48, 8), fl.Linear(8, 8))
    net.load_state_dict({"0.weight": np.full((8, 48), 3e38), "0.bias": np.zeros(8), "1.weight": np.eye(8), "1.bias": np.zeros(8)})
    with pytest.raises(fl.ArgumentError, match=r"sample 0: value '.*' of the network is NaN or infinity"):
        fl.quantize(fl.compile(net, fl.graph.Input("x", ("n", 48))), samples("products"), allow_slower=True)


# ---- the report ---------------------------------------------------------------------------------------------------------


def test_the_table_and_the_page() -> None:
    found = made("convolutions").quantization
    assert found is not None
    text = str(found)
    assert text.split()[:7] == ["layer", "operator", "stored", "as", "why", "error", "added"]
    assert "of 13 layers in integers" in text and "relative error of the outputs" in text and "times as fast" in text
    page = found.html("<b>mine")
    assert "&lt;b&gt;mine" in page and "<b>mine" not in page and page.count("<tr>") == len(found.layers) + 1


def test_tables_are_quantized_within_the_bound_alone() -> None:
    """Weights alone: a table is a layer as a matrix is, which `keep` and `max_error` leave in float32."""
    net, rng = fl.Sequential(fl.Embedding(400, 64), fl.Linear(64, 300)), np.random.default_rng(0)
    shapes = {"0.weight": (400, 64), "1.weight": (300, 64), "1.bias": (300,)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    weights["0.weight"][:, ::32] *= 1000  # blocks in which all others are rounded away
    net.load_state_dict(weights)
    model = fl.compile(net, fl.graph.Input("ids", ("n",), np.int64))
    ids = np.arange(50)
    rows = model._main.whole_graph().constants
    assert any(a.shape == (400, 64) for a in rows.values())
    for words, few in (({}, {"Embedding", "Linear"}), ({"keep": ["Embedding"]}, {"Linear"})):
        found = fl.quantize(model, weights="int4", max_error=0.2, allow_slower=True, **words)
        layers = {layer.op: layer.stored for layer in found.quantization.layers}
        assert {op for op, stored in layers.items() if stored == "int4"} == few
        assert found(ids).shape == (50, 300)


def test_what_is_beyond_the_bound_alone_goes_first() -> None:
    """However much time it saves: else it stays until all others are gone."""
    work = quantization._Work(model("products"), 0.1, (), True, lambda share: None)
    work.alone = {0: 0.5, 1: 0.01, 2: 0.02}
    work.times = {0: (1.0, 0.1), 1: (2e-6, 1e-6), 2: (2e-6, 1e-6)}
    assert work.without([0, 1, 2], 1) == [1, 2]
    assert work.without([0, 1, 2], 2) == [1]

"""`Model.export`: ONNX files of networks, which read back the same, and which onnxruntime runs with the same integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats import onnx
from fastlayers.formats.budget import Budget
from fastlayers.formats.source import open_source
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.model.model import Model
from tests.formats import onnx_build as ob

from .layerwise import session, steps_apart
from .networks import NETWORKS, model, samples, short_races  # noqa: F401

WRITTEN = [name for name in NETWORKS if name != "lstm"]
FLOAT = np.dtype(np.float32)


def quantized(name: str) -> fl.Model:
    return fl.quantize(model(name), samples(name), max_error=0.1, allow_slower=True)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_reads_back(name: str, tmp_path: Path) -> None:
    plain, small = model(name), quantized(name)
    for made in (plain, small):
        made.export(tmp_path / "net.onnx")
        again = fl.load(tmp_path / "net.onnx")
        assert again.inputs == made.inputs and again.outputs.names == made.outputs.names
        for x in samples(name, 2, 11):
            if made is small:
                assert np.array_equal(again(x), made(x))
            np.testing.assert_allclose(again(x), made(x), rtol=0, atol=2e-6 * np.abs(made(x)).max())


def test_the_file_is_as_small_as_it_can_be(tmp_path: Path) -> None:
    model("convolutions").export(tmp_path / "plain.onnx")
    quantized("convolutions").export(tmp_path / "small.onnx")
    assert (tmp_path / "small.onnx").stat().st_size < 0.5 * (tmp_path / "plain.onnx").stat().st_size


def written(graph: Graph, tmp_path: Path) -> Any:
    """What our reader finds in a graph's file."""
    Model(graph).export(tmp_path / "net.onnx")
    budget = Budget(1 << 30, "load")
    return onnx.read(open_source(tmp_path / "net.onnx", caller="load", mapped=True, budget=budget), budget)


def one(op: str, *shapes: tuple[int, ...], constants: dict[str, np.ndarray] | None = None, **attributes: Any) -> Graph:
    """A graph of one node."""
    inputs = [Value(f"x{i}", shape, FLOAT) for i, shape in enumerate(shapes)]
    names = (*(v.name for v in inputs), *(constants or {}))
    return Graph(tuple(inputs), (Value("y", None, FLOAT),), (Node(op, names, ("y",), attributes),), constants or {})


def test_versions_are_as_old_as_they_can_be(tmp_path: Path) -> None:
    found = {op: written(one(op, (2, 3)), tmp_path) for op in ("Relu", "Gelu")}
    assert {op: made.opsets[""] for op, made in found.items()} == {"Relu": 18, "Gelu": 20}
    assert [made.ir_version for made in found.values()] == [8, 9]
    few = fl.load(ob.model(ob.graph([ob.node("Relu", "x", "y")], "x", "y")), weights="int8")
    assert written(few._graph, tmp_path).producer_name == "fastlayers"


def test_operators_of_onnxruntime_have_its_domain(tmp_path: Path) -> None:
    net = fl.Linear(256, 64)
    rng = np.random.default_rng(0)
    net.load_state_dict({"weight": rng.standard_normal((64, 256)), "bias": np.zeros(64)})
    small = fl.quantize(fl.compile(net, fl.graph.Input("x", (3, 256))), max_error=0.1)
    assert written(small._graph, tmp_path).opsets == {"": 18, "com.microsoft": 1}
    x = rng.standard_normal((3, 256), np.float32)
    assert np.array_equal(fl.load(tmp_path / "net.onnx")(x), small(x))


def test_our_own_spellings_are_onnx_s(tmp_path: Path) -> None:
    def ops(graph: Graph) -> list[str]:
        return [node.op_type for node in written(graph, tmp_path).graph.nodes]

    weight, bias = np.ones((4, 3), FLOAT), np.ones(4, FLOAT)
    assert ops(one("Linear", (2, 3), constants={"w": weight, "b": bias}, activation=(1, 0.0, 0.0))) == ["Gemm", "Relu"]
    assert ops(one("Linear", (2, 5, 3), constants={"w": weight, "b": bias})) == ["MatMul", "Add"]
    assert ops(one("Affine", (2, 4, 3), constants={"s": bias, "t": bias}, axis=1)) == ["Mul", "Add"]
    assert ops(one("Softmax", (2, 4, 3), axis=1, flatten=True)) == ["Flatten", "Softmax", "Shape", "Reshape"]
    assert ops(one("Swish", (2, 4))) == ["Sigmoid", "Mul"]
    assert ops(one("AdaptivePool", (2, 4, 5, 5), sizes=(1, 1), reduce="mean")) == ["GlobalAveragePool"]
    assert ops(one("Activate", (2, 4), activation=(2, 0.0, 6.0))) == ["Clip"]
    x = np.random.default_rng(0).standard_normal((2, 4, 3), np.float32)
    flat = one("Softmax", (2, 4, 3), axis=1, flatten=True)
    Model(flat).export(tmp_path / "net.onnx")
    np.testing.assert_allclose(fl.load(tmp_path / "net.onnx")(x), Model(flat)(x), rtol=1e-6)


def test_what_onnx_has_not_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    for graph, match in (
        (
            one("AdaptivePool", (2, 4, 5, 5), sizes=(2, 2), reduce="mean"),
            r"export: AdaptivePool \(y\): ONNX has no such operator",
        ),
        (
            one("Conv", (1, 3, 5, 5), constants={"w": np.ones((2, 3, 1, 1), FLOAT)}, pad_mode=1),
            "operator Conv: attribute pad_mode",
        ),
    ):
        with pytest.raises(fl.UnsupportedError, match=match):
            Model(graph).export(path)
    with pytest.raises(fl.UnsupportedError, match=r"export: LSTM \(.*\): ONNX has not operator LSTM: attribute joined"):
        model("lstm").export(path)
    assert not path.exists()
    with pytest.raises(fl.ArgumentError, match=r"expected a name that ends in \.onnx"):
        model("products").export(tmp_path / "net.safetensors")
    with pytest.raises(FileNotFoundError):
        model("products").export(tmp_path / "none" / "net.onnx")


def test_branches_texts_and_metadata(tmp_path: Path) -> None:
    then = ob.graph([ob.node("Mul", "x k", "t")], (), "t", [ob.tensor(np.float32(3), "k")])
    other = ob.graph([ob.node("Neg", "x", "o")], (), "o")
    flag = ob.value_info("c", (), 9)
    content = ob.model(
        ob.graph([ob.node("If", "c", "y", then_branch=then, else_branch=other)], [flag, ob.value_info("x", ("n",))], "y")
    )
    made = fl.load(content)
    made.metadata["word"] = "value"
    made.export(tmp_path / "net.onnx")
    again = fl.load(tmp_path / "net.onnx")
    assert again.metadata == {"word": "value"}
    for c in (True, False):
        assert np.array_equal(again(np.array(c), np.ones(3, np.float32)), made(np.array(c), np.ones(3, np.float32)))


# ---- onnxruntime --------------------------------------------------------------------------------------------------------


@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", WRITTEN)
def test_onnxruntime_finds_the_same_integers(name: str, tmp_path: Path) -> None:
    """Every value of bytes: the same, but for one step where a sum is just between two. Results are off by rounding alone."""
    import onnxruntime

    small = quantized(name)
    small.export(tmp_path / "net.onnx")
    stored = [node.outputs[0] for node in small._graph.nodes if node.op == "QuantizeLinear"]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    content = (tmp_path / "net.onnx").read_bytes()
    session = onnxruntime.InferenceSession(content + onnx.more_outputs(stored), options, providers=["CPUExecutionProvider"])
    for x in samples(name, 3, 13):
        want = dict(zip(stored, session.run(stored, {"x": x}), strict=True))
        got = small.run({"x": x}, outputs=stored)
        for value in stored:
            assert got[value].dtype == want[value].dtype == np.uint8
            steps = np.abs(got[value].astype(int) - want[value].astype(int))
            assert steps.max() <= 1 and (steps == 0).mean() > 0.99, value
        (result,) = session.run(None, {"x": x})[:1]
        np.testing.assert_allclose(small(x), result, rtol=0, atol=0.02 * np.abs(result).max())


@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", WRITTEN)
def test_each_layer_of_the_same_input_has_the_integers_of_onnxruntime(name: str) -> None:
    """But for one step where a result is just between two integers, as floats of normalizations, softmax and GELU may be."""
    small = quantized(name)
    for x in samples(name, 3, 17):
        for value, steps in steps_apart(small, {"x": x}).items():
            assert steps.max() <= 1 and (steps == 0).mean() > 0.995, value


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_saved_and_loaded_is_written(name: str, tmp_path: Path) -> None:
    """Channels last, tables of bytes, fused operators and all: the bits of the model, as it was and as it was quantized."""
    for made in (quantized(name), model(name)):
        made.save(tmp_path / "net.safetensors")
        loaded = fl.load(tmp_path / "net.safetensors")
        loaded.export(tmp_path / "net.onnx")
        again = fl.load(tmp_path / "net.onnx")
        assert again.inputs == made.inputs and again.outputs.names == made.outputs.names
        for x in samples(name, 2, 11):
            np.testing.assert_allclose(again(x), made(x), rtol=0, atol=2e-6 * np.abs(made(x)).max())


@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", WRITTEN)
def test_onnxruntime_takes_what_was_saved_and_loaded(name: str, tmp_path: Path) -> None:
    for made, bound in ((quantized(name), 0.02), (model(name), 5e-6)):
        made.save(tmp_path / "net.safetensors")
        fl.load(tmp_path / "net.safetensors").export(tmp_path / "net.onnx")
        for x in samples(name, 2, 13):
            (result,) = session((tmp_path / "net.onnx").read_bytes()).run(None, {"x": x})
            np.testing.assert_allclose(made(x), result, rtol=0, atol=bound * np.abs(result).max())


@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", WRITTEN)
def test_onnxruntime_takes_float32_networks(name: str, tmp_path: Path) -> None:
    import onnxruntime

    plain = model(name)
    plain.export(tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    for x in samples(name, 2, 13):
        (result,) = session.run(None, {"x": x})
        np.testing.assert_allclose(plain(x), result, rtol=0, atol=5e-6 * np.abs(result).max())

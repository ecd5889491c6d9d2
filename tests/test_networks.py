"""Whole networks next to other engines: what a file of figures says, how it grows, and results in float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from bench import network_files, networks
from bench.peers import ratio
from bench.timing import read, times_of

ROOT = Path(__file__).parent.parent


def row(network: str, threads: int, ours: float, **theirs: float) -> dict[str, Any]:
    seconds = {"fastlayers": ours, **theirs}
    return {
        "network": network, "family": network.split()[0], "seconds": seconds, "ratio": ratio(seconds), "notes": {}, "limit": 0.5,
        "numpy": {}, "numpy_share": 0.0, "staged": False, "multiply_adds": 0, "threads": threads, "variant": "x86_v4",
    }  # fmt: skip


def test_a_ratio_is_the_faster_peers_time_over_ours() -> None:
    assert ratio({"fastlayers": 2.0, "onnxruntime": 3.0, "openvino": 8.0}) == 1.5
    assert ratio({"fastlayers": 2.0}) is None and ratio({"onnxruntime": 2.0}) is None


def test_two_threads_over_one_are_those_of_the_faster_peer_at_each() -> None:
    rows = [row("a x", 1, 8.0, onnxruntime=6.0, openvino=9.0), row("a x", 2, 4.0, onnxruntime=5.0, openvino=3.0)]
    assert networks.scaling(rows) == {("a x", "x86_v4"): (2.0, 2.0)}
    assert networks.scaling(rows[:1]) == {}
    assert networks.scaling([rows[0], {**rows[1], "seconds": {"openvino": 3.0}}]) == {}


def test_figures_are_added_to_a_file_and_those_of_a_case_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    name = networks.case_name("a x", "x86_v4", 1)
    networks.add(path, {name: {"ratio": 1.0}}, {name: {"fastlayers": times_of([2.0, 4.0]), "openvino": times_of([2.0])}})
    networks.add(path, {"b": {"ratio": 2.0}}, {"b": {"fastlayers": times_of([1.0])}})
    networks.add(path, {"a x": {"default_ratio": 2}}, {}, "accuracy")
    networks.add(path, {name: {"ratio": 3.0}}, {name: {"fastlayers": times_of([1.0])}})
    told, times = read(path)
    assert told["cases"] == {name: {"ratio": 3.0}, "b": {"ratio": 2.0}} and told["accuracy"] == {"a x": {"default_ratio": 2}}
    assert times[name].keys() == {"fastlayers"} and times[name]["fastlayers"]["best"] == 1.0 and times["b"]
    assert json.loads(path.read_text())["format"] == 1 and not list(tmp_path.glob("*.part"))


def test_the_table_has_means_by_family_what_is_behind_and_what_runs_in_numpy() -> None:
    rows = [row("a x", 1, 1.0, onnxruntime=4.0), row("a y", 1, 2.0, openvino=2.0), row("b z", 1, 2.0, openvino=1.0)]
    rows[2] |= {"numpy": {"TopK": 2, "Mod": 1}, "numpy_share": 0.25}
    rows.append({**row("b w", 1, 1.0), "ratio": None, "notes": {"openvino": "no such operator"}})
    error = {"worst": 2e-6, "rms": 1e-6}
    near = {"network": "a x", "near": False, "default_ratio": 1.25, "strict_ratio": None}
    told = {"cases": {str(i): one for i, one in enumerate(rows)}}
    told["accuracy"] = {"a x": near | dict.fromkeys(("onnxruntime", "default", "strict"), error)}
    # As a file has infinite errors
    unlike = {name: {"worst": None, "rms": None} for name in ("onnxruntime", "default", "strict")}
    told["accuracy"]["a y"] = near | unlike | {"network": "a y", "default_ratio": None}
    lines = networks.report(told).splitlines()
    assert [line.split()[1] for line in lines[2:6]] == ["w", "z", "y", "x"]
    assert "no such operator" in lines[2] and "numpy 25.0%: Mod TopK x2" in lines[3]
    summed = {line.split()[0]: line for line in lines[7:] if "mean" in line}
    assert "geometric mean  2.00  least  1.00  of  2, 0 below 1" in summed["a"]
    assert lines[-2].startswith("a x") and " 1.25     -  far from all" in lines[-2]
    assert lines[-1].split()[:8] == ["a", "y", *"------"] and "far from all" in lines[-1]
    assert "geometric mean  1.26  least  0.50  of  3, 1 below 1" in summed["all"]


def test_names_are_unlike_and_of_a_family_each() -> None:
    assert len(set(network_files.NAMES)) == len(network_files.NAMES)
    families = [network_files.family_of(name) for name in network_files.NAMES]
    assert {family: families.count(family) for family in network_files.FAMILIES} == {
        "torchvision": 12, "timm": 15, "transformers": 10, "silero": 6, "rapidocr": 3, "magika": 1, "basic-pitch": 1, "onnx": 9,
    }  # fmt: skip


def test_a_network_is_what_was_put(tmp_path: Path) -> None:
    feeds = {"a/b:0": np.arange(3, dtype=np.float32), "file": np.ones((2, 1), np.int64)}
    networks.put(networks.file_of(tmp_path, "timm x"), b"model", feeds)
    model = networks.taken(tmp_path, "timm x")
    assert (model.name, model.family, model.content) == ("timm x", "timm", b"model") and list(model.feeds) == list(feeds)
    assert all(np.array_equal(model.feeds[name], x) and model.feeds[name].dtype == x.dtype for name, x in feeds.items())


# ---- float64 ------------------------------------------------------------------------------------------------------------


def model_of(nodes: list[Any], weights: dict[str, np.ndarray], shape: tuple[int, ...], opset: int = 17) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    content: bytes = made.SerializeToString()
    return content


def near_onnxruntime(nodes: list[Any], weights: dict[str, np.ndarray], x: np.ndarray, opset: int = 17) -> None:
    """The float64 result is ONNX Runtime's, to float32's last bits, and is float64."""
    import onnxruntime

    from bench.accuracy import errors, evaluated

    content = model_of(nodes, weights, x.shape, opset)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (want,), (got,) = session.run(None, {"x": x}), evaluated(content, {"x": x})
    assert got.dtype == np.float64
    found = errors([want], [got])
    assert found.worst < 2e-6 and found.rms < 2e-6, nodes[-1].op_type


@pytest.mark.onnx
def test_no_float32_is_left_in_a_model_that_was_doubled() -> None:
    from onnx import TensorProto, helper, numpy_helper

    from bench.accuracy import double, evaluated

    third = np.array([1 / 3], np.float32)
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value_floats=[0.1]), helper.make_node("Mul", ["x", "c"], ["t"])], "then", [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["e"])], "else", [], [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)]
    )
    nodes = [
        helper.make_node("Constant", [], ["on"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node("If", ["on"], ["i"], then_branch=inner, else_branch=other),
        helper.make_node("Cast", ["i"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["h"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["f", "w"], ["y"]),
    ]
    content = model_of(nodes, {"w": third}, (1,))
    text = str(double(content))
    assert "elem_type: 1\n" not in text and "data_type: 1\n" not in text and "value_floats" not in text and "i: 10\n" not in text
    x = np.array([0.7], np.float32)
    (y,) = evaluated(content, {"x": x})
    # Weights are the file's: their float32 values; sums and products are not rounded to it.
    assert y.dtype == np.float64 and y == np.float64(x) * np.float64(np.float32(0.1)) + np.float64(third)


@pytest.mark.onnx
@pytest.mark.onnxruntime
def test_operators_in_float64_are_onnxruntimes() -> None:
    from onnx import helper

    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    x, node = normal(2, 6, 9, 7), helper.make_node
    for attributes in (
        {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2], "group": 2}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, {"group": 2},
    ):  # fmt: skip
        wide = 3 if "group" in attributes else 6
        near_onnxruntime([node("Conv", ["x", "w", "b"], ["y"], **attributes)], {"w": normal(8, wide, 3, 2), "b": normal(8)}, x)
    for attributes in (
        {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 0], "group": 2},
        {"dilations": [2, 1], "pads": [3, 0, 5, 2]},
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, {"strides": [2, 1], "auto_pad": "SAME_LOWER"},
        {"strides": [2, 2], "auto_pad": "SAME_UPPER", "output_shape": [8, 9]},
    ):  # fmt: skip
        weights = {"w": normal(6, 4, 3, 2), "b": normal(8 if "group" in attributes else 4)}
        near_onnxruntime([node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes)], weights, x)
    for op, more in (("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})):
        for ceil in (0, 1):
            pool = node(op, ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 0, 1], ceil_mode=ceil, **more)
            near_onnxruntime([pool], {}, x)
    near_onnxruntime([node("Erf", ["x"], ["y"])], {}, x)
    near_onnxruntime([node("LRN", ["x"], ["y"], size=3, alpha=0.5, bias=2.0)], {}, x)
    near_onnxruntime([node("GlobalMaxPool", ["x"], ["y"])], {}, x[:, :, 0])
    statistics = {"s": normal(6), "b": normal(6), "m": normal(6), "v": normal(6) ** 2}
    for opset in (9, 17):
        near_onnxruntime([node("BatchNormalization", ["x", *statistics], ["y"], epsilon=1e-3)], statistics, x, opset)
    for axis in (1, -1):
        near_onnxruntime(
            [node("GatherElements", ["x", "i"], ["y"], axis=axis)], {"i": np.arange(-6, 6).reshape(1, 3, 2, 2) // 2}, x
        )
    for corners in (0, 1):
        grid = 1.3 * normal(2, 4, 5, 2)
        near_onnxruntime([node("GridSample", ["x", "g"], ["y"], mode="bilinear", align_corners=corners)], {"g": grid}, x)
    for mode, way in (("linear", "half_pixel"), ("linear", "align_corners"), ("nearest", "asymmetric"), ("cubic", "half_pixel")):
        to = {"s": np.array([2, 6, 13, 14], np.int64)}
        resize = node("Resize", ["x", "", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=way)
        near_onnxruntime([resize], to, x)


@pytest.mark.onnx
def test_errors_are_shares_and_infinite_where_something_else_came() -> None:
    from bench.accuracy import errors

    want = np.array([3.0, -4.0, 0.0, np.inf])
    found = errors([np.array([3.0, -4.0, 0.04, np.inf], np.float32)], [want])
    assert found.worst == pytest.approx(0.01, rel=1e-4) and found.rms == pytest.approx(0.04 / 5, rel=1e-4)
    for got in (want[:3], np.array([3.0, -4.0, 0.0, 1.0]), np.array([np.nan, -4.0, 0.0, np.inf])):
        assert errors([got], [want]).worst == np.inf
    assert errors([np.array([1, 2])], [np.array([1, 3])]).rms == np.inf and errors([np.array([1])], [np.array([1])]).rms == 0


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the source distribution has no pages")
def test_a_familys_picture_has_its_networks_on_each_number_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from docs import make_performance

    rows = [
        row("a <x>", 1, 1e-3, onnxruntime=2e-3), row("a <x>", 2, 1e-3, openvino=3e-3), row("b z", 1, 1e-3),
        {**row("a gone", 1, 1e-3), "seconds": {"openvino": 1.0}},
    ]  # fmt: skip
    picture = make_performance.networks({"cases": dict(enumerate(rows))}, "a", "x86_v4")
    words = [t.text or "" for t in ElementTree.fromstring(picture).findall("{http://www.w3.org/2000/svg}text")]
    assert words.count("<x>") == 2 and "1.00 (1.00 ms, 50% of the limit)" in words
    assert "2.00 (2.00 ms)" in words and "3.00 (3.00 ms)" in words and not {"z", "gone"} & set(words)
    assert "1 thread, geometric mean 2.00, least 2.00" in words and "2 threads, geometric mean 3.00, least 3.00" in words
    monkeypatch.setattr(make_performance, "HERE", tmp_path)
    rows.append({**rows[0], "variant": "x86_v3"})
    for number, one in enumerate(rows):
        networks.add(tmp_path / "f.json", {str(number): one}, {})
    make_performance.main([str(tmp_path / "f.json")])
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        "performance-a.svg", "performance-a-x86_v3.svg", "performance-b.svg",
    }  # fmt: skip

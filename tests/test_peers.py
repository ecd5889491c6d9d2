"""The comparison with other engines, and the pictures of what it measured."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import fastlayers as fl
from bench import peers
from bench.timing import read, store, times_of

ROOT = Path(__file__).parent.parent
NAMESPACE = "{http://www.w3.org/2000/svg}"


def row(name: str, family: str, ours: float, theirs: float) -> dict[str, object]:
    return {"name": name, "family": family, "ratio": theirs / ours}


def test_families_are_summed_up_by_geometric_means() -> None:
    rows = [
        row("a", "x", 1e-6, 4e-6),
        row("b", "x", 1e-6, 1e-6),
        row("c", "y", 2e-6, 1e-6),
        {**row("d", "y", 1, 1), "ratio": None},
    ]
    found = peers.summary(rows)
    assert list(found) == ["x", "y", "all"]
    assert found["x"] == (pytest.approx(2), 1, 2) and found["y"] == (pytest.approx(0.5), 0.5, 1)
    assert found["all"] == (pytest.approx(math.pow(2, 1 / 3)), 0.5, 3)
    assert peers.summary([]) == {}


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the source distribution has no pages")
def test_the_picture_has_every_row_and_engine(tmp_path: Path, kept_threads: None) -> None:
    from docs.make_performance import bars

    fl.set_num_threads(1)
    file = tmp_path / "one.json"
    found = {
        "conv <a>": {"fastlayers": times_of([1e-6]), "onnxruntime": times_of([2e-6, 3e-6])},
        "pool": {"fastlayers": times_of([1e-6]), "openvino": times_of([9e-6])},
        "broken": {"onnxruntime": times_of([1e-6])},
    }
    families = {"conv <a>": ("conv", 50.0), "pool": ("pools", 0), "broken": ("pools", 0)}
    store(file, found, probe=1e8, cases={name: {"family": f, "flops": flops} for name, (f, flops) in families.items()})
    picture = bars(*read(file))
    words = [t.text for t in ElementTree.fromstring(picture).findall(f"{NAMESPACE}text")]
    assert "<a>" in words and "1.00 (1.0 us, 50% of the peak)" in words and "2.00 (2.0 us)" in words and "9.00 (9.0 us)" in words
    assert "broken" not in words and any("1 thread," in word for word in words if word)


@pytest.mark.onnx
@pytest.mark.onnxruntime
def test_layers_are_models_that_differ_in_name() -> None:
    made = list(peers.layers())
    assert len({model.name for model in made}) == len(made) > 40
    model = peers.convolution(6, 9, 3, 4, 2)
    (y,) = fl.load(model.content).run(model.feeds).values()
    assert y.shape == (1, 4, 5, 5) and model.flops == 2 * y.size * 6 * 9 and np.isfinite(y).all()


def test_who_is_not_installed_does_not_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    assert peers.present() == ["fastlayers", "onnxruntime"]
    monkeypatch.setattr(peers, "find_spec", lambda name: name == "cv2" or None)
    assert peers.present() == ["fastlayers", "onnxruntime", "opencv"]


class _Answering:
    """An engine that gives one result."""

    def __init__(self, result: np.ndarray) -> None:
        self.result = result

    def ask(self, order: str, value: object) -> tuple[str, list[np.ndarray]]:
        return "ok", [self.result]


def test_wrong_results_of_any_engine_count_as_none() -> None:
    """Ours must be near; of peers, what rounds more counts, and what is wrong does not."""
    right = np.linspace(-1, 1, 7, dtype=np.float32)
    for apart, kept in ((0.0, {"fastlayers", "mnn"}), (1e-3, {"mnn"}), (0.1, set[str]())):
        off: Any = {name: _Answering(right + np.float32(apart)) for name in ("fastlayers", "mnn")}
        names, notes = peers.answers(off | {"onnxruntime": _Answering(right)}, peers.Model("", "", b"", {}))
        assert set(names) == kept | {"onnxruntime"}
        assert set(notes) == (set() if not apart else {"fastlayers", "mnn"})
        assert ("counts" in notes.get("mnn", "")) == (apart == 1e-3)
    shapes: Any = {"mnn": _Answering(right[None]), "onnxruntime": _Answering(right)}
    assert peers.answers(shapes, peers.Model("", "", b"", {}))[0] == ["onnxruntime"]


@pytest.mark.onnx
@pytest.mark.onnxruntime
@pytest.mark.exhaustive
def test_a_row_has_both_engines_and_wrong_results_count_as_none() -> None:
    engines = {name: peers._Engine(name, 1) for name in ("fastlayers", "onnxruntime")}
    try:
        model = peers.pooling("MaxPool", 3, 9, 3, 2)
        found = peers.measure(engines, model, 0.02, 2)
        assert set(found["times"]) == set(engines) and found["ratio"] > 0 and not found["notes"]
        broken = peers.measure(engines, model._replace(content=b"nothing"), 0.02, 2)
        assert broken["ratio"] is None and set(broken["notes"]) == set(engines)
        engines["onnxruntime"].process.kill()
        assert engines["onnxruntime"].ask("model", model) == ("failed", "its process died")
        assert engines["onnxruntime"].ask("time", 0.01) == ("failed", "no model")
        assert engines["onnxruntime"].ask("model", model)[0] == "ok"
    finally:
        for engine in engines.values():
            engine.stop()


@pytest.mark.onnx
def test_the_layers_of_a_file_are_measured_alone_and_shards_have_each_once() -> None:
    from onnx import TensorProto, helper, numpy_helper

    from bench import sweep

    rng = np.random.default_rng(0)
    w, v = rng.standard_normal((4, 3, 3, 3)).astype(np.float32), rng.standard_normal((4, 5)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "v"], ["y"]),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "net", given, results, [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")])
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    found = list(sweep.layers_of(content, {"x": np.zeros((2, 3, 8, 8), np.float32)}, "net"))
    assert [model.name.split()[0] for model in found] == ["Conv", "GlobalAveragePool", "Gemm"]
    assert [model.flops for model in found] == [2.0 * 2 * 4 * 64 * 27, 0.0, 2.0 * 2 * 5 * 4]
    for model, shape in zip(found, [(2, 4, 8, 8), (2, 4, 1, 1), (2, 5)], strict=True):
        (y,) = fl.load(model.content).run(model.feeds).values()
        assert y.shape == shape
    parts = [[model.name for model in sweep.sharded(iter(found * 2), f"{i}/2")] for i in (1, 2)]
    assert sorted(parts[0] + parts[1]) == sorted(model.name for model in found) and len(parts[0]) == 2
    assert [model.name for model in sweep.sharded(iter(found), "1/1", "Gemm")] == [found[2].name]

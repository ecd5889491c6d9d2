"""The blocks of Python of README and the pages in docs/, as they stand, in order, in a folder with the files that they name."""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.cli import demo
from fastlayers.model.custom import forget
from tests.examples.wheels import wheel_file
from tests.formats.transformers.checkpoints import written
from tests.program.graphs import graph, node, normal

ROOT = Path(__file__).parent.parent


def blocks(page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def stand_in(model: fl.Model, path: Path) -> None:
    """A file of ours under the name that a text has for an ONNX file."""
    model.save(path.with_suffix(".safetensors"))
    path.with_suffix(".safetensors").rename(path)


def speech_network(path: Path) -> None:
    """The packaged network as silero-vad is published: states in and out, a rate, and windows of any length declared."""
    net = demo.load_network()
    begin = net.initial()

    def step(input: Any, h: Any, c: Any, sr: Any) -> dict[str, Any]:
        probability, state = net(input, type(begin)(h, c))
        return {"output": fl.functional.reshape(probability, (1, 1)), "hn": state.h, "cn": state.c}

    f = fl.graph.Input
    model = fl.compile(step, f("input", (1, 576)), f("h", (1, 128)), f("c", (1, 128)), f("sr", (), np.int64))
    stand_in(model, path)


def prepared(folder: Path) -> None:
    """Every file that README names."""
    nodes = [node("conv1 = Conv(x, w)", strides=(32, 32)), node("y = Softmax(conv1)", axis=1)]
    stand_in(fl.Model(graph({"x": (1, 3, 224, 224)}, nodes, ["y"], {"w": normal(2, 3, 1, 1)})), folder / "model.onnx")
    net = fl.Sequential(fl.Conv1d(2, 3, 2, bias=False))
    net.load_state_dict({"0.weight": normal(3, 2, 2)})
    stand_in(fl.compile(net, fl.graph.Input("x", (1, 2, "time"))), folder / "conv_lstm.onnx")
    shutil.copy(fl.example("speech"), folder / "speech.wav")
    speech_network(folder / "silero_vad.onnx")
    for name, case in (("encoder", "bert"), ("decoder", "llama")):
        (folder / name).mkdir()
        written(folder / name, case)


def speech(shown: str) -> np.ndarray:
    """The probabilities that the example prints."""
    found = np.array([float(p) for p in re.findall(r"\b[01]\.\d\d\b", shown)])
    assert len(found) == 221  # whole windows of 512 samples
    return found


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    prepared(tmp_path)
    yield {}
    forget("Swirl", "com.example")


def test_the_blocks_run_in_order(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    first, from_file, stream = blocks()
    exec(first, names)
    assert names["probability"].item() == pytest.approx(0.018, abs=5e-4)  # as README says
    exec(from_file, names)
    np.testing.assert_array_equal(names["mine"], names["y"])
    assert names["inner"]["conv1"].shape == (1, 2, 7, 7)
    np.testing.assert_array_equal(fl.load("model.safetensors")(names["x"]), names["y"])
    capsys.readouterr()
    exec(stream, names)
    found = speech(capsys.readouterr().out)
    assert found.max() > 0.99 and np.mean(found > 0.5) > 0.85  # it is speech nearly all along: see the demo
    want, _ = demo.probabilities(demo.load_network(), demo.load_recording())
    np.testing.assert_allclose(found, want[:221], rtol=0, atol=0.0051)  # two digits are printed
    assert names["stream"](normal(1, 2, 5)).shape == (1, 3, 4)


def test_blocks_that_need_no_other_stand_alone(names: dict[str, Any]) -> None:
    for block in blocks()[:2]:
        exec(block, {})


def test_the_published_network_finds_the_speech(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    path = wheel_file("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx")
    exec("import numpy as np, fastlayers as fl", names)
    exec(blocks()[2].replace('fl.example("silero_vad")', repr(str(path))), names)
    found = speech(capsys.readouterr().out)
    assert found.max() > 0.99 and np.mean(found > 0.5) > 0.85


# Pages whose blocks run elsewhere: where the framework or a GPU is (tests/examples/test_export.py, tests/cuda), as doctests
# (docstrings), or in tests/ort.
ELSEWHERE = {"docs/export.md", "docs/cuda.md", "docs/layers.md", "docs/onnxruntime.md"}
PAGES = sorted({p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md")} - ELSEWHERE)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_the_blocks_of_a_page_run_in_order(page: str, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2 if page == "docs/how-to/operators.md" else 1):  # as a cell of a notebook
        for block in blocks(page):
            exec(block, names)
    shown = capsys.readouterr().out
    if page == "docs/models.md":
        assert "94% of 221 windows are speech" in shown
        assert names["results"]["y"].shape == (1, 2, 7, 7)
    elif page == "docs/start/layers.md":
        assert names["y"].shape == (8, 10)
        np.testing.assert_allclose(names["probabilities"].sum(1), 1.0, rtol=1e-6)
        np.testing.assert_array_equal(np.concatenate([names["first"], names["rest"]], axis=1), names["whole"])
    elif page == "docs/how-to/operators.md":
        np.testing.assert_array_equal(names["y"], np.maximum(np.roll(names["x"], 1, axis=-1) * 2, 0))
    elif page == "docs/how-to/streaming.md":
        assert len(names["found"]) == 222 and np.mean(np.array(names["found"]) > 0.5) > 0.85


def test_every_block_of_python_is_run() -> None:
    """Blocks of another form would be passed over in silence: only those fences are Python."""
    odd = [
        f"{page}: {fence}"
        for page in ["README.md", *PAGES]
        for fence in re.findall(r"^ *(```+ *\S.*)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
        if fence != "```python" and "literalinclude" not in fence and ("py" in fence.lower() or "code" in fence)
    ]
    assert odd == []


def test_the_page_on_models_has_every_option_of_load() -> None:
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8").split("## Running")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
    parameters = inspect.signature(fl.load).parameters
    assert told == set(parameters) - {"source", "weights"}  # of which there is one kind

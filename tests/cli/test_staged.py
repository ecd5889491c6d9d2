"""Networks that run in stages: their parts are listed and timed like those of any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import cli
from fastlayers.kernels import dispatch
from fastlayers.program.parts import parts
from tests.formats import onnx_build as onnx
from tests.program.graphs import normal


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A product, the places of its values, and a loop of n rounds over it, with whose number a result grows."""
    steps = [
        onnx.node("MatMul", "s w", "t"),
        onnx.node("Relu", "t", "s2"),
        onnx.node("Identity", "c", "c2"),
        onnx.node("Neg", "s2", "part"),
    ]
    states = [onnx.value_info("i", (), 7), onnx.value_info("c", (), 9), onnx.value_info("s", (1, 64))]
    body = onnx.graph(
        steps, states, [onnx.value_info("c2", (), 9), onnx.value_info("s2", (1, 64)), onnx.value_info("part", (1, 64))]
    )
    nodes = [
        onnx.node("MatMul", "x w", "a"), onnx.node("NonZero", "a", "nz"), onnx.node("Transpose", "nz", "nt"),
        onnx.node("Loop", "n _ a", "y parts", body=body),
    ]  # fmt: skip
    inputs = [onnx.value_info("x", ("n", 64)), onnx.value_info("n", (), 7)]
    outputs = [onnx.value_info("y", (1, 64)), onnx.value_info("nt", ("k", 2), 7)]
    made = tmp_path / "staged.onnx"
    made.write_bytes(onnx.model(onnx.graph(nodes, inputs, outputs, [onnx.tensor(normal(64, 64) / 8, "w")])))
    return str(made)


def lines(text: str) -> dict[str, list[str]]:
    """The table's lines by the result that each is about."""
    return {line.split()[1]: line.split() for line in text.splitlines() if len(line.split()) > 5 and not line.startswith("-")}


def test_summary_lists_the_parts_and_the_bodies(path: str) -> None:
    model = fl.load(path)
    text = model.summary({"x": np.ones((1, 64), np.float32), "n": np.array(3)})
    found = lines(text)
    assert found["a"][:4] == ["Linear", "a", "1x64", "4.1"] and found["a"][-1] == "linear"
    assert found["nz"][-1] == ("non_zero" if model.variant.startswith("aot") else "(alone)")
    assert found["nt"][2] == "64x2" and found["y"][0] == "Loop"
    assert "\n  Linear" in text and found["s2"][2] == "1x64"  # in the body
    assert "8.19 k parameters" in text and "runs in stages" in text
    assert fl.load(path).summary([(1, 64), ()]).count("(not run)") == 4  # no rounds: the body is inferred from the file


def test_a_run_that_fails_is_told(path: str) -> None:
    text = fl.load(path, max_rounds=2).summary({"x": np.ones((1, 64), np.float32), "n": np.array(5)})
    assert "it could not be run to the end on what was given" in text and lines(text)["a"][-1] == "linear"


def test_inspect(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", path, "--value", "n=2"]) == 0
    out = capsys.readouterr().out
    assert "sizes are guessed: --shape x=1,64" in out and lines(out)["s2"][0] == "Linear"


@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_profile(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", path, "--value", "n=2", "--runs", "2"]) == 0
    out = capsys.readouterr().out
    assert "us a run" in out and "us in all parts" in out and "count as often as they ran" in out
    found = lines(out)
    assert found["s2"][-1] == "linear" and float(found["a"][3]) > 0
    assert cli.main(["profile", path, "--value", "n=2", "--runs", "1", "--top", "2"]) == 0
    found = [line for line in capsys.readouterr().out.split("---\n")[-1].splitlines() if not line.startswith("limit ")]
    assert len(found) == 2 + 4  # and the lines about it all; that on limits is there where a step is faster than memory


def test_parts_of_a_network_that_never_ran(path: str) -> None:
    model = fl.load(path)
    assert [part.note for part in parts(model._main)] == ["(not run)"] * 4
    model(np.ones((1, 64), np.float32), 2)
    # The loop waits for no sizes: it comes before NonZero, and its body after it.
    assert [part.depth for part in parts(model._main)] == [0, 0, 1, 0, 0]


def test_names_are_cut_with_a_mark() -> None:
    long = "/encoder/layer.0/attention/self/query/MatMul_output_0"
    made = fl.graph.Graph(
        (fl.graph.Value("x", (2,), np.dtype("f4")),), (fl.graph.Value(long, (2,), np.dtype("f4")),),
        (fl.graph.Node("Relu", ("x",), (long,), {}),), {},
    )  # fmt: skip
    model = fl.Model(made)
    (name,) = [line.split()[1] for line in model.summary().splitlines() if line.startswith("Relu")]
    assert len(name) == 40 and name.startswith("...") and long.endswith(name[3:])
    assert model.value_names == [long]

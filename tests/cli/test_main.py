"""The command's own options, exit codes and messages."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import cli
from fastlayers.errors import FormatError
from fastlayers.model.custom import forget
from tests.formats import onnx_build as onnx
from tests.program.graphs import graph, node, normal


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"fastlayers {fl.__version__}\n"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "demo" in out and "doctor" in out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["demo", "--threshold", "2"],
        ["demo", "--threshold", "x"],
        ["demo", "--threshold", "nan"],
        ["demo", "a", "b"],
    ],
)
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "usage: fastlayers" in captured.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (FormatError("wav: a: broken\nin two lines"), 2, "fastlayers doctor: wav: a: broken in two lines\n"),
        (FileNotFoundError(2, "No such file or directory", "a.wav"), 2, "fastlayers doctor: a.wav: No such file or directory\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_errors(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    assert cli.main(["doctor"]) == code
    assert capsys.readouterr().err == message


def voice_activity() -> bytes:
    """A model with a state that goes in and comes out: the sum of all that it was given."""
    nodes = [
        onnx.node("Cast", "sr", "rate", to=1), onnx.node("Add", "input rate", "sum"), onnx.node("Add", "sum state", "stateN"),
        onnx.node("Identity", "stateN", "output"),
    ]  # fmt: skip
    inputs = [onnx.value_info("input", (1, 4)), onnx.value_info("state", (1, 4)), onnx.value_info("sr", (), 7)]
    return onnx.model(onnx.graph(nodes, inputs, [onnx.value_info(name, (1, 4)) for name in ("output", "stateN")]))


def readme_examples() -> list[str]:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [node("conv1 = Conv(x, w)", strides=(32, 32)), node("y = Softmax(conv1)", axis=1)]
    fl.Model(graph({"x": (1, 3, 224, 224)}, nodes, ["y"], {"w": np.ones((2, 3, 1, 1), np.float32)})).save("model.onnx")
    names: dict[str, np.ndarray] = {"x": normal(1, 3, 224, 224), "mine": np.empty((1, 2, 7, 7), np.float32)}
    from_file, stream, of_layers, streamed, own = readme_examples()
    exec(from_file, names)
    np.testing.assert_array_equal(names["mine"], names["y"])
    np.testing.assert_array_equal(fl.load("model.safetensors")(names["x"]), names["y"])
    Path("silero_vad.onnx").write_bytes(voice_activity())
    net = fl.Sequential(fl.Conv1d(2, 3, 2, bias=False))
    net.load_state_dict({"0.weight": normal(3, 2, 2)})
    fl.compile(net, fl.graph.Input("x", (1, 2, "time"))).save("conv_lstm.onnx")
    names["pieces"] = [normal(1, 4), normal(1, 4)]
    exec(stream, names)
    np.testing.assert_allclose(names["probability"], names["pieces"][0] + names["pieces"][1] + 32000, rtol=1e-6)
    assert names["stream"](normal(1, 2, 5)).shape == (1, 3, 4)
    exec(of_layers, names)
    assert names["y"].shape == (8, 10)
    np.testing.assert_allclose(names["probabilities"].sum(1), 1.0, rtol=1e-6)
    exec(streamed, names)
    np.testing.assert_array_equal(np.concatenate([names["first"], names["rest"]], axis=1), names["whole"])
    try:
        exec(own, names)
    finally:
        forget("Swirl", "com.example")
    np.testing.assert_array_equal(names["y"], np.maximum(np.roll(names["x"], 1, axis=-1) * 2, 0))


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_run", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["doctor"])

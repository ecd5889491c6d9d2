"""The commands about a model file: inspect, profile, bench, run; and the demo from an ONNX file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import cli
from fastlayers.kernels import dispatch
from tests.program.graphs import normal


@pytest.fixture
def model(tmp_path: Path) -> str:
    net = fl.Sequential(fl.Linear(4, 6), fl.ReLU(), fl.Linear(6, 2))
    net.load_state_dict({"0.weight": normal(6, 4), "0.bias": normal(6), "2.weight": normal(2, 6), "2.bias": normal(2)})
    path = tmp_path / "net.safetensors"
    fl.compile(net, fl.graph.Input("x", ("n", 4))).save(path)
    return str(path)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    fl.set_num_threads(1)


def test_inspect(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", model, "--shape", "x=3,4"]) == 0
    out = capsys.readouterr().out
    assert "x float32['n', 4]" in out and "2 steps, 44 parameters, 108 multiply-adds" in out and "in numpy: nothing" in out
    first = next(line.split() for line in out.splitlines() if line.startswith("Linear"))
    assert first[2:6] == ["3x6", "30", "72", "240"] and first[-1] == "linear"
    assert cli.main(["inspect", model]) == 0  # an open size is 1
    assert "1x6" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["inspect", "profile", "bench", "run", "compare", "convert", "warmup"])
def test_the_packaged_network_by_its_name(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = {"bench": ["--seconds", "0"], "profile": ["--runs", "1"], "convert": [str(tmp_path / "a.safetensors")]}
    if command == "profile" and not dispatch.levels():
        pytest.skip("the compiled engine is not built here")
    with fl.kernels.use("aot" if dispatch.levels() else "reference"):
        for options in ([], ["--precision", "bfloat16"], ["--precision", "strict", "--weights", "int8"]):
            assert cli.main([command, "silero_vad", *more.get(command, []), *options]) in (0, 1 if command == "compare" else 0)
        assert capsys.readouterr().out


@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_profile(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", model, "--shape", "x=3,4", "--runs", "3"]) == 0
    out = capsys.readouterr().out
    assert sum(line.startswith("Linear") for line in out.splitlines()) == 2 and "of limit" in out and "1 thread\n" in out
    assert cli.main(["profile", model, "--runs", "1", "--top", "1"]) == 0
    assert sum(line.startswith("Linear") for line in capsys.readouterr().out.splitlines()) == 1


def test_profile_without_the_engine(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    with fl.kernels.use("reference"):
        assert cli.main(["profile", model]) == 2
    assert "fastlayers profile: " in capsys.readouterr().err


def test_bench(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", model, "--seconds", "0.01"]) == 0
    out = capsys.readouterr().out
    assert "p50" in out and "p95" in out and "p99" in out and f"variant={fl.kernels.current()}" in out


def test_run(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "in.npz", in_x=normal(3, 4), out_y=normal(1))
    assert cli.main(["run", model, str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")]) == 0
    name = fl.load(model).outputs[0].name
    assert f"{name} float32[3, 2] from " in capsys.readouterr().out
    with np.load(tmp_path / "out.npz") as results:
        np.testing.assert_array_equal(results[name], fl.load(model)(normal(3, 4)))
    assert cli.main(["run", model]) == 0
    assert f"{name} float32[1, 2]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "/nowhere/a.onnx"], "No such file"),
        (["inspect", "MODEL", "--shape", "q=1"], "expected NAME=..., with one of the names x"),
        (["inspect", "MODEL", "--shape", "x=a,b"], "expected sizes separated by commas"),
        (["inspect", "MODEL", "--shape", "x=3,5"], "expected ('n', 4)"),
        (["run", "MODEL", "--value", "x=z"], "expected a number"),
        (["demo", "--model", "MODEL"], "expected input, state and perhaps sr"),
    ],
)
def test_errors(arguments: list[str], message: str, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([model if a == "MODEL" else a for a in arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and "operator" not in captured.out
    assert captured.out == "" or (arguments[0] == "inspect" and "input x float32['n', 4]" in captured.out)


def test_demo_runs_a_model_with_silero_vads_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The loudness of a frame as its probability: enough to see that windows, state and rate arrive."""

    def loudness(frame: object, state: object, sr: object) -> dict[str, object]:
        f = fl.functional
        weight = np.full((1, 576), 1 / 576)
        return {"output": f.linear(f.sqrt(f.multiply(frame, frame)), weight * 10), "stateN": f.add(state, f.multiply(sr, 0.0))}

    made = fl.compile(
        loudness, fl.graph.Input("input", ("n", 576)), fl.graph.Input("state", (2, 1, 128)), fl.graph.Input("sr", (), np.int64)
    )
    made.save(tmp_path / "vad.safetensors")
    assert cli.main(["demo", "--model", str(tmp_path / "vad.safetensors")]) == 0
    out = capsys.readouterr().out
    assert "speech" in out and "222 frames" in out

"""The commands convert and compare."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import cli
from fastlayers._extras import install
from fastlayers.model import comparison
from tests.formats import onnx_build as build
from tests.program.graphs import normal

WEIGHTS = {"0.weight": normal(6, 4), "0.bias": normal(6), "2.weight": normal(2, 6), "2.bias": normal(2)}


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A network in a file of ours, in which every operation is still to be seen."""
    net = fl.Sequential(fl.Linear(4, 6), fl.ReLU(), fl.Linear(6, 2))
    net.load_state_dict(WEIGHTS)
    path = tmp_path / "net.safetensors"
    fl.compile(net, fl.graph.Input("x", ("n", 4))).save(path)
    return str(path)


@pytest.fixture
def stored(model: str, tmp_path: Path) -> dict[str, np.ndarray]:
    """Inputs and every value of the network, as an npz file would have them."""
    loaded = fl.load(model)
    x = normal(3, 4)
    got = loaded.run({"x": x}, outputs=list(comparison.values(loaded)))
    return {"in_x": x, **{f"out_{name}": array for name, array in got.items()}}


def compare(model: str, tmp_path: Path, arrays: dict[str, np.ndarray], *more: str) -> int:
    np.savez(tmp_path / "arrays.npz", **arrays)
    return cli.main(["compare", model, str(tmp_path / "arrays.npz"), *more])


def test_stored_outputs(model: str, stored: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(model, tmp_path, stored) == 0
    out = capsys.readouterr().out
    assert "1 value next to arrays of arrays.npz" in out and "all agree" in out
    assert compare(model, tmp_path, stored, "--layers") == 0
    assert f"{len(stored) - 1} values next to" in capsys.readouterr().out


def test_another_model(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = fl.Sequential(fl.Linear(4, 6), fl.ReLU(), fl.Linear(6, 2))
    other.load_state_dict({**WEIGHTS, "2.bias": WEIGHTS["2.bias"] + 1})
    path = str(tmp_path / "other.safetensors")
    fl.compile(lambda a: other(a), fl.graph.Input("a", ("n", 4))).save(path)
    assert cli.main(["compare", model, "--against", model, "--layers"]) == 0
    assert f"2 values next to {model}" in capsys.readouterr().out
    assert cli.main(["compare", model, "--against", path, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["first_that_differs"] == "linear_1"
    assert cli.main(["compare", model, "--against", path, "--weights", "bfloat16", "--tolerance", "1.5"]) == 0
    fl.compile(lambda a, b: a + b, *(fl.graph.Input(name, (4,)) for name in "ab")).save(path)
    assert cli.main(["compare", model, "--against", path]) == 2
    assert "has 2 inputs: expected 1" in capsys.readouterr().err
    assert cli.main(["compare", model, "--against", "onnxruntme"]) == 2


def test_the_first_layer_that_differs_is_named(
    model: str, stored: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [name for name in stored if name.startswith("out_")]
    for name in names:
        broken = {
            **stored,
            name: stored[name] + np.float32(0.01) * (np.arange(stored[name].size).reshape(stored[name].shape) == 1),
        }
        assert compare(model, tmp_path, broken, "--layers") == 1
        out = capsys.readouterr().out
        made = comparison.values(fl.load(model))[name.removeprefix("out_")]
        assert f"first that differs: {made} ({name.removeprefix('out_')})" in out and "at (0, 1), expected" in out
    assert compare(model, tmp_path, broken, "--layers", "--tolerance", "0.1") == 0


def test_plain(model: str, stored: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(model, tmp_path, stored, "--against", "plain", "--layers") == 0
    assert "next to the plain graph" in capsys.readouterr().out
    assert cli.main(["compare", model]) == 0  # seeded random values


def test_a_difference_is_looked_for_in_the_layers(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = next(iter(comparison.values(fl.load(model))))

    def other(path: str, feeds: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
        return {name: array + np.float32(1) for name, array in comparison.plain_values(path, feeds, names).items()}

    monkeypatch.setitem(cli.compare._ENGINES, "plain", other)
    assert cli.main(["compare", model]) == 1
    assert f"({first})" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("got", "want", "error", "note"),
    [
        (np.zeros((0, 3)), np.zeros((0, 3)), 0.0, ""),
        (np.array([1.0, 4.0]), np.array([1.0, 5.0]), 0.2, "4 at (1,), expected 5"),
        (np.array([0.5]), np.array([0.25]), 0.25, "0.5 at (0,), expected 0.25"),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf]), 0.0, ""),
        (np.array([np.nan]), np.array([1.0]), np.inf, "nan at (0,), expected 1.0"),
        (np.array([-np.inf]), np.array([np.inf]), np.inf, "-inf at (0,), expected inf"),
        (np.array([1.0]), np.array([np.inf]), np.inf, "1.0 at (0,), expected inf"),
        (np.zeros(2), np.zeros(3), np.inf, "shape (2,), expected (3,)"),
        (np.array([True, False]), np.array([True, True]), 1.0, "0 at (1,), expected 1"),
    ],
)
def test_difference(got: np.ndarray, want: np.ndarray, error: float, note: str) -> None:
    assert comparison.difference(got, want) == (pytest.approx(error), note)


@pytest.mark.onnxruntime
def test_onnxruntime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [build.node("Mul", "x x", "y"), build.node("Relu", "y", "z"), build.node("Exp", "z", "w")]
    content = build.model(build.graph(nodes, [build.value_info("x", ["n", 3])], [build.value_info("w", ["n", 3])]))
    path = tmp_path / "a.onnx"
    path.write_bytes(content)
    assert cli.main(["compare", str(path), "--shape", "x=2,3", "--against", "onnxruntime", "--layers"]) == 0
    out = capsys.readouterr().out
    assert "3 values next to ONNX Runtime" in out and "all agree" in out


def test_onnxruntime_is_missing(model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    assert cli.main(["compare", model, "--against", "onnxruntime"]) == 2
    assert install("compare") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "MODEL", "--against", "stored"], "expected a file with arrays called out_NAME"),
        (["compare", "MODEL", "--tolerance", "-1"], "expected a number of at least 0"),
        (["compare", "MODEL", "--tolerance", "nan"], "expected a number of at least 0"),
        (["compare", "MODEL", "ODD"], "has no values ['nowhere']"),
        (["convert", "MODEL", "a.onnx"], "expected a name ending in .safetensors"),
        (["convert", "MODEL", "a.pt", "--arrays"], "expected a name ending in .safetensors or .npz"),
        (["convert", "MODEL", "MODEL"], "the target is the source"),
        (["convert", "MODEL", "a.npz", "--arrays", "--packed"], "--packed is for networks"),
        (["convert", "WEIGHTS", "a.safetensors"], "read them with load_weights"),
    ],
)
def test_errors(
    model: str,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("odd.npz", in_x=normal(3, 4), out_nowhere=normal(1))
    np.savez("weights.npz", **WEIGHTS)
    names = {"MODEL": model, "ODD": "odd.npz", "WEIGHTS": "weights.npz"}
    assert cli.main([names.get(argument, argument) for argument in arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--packed"], ["--no-passes"]])
def test_convert(model: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new.safetensors"
    assert cli.main(["convert", model, str(target), *more]) == 0
    assert "1 input, 1 output, run on seeded random values, off by 0" in capsys.readouterr().out
    x = normal(3, 4)
    np.testing.assert_array_equal(fl.load(target)(x), fl.load(model)(x))


def test_convert_what_cannot_be_run_with_sizes_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [build.node("MatMul", "a b", "c")]
    inputs = [build.value_info("a", ["n", 3]), build.value_info("b", ["k", 2])]
    path = tmp_path / "a.onnx"
    path.write_bytes(build.model(build.graph(nodes, inputs, [build.value_info("c", ["n", 2])])))
    assert cli.main(["convert", str(path), str(tmp_path / "b.safetensors")]) == 0
    assert "not run: " in capsys.readouterr().out
    assert cli.main(["convert", str(path), str(tmp_path / "b.safetensors"), "--shape", "b=3,2"]) == 0
    assert "off by 0" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_convert_weights(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "a.npz", tmp_path / f"b{suffix}"
    weights = {"w": normal(3, 2), "half": normal(5).astype(np.float16), "i": np.arange(4), "scalar": np.float64(3.5)}
    np.savez(source, **weights)
    assert cli.main(["convert", str(source), str(target), "--arrays"]) == 0
    assert "4 arrays, read back the same" in capsys.readouterr().out
    again = fl.load_weights(target)
    assert again.keys() == weights.keys()
    for name, array in weights.items():
        assert again[name].dtype == array.dtype
        np.testing.assert_array_equal(again[name], array)


def test_convert_weights_that_a_format_cannot_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "a.npz", c=np.zeros(2, np.complex64))
    assert cli.main(["convert", str(tmp_path / "a.npz"), str(tmp_path / "b.safetensors"), "--arrays"]) == 2
    assert "cannot hold ['c (complex64)']" in capsys.readouterr().err
    np.savez(tmp_path / "a.npz", __metadata__=np.zeros(2))
    assert cli.main(["convert", str(tmp_path / "a.npz"), str(tmp_path / "b.safetensors"), "--arrays"]) == 2
    assert "'__metadata__'" in capsys.readouterr().err

"""The command quantize."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import cli
from tests.quantize.networks import model, samples, short_races  # noqa: F401


@pytest.fixture
def source(tmp_path: Path) -> str:
    model("products").export(tmp_path / "net.onnx")
    np.savez(tmp_path / "many.npz", x=np.stack(list(samples("products"))))
    for i, x in enumerate(samples("products")):
        np.save(tmp_path / f"{i}.npy", x)
    return str(tmp_path / "net.onnx")


def run(source: str, *more: str) -> int:
    return cli.main(["quantize", source, "--allow-slower", "--max-error", "0.2", *more])


@pytest.mark.parametrize("ending", ["onnx", "safetensors"])
def test_files_and_the_table(ending: str, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / f"small.{ending}"
    page = tmp_path / "page.html"
    assert run(source, "--samples", str(tmp_path / "many.npz"), "-o", str(target), "--page", str(page)) == 0
    out = capsys.readouterr().out
    assert "3 of 3 layers in integers" in out and "6 samples, measured on 6" in out and f"{target}: " in out
    assert "net.onnx, quantized" in page.read_text()
    want = fl.quantize(fl.load(source), samples("products"), allow_slower=True, max_error=0.2)
    x = next(samples("products", 1, 9))
    assert np.array_equal(fl.load(target)(x), want(x))


def test_a_sample_a_file_and_json(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / f"{i}.npy") for i in range(6)]
    assert run(source, "--samples", *files, "-o", str(tmp_path / "a.onnx"), "--json", "--keep", "Tanh", "--keep", "Gemm") == 2
    assert "keep has 'Tanh'" in json.loads(capsys.readouterr().err)["message"]
    assert run(source, "--samples", *files, "-o", str(tmp_path / "a.onnx"), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["samples"] == [6, 6] and [row["stored"] for row in told["layers"]] == ["int8"] * 3
    assert told["file_bytes"] == (tmp_path / "a.onnx").stat().st_size and 0 < told["error"] < 0.2


def test_weights_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = fl.Linear(256, 256)
    net.load_state_dict({"weight": np.random.default_rng(0).standard_normal((256, 256)), "bias": np.zeros(256)})
    fl.compile(net, fl.graph.Input("x", ("n", 256))).export(tmp_path / "net.onnx")
    assert run(str(tmp_path / "net.onnx"), "--weights", "int4", "-o", str(tmp_path / "b.onnx")) == 0
    assert "1 of 1 layers in integers" in capsys.readouterr().out
    assert (tmp_path / "b.onnx").stat().st_size < (tmp_path / "net.onnx").stat().st_size / 6


def test_what_is_refused(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "odd.npz", x=np.zeros((2, 47), np.float32))
    for more, match in (
        (["-o", "a.pt"], "expected a name ending in .onnx or .safetensors"),
        (["-o", source], "the output is the source"),
        (["-o", str(tmp_path / "a.onnx"), "--samples", str(tmp_path / "odd.npz")], "sample 0: run: input 'x' has shape (2, 47)"),
        (["-o", str(tmp_path / "a.onnx"), "--samples", str(tmp_path / "none.npz")], "none.npz"),
        (["-o", str(tmp_path / "a.onnx"), "--max-error", "0"], "max_error is 0.0"),
    ):
        assert run(source, *more) == 2
        assert match in capsys.readouterr().err
    assert not (tmp_path / "a.onnx").exists()

"""examples/speaker_encoder.py against resemblyzer's network in torch (goldens/speaker_encoder.npz: its inputs and outputs)."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from .wheels import wheel_file

pytestmark = pytest.mark.exhaustive  # downloads tens of megabytes of weights
ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "examples" / "speaker_encoder.py"
# torch computed in float32, 160 steps in three layers.
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def golden() -> tuple[np.ndarray, np.ndarray]:
    with np.load(ROOT / "tests/goldens/speaker_encoder.npz") as file:
        return file["in_mels"], file["out_0"]


@pytest.fixture(scope="module")
def weights() -> Path:
    return wheel_file("resemblyzer==0.1.4", "resemblyzer/pretrained.pt")


def test_embeddings(weights: Path, golden: tuple[np.ndarray, np.ndarray], variant: str) -> None:
    space: dict[str, Any] = runpy.run_path(str(SCRIPT))
    model, (mels, want) = space["load"](weights), golden
    got = model(mels)
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE)
    padded = np.concatenate([mels, np.full_like(mels[:, :20], np.nan)], axis=1)
    np.testing.assert_array_equal(model(padded, lengths=[160, 160]), got)


def test_as_a_program(weights: Path, golden: tuple[np.ndarray, np.ndarray]) -> None:
    """The layers compiled for any number of frames."""
    model = runpy.run_path(str(SCRIPT))["load"](weights)
    program = fl.compile(lambda x: model.linear(model.lstm(x)[1][0])[2], fl.graph.Input("mels", ("n", "t", 40)))
    (y,) = program.run({"mels": golden[0]}).values()
    np.testing.assert_allclose(y / np.linalg.norm(y, axis=1, keepdims=True), golden[1], rtol=0, atol=TOLERANCE)


def test_the_script(weights: Path, golden: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    np.save(tmp_path / "mels.npy", golden[0])
    command = [sys.executable, str(SCRIPT), str(weights), str(tmp_path / "mels.npy")]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    likeness = float(golden[1][0] @ golden[1][1])
    assert done.stdout.splitlines()[0].startswith("likeness")
    assert abs(float(done.stdout.split("\n")[1].strip("[] ").split()[1]) - likeness) < 1e-3

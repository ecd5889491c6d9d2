"""examples/facenet.py on the weights that the package facenet-pytorch carries, against what that package answers."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from .wheels import wheel_file

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "examples" / "facenet.py"
NETS = ("pnet", "rnet", "onet")
TOLERANCE = 1e-4


def weights_file(name: str) -> Path:
    return wheel_file("facenet-pytorch==2.6.0", f"facenet_pytorch/data/{name}.pt")


@pytest.mark.parametrize("name", NETS)
def test_networks_answer_as_the_package_does(name: str, variant: str) -> None:
    path = weights_file(name)
    net: Any = runpy.run_path(str(SCRIPT))["Net"](name, fl.load_weights(path))
    with np.load(ROOT / "tests" / "goldens" / f"facenet_pytorch__{name}.npz") as file:
        x, want = file["in_x"], [file[f"out_{i}"] for i in range(len(file.files) - 1)]
    model = fl.compile(net, fl.graph.Input("x", ("n", 3, *x.shape[2:])), require_native=variant != "reference")
    for got in (net(x), model(x)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)


def test_the_script_says_what_it_finds(tmp_path: Path) -> None:
    folder = {weights_file(name).parent for name in NETS}.pop()
    np.save(tmp_path / "picture.npy", np.random.default_rng(0).integers(0, 256, (61, 83, 3), np.uint8))
    command = [sys.executable, str(SCRIPT), str(folder), str(tmp_path / "picture.npy")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    found = re.findall(r"^(\w+): a face with probability ([01]\.\d{3}) \[", done.stdout, flags=re.MULTILINE)
    assert [name for name, _ in found] == list(NETS)
    assert all(0 <= float(probability) <= 1 for _, probability in found)

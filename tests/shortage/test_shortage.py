"""First calls without memory, file handles or threads for a moment: an error of ours or none, and nothing of it is kept."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from tests.formats.test_onnx_models import arrays, data

from .__main__ import KINDS
from .scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
# What other scenarios do as well, in parts: enough to see the mechanism fail.
FEW = ("linear", "own")

pytestmark = [
    pytest.mark.skipif(dispatch.engine() is None, reason="looks at which kernels run after a failure: the compiled engine's"),
    pytest.mark.skipif(
        not hasattr(os, "fork") or sys.platform == "darwin", reason="each failure has a forked process of its own"
    ),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what scenarios read, and the library that lets allocations fail, if it can be built."""
    folder = tmp_path_factory.mktemp("shortage")
    (folder / "net.onnx").write_bytes(data("transformer 17"))
    np.savez(folder / "feeds.npz", **arrays("transformer 17", 0, "in"))
    header = json.dumps({"w": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}}).encode()
    (folder / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + np.arange(1000, dtype="<f4").tobytes())
    fl.compile(lambda x: fl.functional.relu(x) + 1, fl.graph.Input("x", ("n", 6))).save(folder / "net.fl")
    source, library = Path(__file__).parent / "allocations.c", folder / "allocations.so"
    try:
        subprocess.run(
            [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", library, source], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):  # no compiler, or another C library
        library.unlink(missing_ok=True)
    return folder


def check(folder: Path, scenario: str, kind: str, how: str, most: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Compiling Python takes memory too, and CPython then raises a SyntaxError: the run in which nothing fails compiles all.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if kind == "allocate":
        if not (folder / "allocations.so").exists():
            pytest.skip("needs a C compiler, and glibc")
        environment["LD_PRELOAD"] = str(folder / "allocations.so")
    command = [sys.executable, "-m", "tests.shortage", str(folder), scenario, kind, how, str(most)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0 and lines, done.stderr
    assert not [line for line in lines if line[2]], f"{scenario}, {kind}, {how}"
    count = int(lines[0][1])
    assert len(lines) - 1 == min(count, most)
    if kind == "import":  # the first is needed
        assert any(line[1] == "LimitError" for line in lines[1:]), lines


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", FEW)
def test_first_calls(prepared: Path, scenario: str, kind: str) -> None:
    check(prepared, scenario, kind, "once", 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["once", "on"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_first_calls_all(prepared: Path, scenario: str, kind: str, how: str) -> None:
    check(prepared, scenario, kind, how, 4)

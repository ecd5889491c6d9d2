"""Values that say where memory is read may be changed by another thread during a call: no kernel leaves its arrays for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastlayers.kernels import dispatch

from .changing import MAKERS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")


@pytest.mark.parametrize("name", [maker.__name__ for maker in MAKERS])
@pytest.mark.sampled(4)
def test_kernel_survives_numbers_that_change(name: str) -> None:
    # A process of its own: what this finds is a fault of memory, which ends the process.
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "tests.kernels.changing", name, "aot"]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, (run.returncode, run.stderr[-2000:])
    done, refused = map(int, run.stdout.split())
    assert done + refused > 0


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 12, 17, 33, 100, 2000])
@pytest.mark.parametrize("level", dispatch.levels())
def test_rows_that_are_not_there_are_row_0(width: int, level: str) -> None:
    """The copying of `gather` alone, as if indices had changed since it looked at them."""
    import fastlayers as fl
    from fastlayers.kernels.aot import movement

    x = np.arange(7 * width, dtype=np.uint64).astype(np.uint8).reshape(7, width)
    indices = np.array([3, -1, 7, -8, 1 << 62, -(1 << 63), 0, -7, 6], np.int64)
    want = x[[3, 6, 0, 0, 0, 0, 0, 0, 6]]
    with fl.kernels.use(f"aot/{level}"):
        np.testing.assert_array_equal(movement.take_probe(x, indices), want)

"""The kernels' machine code, read in a process of its own: the simulator compiles nothing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jit
ROOT = Path(__file__).parent.parent.parent


def _nvvm() -> bool:
    if importlib.util.find_spec("numba") is None:
        return False
    code = "from numba import cuda; cuda.compile_ptx(lambda: None, (), cc=(8, 0))"
    return subprocess.run([sys.executable, "-c", code], env=_environment(), capture_output=True, check=False).returncode == 0


def _environment() -> dict[str, str]:
    return {**os.environ, "NUMBA_ENABLE_CUDASIM": "0"}


def test_no_double_precision_no_spills() -> None:
    if not _nvvm():
        pytest.skip("Numba's CUDA target or NVVM is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "tests.cuda.ptx"], env=_environment(), cwd=ROOT, capture_output=True, text=True, check=False
    )
    wrong = [line for line in done.stdout.splitlines() if "WRONG" in line]
    assert done.returncode == 0, "\n".join(wrong) or done.stderr

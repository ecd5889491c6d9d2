"""The pages under docs/ that are made from the code are up to date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("script", ["make_layers.py", "make_operators.py"])
def test_the_page_is_what_the_code_says(script: str) -> None:
    done = subprocess.run(
        [sys.executable, f"docs/{script}", "--check"], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

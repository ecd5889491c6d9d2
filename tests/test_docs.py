"""The pages under docs/ that are made from the code are up to date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_of_layers_is_what_the_docstrings_say() -> None:
    done = subprocess.run(
        [sys.executable, "docs/make_layers.py", "--check"], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

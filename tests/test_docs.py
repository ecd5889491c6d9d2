"""The pages under docs/ that are made from the code are up to date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastlayers as fl

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("script", ["make_layers.py", "make_operators.py"])
def test_the_page_is_what_the_code_says(script: str) -> None:
    done = subprocess.run(
        [sys.executable, f"docs/{script}", "--check"], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_layer_says_how_it_is_called() -> None:
    """What comes in and goes out is often said once, for a family."""
    text = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8").split("## Functions")[0]
    entries = re.split(r"^#### fl\.", text, flags=re.MULTILINE)[1:]
    silent = [name for name, about in ((e.split("(")[0], e) for e in entries) if "**Call**" not in about]
    assert len(entries) > 100
    assert [name for name in silent if issubclass(getattr(fl, name), fl.Layer)] == []

"""What holds for every script in examples/: short enough to be read at a glance, and of nothing but numpy and this library."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
ALLOWED = {
    "__future__",
    "argparse",
    "collections",
    "fastlayers",
    "json",
    "math",
    "numpy",
    "pathlib",
    "re",
    "sys",
    "time",
    "tokenizers",
    "wave",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_short_and_says_what_it_does(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 50
    tree = ast.parse(text)
    assert ast.get_docstring(tree)
    imported = {name.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= ALLOWED


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_runs_without_arguments(script: Path, tmp_path: Path) -> None:
    """On weights of its own, or it says what it wants and where that is to be had."""
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    if script.name.startswith("keras_"):
        assert done.returncode == 0 and done.stdout.strip()
    else:
        assert done.returncode == 1 and f"python examples/{script.name}" in done.stderr and "pip download" in done.stderr


def test_there_are_scripts() -> None:
    assert SCRIPTS

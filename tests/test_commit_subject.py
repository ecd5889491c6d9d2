"""The hook that looks at the subjects of commits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOOK = Path(__file__).parent.parent / ".ci" / "hooks" / "commit_subject.py"

pytestmark = pytest.mark.skipif(not HOOK.exists(), reason="the source distribution has no hooks")


def told(message: str, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(HOOK), *(arguments or ["-"])]
    done = subprocess.run(command, input=message, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("message", [
    "tests: collect what can run", "kernels/aot: pass the panel by pointer\n\nWhy.\n", "Merge branch 'x'", 'Revert "a"',
    "jit, cuda: compile 16-bit conversions only when a kernel uses them", "docs: " + "x" * 66, "# a comment\ntests: add one\n",
])  # fmt: skip
def test_well_formed(message: str) -> None:
    assert told(message) == (0, "")


@pytest.mark.parametrize(("message", "text"), [
    ("Numbers of 16 bits are compiled for those that need them", "expected 'area: imperative'"),
    ("Tests: add one", "in lower case"), ("docs: " + "x" * 67, "has 73 characters"), ("tests: add one.", "full stop"),
    ("tests: added one", "says 'added'"), ("tests: adds one", "says 'adds'"), ("tests: adding one", "says 'adding'"),
    ("tests: add one\nand why", "second line"), ("", "expected 'area: imperative'"), ("tests:add", "expected 'area: imperative'"),
])  # fmt: skip
def test_refused(message: str, text: str, tmp_path: Path) -> None:
    status, found = told(message)
    assert status == 1 and text in found
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(message, encoding="utf-8")
    assert told("", str(path)) == (status, found)

"""What a walk is: the edits that a page of CONTRIBUTING.md asks for, on an invented example, and what must pass afterwards."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Edit", "Walk", "after", "copied", "named_files", "new", "python"]

ROOT = Path(__file__).parent.parent.parent
# What no walk needs, some of it large.
_LEFT = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", ".numba"
)


class Edit(NamedTuple):
    """Text that goes into a file after the one place where `anchor` stands; into a new file if there is no anchor."""

    path: str
    anchor: str
    text: str

    def apply(self, tree: Path) -> None:
        path = tree / self.path
        if not self.anchor:
            assert not path.exists(), f"{self.path} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text, encoding="utf-8")
            return
        content = path.read_text(encoding="utf-8")
        assert content.count(self.anchor) == 1, f"{self.path}: {content.count(self.anchor)} places {self.anchor!r}: expected one"
        path.write_text(content.replace(self.anchor, self.anchor + self.text), encoding="utf-8")


def after(path: str, anchor: str, text: str) -> Edit:
    return Edit(path, anchor, text)


def new(path: str, text: str) -> Edit:
    return Edit(path, "", text)


class Walk(NamedTuple):
    """One section of CONTRIBUTING.md.

    `heading` is the section's; `made` are pages that a command of the walk writes; `other` are files that the section names and
    the example does not need. `commands` run in the copy, one after the other, and none may fail.
    """

    heading: str
    edits: tuple[Edit, ...]
    commands: tuple[str, ...]
    made: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()

    @property
    def files(self) -> set[str]:
        return {edit.path for edit in self.edits} | self.made | self.other


def copied(to: Path) -> Path:
    """The tree with its compiled engine, without what builds and caches leave."""
    shutil.copytree(ROOT, to, ignore=_LEFT)
    return to


def python(tree: Path, command: str, seconds: int = 600) -> None:
    """Runs ``python`` with these arguments in a copy, on the copy's package; raises with what it printed if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FASTLAYERS_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, *shlex.split(command)], cwd=tree, env={**environment, "PYTHONPATH": str(tree)}, capture_output=True,
        text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"python {command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def named_files(heading: str) -> set[str]:
    """The files that the numbered steps of a section of CONTRIBUTING.md name, in backticks."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert section, f"CONTRIBUTING.md has no section {heading!r}"
    steps = re.findall(r"^\d+\. (.*(?:\n   .*)*)", section[1], flags=re.MULTILINE)
    assert len(steps) >= 2, f"{heading}: expected numbered steps"
    return {name for step in steps for name in re.findall(r"`([\w./-]+\.(?:py|pyx|pxd|h|def|c|md|npz|txt))`", step)}

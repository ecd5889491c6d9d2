"""Each list of CONTRIBUTING.md is carried out in a copy of the tree: it names the files that are touched, and its checks pass."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fastlayers.kernels import dispatch

from .engine_walks import WALKS as ENGINE
from .python_walks import WALKS as PYTHON
from .walks import ROOT, Walk, copied, named_files, python

walks = pytest.mark.parametrize("walk", [*PYTHON, *ENGINE], ids=lambda walk: walk.heading)

pytestmark = pytest.mark.skipif(not (ROOT / "CONTRIBUTING.md").exists(), reason="there is no CONTRIBUTING.md here")


@walks
def test_the_page_names_the_files_that_are_touched(walk: Walk) -> None:
    assert named_files(walk.heading) == walk.files


def test_every_section_about_adding_is_walked() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    adding = text.split("\n## How to add ...\n")[1].split("\n## ")[0]
    assert [line[4:] for line in adding.splitlines() if line.startswith("### ")] == [w.heading for w in (*PYTHON, *ENGINE)]


@walks
def test_the_anchors_are_there(walk: Walk, tmp_path: Path) -> None:
    """What the exhaustive tests below edit is still where it was: cheap, so that they do not break unseen."""
    for path in {edit.path for edit in walk.edits if edit.anchor}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    for edit in walk.edits:
        edit.apply(tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("walk", PYTHON, ids=lambda walk: walk.heading)
def test_a_walk_without_a_compiler(walk: Walk, tmp_path: Path) -> None:
    tree = copied(tmp_path / "tree")
    for edit in walk.edits:
        edit.apply(tree)
    for command in walk.commands:
        python(tree, command)


@pytest.mark.exhaustive
@pytest.mark.skipif(not dispatch.levels() or os.name != "posix", reason="the compiled engine is not built here")
def test_walks_through_the_engine(tmp_path: Path) -> None:
    """One after the other in one copy, which is built once: it takes minutes."""
    tree = copied(tmp_path / "tree")
    for walk in ENGINE:
        for edit in walk.edits:
            edit.apply(tree)
    python(tree, "setup.py --quiet build_ext --inplace", seconds=1800)
    for walk in ENGINE:
        for command in walk.commands:
            python(tree, command)

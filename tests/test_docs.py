"""Pages that are made from the code are up to date; those that are written have their form, and their links lead somewhere."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import fastlayers as fl
from fastlayers.formats.onnx.schema import schemas

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the source distribution has no pages")


# Of Keep a Changelog.
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
# Pages that the build of the site makes: docs/conf.py.
MADE = {ROOT / "docs" / name for name in ("layers.md", "operators.md", "reference/commands.md")}
WRITTEN = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "fastlayers" / "kernels" / "README.md"} - MADE)


def test_the_changelog_has_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    for release in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", release, flags=re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds]
        before = release.partition("### ")[0]
        assert not re.search(r"^- ", before, flags=re.MULTILINE), "an entry stands below a heading of its kind"


def test_links_within_the_tree_lead_somewhere() -> None:
    broken = []
    for page in WRITTEN:
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            if not target.startswith(("http://", "https://", "mailto:")) and path not in MADE and not path.exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(
        r"^\| \[([\w-]+\.md)\]\(\1\) \| (.*) \|$", (folder / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert {name for name, _ in listed} == {path.name for path in folder.glob("*.md")} - {"README.md"}
    for name, decision in listed:
        text = (folder / name).read_text(encoding="utf-8")
        assert text.startswith(f"# {decision}\n"), name
        assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Alternatives", "Consequences")), name
        assert len(text.splitlines()) <= 60, f"{name}: a page is a page"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Text of a page that a script of docs/ makes."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    return lambda script: str(importlib.import_module(script).page())


def test_the_page_of_layers_has_all_and_how_they_are_called(made: Callable[[str], str]) -> None:
    text = made("make_layers")
    layers, functions = (
        re.split(r"^#### ", part, flags=re.MULTILINE)[1:] for part in text[text.index("\n## Layers") :].split("\n## Functions")
    )
    assert {entry.split("(")[0] for entry in functions} == {f"fl.functional.{n}" for n in fl.functional.__all__}
    assert len(layers) > 120
    silent = [entry.splitlines()[0] for entry in layers if "**Call**" not in entry]
    assert silent == ["fl.ClassTree(left, right)"]  # a value, not called


def test_the_page_of_operators_has_every_one_of_onnx(made: Callable[[str], str]) -> None:
    rows = re.findall(r"^\| (\w+) \| ai.onnx \| \d+ \| (\w+) \|", made("make_operators"), flags=re.MULTILINE)
    assert {name for name, _ in rows} == set(schemas())
    assert {word for _, word in rows} == {"native", "numpy", "stages", "rewritten", "refused"}

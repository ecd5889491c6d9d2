"""Pages that are made from the code are up to date; those that are written have their form, and their links lead somewhere."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastlayers as fl
from fastlayers.formats.onnx.schema import schemas

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the source distribution has no pages")


# Of Keep a Changelog.
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
# Pages that the build of the site makes: docs/conf.py.
MADE = {ROOT / "docs" / name for name in ("layers.md", "operators.md", "reference/commands.md", "changelog.md")}
MADE |= set((ROOT / "docs" / "layers").glob("*.md"))
WRITTEN = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "fastlayers" / "kernels" / "README.md"} - MADE)


def test_the_changelog_has_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    dated = versions[1:] if versions[0] == "[Unreleased]" else versions  # the commit of a release has none that is not released
    assert versions and all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in dated)
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
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A module of docs/, as Sphinx imports it."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module


def test_every_layer_and_function_has_an_entry_and_a_group(script: Callable[[str], Any]) -> None:
    make_layers = script("make_layers")
    texts = make_layers.texts()
    entries = re.findall(r"^\.\. auto(class|function):: fastlayers\.(\S+)$", "\n".join(texts.values()), flags=re.MULTILINE)
    named = {name for _, name in entries}
    assert len(entries) == len(named)
    hidden = {"Loaded", "Layer"}  # in the Python interface
    assert named == (set(fl.layers.__all__) - hidden) | {f"functional.{name}" for name in fl.functional.__all__}
    silent = [name for name, text in texts.items() if ".. autoclass" in text and ".. automethod:: " not in text]
    assert silent == ["layers/ClassTree"]  # a value, not called
    linked = re.findall(r"^\| \[`\w+`\]\((layers/\w+)\.md\)", texts["layers"], flags=re.MULTILINE)
    assert sorted(linked) == sorted(set(texts) - {"layers"})
    rows = [row for row in texts["layers"].splitlines() if row.startswith("| [")]
    assert [row for row in rows if not re.search(r" \| .{10,} \|$", row)] == []  # each says what it is


def test_the_sidebar_has_every_page_by_a_short_title(script: Callable[[str], Any]) -> None:
    conf = script("conf")
    titles = {page: title for pages in conf.doors().values() for page, title in pages.items()}
    assert [title for title in titles.values() if len(title.split()) > 4] == []
    assert len(set(titles.values())) == len(titles), "two pages of one title: one subject has one page"
    docs = ROOT / "docs"
    pages = {p.relative_to(docs).with_suffix("").as_posix() for p in [*WRITTEN, *MADE] if p.is_relative_to(docs)}
    listed = {page for page in pages if page.startswith(conf.LISTED) and page != "decisions/README"}
    assert set(titles) == pages - listed - {"index"}


def test_names_in_prose_lead_to_the_reference_and_back(script: Callable[[str], Any]) -> None:
    references = script("references")
    page = (
        "# `fl.load`\n\nUse `fl.load(path)`, `fl.Conv2d` and [`fl.load`](x.md), not `fl.nothing`.\n\n```python\n`fl.load`\n```\n"
    )
    assert references.linked(page, "a") == page.replace(
        "`fl.load(path)`, `fl.Conv2d`", "{py:obj}`fl.load(path) <fastlayers.load>`, {py:obj}`fl.Conv2d <fastlayers.Conv2d>`"
    )
    lines = ["See `Conv2d`, ``x`` and `padding`."]
    references.docstring(None, "function", "fastlayers.compile", None, None, lines)
    assert lines[0] == "See :py:obj:`Conv2d <fastlayers.Conv2d>`, ``x`` and ``padding``."
    assert "/start/torch" in lines[2] and lines[2].startswith("**Used in** :doc:`/")


ENTRY = """<dl class="py function">
<dt class="sig" id="fl.f"><dl>
<dd><em class="sig-param"><span class="n"><span class="pre">x</span></span></em></dd></dl></dt>
<dd><p>Text.</p><dl class="field-list"><dt class="field-odd">Parameters<span class="colon">:</span></dt>
<dd class="field-odd"><p><strong>x</strong> – an array.</p></dd>
<dt class="field-even">Raises<span class="colon">:</span></dt>
<dd class="field-even"><p><strong>ShapeError</strong><strong>, </strong><strong>DTypeError</strong> – else.</p></dd></dl>
</dd></dl>"""


def test_an_entry_that_was_misread_is_found(script: Callable[[str], Any]) -> None:
    check_site = script("check_site")
    assert check_site.misread(ENTRY) == []
    wrong = ENTRY.replace("<strong>x</strong>", "<strong>x</strong> – a</p><p><strong>memory.</strong>")
    assert check_site.misread(wrong) == ["fl.f: Parameters: memory."]
    assert check_site.misread(ENTRY.replace("DTypeError", "weights alone.")) == ["fl.f: Raises: weights alone."]


def test_the_front_page_is_readmes(script: Callable[[str], Any]) -> None:
    conf = script("conf")
    text = conf.front((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert "pip install" in text and "](front.svg)" in text and "](tutorials/picture.md)" in text and "](docs/" not in text
    assert "## Four reasons" in text and "## Try it" not in text and text.index("## Four reasons") < text.index("## Where to go")


def test_the_page_of_operators_has_every_one_of_onnx(script: Callable[[str], Any]) -> None:
    rows = re.findall(r"^\| (\w+) \| ai.onnx \| \d+ \| (\w+) \|", script("make_operators").page(), flags=re.MULTILINE)
    assert {name for name, _ in rows} == set(schemas())
    assert {word for _, word in rows} == {"native", "numpy", "stages", "rewritten", "refused"}

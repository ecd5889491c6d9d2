"""Sphinx: ``python -m sphinx -W docs site`` with the extra "docs". Pages are Markdown; some are made of the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import make_layers  # noqa: E402
import make_operators  # noqa: E402

import fastlayers  # noqa: E402

project = "fastlayers"
copyright = "the authors of fastlayers, MIT licence"
release = fastlayers.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["reference/_*"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "autodoc.mocked_object"]
html_theme = "furo"
html_title = "fastlayers"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_js_files = ["tables.js"]
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
linkcheck_ignore = [r"https?://"]  # what is elsewhere changes without us

DOORS = {
    "Start": "start/install models onnxruntime start/torch start/keras start/layers",
    "How to": "how-to/checkpoints how-to/text how-to/services how-to/streaming how-to/batches how-to/decoders how-to/quantize "
    "export how-to/deploy how-to/scaling how-to/speed-checks how-to/inspect how-to/operators how-to/untrusted cuda",
    "Reference": "reference/api layers operators reference/supported reference/commands reference/environment reference/errors",
    "Explanation": "explanation/architecture explanation/exactness explanation/threads explanation/memory explanation/variants "
    "explanation/speed decisions/README",
}


def toctrees() -> str:
    """The four doors, as the index needs them; further pages of theirs are found, so that a new page cannot be forgotten."""
    named = {page for pages in DOORS.values() for page in pages.split()}
    found = {path.relative_to(HERE).with_suffix("").as_posix() for path in HERE.rglob("*.md")} - {"index"}
    doors = {door: pages.split() for door, pages in DOORS.items()}
    for page in sorted(found - named):
        doors[{"start": "Start", "how-to": "How to", "reference": "Reference"}.get(page.split("/")[0], "Explanation")].append(
            page
        )
    return "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {door}\n\n" + "\n".join(pages) + "\n```\n" for door, pages in doors.items()
    )


def commands() -> str:
    """The command line, from its parser's own help."""
    from fastlayers.cli import _parser

    parser = _parser()
    actions = [action for action in parser._actions if action.choices and hasattr(action.choices, "items")]
    parts = ["# Command line", "", "```text", parser.format_help().rstrip(), "```"]
    for action in actions:
        for name, sub in action.choices.items():
            parts += ["", f"## fastlayers {name}", "", "```text", sub.format_help().rstrip(), "```"]
    return "\n".join(parts) + "\n"


MADE = {"layers": make_layers.page, "operators": make_operators.page, "reference/commands": commands}


def outside(text: str, page: Path) -> str:
    """Links to files that are no pages (sources, SECURITY.md) as plain names: the site stands alone."""

    def link(found: re.Match[str]) -> str:
        label, target = found[1], found[2].partition("#")[0]
        if target.startswith(("http", "mailto:")) or not target:
            return found[0]
        path = (page.parent / target).resolve()
        if path.is_relative_to(HERE) and path.suffix in (".md", ".svg"):
            return found[0]
        return f"`{path.relative_to(ROOT).as_posix()}`" if label.strip("`") in target else f"{label} (`{path.relative_to(ROOT)}`)"

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", link, text)


def read(app: Any, name: str, source: list[str]) -> None:
    source[0] = outside(source[0], HERE / f"{name}.md")
    if name == "index":
        source[0] += "\n" + toctrees()


def make(app: Any) -> None:
    for name, page in MADE.items():
        path = HERE / f"{name}.md"
        text = page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("config-inited", lambda app, config: make(app))
    app.connect("source-read", read)

"""Sphinx: ``python -m sphinx -W docs site`` with the extra "docs". Pages are Markdown; some are made of the code."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import make_layers  # noqa: E402
import make_operators  # noqa: E402
import references  # noqa: E402

import fastlayers  # noqa: E402

project = "fastlayers"
copyright = "the authors of fastlayers, MIT licence"
release = fastlayers.__version__
extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton", "sphinx_inline_tabs"
]  # fmt: skip
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["reference/_*", "_templates"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "autodoc.mocked_object"]
html_theme = "furo"
html_title = "fastlayers"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["_static"]
html_css_files = ["tables.css", "charts.css", "versions.css"]
html_js_files = ["tables.js", "versions.js"]
templates_path = ["_templates"]
SIDEBAR = "brand versions search scroll-start navigation scroll-end"  # furo's, and the choice of a version: make_versions.py
html_sidebars = {"**": [f"sidebar/{part}.html" for part in SIDEBAR.split()]}
html_copy_source = False
default_role = "code"
highlight_language = "text"  # blocks without a language are commands
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False
viewcode_line_numbers = True
linkcheck_ignore = [r"https?://"]  # what is elsewhere changes without us

# Pages of the sidebar with their titles there, of four words at most.
DOORS = {
    "Start": {
        "start/install": "Install", "start/first-steps": "First steps", "start/layers": "Networks of layers",
        "start/torch": "From torch", "start/keras": "From Keras", "onnxruntime": "From onnxruntime", "export": "Export a network",
    },
    "Tutorials": {
        "tutorials/picture": "A picture classified", "tutorials/speech": "Speech in a stream",
        "tutorials/search": "Search by meaning", "tutorials/prompt": "A prompt continued",
        "tutorials/tabular": "Tables in the cloud", "tutorials/load": "A service under load",
    },
    "How to": {
        "how-to/checkpoints": "Load checkpoints", "how-to/text": "Texts", "how-to/streaming": "Streams",
        "how-to/batches": "Batches", "how-to/decoders": "Decoders with a cache", "how-to/quantize": "Quantize",
        "how-to/services": "FastAPI, gunicorn, Celery",
        "how-to/serve": "Serve over HTTP", "how-to/deploy": "Deploy", "how-to/scaling": "Ray, Dask, Spark",
        "how-to/speed-checks": "Speed checks in CI", "how-to/inspect": "Look inside", "how-to/operators": "Operators of your own",
        "how-to/untrusted": "Untrusted files", "cuda": "GPUs",
    },
    "Reference": {
        "models": "Models", "reference/api": "Python interface", "layers": "Layers and functions", "operators": "Operators",
        "reference/supported": "What is supported", "reference/commands": "Command line",
        "reference/environment": "Environment variables", "reference/errors": "Errors", "changelog": "Changelog",
    },
    "Explanation": {
        "explanation/architecture": "Architecture", "explanation/exactness": "Exactness and precision",
        "explanation/threads": "Threads and forks", "explanation/memory": "Memory", "explanation/variants": "Kernel variants",
        "explanation/speed": "Speed", "decisions/README": "Decisions",
    },
}  # fmt: skip
# Folders whose pages are listed by a page of the sidebar instead of by it.
LISTED = ("layers/", "decisions/")


def title_of(page: Path) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return found[1] if found else page.stem


def doors() -> dict[str, dict[str, str]]:
    """Pages and titles of the sidebar; pages that `DOORS` does not name are found, so that a new one cannot be forgotten."""
    found = {door: dict(pages) for door, pages in DOORS.items()}
    named = {page for pages in DOORS.values() for page in pages}
    for path in sorted(HERE.rglob("*.md")):
        name = path.relative_to(HERE).with_suffix("").as_posix()
        if name != "index" and name not in named and not name.startswith(LISTED):
            folders = {"start": "Start", "tutorials": "Tutorials", "how-to": "How to", "reference": "Reference"}
            found[folders.get(name.split("/")[0], "Explanation")][name] = title_of(path)
    return found


def toctrees() -> str:
    """The doors, as the index needs them."""
    return "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {door}\n\n" + "\n".join(f"{t} <{page}>" for page, t in pages.items()) + "\n```\n"
        for door, pages in doors().items()
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


def changelog() -> str:
    """CHANGELOG.md, whose links are of the root."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.sub(r"\]\((?!https?:|#)([^)\s]+)\)", lambda found: f"]({os.path.relpath(ROOT / found[1], HERE)})", text)


def made() -> dict[str, str]:
    """Pages that are made of the code, by name."""
    return {**make_layers.texts(), "operators": make_operators.page(), "reference/commands": commands(), "changelog": changelog()}


def front(text: str) -> str:
    """The index with README's first sections, whose links are of the root."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    sections = readme.partition("\n")[2].partition("## Try it")[0]
    return re.sub(r"<!--.*?-->", lambda _: sections.replace("](docs/", "](").strip(), text, count=1)


def outside(text: str, page: Path) -> str:
    """Links to files that are no pages (sources, SECURITY.md) as plain names: the site stands alone."""

    def link(found: re.Match[str]) -> str:
        label, target = found[1], found[2].partition("#")[0]
        if target.startswith(("http", "mailto:")) or not target:
            return found[0]
        path = Path(os.path.normpath(page.parent / target))
        if path == ROOT / "CHANGELOG.md":
            return f"[{label}]({os.path.relpath(HERE / 'changelog.md', page.parent)})"
        if path.is_relative_to(HERE) and path.suffix in (".md", ".svg", ".jpg"):
            return found[0]
        return f"`{path.relative_to(ROOT).as_posix()}`" if label.strip("`") in target else f"{label} (`{path.relative_to(ROOT)}`)"

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", link, text)


def drawn(text: str, page: Path) -> str:
    """Pictures within the page instead of next to it, so that they follow its colours and not the system's."""

    def picture(found: re.Match[str]) -> str:
        svg = (page.parent / found[2]).resolve().read_text(encoding="utf-8")
        label = found[1].replace("&", "&amp;").replace('"', "&quot;")
        wide = " wide" if float(re.findall(r"width='([\d.]+)'", svg)[0]) > 500 else ""  # scrolls rather than shrinks
        return f'```{{raw}} html\n<div class="chart{wide}" role="img" aria-label="{label}">{svg.strip()}</div>\n```'

    return re.sub(r"^!\[([^\]]*)\]\(([^)\s]+\.svg)\)$", picture, text, flags=re.MULTILINE)


def read(app: Any, name: str, source: list[str]) -> None:
    page = HERE / f"{name}.md"
    # What a page takes in besides its own file, so that it is read again when that changes.
    pictures = re.findall(r"^!\[[^\]]*\]\(([^)\s]+\.svg)\)$", source[0], flags=re.MULTILINE)
    for path in [
        *(page.parent / picture for picture in pictures),
        *([ROOT / "README.md", HERE / "front.svg"] * (name == "index")),
    ]:
        app.env.note_dependency(str(path.resolve()), docname=name)
    text = front(source[0]) if name == "index" else source[0]
    text = drawn(references.linked(outside(text, page), name), page)
    if name == "index":
        text += "\n" + toctrees()
    elif name.startswith(LISTED) and name != "decisions/README" and not text.startswith("---"):
        text = "---\norphan: true\n---\n\n" + text
    source[0] = text


def make(app: Any) -> None:
    pages = made()
    for name, text in pages.items():
        path = HERE / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in (HERE / "layers").glob("*.md"):
        if f"layers/{path.stem}" not in pages:
            path.unlink()


def setup(app: Any) -> None:
    app.connect("config-inited", lambda app, config: make(app))
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", references.docstring)

"""Checks of the built site, or of that of all versions: ``python docs/check_site.py site``.

Every link leads to a file of it, and to a place in that file; every page tells its version, and every version that can be chosen
is there; every entry of the reference describes arguments that its signature has, and errors by names, which is not so where a
docstring was misread.
"""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = {""}
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken(site: Path) -> list[str]:
    """What leads nowhere, as "page: link"."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.is_file() or (target in pages and place not in pages[target].places):
                found.append(f"{path.relative_to(site.resolve())}: {link}")
    if not pages:
        found.append(f"{site}: no pages")
    return found


def unversioned(site: Path) -> list[str]:
    """Pages that tell no version, and choices of one (make_versions.py) that lead nowhere."""
    listed = json.loads((site / "versions.json").read_text(encoding="utf-8")) if (site / "versions.json").exists() else []
    folders = [site / one["folder"] for one in listed] or [site]
    found = [f"versions.json: {folder.name}" for folder in folders if not (folder / "index.html").is_file()]
    for page in sorted(page for folder in folders for page in folder.rglob("*.html")):
        if not re.search(
            r'<div class="versions" data-root="[./]+">Version \d+\.\d+\.\d+</div>', page.read_text(encoding="utf-8")
        ):
            found.append(f"{page.relative_to(site)}: tells no version")
    return found


def misread(text: str) -> list[str]:
    """Descriptions of a page's entries that belong to no argument, or to what is no error, as "entry: words"."""
    found = []
    for entry in re.split(r'<dl class="py ', text)[1:]:
        name = re.search(r' id="([\w.]+)"', entry)
        signature, rest = re.split(r"</dt>\s*<dd>", entry, maxsplit=1)  # of all overloads
        arguments = set(re.findall(r'<em class="sig-param">.*?<span class="pre">(\w+)</span></span>', signature, flags=re.DOTALL))
        for kind, body in re.findall(
            r'<dt class="field-\w+">(Parameters|Raises)<.*?</dt>\s*<dd[^>]*>(.*?)</dd>', rest, flags=re.DOTALL
        ):
            for words in re.findall(r"<strong>(.*?)</strong>", body, flags=re.DOTALL):
                plain = [word.strip("* ") for word in re.sub(r"<.*?>", "", words).split(",")]
                right = arguments.issuperset(plain) if kind == "Parameters" else not any(" " in word for word in plain)
                if not right:
                    found.append(f"{name[1] if name else '?'}: {kind}: {', '.join(plain)}")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1])
    wrong = broken(site) + unversioned(site)
    for path in sorted(path for path in site.rglob("*.html") if path.parent.name in ("layers", "reference")):
        wrong += [f"{path.relative_to(site)}: {one}: misread" for one in misread(path.read_text(encoding="utf-8"))]
    print("\n".join(wrong) or "all links of the site lead somewhere, and no entry was misread")
    sys.exit(bool(wrong))

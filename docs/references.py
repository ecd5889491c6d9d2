"""Links between prose and the reference: names in prose lead to their entries, and entries name the pages that use them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import fastlayers as fl

HERE = Path(__file__).parent
MOST = 6  # pages that an entry names
# Pages that mention everything, or are made: no place to read how something is used.
OTHERS = (
    "reference/",
    "decisions/",
    "layers/",
    "layers.md",
    "operators.md",
    "changelog.md",
    "index.md",
    "explanation/architecture.md",
)


@cache
def targets() -> dict[str, str]:
    """Names as prose has them, "fl.load", and those of their entries, "fastlayers.load"."""
    found = {f"fl.{name}": f"fastlayers.{name}" for name in fl.layers.__all__}
    found |= {f"fl.functional.{name}": f"fastlayers.functional.{name}" for name in fl.functional.__all__}
    text = (HERE / "reference" / "api.md").read_text(encoding="utf-8")
    for name in re.findall(r"auto(?:function|class):: fastlayers\.([\w.]+)$", text, flags=re.MULTILINE):
        found[f"fl.{name}"] = f"fastlayers.{name}"
    found |= {f"fl.{name}": f"fastlayers.errors.{name}" for name in fl.errors.__all__}
    return found


def resolved(name: str) -> str:
    """The entry of a name, or of a method of it; "" without one."""
    if name in targets():
        return targets()[name]
    owner, _, member = name.rpartition(".")
    return f"{targets()[owner]}.{member}" if owner in targets() and not member.startswith("_") else ""


def prose(text: str) -> Iterator[tuple[bool, str]]:
    """Parts of a page, each with whether it is prose: neither code nor a heading, a link or a picture."""
    at = 0
    fences = [found.span() for found in re.finditer(r"^(```+)[^\n]*\n.*?^\1[ ]*$", text, flags=re.MULTILINE | re.DOTALL)]
    others = [found.span() for found in re.finditer(r"^#.*$|!?\[[^\]]*\]\([^)]*\)", text, flags=re.MULTILINE)]
    for begin, end in sorted(fences + others):
        if begin >= at:
            yield True, text[at:begin]
            yield False, text[begin:end]
            at = end
    yield True, text[at:]


def linked(text: str, page: str) -> str:
    """A page with every `fl.NAME` of its prose, also called with arguments, as a link to the entry."""

    def link(found: re.Match[str]) -> str:
        target = resolved(found[2])
        return f"{{py:obj}}`{found[1]} <{target}>`" if target else found[0]

    pattern = re.compile(r"(?<![`}])`((fl\.[\w.]+)(?:\([^`<>]*\))?)`(?!`)")
    if page.startswith(("layers/", "changelog")):
        return text
    return "".join(pattern.sub(link, part) if is_prose else part for is_prose, part in prose(text))


@cache
def mentions() -> dict[str, list[str]]:
    """For each entry the pages that name it, in prose or code, those with most of it first."""
    counts: dict[str, dict[str, int]] = {}
    for path in sorted(HERE.rglob("*.md")):
        name = path.relative_to(HERE).as_posix()
        if name.startswith(OTHERS):
            continue
        for word in re.findall(r"\bfl\.[A-Za-z_][\w.]*\w", path.read_text(encoding="utf-8")):
            target = targets().get(word) or targets().get(word.rpartition(".")[0])
            if target:
                pages = counts.setdefault(target, {})
                pages[name] = pages.get(name, 0) + 1
    return {target: sorted(pages, key=lambda page: -pages[page]) for target, pages in counts.items()}


def docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Completes a docstring: names in backquotes become links, and pages that use it are named below."""

    def link(found: re.Match[str]) -> str:
        word = found[1].removeprefix("fl.")
        target = resolved(f"fl.{word}") or resolved(f"fl.functional.{word.removeprefix('functional.')}")
        return f":py:obj:`{found[1]} <{target}>`" if target and target != name else f"``{found[1]}``"

    lines[:] = [re.sub(r"(?<![`:\w])`([\w.]+)`(?![`_])", link, line) for line in lines]
    if what in ("class", "function") and (pages := mentions().get(name)):
        where = ", ".join(f":doc:`/{os.path.splitext(page)[0]}`" for page in pages[:MOST])
        lines += ["", f"**Used in** {where}.", ""]

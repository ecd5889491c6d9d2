"""Sections, entries, literal blocks and quotes of docstrings, as the site reads them.

It reads Google's style by Sphinx's napoleon, without a word where it takes a line for something else: a continuation without
indentation becomes a parameter called "memory.", a heading that it does not know a paragraph. No Sphinx is needed here;
docs/check_site.py looks at what came of it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastlayers as fl

ROOT = Path(__file__).parent.parent
ENTRIES = {"Args", "Attributes", "Raises", "Keyword Args"}
# The others of napoleon that are used; it knows more, of which readers have to know as well.
SECTIONS = {*ENTRIES, "Returns", "Yields", "Note", "Example"}
ENTRY = re.compile(r"^ {4}\*{0,2}[\w.]+(?:, [\w.]+)*(?: \([^)]*\))?: \S")


def sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each heading with the lines below it that are indented."""
    for i, line in enumerate(lines):
        if (found := re.match(r"^([A-Z]\w*(?: \w+)?):$", line)) and i + 1 < len(lines):
            body = []
            for below in lines[i + 1 :]:
                if below and not below.startswith(" "):
                    break
                body.append(below)
            yield found[1], body


def misread(docstring: str) -> list[str]:
    """Sections that the site would take for something else."""
    text = inspect.cleandoc(docstring)
    lines = text.split("\n")
    found: list[str] = []
    inside: set[int] = set()  # lines of sections
    for name, body in sections(lines):
        start = lines.index(f"{name}:")
        inside |= set(range(start, start + len(body) + 1))
        filled = [line for line in body if line]
        if name not in SECTIONS:
            if filled:
                found.append(f"{name}: is no section that the site knows")
            continue
        if not filled:
            found.append(f"{name}: a section without text")
        for line in filled:
            spaces = len(line) - len(line.lstrip())
            if spaces < 4 or (4 < spaces < 8 and name in ENTRIES):
                found.append(f"{name}: {line.strip()!r} is indented by {spaces}")
            elif name in ENTRIES and spaces == 4 and not ENTRY.match(line):
                found.append(f"{name}: {line.strip()!r} is taken for an entry of its own")
        if name == "Returns" and filled and re.match(r"^ {4}[A-Za-z_]\w*: ", filled[0]):
            found.append(f"Returns: {filled[0].split(':')[0].strip()!r} is taken for a type")
    for i, line in enumerate(lines):
        below = next((other for other in lines[i + 1 :] if other), "")
        if line.endswith("::") and i not in inside and not (below.startswith(" ") and not lines[i + 1]):
            found.append(f"{line.strip()[-30:]!r} announces a literal block, which is not there")
        if line.startswith("    ") and i not in inside and i and not lines[i - 1]:
            before = next((other for other in reversed(lines[:i]) if other and not other.startswith(" ")), "")
            if not before.endswith("::") and not before.startswith(("- ", "* ", ".. ")):
                found.append(f"{line.strip()[:30]!r} is taken for a quotation")
        if re.fullmatch(r"[-=~^]{3,}", line) and i:
            found.append(f"{lines[i - 1]!r} is underlined: sections are Google's here")
        if line.startswith("```") or re.search(r"\[[^\]]+\]\(\S+\)", line):
            found.append(f"{line.strip()[:30]!r} is Markdown")
    plain = re.sub(r"^>>>.*(?:\n\S.*)*", "", text, flags=re.MULTILINE)
    if any(len(re.findall(r"`", part)) % 2 for part in plain.split("\n\n")):
        found.append("a quote ` that is not closed")
    return found


def shown() -> Iterator[tuple[str, object]]:
    """Objects that the site has an entry for: layers, functions, and what pages of the reference name, with public methods."""
    values = [*(f"layers.{name}" for name in fl.layers.__all__), *(f"functional.{name}" for name in fl.functional.__all__)]
    for path in sorted((ROOT / "docs" / "reference").glob("*.md")):
        values += re.findall(r"auto\w+:: fastlayers\.([\w.]+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for name in values:
        module = importlib.import_module("fastlayers")
        value = functools.reduce(getattr, name.split("."), module)
        yield name, value
        for method, function in vars(value).items() if inspect.isclass(value) or inspect.ismodule(value) else ():
            if inspect.ismodule(value) and getattr(function, "__module__", "") != value.__name__:
                continue  # imported there
            if not method.startswith("_") or method == "__call__":
                yield f"{name}.{method}", function


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the source distribution has no pages")
def test_the_site_reads_every_section_as_it_is_meant() -> None:
    texts = {name: inspect.getdoc(value) for name, value in shown() if callable(value) or isinstance(value, property)}
    assert len(texts) > 400
    assert [f"{name}: {wrong}" for name, text in texts.items() for wrong in misread(text or "")] == []


GOOD = """Sums of things.

Args:
    x: an array of
        two axes.
    *more: others.

Returns:
    The sum, or a tuple: both sums.

Raises:
    ShapeError: x has another shape.

A block, literally::

    x + y

>>> 1 + 1
2
"""


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("Args:", "Input:", "Input: is no section"),
        ("        two axes.", "    memory.", "'memory.' is taken for an entry"),
        ("        two axes.", "      two axes.", "indented by 6"),
        ("    The sum, or a tuple: both sums.", "    sum: both.", "'sum' is taken for a type"),
        ("    ShapeError: x has another shape.", "    x has another shape.", "'x has another shape.' is taken for an entry"),
        ("literally::\n\n    x", "literally::\n\nx", "literal block, which is not there"),
        ("literally::", "literally:", "'x + y' is taken for a quotation"),
        ("Args:\n", "Args\n----\n", "'Args' is underlined"),
        ("Sums of", "Sums [of](x)", "is Markdown"),
        ("Sums of", "Sums `of", "not closed"),
        ("    ShapeError: x has another shape.\n", "", "Raises: a section without text"),
    ],
)
def test_what_would_be_misread_is_found(old: str, new: str, wrong: str) -> None:
    assert old in GOOD and misread(GOOD) == []
    found = misread(GOOD.replace(old, new, 1))
    assert any(wrong in one for one in found)

"""Descriptions of arguments that several docstrings share are the same words: see docs/decisions/written-docstrings.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from tests.source import tree_of

PACKAGE = Path(__file__).parent.parent / "fastlayers"
# Words whose presence changes no meaning.
SMALL = {"a", "an", "the", "is", "are", "of", "its", "that", "which"}


def arguments(docstring: str) -> Iterator[tuple[str, str]]:
    """Names and descriptions of the section "Args"."""
    _, _, section = docstring.partition("Args:\n")
    section = re.split(r"\n\S", section)[0]
    for match in re.finditer(r"^    (\S[^:\n]*): (.*(?:\n {8,}.*)*)", section, flags=re.MULTILINE):
        yield match[1], " ".join(match[2].split())


def meaning(text: str) -> tuple[str, ...]:
    """What is left of a description without small words and punctuation; code stays as it is written."""
    code = r"``.*?``|`.*?`"
    words = [w.lower() for w in re.findall(r"[\w']+", re.sub(code, "", text))]
    return (*re.findall(code, text), *(w for w in words if w not in SMALL))


def drifted(found: dict[str, dict[str, str]]) -> list[str]:
    """Pairs of descriptions of one argument that differ in small words alone."""
    return [
        f"{name}: {homes[a]} has {a!r}, {homes[b]} has {b!r}"
        for name, homes in found.items()
        for a, b in combinations(homes, 2)
        if meaning(a) == meaning(b)
    ]


def test_what_means_the_same_is_said_in_the_same_words() -> None:
    found: dict[str, dict[str, str]] = {}
    for path in sorted([*(PACKAGE / "functional").glob("*.py"), *(PACKAGE / "layers").glob("*.py")]):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                for name, text in arguments(ast.get_docstring(node) or ""):
                    found.setdefault(name, {}).setdefault(text, f"{path.parent.name}/{path.name}:{node.name}")
    assert len(found) > 100
    assert drifted(found) == []


def test_drift_is_found() -> None:
    one, other = "the sums of the gates are clipped to ``-clip .. clip``", "sums of gates are clipped to ``-clip .. clip``."
    assert drifted({"clip": {one: "a", other: "b"}}) and not drifted({"clip": {one: "a", one.replace("-", ""): "b"}})

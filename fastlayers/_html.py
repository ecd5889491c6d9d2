"""Pieces of HTML for notebooks and pages. What comes from files or users is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["clean", "shape", "shares", "table"]

LONGEST = 200  # characters of a name
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def clean(text: Any, most: int = LONGEST) -> str:
    """Text for HTML, in an attribute or between tags: at most so many characters, none that controls anything (line ends, signs
    that turn the direction of writing, lone surrogates).
    """
    words = str(text)
    if len(words) > most:
        words = f"{words[: most // 2]}…{words[-(most - most // 2) :]}"
    return "".join(_ENTITIES.get(c, c) if c.isprintable() else "\ufffd" for c in words)


def shares(share: float) -> str:
    """The fill of a share from 0 (the ground, light or dark) to 1 (red), on which words have the colour of those around it."""
    t = min(max(float(share), 0.0), 1.0) ** 0.5
    red = "".join(f"{round(a + (b - a) * t):02x}" for a, b in ((252, 240), (176, 100), (60, 72)))
    return f'fill="#{red}" fill-opacity="{0.6 * t:.2f}"'


def shape(sizes: Sequence[Any] | None) -> str:
    """Sizes as a tuple in which open ones have no quotes: (batch, 3, 224, 224)."""
    return "any" if sizes is None else f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"


def table(head: Sequence[Any], rows: Sequence[Sequence[Any]], left: int = 1, kind: str = "") -> str:
    """A table; the first `left` columns are aligned to the left. A cell that is a pair is a text and the number to sort it by."""

    def cell(tag: str, i: int, value: Any) -> str:
        text, number = value if isinstance(value, tuple) else (value, None)
        sort = "" if number is None else f' data-sort="{float(number):.9g}"'
        align = "left" if i < left else "right"
        return f'<{tag} style="text-align:{align}"{sort}>{clean(text)}</{tag}>'

    def line(tag: str, row: Sequence[Any]) -> str:
        return f"<tr>{''.join(cell(tag, i, value) for i, value in enumerate(row))}</tr>"

    name = f' class="{kind}"' if kind else ""
    body = "\n".join(line("td", row) for row in rows)
    return f"<table{name}><thead>{line('th', head)}</thead>\n<tbody>{body}</tbody></table>"

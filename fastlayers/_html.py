"""Pieces of HTML for notebooks and pages. What comes from files or users is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["clean", "shares", "table"]

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
    """A colour for a share from 0 (white) to 1 (red), the same on light and dark grounds."""
    t = min(max(float(share), 0.0), 1.0) ** 0.5
    low, high = ((255, 250, 235), (252, 176, 92)) if t < 0.5 else ((252, 176, 92), (240, 112, 84))
    part = 2 * t if t < 0.5 else 2 * t - 1
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(low, high, strict=True))


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

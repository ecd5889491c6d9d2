"""Pictures as plain SVG text: heat maps, trees and bars with labels. No library is needed, and every browser shows them.

Colours have names, and each picture says what they are in the light and in the dark: it follows the system's, and within a page
of the site the page's. Bars are drawn 380 pixels wide, which a telephone shows at full size.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

__all__ = ["COLOURS", "bar", "colour", "document", "heat_map", "line", "text"]

FONT = "font-family='sans-serif' font-size='{size}'"
# Names of colours, in the light and in the dark: words, lines, paper, and one for each engine of a comparison.
COLOURS = {
    "ink": ("#222", "#ddd"), "soft": ("#666", "#999"), "rule": ("#aaa", "#666"), "paper": ("#fff", "#131416"),
    "ours": ("#0a3a8c", "#6fb1f5"), "second": ("#d97a1a", "#f0a050"), "third": ("#3f9d8f", "#63c7b6"),
    "fourth": ("#b04a7a", "#e08ab0"), "fifth": ("#7a6bb5", "#a99be0"),
}  # fmt: skip


def _style() -> str:
    """Meanings of the names of colours: by the system, unless the page around the picture says which."""

    def rules(index: int, where: str = "") -> str:
        return "".join(
            f"{where}.fl-{name}{{{'stroke' if name == 'rule' else 'fill'}:{pair[index]}}}" for name, pair in COLOURS.items()
        )

    dark = f"@media (prefers-color-scheme:dark){{{rules(1)}}}"
    return f"<style>{rules(0)}{dark}{rules(0, 'body[data-theme=light] ')}{rules(1, 'body[data-theme=dark] ')}</style>"


def colour(share: float) -> str:
    """From white (0) to dark blue (1)."""
    t = min(max(float(share), 0.0), 1.0)
    ends = ((255, 255, 255), (94, 158, 214), (10, 40, 110))
    low, high = (ends[0], ends[1]) if t < 0.5 else (ends[1], ends[2])
    part = 2 * t if t < 0.5 else 2 * t - 1
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(low, high, strict=True))


def text(x: float, y: float, words: str, size: float = 12, anchor: str = "start", turn: float = 0, fill: str = "ink") -> str:
    """Words at a place; `anchor`: start, middle or end; `turn`: degrees, clockwise; `fill`: a name of a colour, or a colour."""
    turned = f" transform='rotate({turn:g} {x:g} {y:g})'" if turn else ""
    style = FONT.format(size=f"{size:g}")
    paint = f"class='fl-{fill}'" if fill in COLOURS else f"fill='{fill}'"
    return f"<text x='{x:g}' y='{y:g}' {style} text-anchor='{anchor}' {paint}{turned}>{escape(words)}</text>"


def line(x0: float, y0: float, x1: float, y1: float, stroke: str = "rule", width: float = 1) -> str:
    """A straight line; `stroke`: "rule", or a colour."""
    paint = f"class='fl-{stroke}'" if stroke in COLOURS else f"stroke='{stroke}'"
    return f"<line x1='{x0:g}' y1='{y0:g}' x2='{x1:g}' y2='{y1:g}' {paint} stroke-width='{width:g}'/>"


def bar(x: float, y: float, width: float, height: float, fill: str) -> str:
    """A rectangle of a colour's name."""
    return f"<rect x='{x:g}' y='{y:g}' width='{width:.1f}' height='{height:g}' class='fl-{fill}'/>"


def heat_map(
    values: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str, x: float = 0, y: float = 0, cell: float = 26
) -> tuple[str, float, float]:
    """A matrix of shares as squares with labels, its upper left corner at (x, y).

    Args:
        values: ``(rows, columns)``, 0 the paper's colour to 1 full colour; every square tells its value when pointed at.
        rows: a label for each row, on the left.
        columns: a label for each column, above, slanted.
        title: a line above all.

    Returns:
        ``(svg, width, height)``.
    """
    if values.shape != (len(rows), len(columns)):
        raise ValueError(f"heat_map: values has shape {values.shape}: expected ({len(rows)}, {len(columns)}), one label each")
    left = 12 + 7.2 * max(map(len, rows), default=0)
    slant = 14 + 5.4 * max(map(len, columns), default=0)
    top = 26 + slant
    parts = [text(x + left, y + 16, title, 13)]
    for j, word in enumerate(columns):
        parts.append(text(x + left + (j + 0.6) * cell, y + top - 6, word, 12, "start", -45))
    for i, word in enumerate(rows):
        parts.append(text(x + left - 6, y + top + (i + 0.65) * cell, word, 12, "end"))
        for j, share in enumerate(values[i]):
            at = f"x='{x + left + j * cell:g}' y='{y + top + i * cell:g}' width='{cell:g}' height='{cell:g}'"
            paint = f"class='fl-ours' fill-opacity='{share:.3g}' stroke='#888' stroke-opacity='0.3'"
            parts.append(f"<rect {at} {paint}><title>{escape(word)} - {escape(columns[j])}: {share:.3f}</title></rect>")
    return "\n".join(parts), left + cell * len(columns) + slant * 0.7, top + cell * len(rows) + 10


def document(parts: Sequence[str], width: float, height: float) -> str:
    """The whole file."""
    size = f"width='{width:.0f}' height='{height:.0f}' viewBox='0 0 {width:.0f} {height:.0f}'"
    background = "<rect width='100%' height='100%' class='fl-paper'/>"
    return "\n".join([f"<svg xmlns='http://www.w3.org/2000/svg' {size}>", _style(), background, *parts, "</svg>", ""])

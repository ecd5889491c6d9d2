"""A flame graph by scope: how the time is divided among the parts of the names that a model's author gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .._html import clean, shares
from ._network import weight

if TYPE_CHECKING:
    from .data import Report

__all__ = ["flame"]

DEEPEST = 10  # rows
ROW = 20.0
WIDTH = 1100.0
NARROWEST = 1.0  # pixels of what is drawn
LETTER = 6.2


@dataclass
class _Scope:
    name: str
    total: float = 0.0
    inner: dict[str, _Scope] = field(default_factory=dict)


def _tree(report: Report) -> _Scope:
    root = _Scope("all")
    for at, row in enumerate(report.steps):
        amount = weight(report, at)
        root.total += amount
        scope = root
        parts = [part for part in row.step.name.replace(".", "/").split("/")[:-1] if part]
        for part in [*parts[: DEEPEST - 2], f"{row.step.op} {row.step.name}"]:
            scope = scope.inner.setdefault(part, _Scope(part))
            scope.total += amount
    return root


def flame(report: Report) -> str:
    """The picture as SVG: the whole above, what it consists of below."""
    root = _tree(report)
    rects: list[str] = []
    deepest = _draw(root, 0.0, 0, root.total or 1.0, rects)
    height = (deepest + 1) * ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="flame graph" viewBox="0 0 {WIDTH:.0f} {height:.0f}" '
        f'style="--wide:{WIDTH:.0f}px;max-width:var(--wide);width:100%">'
        '<g font-family="system-ui,sans-serif" font-size="11" fill="currentColor">' + "".join(rects) + "</g></svg>"
    )


def _draw(scope: _Scope, x: float, row: int, whole: float, rects: list[str]) -> int:
    wide = scope.total / whole * WIDTH
    letters = int((wide - 6) / LETTER)
    words = scope.name if len(scope.name) <= letters else f"{scope.name[: letters - 1]}…" if letters > 3 else ""
    label = f'<text x="{x + 3:.6g}" y="{row * ROW + 14:.6g}">{clean(words)}</text>' if words else ""
    share = scope.total / whole
    colour = shares(share if scope.inner else share * 2)
    rects.append(
        f"<g><title>{clean(scope.name)}: {share:.1%}</title>"
        f'<rect x="{x:.6g}" y="{row * ROW:.6g}" width="{max(wide - 0.6, 0.4):.6g}" height="{ROW - 1:g}" {colour} '
        f'stroke="#8a94a0" stroke-width=".4"/>{label}</g>'
    )
    deepest = row
    for inner in scope.inner.values():
        if inner.total / whole * WIDTH >= NARROWEST:
            deepest = max(deepest, _draw(inner, x, row + 1, whole, rects))
        x += inner.total / whole * WIDTH
    return deepest

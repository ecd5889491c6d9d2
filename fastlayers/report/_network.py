"""The network as a picture: a box for each step, coloured by its share of the time, with what it reads and gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._html import clean, shares
from .._tuples import NamedTuple
from ._layout import HEIGHT, WIDTH, Layout, layout
from .text import count, three

if TYPE_CHECKING:
    from .data import Report

__all__ = ["drawing", "weight"]

MOST = 400  # boxes; of larger networks neighbours of the same scope share one
MOST_EDGES = 2000
LETTERS = 18


class Box(NamedTuple):
    """A box of the drawing: the indices of its steps, a label, its weight among all, and what is said of it."""

    steps: tuple[int, ...]
    label: str
    share: float
    numpy: bool


def weight(report: Report, at: int) -> float:
    """The measure of a step's colour and width: its time, or the multiply-adds and bytes of what was not measured."""
    row = report.steps[at]
    return row.total if report.measured else row.step.multiply_adds + row.step.bytes / 8


def drawing(report: Report, widest: float = 1100.0, most: int = MOST) -> str:
    """The picture as SVG, as wide as its place allows."""
    boxes = _boxes(report, most)
    home = {step: box for box, found in enumerate(boxes) for step in found.steps}
    placed = layout(len(boxes), _edges(report, home), widest)
    return _svg(report, boxes, placed)


def _edges(report: Report, home: dict[int, int]) -> list[tuple[int, int]]:
    """The edges from a box to those that read its results; boxes of different parts, of unrelated values, follow each other."""
    makers: dict[tuple[int, int], int] = {}
    found: dict[tuple[int, int], None] = {}
    before = -1
    for at, row in enumerate(report.steps):
        box = home[at]
        sources = {makers[row.stretch, value] for value in row.step.reads if (row.stretch, value) in makers}
        if before >= 0 and (not row.step.makes or report.steps[at - 1].stretch != row.stretch):
            sources.add(before)
        for source in sorted(sources):
            if source < box:
                found[source, box] = None
        for value in row.step.makes:
            makers[row.stretch, value] = box
        before = box
    return list(found)[:MOST_EDGES]


def _boxes(report: Report, most: int) -> list[Box]:
    whole = sum(weight(report, at) for at in range(len(report.steps))) or 1.0

    def made(steps: list[int], label: str) -> Box:
        share = sum(weight(report, at) for at in steps) / whole
        return Box(tuple(steps), label, share, any(report.steps[at].in_numpy for at in steps))

    if len(report.steps) <= most:
        return [made([at], row.step.op) for at, row in enumerate(report.steps)]
    # Neighbours whose names begin alike: with fewer and fewer parts of the name, until there are few enough.
    for parts in (3, 2, 1):
        groups: list[tuple[str, list[int]]] = []
        for at, row in enumerate(report.steps):
            scope = "/".join(row.step.name.replace(".", "/").strip("/").split("/")[:-1][:parts]) or row.step.op
            if groups and groups[-1][0] == scope:
                groups[-1][1].append(at)
            else:
                groups.append((scope, [at]))
        if len(groups) <= most:
            return [made(steps, scope) for scope, steps in groups]
    size = -(-len(report.steps) // most)
    runs = [list(range(at, min(at + size, len(report.steps)))) for at in range(0, len(report.steps), size)]
    return [made(steps, f"{len(steps)} steps") for steps in runs]


def _svg(report: Report, boxes: list[Box], placed: Layout) -> str:
    style = f"--wide:{placed.width:.0f}px;max-width:var(--wide);width:100%"
    size = f'viewBox="0 0 {placed.width:.0f} {placed.height:.0f}" style="{style}"'
    edges = "".join(f'<path d="{path}"/>' for path in placed.paths)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="the network" {size}>',
        f'<g fill="none" stroke="#8a94a0" stroke-width="1.1">{edges}</g>',
        '<g font-family="system-ui,sans-serif" font-size="11" fill="currentColor">',
    ]
    hottest = max((box.share for box in boxes), default=0.0) or 1.0
    for number, box in enumerate(boxes):
        x, y, _ = placed.places[number]
        stroke = "#a065e8" if box.numpy else "#7d8894"
        dash = ' stroke-dasharray="4 2"' if box.numpy else ""
        label = box.label
        if len(label) > LETTERS:  # an operator begins with what it is, a scope ends with it
            label = f"{label[: LETTERS - 1]}…" if len(box.steps) == 1 else f"…{label[1 - LETTERS :]}"
        parts.append(
            f'<g><title>{_title(report, box)}</title><rect x="{x:.6g}" y="{y:.6g}" width="{WIDTH:g}" height="{HEIGHT:g}" rx="5" '
            f'{shares(box.share / hottest)} stroke="{stroke}"{dash}/>'
            f'<text x="{x + WIDTH / 2:.6g}" y="{y + 14:.6g}" text-anchor="middle">{clean(label)}</text>'
            f'<text x="{x + WIDTH / 2:.6g}" y="{y + 27:.6g}" text-anchor="middle" font-size="9.5" fill-opacity=".8">'
            f"{clean(_second(report, box))}</text></g>"
        )
    return "".join([*parts, "</g></svg>"])


def _second(report: Report, box: Box) -> str:
    """The line below the label."""
    if report.measured:
        seconds = sum(report.steps[at].total for at in box.steps)
        return f"{three(seconds * 1e6)} us {box.share:.1%}" if seconds else ""
    shape = report.steps[box.steps[-1]].shape
    return shape if len(shape) <= LETTERS + 2 else f"{shape[:LETTERS]}…"


def _title(report: Report, box: Box) -> str:
    lines = []
    for at in box.steps[:8]:
        row = report.steps[at]
        lines.append(f"{row.step.op} {row.step.name} {row.shape}: {row.where}, {count(row.step.multiply_adds)} multiply-adds")
    more = [f"and {len(box.steps) - 8} more"] if len(box.steps) > 8 else []
    return "&#10;".join(clean(line) for line in (*lines, *more))

"""A roofline: how many multiply-adds a second each step does, below what its multiply-adds a byte allow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._html import clean, shares
from .text import count

if TYPE_CHECKING:
    from .data import Report

__all__ = ["roofline"]

WIDTH, HEIGHT = 720.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 74.0, 20.0, 16.0, 44.0


def roofline(report: Report) -> str:
    """The picture as SVG; empty without measurements, or where no step multiplies."""
    if report.limits is None:
        return ""
    points = [
        (row.step.multiply_adds / row.step.bytes, row.step.multiply_adds / row.best, row)
        for row in report.steps
        if row.step.multiply_adds and row.step.bytes and row.best > 0
    ]
    if not points:
        return ""
    peak, read = (limit * max(report.threads, 1) for limit in report.limits)
    ridge = peak / read
    low = math.floor(math.log10(min([p[0] for p in points] + [ridge]) / 1.5))
    high = math.ceil(math.log10(max([p[0] for p in points] + [ridge]) * 1.5))
    floor = math.floor(math.log10(min([p[1] for p in points] + [read * 10.0**low]) / 1.5))
    roof = math.ceil(math.log10(max([p[1] for p in points] + [peak]) * 1.2))

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - floor) / (roof - floor) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="roofline" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
        f'style="--wide:{WIDTH:.0f}px;max-width:var(--wide);width:100%">'
        '<g font-family="system-ui,sans-serif" font-size="11" fill="currentColor">'
    ]
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<path d="M{at:.6g} {TOP:g}V{HEIGHT - BOTTOM:g}" stroke="currentColor" stroke-opacity=".15"/>')
        parts.append(f'<text x="{at:.6g}" y="{HEIGHT - BOTTOM + 15:g}" text-anchor="middle">{10.0**power:g}</text>')
    for power in range(floor, roof + 1):
        at = y(10.0**power)
        parts.append(f'<path d="M{LEFT:g} {at:.6g}H{WIDTH - RIGHT:g}" stroke="currentColor" stroke-opacity=".15"/>')
        parts.append(f'<text x="{LEFT - 6:g}" y="{at + 4:.6g}" text-anchor="end">{count(10.0**power)}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 10:g}" text-anchor="middle">multiply-adds a byte</text>'
        f'<text x="14" y="{HEIGHT / 2:g}" text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2:g})">'
        "multiply-adds a second</text>"
    )
    # Where the roof of memory leaves the picture, on the left or at its floor.
    start = max(10.0**low, 10.0**floor / read)
    parts.append(
        f'<path d="M{x(start):.6g} {y(start * read):.6g}L{x(ridge):.6g} {y(peak):.6g}H{WIDTH - RIGHT:g}" '
        'fill="none" stroke="#4a86d0" stroke-width="2"/>'
    )
    for intensity, speed, row in sorted(points, key=lambda p: -report.share(p[2])):
        share = report.share(row)
        about = f"{row.step.op} {row.step.name}: {share:.1%} of the time, {count(speed)} multiply-adds a second"
        parts.append(
            f'<circle cx="{x(intensity):.6g}" cy="{y(speed):.6g}" r="{3 + 12 * math.sqrt(share):.3g}" {shares(share)} '
            f'stroke="#7d8894"><title>{clean(about)}</title></circle>'
        )
    return "".join([*parts, "</g></svg>"])

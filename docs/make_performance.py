"""Draws docs/performance-*.svg from what `bench.peers` measured.

Run from the root: ``python -m docs.make_performance ONE.json TWO.json``. The files are those of ``python -m bench.peers --json``,
for one thread and for two. Every family is a group of bars: the time of each engine over ours, 1 being ours. A label tells the
share of the multiply-add peak where that means something.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench.timing import read

from ._svg import document, line, text

HERE = Path(__file__).parent
COLOURS = {"fastlayers": "#0a286e", "onnxruntime": "#e08a2e", "openvino": "#5e9ed6"}
BAR, GAP, LEFT, SCALE = 11, 12, 270, 150


def bars(told: dict[str, Any], times: dict[str, dict[str, dict[str, float]]]) -> str:
    """The picture of one file, as `bench.timing.read` gives it."""
    rows = [(name, case, times[name]) for name, case in told["cases"].items() if "fastlayers" in times.get(name, {})]
    threads, variant = told["machine"]["threads"], told["machine"]["variant"]
    parts, y, longest = [], 64.0, 4.0
    parts.append(text(12, 22, f"Time next to ours, {threads} thread{'s' * (threads > 1)}, {variant}", 15))
    for i, (engine, colour) in enumerate(COLOURS.items()):
        parts.append(f"<rect x='{12 + 130 * i}' y='32' width='10' height='10' fill='{colour}'/>")
        parts.append(text(26 + 130 * i, 41, engine, 11))
    family = ""
    for name, case, engines in sorted(rows, key=lambda row: str(row[1]["family"])):
        if case["family"] != family:
            family = case["family"]
            parts.append(text(12, y + 12, family, 13))
            y += 20
        ours = engines["fastlayers"]["best"]
        parts.append(text(LEFT - 8, y + BAR, name.removeprefix(family).strip(), 11, "end"))
        for engine, colour in COLOURS.items():
            if engine not in engines:
                continue
            taken = engines[engine]["best"]
            share = taken / ours
            width = SCALE * min(share, longest)
            said = f"{taken * 1e6:.1f} us"
            if engine == "fastlayers" and case["flops"] and told["probe"]:
                said += f", {case['flops'] / ours / told['probe'] / threads:.0%} of the peak"
            parts.append(f"<rect x='{LEFT}' y='{y:g}' width='{width:.1f}' height='{BAR - 2}' fill='{colour}'/>")
            parts.append(text(LEFT + width + 4, y + BAR - 3, f"{share:.2f} ({said})", 9))
            y += BAR
        y += GAP
    parts.append(line(LEFT + SCALE, 50, LEFT + SCALE, y, "#aaa"))
    return document(parts, LEFT + SCALE * longest + 190, y + 10)


def main(files: list[str]) -> None:
    for path in files:
        told, times = read(Path(path))
        (HERE / f"performance-{told['machine']['threads']}.svg").write_text(bars(told, times), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

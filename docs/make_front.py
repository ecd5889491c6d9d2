"""Draws docs/front.svg, README's chart, from docs/front.json, which `bench.front` measured: ``python -m docs.make_front``.

For each network a row for each engine: the time of a call, and the peak memory of its process. Bars are in the proportion of the
values, each network with a scale of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._svg import bar, document, text

HERE = Path(__file__).parent
COLOURS = {"fastlayers": "ours", "onnxruntime": "second", "openvino": "third", "torch": "fourth", "llama.cpp": "fifth"}
WIDTH, NAMES, TIMES, MEMORY = 380, 8, 88, 250
LONG, SHORT, ROW = 92, 62, 19


def milliseconds(value: float) -> str:
    """A time with three digits and its unit."""
    return f"{value * 1e3:.0f} µs" if value < 1 else f"{value:.3g} ms"


def draw(told: Mapping[str, Any]) -> str:
    """The whole picture of a file of figures."""
    parts, y = (
        [text(TIMES, 16, "time of a call", 12, fill="soft"), text(MEMORY, 16, "memory of the process", 12, fill="soft")],
        28,
    )
    for case in told["cases"].values():
        engines = case["engines"]
        most = {unit: max(figures[unit] for figures in engines.values()) for unit in ("ms", "MB")}
        parts.append(text(NAMES, y + 14, case["title"], 13))
        y += 22
        for engine, colour in COLOURS.items():
            if engine not in engines:
                continue
            time, memory = engines[engine]["ms"], engines[engine]["MB"]
            parts.append(text(NAMES, y + 12, engine, 12))
            for left, longest, share, label in (
                (TIMES, LONG, time / most["ms"], milliseconds(time)),
                (MEMORY, SHORT, memory / most["MB"], f"{memory:.0f} MB"),
            ):
                parts.append(bar(left, y, max(longest * share, 1), 14, colour))
                parts.append(text(left + longest * share + 4, y + 12, label, 12))
            y += ROW
        y += 10
    return document(parts, WIDTH, y)


def main() -> None:
    told = json.loads((HERE / "front.json").read_text(encoding="utf-8"))
    (HERE / "front.svg").write_text(draw(told), encoding="utf-8")


if __name__ == "__main__":
    main()

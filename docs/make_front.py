"""Draws docs/front.svg, README's chart, from docs/front.json, which `bench.front` measured: ``python -m docs.make_front``.

For each network a row for each engine: the time of a call, and the peak memory of its process. Bars are in the proportion of the
values, each network with a scale of its own.
"""

from __future__ import annotations

from pathlib import Path

from bench.front import CASES
from bench.timing import read

from ._svg import bar, document, text

HERE = Path(__file__).parent
COLOURS = {"fastlayers": "ours", "onnxruntime": "second", "openvino": "third", "torch": "fourth", "llama.cpp": "fifth"}
WIDTH, NAMES, TIMES, MEMORY = 380, 8, 88, 250
LONG, SHORT, ROW = 92, 62, 19


def milliseconds(value: float) -> str:
    """A time with three digits and its unit."""
    return f"{value * 1e3:.0f} µs" if value < 1 else f"{value:.3g} ms"


def draw(path: Path) -> str:
    """The whole picture of a file of figures."""
    about, times = read(path)
    parts, y = (
        [text(TIMES, 16, "time of a call", 12, fill="soft"), text(MEMORY, 16, "memory of the process", 12, fill="soft")],
        28,
    )
    for title in (title for title in CASES.values() if title in times):
        engines, memories = times[title], about["memory"][title]
        longest_time, most = max(figures["best"] for figures in engines.values()), max(memories.values())
        parts.append(text(NAMES, y + 14, title, 13))
        y += 22
        for engine, colour in COLOURS.items():
            if engine not in engines:
                continue
            time, memory = engines[engine]["best"], memories[engine]
            parts.append(text(NAMES, y + 12, engine, 12))
            for left, longest, share, label in (
                (TIMES, LONG, time / longest_time, milliseconds(time * 1e3)),
                (MEMORY, SHORT, memory / most, f"{memory:.0f} MB"),
            ):
                parts.append(bar(left, y, max(longest * share, 1), 14, colour))
                parts.append(text(left + longest * share + 4, y + 12, label, 12))
            y += ROW
        y += 10
    return document(parts, WIDTH, y)


def main() -> None:
    (HERE / "front.svg").write_text(draw(HERE / "front.json"), encoding="utf-8")


if __name__ == "__main__":
    main()

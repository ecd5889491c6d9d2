"""Draws docs/performance-*.svg from what `bench.peers` and `bench.networks` measured.

Run from the root: ``python -m docs.make_performance ONE.json TWO.json NETWORKS.json``. The files are those of ``python -m
bench.peers --json``, for one thread and for two, and of ``python -m bench.networks run --json``, of which each family gets a
picture. Every layer or network is a group of bars: the time of each engine over ours, 1 being ours. A label tells the share of
the machine's limit where that means something: of layers that of the multiply-add peak.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.peers import summary
from bench.timing import read

from ._svg import bar, document, line, text

HERE = Path(__file__).parent
COLOURS = {"fastlayers": "ours", "onnxruntime": "second", "openvino": "third", "opencv": "fourth", "mnn": "fifth"}
WIDTH, BAR, GAP, LEFT, SCALE, LONGEST = 380, 14, 10, 8, 45, 4.0


def _legend(title: str, engines: Iterable[str]) -> list[str]:
    there = [engine for engine in COLOURS if engine in set(engines)]
    parts, wide = [text(LEFT, 20, title, 14)], min(115, (WIDTH - LEFT) // max(len(there), 1))
    for i, engine in enumerate(there):
        parts.append(bar(LEFT + wide * i, 32, 11, 11, COLOURS[engine]))
        parts.append(text(LEFT + 16 + wide * i, 42, engine, 12))
    return parts


def _group(name: str, times: Mapping[str, float], said: Mapping[str, str], y: float) -> tuple[list[str], float]:
    """A name and a bar of each engine, from a height on; the height below them. `said`: what labels tell besides the ratio."""
    parts = [text(LEFT, y + 11, name if len(name) < 50 else f"...{name[-47:]}", 12)]
    y += 16
    for engine, colour in COLOURS.items():
        if engine in times:
            share = times[engine] / times["fastlayers"]
            width = SCALE * min(share, LONGEST)
            parts.append(bar(LEFT, y, width, BAR - 3, colour))
            parts.append(text(LEFT + width + 5, y + BAR - 4, f"{share:.2f} ({said[engine]})", 11))
            y += BAR
    return parts, y + GAP


def _whole(parts: Sequence[str], y: float) -> str:
    return document([*parts, line(LEFT + SCALE, 52, LEFT + SCALE, y)], WIDTH, y + 10)


def bars(told: dict[str, Any], times: dict[str, dict[str, dict[str, float]]]) -> str:
    """The picture of a file of layers, as `bench.timing.read` gives it."""
    rows = [(name, case, times[name]) for name, case in told["cases"].items() if "fastlayers" in times.get(name, {})]
    threads, variant = told["machine"]["threads"], told["machine"]["variant"]
    title = f"Time next to ours, {threads} thread{'s' * (threads > 1)}, {variant}"
    parts, y = _legend(title, [engine for _, _, engines in rows for engine in engines]), 60.0
    family = ""
    for name, case, engines in sorted(rows, key=lambda row: str(row[1]["family"])):
        if case["family"] != family:
            family = case["family"]
            parts.append(text(LEFT, y + 14, family, 14))
            y += 22
        taken = {engine: figures["best"] for engine, figures in engines.items()}
        said = {engine: f"{seconds * 1e6:.1f} us" for engine, seconds in taken.items()}
        if case["flops"] and told["probe"]:
            said["fastlayers"] += f", {case['flops'] / taken['fastlayers'] / told['probe'] / threads:.0%} of the peak"
        group, y = _group(name.removeprefix(family).strip(), taken, said, y)
        parts += group
    return _whole(parts, y)


def networks(told: Mapping[str, Any], family: str, variant: str) -> str:
    """The picture of a family of whole networks, on each number of threads, from what a file of `bench.networks` tells."""
    rows = [
        row
        for row in told["cases"].values()
        if (row["family"], row["variant"]) == (family, variant) and "fastlayers" in row["seconds"]
    ]
    engines = [engine for row in rows for engine in row["seconds"]]
    parts, y = _legend(f"{family}: time next to ours, {variant}", engines), 60.0
    for threads in sorted({row["threads"] for row in rows}):
        some = [row for row in rows if row["threads"] == threads]
        means = summary(some)
        mean = f", geometric mean {means['all'][0]:.2f}, least {means['all'][1]:.2f}" if means else ""
        parts.append(text(LEFT, y + 14, f"{threads} thread{'s' * (threads > 1)}{mean}", 14))
        y += 22
        for row in sorted(some, key=lambda row: str(row["network"])):
            said = {engine: f"{seconds * 1e3:.2f} ms" for engine, seconds in row["seconds"].items()}
            if row["limit"] is not None:
                said["fastlayers"] += f", {row['limit']:.0%} of the limit"
            group, y = _group(row["network"].removeprefix(family).strip(), row["seconds"], said, y)
            parts += group
    return _whole(parts, y)


def main(files: Sequence[str]) -> None:
    for path in files:
        told, times = read(Path(path))
        cases = told["cases"].values()
        if not any("network" in case for case in cases):
            (HERE / f"performance-{told['machine']['threads']}.svg").write_text(bars(told, times), encoding="utf-8")
            continue
        best = max(case["variant"] for case in cases)  # x86_v4 rather than x86_v3
        for family in dict.fromkeys(case["family"] for case in cases):
            for variant in sorted({case["variant"] for case in cases if case["family"] == family}):
                end = "" if variant == best else f"-{variant}"
                (HERE / f"performance-{family}{end}.svg").write_text(networks(told, family, variant), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

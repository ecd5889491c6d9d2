"""Stopwatch of the benchmarks: that of `fastlayers.testing`, and the JSON in which its figures are stored."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastlayers.testing.timing import Times, as_json, take_turns

__all__ = ["Times", "add_json", "as_json", "store", "take_turns"]


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option of all benchmarks that compare."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the figures there too, as `fastlayers bench` does")


def store(path: Path | None, found: Mapping[str, Mapping[str, Times]], **about: Any) -> None:
    """Writes what was compared, by "case: contestant", if a file was named."""
    if path is not None:
        times = {f"{case}: {name}": each for case, turns in found.items() for name, each in turns.items()}
        path.write_text(as_json(times, about) + "\n", encoding="utf-8")

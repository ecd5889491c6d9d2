"""Stopwatch of the benchmarks: that of `fastlayers.testing`, and the JSON in which all figures are stored.

    python -m bench.timing BEFORE.json AFTER.json      what two files of one benchmark say, side by side

What compares calls in one process asks `take_turns`. What is no call to repeat (a coroutine, a whole process, what must be
checked after every run) is timed by ``with watch:``. No other module of bench/ reads the clock, but for a few whose first lines
say why.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastlayers.testing.timing import Times, Watch, as_json, take_turns, times_of

__all__ = ["Times", "Watch", "add_json", "as_json", "each", "read", "store", "take_turns", "times_of"]


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option of all benchmarks that compare."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the figures there too, as `fastlayers bench` does")


def each(times: Times, count: int) -> Times:
    """Time of one thing, of calls that do `count` things."""
    return times_of([sample / count for sample in times.samples])


def store(
    path: Path | None, found: Mapping[str, Mapping[str, Times]], kept: Mapping[str, Any] | None = None, **about: Any
) -> None:
    """Writes what was compared, by "case: contestant", if a file was named. `about`: what else was found, under its own keys.

    `kept`: times that the file had before and that stay in it.
    """
    if wrong := [name for turns in found.values() for name in turns if ": " in name]:
        raise ValueError(f"store: contestants {wrong} have a colon, which ends the name of a case")
    if path is not None:
        times = {f"{case}: {name}": figures for case, turns in found.items() for name, figures in turns.items()}
        whole = json.loads(as_json(times, about))
        whole["times"] = {**(kept or {}), **whole["times"]}
        part = path.with_name(path.name + ".part")  # what is there stays whole until the new one is
        part.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        os.replace(part, path)


def read(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, dict[str, float]]]]:
    """A file of any benchmark: all but its times, and these by case and contestant."""
    told = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(told, dict) or told.get("format") != 1 or "times" not in told:
        raise SystemExit(f"{path}: expected a file that a benchmark wrote with --json")
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, figures in told.pop("times").items():
        case, _, contestant = name.rpartition(": ")
        found.setdefault(case, {})[contestant] = figures
    return told, found


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each time that both files have: best and median of both, and what the second takes of the first."""
    parser = argparse.ArgumentParser(prog="python -m bench.timing", description="Figures of two files of one benchmark.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    (told, before), (now, after) = read(options.before), read(options.after)
    if told["machine"] != now["machine"]:
        print(f"not the same machine: {told['machine']}, then {now['machine']}")
    print(f"{'microseconds, best (median)':56} {'before':>22} {'after':>22} {'ratio':>6}")
    for case, contestants in before.items():
        for name, old in contestants.items():
            if new := after.get(case, {}).get(name):
                sides = [f"{1e6 * one['best']:.1f} ({1e6 * one['median']:.1f})" for one in (old, new)]
                print(f"{case + ': ' + name:56} {sides[0]:>22} {sides[1]:>22} {new['best'] / old['best']:6.2f}")


if __name__ == "__main__":
    main()

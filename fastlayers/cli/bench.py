"""``fastlayers bench``: how long a model takes, as percentiles of many runs."""

from __future__ import annotations

import argparse
import time
from typing import TextIO

import numpy as np

import fastlayers as fl

from ._model import add_arguments, feeds, load, number

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument("--seconds", type=number(float, 0), default=2.0, metavar="S", help="how long to run (2)")


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints percentiles."""
    start = time.perf_counter()
    model = load(options)
    loaded = time.perf_counter()
    given = feeds(model, options, out)
    begin = time.perf_counter()
    model.run(given)
    first = time.perf_counter() - begin
    times: list[float] = []
    began = time.perf_counter()
    end = began + options.seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        model.run(given)
        times.append(time.perf_counter() - begin)
    rate = len(times) / (time.perf_counter() - began)
    p50, p95, p99 = (float(np.percentile(times, p)) * 1e6 for p in (50, 95, 99))
    out.write(
        f"load {1e3 * (loaded - start):.1f} ms, first run {1e3 * first:.1f} ms, then {len(times)} runs: "
        f"best {min(times) * 1e6:.1f} us, p50 {p50:.1f}, p95 {p95:.1f}, p99 {p99:.1f} us; {rate:.0f} a second\n"
        f"variant={model.variant}, {fl.get_num_threads()} thread(s)\n"
    )
    return 0

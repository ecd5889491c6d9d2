"""``fastlayers profile``: the time of every step, and how near it is to what this machine can do."""

from __future__ import annotations

import argparse
import time
from typing import TextIO

import numpy as np

import fastlayers as fl

from ..errors import DeviceError, UnsupportedError
from ..kernels import _dispatch
from ..model.summary import bound, count, table
from ..program.steps import steps
from ._draw import printable
from ._model import add_arguments, feeds, load

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument(
        "--runs", type=int, default=20, metavar="N", help="how often the model runs; the shortest time of each step counts (20)"
    )
    parser.add_argument("--top", type=int, default=0, metavar="N", help="only the N longest steps; all by default")


def _limits() -> tuple[float, float]:
    """What one core does at most: multiply-adds and bytes read, each a second."""
    engine = _dispatch._engine()
    if engine is None or not _dispatch.current().startswith("aot/"):
        raise DeviceError("profile: needs the compiled engine: see `fastlayers doctor`")
    best_fma = best_read = 0.0
    data = np.zeros(1 << 24, np.float32)
    for _ in range(5):
        start = time.perf_counter()
        done = engine.probe_fma(20000)
        best_fma = max(best_fma, done / (time.perf_counter() - start))
        start = time.perf_counter()
        engine.probe_read(data)
        best_read = max(best_read, data.nbytes / (time.perf_counter() - start))
    return best_fma, best_read


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints the steps with their times."""
    model = load(options)
    given = feeds(model, options)
    binding = bound(model, given)
    if binding.plan is None or binding.bound is None:
        raise UnsupportedError("profile: the model runs in stages, so there are no steps to time")
    fma, read = _limits()
    arrays = [np.ascontiguousarray(given[spec.name]) for spec in model.inputs]
    times = binding.bound.profile(arrays, max(options.runs, 1)) / 1e9
    rows, total = [], float(times.sum())
    for step in steps(binding.plan):
        seconds = float(sum(times[i] for i in step.calls))
        # Whichever limit asks for more time is the one that counts; bytes that lie in a cache may pass it.
        least = max(step.multiply_adds / fma, step.bytes / read) / max(fl.get_num_threads(), 1)
        share = f"{least / seconds:.0%}" if seconds > 0 and step.kernels else ""
        kind = "multiply-adds" if step.multiply_adds / fma > step.bytes / read else "memory"
        part = f"{seconds / max(total, 1e-12):.1%}"
        shape = "x".join(map(str, step.shape))
        kernels = " ".join(step.kernels)
        row = [step.op, step.name[-40:], shape, f"{seconds * 1e6:.1f}", part, share, kind if share else "", kernels]
        rows.append((seconds, row))
    if options.top > 0:
        rows = sorted(rows, key=lambda row: -row[0])[: options.top]
    text = table(["operator", "result", "shape", "us", "of all", "of limit", "limit", "runs in"], [row for _, row in rows], 3)
    text += (
        f"\n{total * 1e6:.1f} us in all steps, each at its best of {max(options.runs, 1)}; one core: {count(fma)} multiply-adds "
        f"and {count(read)}B read a second\nvariant={model.variant}, {fl.get_num_threads()} thread(s)"
    )
    out.writelines(printable(line, out.encoding or "ascii") + "\n" for line in text.splitlines())
    return 0

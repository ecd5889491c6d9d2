"""``fastlayers profile``: the time of every step, and how near it is to what this machine can do."""

from __future__ import annotations

import argparse
import time
from typing import Any, TextIO

import numpy as np

import fastlayers as fl

from ..errors import DeviceError, Error
from ..kernels import _dispatch
from ..model.model import Model
from ..model.parts import parts
from ..model.summary import STAGED, alone, bound, count, short, table
from ..program.program import Binding
from ..program.steps import Step, steps
from ._model import add_arguments, feeds, load, number, say

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument(
        "--runs",
        type=number(int, 1),
        default=20,
        metavar="N",
        help="how often the model runs; the shortest time of each step counts (20)",
    )
    parser.add_argument("--top", type=number(int, 0), default=0, metavar="N", help="only the N longest steps; all by default")


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
    given = feeds(model, options, out)
    limits = _limits()
    arrays = [np.ascontiguousarray(given[spec.name]) for spec in model.inputs]
    binding = bound(model, given)
    head = ["operator", "result", "shape", "us", "of all", "of limit", "limit", "runs in"]
    if not binding.staged:
        timed = [(step, seconds, 0) for step, seconds in _steps(binding, arrays, options.runs)]
        total = sum(seconds for _, seconds, _ in timed)
        rows, notes = _rows(timed, total, limits), []
        about = f"{total * 1e6:.1f} us in all steps, each at its best of {options.runs}"
    else:
        timed, whole = _staged(model, binding, arrays, options.runs)
        total = sum(seconds for _, seconds, _ in timed)
        rows, notes = (
            _rows(timed, total, limits),
            [
                f"{STAGED}; its parts are timed one by one, on zeros of the sizes that they had last; those of a body, which are "
                "set off, for one round"
            ],
        )
        about = f"{whole * 1e6:.1f} us a run, {total * 1e6:.1f} us in all parts once, each step at its best of {options.runs}"
    if options.top > 0:
        rows = sorted(rows, key=lambda row: -row[0])[: options.top]
    say(
        out,
        *notes,
        *table(head, [row for _, row in rows], 3).splitlines(),
        f"{about}; one core: {count(limits[0])} multiply-adds and {count(limits[1])}B read a second",
        f"variant={model.variant}, {fl.get_num_threads()} thread(s)",
    )
    return 0


def _steps(binding: Binding, arrays: list[np.ndarray], runs: int) -> list[tuple[Step, float]]:
    """The steps of a binding with the shortest seconds that each took."""
    plan = binding.plan
    if plan is None or binding.bound is None:
        raise DeviceError("profile: needs the compiled engine: see `fastlayers doctor`")
    times = binding.bound.profile(arrays, runs) / 1e9
    return [(step, float(sum(times[i] for i in step.calls))) for step in steps(plan)]


def _staged(model: Model, binding: Binding, arrays: list[np.ndarray], runs: int) -> tuple[list[tuple[Step, float, int]], float]:
    """The steps of all parts, with seconds and depths; and the shortest seconds of a whole run."""
    whole = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        binding.run(arrays, None, model.num_threads)
        whole = min(whole, time.perf_counter() - start)
    found = []
    for part in parts(model._main):
        if part.binding is None:
            found.append((alone(part), 0.0, part.depth))
            continue
        pairs = zip(*part.binding.made_for, strict=True)
        zeros: list[Any] = [np.zeros(s.shape or (), s.dtype) if v is None else v for s, v in pairs]
        try:
            timed = _steps(part.binding, zeros, runs)
        except Error:  # a part of Python's that zeros are wrong for
            plan = part.binding.plan
            timed = [] if plan is None else [(step, 0.0) for step in steps(plan)]
        found += [(step, seconds, part.depth) for step, seconds in timed]
    return found, whole


def _rows(timed: list[tuple[Step, float, int]], total: float, limits: tuple[float, float]) -> list[tuple[float, list[str]]]:
    fma, read = limits
    rows = []
    for step, seconds, depth in timed:
        # Whichever limit asks for more time is the one that counts; bytes that lie in a cache may pass it.
        least = max(step.multiply_adds / fma, step.bytes / read) / max(fl.get_num_threads(), 1)
        share = f"{least / seconds:.0%}" if seconds > 0 and step.kernels else ""
        kind = "multiply-adds" if step.multiply_adds / fma > step.bytes / read else "memory"
        part = f"{seconds / max(total, 1e-12):.1%}"
        shape = "x".join(map(str, step.shape))
        row = ["  " * depth + step.op, short(step.name), shape, f"{seconds * 1e6:.1f}", part, share, kind if share else ""]
        rows.append((seconds, [*row, " ".join(step.kernels)]))
    return rows

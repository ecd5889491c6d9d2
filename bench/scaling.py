"""Estimates the time of a network on more threads, from how its steps are split for them.

    python -m bench.scaling model.onnx                       on 1, 2, 4, 8 and 64 threads
    python -m bench.scaling model.onnx --shape x=1,3,224,224 --top 20

The network is bound for each number of threads, and its steps run on one thread, in the order and by the workers that so many
threads would have: the pool (`csrc/pool.c`) deals its tasks out for that as it always does, and says how long the busiest thread
was at work. A step takes what is outside of its jobs, that longest time, and DISPATCH for each job. That is a bound from above:
it assumes that a task takes as long with many threads at work, so neither memory that is shared nor clocks that fall, nor that
each core has a cache of its own; steps in lockstep (recurrent ones) count as on one thread. With two processors the time that is
foreseen for two threads is printed next to a measured one. It reads no clock itself: the engine does.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

import fastlayers as fl
from bench.timing import add_json, store, times_of
from fastlayers.cli._model import add_arguments, feeds, load
from fastlayers.kernels.aot import _engine
from fastlayers.program.steps import steps

__all__ = ["COUNTS", "Foreseen", "foresee", "main"]

COUNTS = (1, 2, 4, 8, 64)
DISPATCH = 1000  # ns from a job's begin until another thread is at work, see docs/decisions/own-thread-pool.md
MOST_JOBS = 1 << 18


class Foreseen(NamedTuple):
    """A step: its name, the ns that it takes on so many threads, and how many tasks its largest job has (1: it is not cut)."""

    name: str
    ns: float
    tasks: int


def foresee(model: fl.Model, arrays: Sequence[np.ndarray], threads: int, runs: int = 10) -> list[Foreseen]:
    """The steps of a model that has not been bound yet, for so many threads."""
    fl.set_num_threads(threads)
    binding = model._main.binding(list(arrays))
    if binding.bound is None or binding.plan is None:
        raise SystemExit("scaling: the model runs in stages, or without the compiled engine")
    rows = np.zeros((MOST_JOBS, 5), np.int64)
    _engine.watch_jobs(rows)
    try:
        binding.bound.profile(list(arrays), 2)
        _engine.watch_jobs(rows)
        times = binding.bound.profile(list(arrays), runs)[:, :, 1]
    finally:
        count = _engine.watch_jobs()
    if count > MOST_JOBS:
        raise SystemExit(f"scaling: {count} jobs: at most {MOST_JOBS}")
    foreseen = spread(times, rows[:count])
    tasks = np.ones(times.shape[1], np.int64)
    np.maximum.at(tasks, rows[:count, 0], rows[:count, 1])
    found = []
    for step in steps(binding.plan):
        if step.calls:
            name = " ".join([step.op, "+".join(step.kernels), "x".join(map(str, step.shape))])
            calls = list(step.calls)
            found.append(Foreseen(name, float(foreseen[calls].sum()), int(tasks[calls].max())))
    return found


def spread(times: np.ndarray, jobs: np.ndarray) -> np.ndarray:
    """ns of each call, in the shortest of all runs: from those of (run, call) alone, and for each job, in the order of running,
    (call, tasks, threads, ns together, ns of the busiest thread)."""
    runs, calls = times.shape
    order = jobs[:, 0]
    run = np.concatenate([[0], np.cumsum(np.diff(order) < 0)]) if len(jobs) else order  # calls begin again with every run
    if calls == 1 or len(set(order.tolist())) == 1:
        run = np.arange(len(jobs)) * runs // max(len(jobs), 1)
    saved = np.zeros((runs, calls))
    np.add.at(saved, (run, order), jobs[:, 3] - jobs[:, 4] - DISPATCH)
    return np.asarray((times - saved).min(axis=0))


def table(found: Mapping[int, Sequence[Foreseen]], top: int) -> list[str]:
    """Totals, then the steps that lose most to the largest number of threads: a time, and into how many tasks it is cut."""
    counts = list(found)
    whole = {n: sum(step.ns for step in found[n]) for n in counts}
    lines = [f"{'threads':44s}" + "".join(f"{n:>16d}" for n in counts)]
    lines.append(f"{'foreseen, us':44s}" + "".join(f"{whole[n] / 1e3:16.0f}" for n in counts))
    lines.append(f"{'share of what so many could do':44s}" + "".join(f"{whole[counts[0]] / whole[n] / n:16.2f}" for n in counts))
    most = counts[-1]
    lost = [step.ns - first.ns / most for first, step in zip(found[counts[0]], found[most], strict=True)]
    for i in sorted(range(len(lost)), key=lambda i: -lost[i])[:top]:
        cells = "".join(f"{found[n][i].ns / 1e3:10.1f} /{found[n][i].tasks:4d}" for n in counts)
        lines.append(f"{found[most][i].name[:44]:44s}{cells}")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__.split("\n")[0] if __doc__ else "")
    add_arguments(parser)
    parser.add_argument("--top", type=int, default=12, metavar="N", help="how many steps (12)")
    add_json(parser)
    options = parser.parse_args(arguments)
    found: dict[int, list[Foreseen]] = {}
    measured: dict[int, float] = {}
    before = fl.get_num_threads()
    try:
        for count in COUNTS:  # rising: plans are cut for the most threads that there have been
            options.threads = count
            model = load(options)
            values = feeds(model, options)
            arrays = [np.ascontiguousarray(x) for x in model._converted(values)]
            found[count] = foresee(model, arrays, count)
            if count <= 2:
                report = model.profile(values, 30)
                measured[count] = sum(step.best for step in report.steps) * 1e6
    finally:
        fl.set_num_threads(before)
    print("\n".join(table(found, options.top)))
    whole = {f"{count} threads": {"foreseen": times_of([sum(step.ns for step in made) / 1e9])} for count, made in found.items()}
    for count, value in measured.items():
        whole[f"{count} threads"]["measured"] = times_of([value / 1e6])
    store(options.json, whole)
    print("measured, us: " + ", ".join(f"{value:.0f} on {count}" for count, value in measured.items()))


if __name__ == "__main__":
    main()

"""``fastlayers bench``: how long a model takes, as percentiles of many runs; alone, or next to another model or engine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

import fastlayers as fl

from .._cpus import usable_cpus
from ..report.text import plural
from ..testing.beside import Verdict, beside, session
from ..testing.timing import Watch, as_json
from ._model import add_arguments, add_inputs, file, given, load, number, say
from ._progress import waiting

__all__ = ["EXAMPLES", "arguments", "run"]

_SLOWER = 1
EXAMPLES = (
    "fastlayers bench model.onnx --shape 1,3,224,224 --seconds 5",
    "fastlayers bench model.onnx --against onnxruntime",
    "fastlayers bench new.onnx --against old.onnx --worse 0.1      # exit code 1 if it is more than 10 % slower",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    add_inputs(parser)
    parser.add_argument("--seconds", type=number(float, 0), default=2.0, metavar="S", help="how long to run (2)")
    parser.add_argument(
        "--against", type=file, metavar="OTHER", help="alternate with another model file, or with `onnxruntime` on the same file"
    )
    parser.add_argument(
        "--worse", type=number(float, 0), default=0.25, metavar="SHARE", help="with --against: how much slower is too slow (0.25)"
    )


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints percentiles."""
    with Watch() as loading:
        model = load(options)
    arrays = dict(given(model, options, out))
    with Watch() as first:
        model.run(arrays)
    if options.against:
        with waiting(f"taking turns with {options.against}"):
            verdict = beside(lambda: model.run(arrays), _other(options, arrays), options.seconds)
        return _compared(verdict, options, out)
    runs, whole = _alone(lambda: model.run(arrays), options.seconds)
    found, rate = runs.times(), len(runs.samples) / whole.last
    if options.json:
        out.write(as_json({options.model: found}, {"load": loading.last, "first_run": first.last, "a_second": rate}) + "\n")
        return 0
    say(
        out,
        f"load {1e3 * loading.last:.1f} ms, first run {1e3 * first.last:.1f} ms, then {plural(len(runs.samples), 'run')}: "
        f"best {found.best * 1e6:.1f} us, p50 {found.median * 1e6:.1f}, p95 {found.percentile(0.95) * 1e6:.1f}, "
        f"p99 {found.percentile(0.99) * 1e6:.1f} us; {rate:.0f} a second",
        f"variant={model.variant}, {plural(fl.get_num_threads(), 'thread')}{_too_many(options.threads)}",
    )
    return 0


def _alone(call: Callable[[], Any], seconds: float) -> tuple[Watch, Watch]:
    """Figures of each run and of all runs together."""
    runs, whole = Watch(), Watch()
    began = time.monotonic()
    with whole, waiting("running") as update:
        while len(runs.samples) < 3 or time.monotonic() < began + seconds:
            with runs:
                call()
            if seconds > 0:
                update(min((time.monotonic() - began) / seconds, 1.0))
    return runs, whole


def _other(options: argparse.Namespace, arrays: dict[str, np.ndarray]) -> Callable[[], Any]:
    if options.against == "onnxruntime":
        return session(options.model, arrays, options.threads)
    other = load(argparse.Namespace(**{**vars(options), "model": options.against}))
    return lambda: other.run(arrays)


def _too_many(threads: int) -> str:
    """A word where more threads are asked for than can run at once."""
    granted = usable_cpus()
    return f": more than the {granted} processors that this process may use" if threads > granted else ""


def _compared(verdict: Verdict, options: argparse.Namespace, out: TextIO) -> int:
    slow = verdict.slower(options.worse)
    if options.json:
        found = {options.model: verdict.ours, options.against: verdict.theirs}
        out.write(as_json(found, {"ratio": verdict.ratio, "slower": slow, "sure": verdict.sure(options.worse)}) + "\n")
    else:
        say(
            out,
            f"{options.model}: best {verdict.ours.best * 1e6:.1f} us, p50 {verdict.ours.median * 1e6:.1f} us",
            f"{options.against}: best {verdict.theirs.best * 1e6:.1f} us, p50 {verdict.theirs.median * 1e6:.1f} us",
            f"{verdict}{'' if verdict.sure(options.worse) else '; too noisy to judge'}",
        )
    return _SLOWER if slow else 0

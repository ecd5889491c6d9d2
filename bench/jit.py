"""Numba's engine next to the compiled one and numpy: the cases of bench/cases that take the compiled engine 50 us or more.

    python -m bench.jit [--only conv] [--all] [--numpy] [--plain]

Kernels alone, compiled beforehand, one thread, taking turns. `ratio` is Numba's time in that of the compiled engine; cases above
1.5 are marked. --numpy times the reference too (it computes in float64, so it is slower than numpy could be); --plain what one
would write in numpy in float32 (bench/plain.py), whose results are checked against the kernel's first, and lists the cases that
it wins.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it: one thread each

import numpy as np

import fastlayers as fl

from .cases import Case, all_cases, prepare
from .plain import TOLERANCE, plain
from .timing import Times, add_json, store, take_turns, times_of

__all__ = ["main"]

LEAST = 50e-6  # seconds of the compiled engine: what a call from Python costs must not count
GOAL = 1.5


def plain_time(case: Case, rounds: int = 5) -> Times | None:
    """Times of the plain formulation, None where there is none. It is right, or this raises."""
    call = plain(case)
    if call is None:
        return None
    with fl.kernels.use("jit"):
        prepared = prepare(case)
        prepared.call()
    want, got = prepared.outputs["out"], np.asarray(call())
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * max(1.0, float(np.abs(want).max())), err_msg=case.id)
    return take_turns({"plain": call}, rounds, burst=0.005)["plain"]


def compare(case: Case, variants: Sequence[str], rounds: int = 5) -> dict[str, Times]:
    """Times of each variant, for one case."""
    calls = {}
    for name in variants:
        with fl.kernels.use(name):
            calls[name] = prepare(case).call
            calls[name]()  # compiles it, where that is to be done
    # The compiled engine runs the level that is current, so each has its turn under its own name.
    samples: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, call in calls.items():
            with fl.kernels.use(name):
                samples[name] += take_turns({name: call}, 1, burst=0.005)[name].samples
    return {name: times_of(found) for name, found in samples.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a line a case, and the median of each kernel."""
    parser = argparse.ArgumentParser(prog="python -m bench.jit", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--all", action="store_true", help="short cases too")
    parser.add_argument("--numpy", action="store_true", help="the reference too")
    parser.add_argument("--plain", action="store_true", help="numpy as one would write it too")
    add_json(parser)
    options = parser.parse_args(argv)
    fl.set_num_threads(1)
    variants = ["aot", "jit", *(["reference"] if options.numpy else [])]
    ratios: dict[str, list[float]] = defaultdict(list)
    slower: list[str] = []
    found: dict[str, dict[str, Times]] = {}
    for case in all_cases():
        if options.only not in case.id:
            continue
        if not options.all and compare(case, ["aot"], 1)["aot"].best < LEAST:
            continue
        turns = found[case.id] = compare(case, variants)
        best = {name: times.best for name, times in turns.items()}
        ratio = best["jit"] / best["aot"]
        ratios[case.kernel].append(ratio)
        line = f"{case.id:64s} aot {best['aot'] * 1e6:10.1f} us  jit {best['jit'] * 1e6:10.1f} us  ratio {ratio:5.2f}"
        if options.numpy:
            line += f"  numpy {best['reference'] * 1e6:10.1f} us"
        if options.plain:
            took = plain_time(case)
            line += "  plain          -" if took is None else f"  plain {took.best * 1e6:10.1f} us"
            if took is not None:
                turns["plain numpy"] = took
                if took.best < best["jit"]:
                    slower.append(f"{case.id}: {best['jit'] / took.best:.2f} times numpy's time")
        print(line + ("  *" if ratio > GOAL else ""), flush=True)
    for kernel, those in ratios.items():
        print(f"{kernel:20s} {len(those):3d} cases  median {statistics.median(those):5.2f}  worst {max(those):5.2f}")
    if options.plain:
        print("slower than plain numpy:", *(slower or ["none"]), sep="\n  ")
    store(options.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

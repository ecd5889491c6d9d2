"""The smallest slow-down that each check finds, with no false alarm in so many repeats.

    python -m tests.speed.smallest share 50 [--noisy] [layers ...]      or: beside, instructions, plan
    python -m tests.speed.smallest instructions 3 0 1 --of 32           one layer more than 32

A slow-down is more layers of the same kind: a sixteenth, an eighth, a quarter, a half, as much again; or so many.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from contextlib import nullcontext

import fastlayers as fl
from fastlayers.testing import beside, instructions, plan_differences, plan_of, share_of_limit

from .planted import LAYERS, SHAPES, feeds, neighbour, network


def alarms(check: str, more: int, repeats: int, layers: int = LAYERS, seconds: float = 0.12) -> int:
    """How often a check finds `more` layers beside none."""
    base, slow, given = network(0, layers), network(more, layers), feeds()
    if check == "plan":
        stored = plan_of(base.report(SHAPES))
        return sum(bool(plan_differences(stored, plan_of(slow.report(SHAPES)))) for _ in range(repeats))
    if check == "instructions":
        # Beside other jobs it takes minutes: a count is a count, however late.
        count = instructions(base, given, 5, timeout=3600)
        found = [instructions(slow, given, 5, timeout=3600) / count for _ in range(repeats)]
        print(f"instructions: {min(found):.5f} to {max(found):.5f} of {count}")
        return sum(ratio > 1.02 for ratio in found)
    if check == "beside":
        return sum(beside(lambda: slow.run(given), lambda: base.run(given), seconds).slower(0.05) for _ in range(repeats))
    work = base.report(SHAPES).multiply_adds
    # The bar is 5 % below what the network reaches now: of a slow one, the work that was wanted takes longer. Beside two busy
    # neighbours the share of one network falls below that at times, but not four times where the machine kept its pace.
    reached = [share_of_limit(lambda: base.run(given), work, seconds=0.4).share for _ in range(7)]
    bar = 0.95 * statistics.median(reached)
    return sum(share_of_limit(lambda: slow.run(given), work, seconds=seconds, least=bar).below(bar) for _ in range(repeats))


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each slow-down."""
    parser = argparse.ArgumentParser(prog="python -m tests.speed.smallest", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("check", choices=("plan", "instructions", "share", "beside"))
    parser.add_argument("repeats", type=int)
    parser.add_argument("layers", type=int, nargs="*", help="more layers")
    parser.add_argument("--of", type=int, default=LAYERS, metavar="LAYERS", help=f"that the network has ({LAYERS})")
    parser.add_argument("--noisy", action="store_true", help="beside two busy neighbours")
    options = parser.parse_intermixed_args(arguments)
    fl.set_num_threads(1)
    n = options.of
    for more in options.layers or (0, n // 16, n // 8, n // 4, n // 2, n):
        with neighbour(2) if options.noisy else nullcontext():
            found = alarms(options.check, more, options.repeats, n)
        print(f"{options.check}: {more / n:6.1%} slower: {found} alarms of {options.repeats}", flush=True)


if __name__ == "__main__":
    main()

"""The smallest slow-down that each check finds, with no false alarm in so many repeats.

    python -m tests.speed.smallest share 50 [--noisy] [layers ...]      or: beside, instructions, plan

A slow-down is more layers of the same kind: a sixteenth, an eighth, a quarter, a half, as much again; or so many.
"""

from __future__ import annotations

import statistics
import sys

import fastlayers as fl
from fastlayers.testing import beside, instructions, plan_differences, plan_of, share_of_limit

from .planted import LAYERS, SHAPES, feeds, neighbour, network


def alarms(check: str, more: int, repeats: int, seconds: float = 0.12) -> int:
    """How often a check finds `more` layers beside none."""
    base, slow, given = network(), network(more), feeds()
    if check == "plan":
        stored = plan_of(base.report(SHAPES))
        return sum(bool(plan_differences(stored, plan_of(slow.report(SHAPES)))) for _ in range(repeats))
    if check == "instructions":
        count = instructions(base, given, 5)
        return sum(instructions(slow, given, 5) > 1.02 * count for _ in range(repeats))
    if check == "beside":
        return sum(beside(lambda: slow.run(given), lambda: base.run(given), seconds).slower(0.05) for _ in range(repeats))
    work = base.report(SHAPES).multiply_adds
    # The bar is 5 % below what the network reaches now: of a slow one, the work that was wanted takes longer. Beside two busy
    # neighbours the share of one network falls below that at times, but not four times where the machine kept its pace.
    reached = [share_of_limit(lambda: base.run(given), work, seconds=0.4).share for _ in range(7)]
    bar = 0.95 * statistics.median(reached)
    return sum(share_of_limit(lambda: slow.run(given), work, seconds=seconds, least=bar).below(bar) for _ in range(repeats))


def main(arguments: list[str]) -> None:
    """Prints a line for each slow-down."""
    fl.set_num_threads(1)
    check, repeats = arguments[0], int(arguments[1])
    chosen = tuple(int(argument) for argument in arguments[2:] if argument.isdigit())
    for more in chosen or (0, LAYERS // 16, LAYERS // 8, LAYERS // 4, LAYERS // 2, LAYERS):
        if "--noisy" in arguments:
            with neighbour(2):
                found = alarms(check, more, repeats)
        else:
            found = alarms(check, more, repeats)
        print(f"{check}: {more / LAYERS:6.1%} slower: {found} alarms of {repeats}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

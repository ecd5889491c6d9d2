"""``python -m tests.walk --graphs N --seed S``: walks N random graphs from seed S on; exit status 1 if an answer differs.

Graphs run in processes of their own, some dozens in each, so that one that crashes is told as well. For each fault it says the
seed and the first node whose value alone, asked for as an output, already differs.
"""

from __future__ import annotations

import argparse
import faulthandler
import subprocess
import sys
import time
from collections import Counter

from .check import TOLERANCE, Wrong, model_of, walk
from .graphs import PLACES, Drawn, draw
from .shrink import first_wrong, shown

CHUNK = 25


def main() -> int:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser("python -m tests.walk", description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--places", type=int, default=PLACES, help="how many sizes each is called with")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--show", action="store_true", help="print the faulty graphs, made as small as they can be")
    parser.add_argument("--rules", action="store_true", help="print how often each rule of growth was followed and refused")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    if given.rules:
        return _rules(given)
    if given.here or given.graphs <= 1:
        return _here(given)
    rest = [a for a in sys.argv[1:] if a.startswith("--show")]
    common = ["--places", str(given.places), "--tolerance", str(given.tolerance), "--here", *rest]
    status, start = 0, time.process_time()
    for seed in range(given.seed, given.seed + given.graphs, CHUNK):
        left, first = min(CHUNK, given.seed + given.graphs - seed), seed
        while left > 0:
            command = [sys.executable, "-m", "tests.walk", "--graphs", str(left), "--seed", str(first), *common]
            done = subprocess.run(command, capture_output=True, text=True)
            print(done.stdout, end="", flush=True)
            status |= done.returncode != 0
            if done.returncode in (0, 1):
                break
            started = [int(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("seed ")]
            last = started[-1] if started else first
            print(f"seed {last}: the process ends with {done.returncode}\n{done.stderr[-300:]}", flush=True)
            left, first = left - (last + 1 - first), last + 1
    print(f"{given.graphs} graphs from seed {given.seed} on, {time.process_time() - start:.1f} s here")
    return status


def _here(given: argparse.Namespace) -> int:
    faulthandler.enable()
    faults = calls = 0
    for seed in range(given.seed, given.seed + given.graphs):
        print(f"seed {seed}", file=sys.stderr, flush=True)
        drawn = draw(seed, given.places)
        try:
            calls += walk(model_of(drawn.graph), drawn.steps, (None, drawn.inner), given.tolerance)
        except Wrong as fault:
            faults += 1
            print(f"seed {seed}: {str(fault)[:300]}\n    {_first(drawn, given)}", flush=True)
    print(f"seeds {given.seed} to {given.seed + given.graphs - 1}: {calls} calls, {faults} faults", flush=True)
    return int(faults > 0)


def _first(drawn: Drawn, given: argparse.Namespace) -> str:
    found = first_wrong(drawn.graph, drawn.steps, given.tolerance)
    if found is None:
        return "no value alone differs"
    return shown(found, drawn.steps) if given.show else f"first: {found.graph.nodes[-1]!r}"[:400] + f"\n    {found.fault[:250]}"


def _rules(given: argparse.Namespace) -> int:
    counter: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.graphs):
        draw(seed, given.places, counter)
    for rule, times in counter.most_common():
        print(f"{times:6} {rule}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

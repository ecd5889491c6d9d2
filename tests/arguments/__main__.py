"""``python -m tests.arguments [--rounds N] [--seed S] [--only NAME]``: every single argument, then N times 10,000 pairs."""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter

from .session import grouped, run, trials
from .table import calls

SLICE, DOUBLES = 20_000, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.arguments")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    table = calls()
    for number in range(options.rounds + 1):
        todo = trials(table, None if number == 0 else 0, DOUBLES * min(number, 1), options.seed + number)
        todo = [t for t in todo if re.match(options.only, table[t.call].name)]
        start, ran = time.perf_counter(), Counter[str]()
        for first in range(0, len(todo), SLICE):
            report = run(table, todo[first : first + SLICE])
            for line in grouped(report):
                print(line)
            ran.update(ran=report.ran, answered=report.answered, refused=report.refused, faults=len(report.faults))
        print(
            f"round {number}: {ran['ran']} calls in {time.perf_counter() - start:.0f} s, {ran['answered']} answered, "
            f"{ran['refused']} refused by errors of ours, {ran['faults']} faults",
            flush=True,
        )


if __name__ == "__main__":
    main()

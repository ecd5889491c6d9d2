"""Random cases beside another library, counted by kind; a case that ends the process is a fault as well."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["walk"]

CHUNK = 400  # cases of a process
# The kind of a seed's case, the case in words, and what was found: ("fault" or something else, in words).
One = Callable[[int], tuple[str, str, Iterable[tuple[str, str]]]]


def walk(program: str, description: str | None, one: One, kind_of: Callable[[int], str]) -> int:
    """Runs what the command line says, and returns the exit status: 1 if there was a fault."""
    parser = argparse.ArgumentParser(program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1 << 60, help="at most so many")
    parser.add_argument("--only", default="", metavar="NAME", help="one kind of cases alone")
    given = parser.parse_args()
    context = multiprocessing.get_context("fork")
    seed, end, last = given.seed, time.monotonic() + given.seconds, given.seed + given.cases
    kinds, told = Counter[str](), Counter[tuple[str, str, str]]()
    while seed < last and time.monotonic() < end:
        at, (mine, theirs) = context.Value("q", seed), context.Pipe(False)
        job = (one, kind_of, at, min(seed + CHUNK, last), end, given.only, theirs)
        process = context.Process(target=_chunk, args=job)
        process.start()
        theirs.close()
        try:
            found: Any = mine.recv()
        except EOFError:
            found = None
        process.join()
        seed = at.value
        if found is None:
            words = f"the process ended with status {process.exitcode}"
            print(f"seed {seed}: {words}, and what its {CHUNK} cases had been is not counted", flush=True)
            told["fault", kind_of(seed), words] += 1
            seed += 1
        else:
            kinds.update(found[0])
            told.update(found[1])
    print("cases by kind: " + ", ".join(f"{name} {n}" for name, n in sorted(kinds.items())))
    for (what, kind, words), n in sorted(told.items()):
        print(f"{what:20} {n:5}  {kind}: {words}")
    wrong = sum(n for (what, *_), n in told.items() if what == "fault")
    print(f"seeds {given.seed} to {seed - 1}: {sum(kinds.values())} cases, {wrong} faults")
    return int(wrong > 0)


def _chunk(one: One, kind_of: Callable[[int], str], at: Any, last: int, end: float, only: str, to: Any) -> None:
    """Some cases, in a process of their own; `at` is the seed that it is at."""
    kinds, told = Counter[str](), Counter[tuple[str, str, str]]()
    while at.value < last and time.monotonic() < end:
        if only in ("", kind_of(at.value)):
            kind, text, found = one(at.value)
            kinds[kind] += 1
            for what, words in found:
                told[what, kind, words if "refuse" in words or what != "fault" else "results"] += 1
                if what == "fault":
                    print(f"seed {at.value}: {words}\n    {text}", flush=True)
        at.value += 1
    to.send((kinds, told))

"""``python -m tests.hostile [text]``: a table of every malicious file with the error it got, the time and the memory it took."""

from __future__ import annotations

import sys

from .cases import Case, Sweep, every_case
from .child import MEMORY, watch

SLOW = 1.0  # seconds that no malicious file may take


def main(text: str = "") -> int:
    """Prints a line a case; 1 if one broke a promise."""
    cases = [c for c in every_case() if text in f"{c.row}: {c.name}"]
    failed = 0
    print("| row | file | bytes | error | ms | MB over the file |\n|---|---|---|---|---|---|")
    for case in cases:
        found = watch(case)
        assert found is not None  # files go to memory too, but not the other way round
        over = max(found.peak - found.size, 0)
        bad = found.crash or not found.ours or found.events or found.opened or over > MEMORY or found.seconds > SLOW
        if isinstance(case, Case):
            bad = bad or not (found.error is None if case.valid else case.refuses(found.error, found.message))
        bad = bad or (isinstance(case, Sweep) and not case.may_load and found.loaded)
        failed += bool(bad)
        what = found.crash or found.error or "loads"
        if isinstance(case, Sweep):
            what = f"{found.count} files, {found.loaded} load; slowest and largest are given"
        print(
            f"| {case.row} | {case.name} | {found.size} | {what} | {found.seconds * 1e3:.1f} | {over / 2**20:.1f} |"
            + (f" **{[found.message, found.events, found.opened]}**" if bad else ""),
            flush=True,
        )
    print(f"\n{len(cases)} cases, {failed} of them broke a promise")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))

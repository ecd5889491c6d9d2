"""Prints how many cases of ONNX's backend suite pass, operator by operator: ``python -m tests.onnx_backend_report [-v]``."""

from __future__ import annotations

import sys
import warnings
from collections import Counter

from .formats.onnx_suite import LEFT_OUT, UNCHECKED, cases, operators, reason


def main(verbose: bool) -> None:
    """Runs everything; `verbose` also prints what each failing case says."""
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    of = operators()
    for name, run in cases().items():
        op = of.get(name, "?")
        total[op] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run()
            passed[op] += 1
        except Exception as error:
            if verbose:
                why = reason(LEFT_OUT, name) or reason(UNCHECKED, name) or "NOT EXPECTED"
                print(f"{name} | {op} | {why} | {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    for op in sorted(total):
        print(f"{op:32} {passed[op]:4} of {total[op]:4}")
    print(f"{'all':32} {sum(passed.values()):4} of {sum(total.values()):4}")


if __name__ == "__main__":
    main("-v" in sys.argv)

"""Prints how many cases of ONNX's backend suite pass, operator by operator: ``python -m tests.onnx_backend_report [-v]``.

The suite compares values; `--strict` also holds kinds, shapes and dtypes of the results to those that it expects.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .formats.onnx_suite import LEFT_OUT, UNCHECKED, cases, operators, reason


def alike(got: Any, want: Any) -> None:
    """Fails where a result is of another kind, shape or dtype than the suite's; texts have no dtype of their own."""
    if want is None:
        assert got is None, f"{type(got).__name__} instead of None"
    elif isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(want), f"{type(got).__name__} instead of {len(want)} in a list"
        for mine, theirs in zip(got, want, strict=True):
            alike(mine, theirs)
    else:
        want = np.asarray(want)
        assert isinstance(got, np.ndarray), f"{type(got).__name__} instead of an array"
        assert got.shape == want.shape, f"shape {got.shape} instead of {want.shape}"
        assert got.dtype == want.dtype or (got.dtype.kind in "OU" and want.dtype.kind in "OU"), f"{got.dtype}, not {want.dtype}"


def hold_dtypes() -> None:
    """Has the suite compare more than values."""
    from onnx.backend.test.runner import Runner

    values = Runner.assert_similar_outputs

    def both(cls: type, ref_outputs: Sequence[Any], outputs: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        alike(outputs, ref_outputs)  # of lists it asks for each array by itself
        values(ref_outputs, outputs, *args, **kwargs)

    Runner.assert_similar_outputs = classmethod(both)


def main(verbose: bool, strict: bool) -> None:
    """Runs everything; `verbose` also prints what each failing case says, `strict` holds dtypes too."""
    if strict:
        hold_dtypes()
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
    main("-v" in sys.argv, "--strict" in sys.argv)

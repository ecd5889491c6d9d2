"""Classical models: every estimator that skl2onnx converts, LightGBM and XGBoost, exported now and run next to ONNX Runtime.

    python -m tests.zoo.classical [name ...] [--table FILE]     in an environment with requirements-classical.txt

Prints a line a model: right, refused (why) or wrong (where), how far its values are from ONNX Runtime's and from those of the
library that trained it, and what of it runs in numpy. Distances are shares of the largest number, and at most 1e-4; labels are
equal. Exits with 1 if a model is wrong, or refused though ONNX Runtime takes it.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime

import fastlayers as fl

from .classical_cases import cases
from .table import Table

TOLERANCE = 1e-4


class Result(NamedTuple):
    """What came of a model."""

    name: str
    word: str  # right, refused, wrong, not converted, not run there
    why: str
    distance: float
    numpy: str


def distance(got: Any, want: Any) -> float:
    """How far two results are apart: infinity where labels, sizes or kinds differ."""
    if isinstance(want, list) and want and isinstance(want[0], dict):
        if not isinstance(got, list) or [list(row) for row in got] != [list(row) for row in want]:
            return np.inf
        got, want = (np.array([list(row.values()) for row in rows], float) for rows in (got, want))
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return np.inf
        return max((distance(a, b) for a, b in zip(got, want, strict=True)), default=0.0)
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or (got.dtype.kind == "O") != (want.dtype.kind in "OU"):
        return np.inf
    if want.dtype.kind in "OUiub":
        return 0.0 if (got == want).all() else np.inf
    with np.errstate(invalid="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        largest = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
        return float(np.where(same, 0, np.abs(got.astype(float) - want) / largest).max(initial=0))


class _Heard(logging.Handler):
    """What fastlayers says of steps that run in numpy or of stages."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())

    def text(self) -> str:
        """The operators, each once."""
        ops: Counter[str] = Counter()
        for line in self.said:
            if line.startswith("these steps run in numpy: "):
                ops.update(part.split(" ")[0] for part in line.partition(": ")[2].split("), "))
            else:
                ops["stages"] += 1
        return " ".join(f"{op} x{count}" if count > 1 else op for op, count in sorted(ops.items()))


def run(name: str, case: Any) -> Result:
    """Exports, runs here and there, compares."""
    heard = _Heard()
    log = logging.getLogger("fastlayers")
    log.setLevel(logging.INFO)
    log.addHandler(heard)
    try:
        try:
            content, feeds, expected = case()
        except Exception as error:
            return Result(name, "not converted", f"{type(error).__name__}: {error}", 0.0, "")
        try:
            session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
            there: Any = session.run(None, feeds)
        except Exception as error:
            there = error
        try:
            model = fl.load(content)
            here = list(model.run(feeds).values())
        except fl.Error as error:
            word = "not run there" if isinstance(there, Exception) else "refused"
            return Result(name, word, str(error), 0.0, "")
        if isinstance(there, Exception):
            apart = [distance(_alike(here[i], want), want) for i, want in expected.items()]
            right = bool(apart) and max(apart) <= TOLERANCE
            return Result(name, "right, alone" if right else "not run there", str(there), max(apart, default=0.0), heard.text())
        apart = [distance(a, b) for a, b in zip(here, there, strict=True)]
        wrong = [f"output {i} is {d:.2g} from ONNX Runtime's" for i, d in enumerate(apart) if not d <= TOLERANCE]
        for i, want in expected.items():
            d, runtime = distance(_alike(here[i], want), want), distance(_alike(there[i], want), want)
            if not d <= max(TOLERANCE, 1.01 * runtime):
                wrong.append(f"output {i} is {d:.2g} from the library's, ONNX Runtime's {runtime:.2g}")
        return Result(name, "wrong" if wrong else "right", "; ".join(wrong), max(apart, default=0.0), heard.text())
    finally:
        log.removeHandler(heard)


def _alike(value: Any, want: Any) -> Any:
    """A result in the form in which the library gives it."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = np.array([list(row.values()) for row in value])
    value, want = np.asarray(value), np.asarray(want)
    if want.dtype.kind in "US":
        return value.astype(object)
    return value.reshape(want.shape) if value.size == want.size else value


def plain_attributes() -> None:
    """skl2onnx gives attributes numpy's integers and booleans, which newer versions of onnx do not take."""
    make = onnx.helper.make_attribute

    def plain(key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, (list, tuple)):
            value = [item.item() if isinstance(item, np.generic) else item for item in value]
            value = [int(item) if isinstance(item, bool) else item for item in value]
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        return make(key, value, *args, **kwargs)

    onnx.helper.make_attribute = plain


def main() -> int:
    """Runs all models, or those whose names have one of the words given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    names, table = given.names, Table(given.table)
    warnings.simplefilter("ignore")
    plain_attributes()
    onnxruntime.set_default_logger_severity(4)
    found = []
    for name, case in cases().items():
        if names and not any(word in name for word in names):
            continue
        result = run(name, case)
        found.append(result)
        why = " ".join(result.why.split())[:150]
        table.add(result.name, result.word, f"{result.distance:.1e}", result.numpy, why)
        print(
            f"{result.name:58} {result.word:13} {result.distance:8.1e}  {result.numpy[:60]}{' | ' if why else ''}{why}",
            flush=True,
        )
    counts = Counter(result.word for result in found)
    print(f"{len(found)} models: " + ", ".join(f"{count} {word}" for word, count in counts.most_common()))
    print(f"{sum(not result.numpy for result in found if result.word == 'right')} of those right run without numpy")
    return int(bool(counts["wrong"] + counts["refused"]))


if __name__ == "__main__":
    sys.exit(main())

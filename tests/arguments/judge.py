"""Runs calls and says what is wrong with what came of them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl

__all__ = ["Outcome", "attempt", "differs", "misread"]

_TOLERANCE = 2e-4


class Outcome(NamedTuple):
    """What came of a call: its results as arrays, or what is wrong, or neither, which is an error of ours."""

    results: list[np.ndarray] | None
    fault: str | None
    error: str


def attempt(run: Any, arguments: Mapping[str, Any], files: bool = False) -> Outcome:
    """Calls it. Any error that is not ours is a fault, and so is an answer of ours that says too little or too much."""
    try:
        result = run(**arguments)
    except fl.Error as error:
        text = f"{type(error).__name__}: {error}"
        if not 12 <= len(str(error)) <= 2000 or ": " not in str(error):
            return Outcome(None, f"a message that says too little or too much: {text[:300]}", text)
        return Outcome(None, None, text)
    except BaseException as error:  # KeyboardInterrupt apart: whatever comes out of a call is judged
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        if files and isinstance(error, OSError):
            return Outcome(None, None, str(error))
        frames = traceback.extract_tb(error.__traceback__)
        where = " < ".join(f"{f.filename.rpartition('fastlayers/')[2]}:{f.lineno}" for f in frames[:-4:-1])
        return Outcome(None, f"{type(error).__name__}: {str(error)[:200]!r} at {where}", "")
    return Outcome(list(_arrays(result)), None, "")


def _arrays(result: Any) -> Iterator[np.ndarray]:
    """All values of a result; what has none is left out."""
    if isinstance(result, np.ndarray) and result.dtype.kind in "fiub":
        yield result
    elif isinstance(result, (bool, int, float, np.generic)):
        yield np.asarray(result)
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from _arrays(part)
    elif isinstance(result, Mapping):
        for part in result.values():
            yield from _arrays(part)


def differs(got: list[np.ndarray], want: list[np.ndarray], bits: bool = False) -> str | None:
    """How the results differ from others: in their bits, or by more than roundings make."""
    if [a.shape for a in got] != [a.shape for a in want]:
        return f"shapes {[a.shape for a in got]} instead of {[a.shape for a in want]}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if bits or a.dtype.kind in "iub":
            same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            worst = 0.0
        else:
            with np.errstate(all="ignore"):
                a, b = a.astype(np.float64), b.astype(np.float64)
                finite = np.isfinite(a) & np.isfinite(b)
                scale = np.abs(b[finite]).max(initial=1e-3)
                worst = float(np.abs(a - b)[finite].max(initial=0) / scale)
                same = worst < _TOLERANCE and np.array_equal(a[~finite], b[~finite], equal_nan=True)
        if not same:
            return f"result {i} of shape {a.shape} is {a.reshape(-1)[:4]} instead of {b.reshape(-1)[:4]} (worst {worst:.3g})"
    return None


def _is_number(value: Any) -> bool:
    one = getattr(value, "ndim", 0) == 0 and not isinstance(value, (str, bytes))
    return one and (hasattr(value, "__float__") or hasattr(value, "__index__"))


def _is_flag(value: Any) -> bool:
    one = getattr(value, "ndim", 1) == 0 and getattr(value, "dtype", None) == np.dtype(bool)
    return isinstance(value, (bool, np.bool_)) or one or (type(value) is int and value in (0, 1))


# What an argument may be, by its annotation: what is taken for one and is none has been misread.
_MAY: dict[str, Callable[[Any], bool]] = {
    "bool": _is_flag,
    "int": lambda v: not isinstance(v, (bool, np.bool_)) and hasattr(v, "__index__"),
    "float": _is_number,
    "str": lambda v: isinstance(v, str),
    "None": lambda v: v is None,
}


def misread(kind: str, value: Any) -> str | None:
    """Says so if a value that was taken is none of its argument's annotation."""
    parts = [part.strip() for part in kind.split("|")]
    if not all(part in _MAY for part in parts):
        return None
    if any(_MAY[part](value) for part in parts):
        return None
    return f"a value of type {type(value).__name__} was taken for {kind}"

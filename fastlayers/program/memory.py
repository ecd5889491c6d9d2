"""The limit of what a model may allocate: results are compared with it by their shapes, before anything is made, and what numpy
takes on the way to them is counted where the compiled engine is there.

The limit is `load`'s `max_bytes`, or three quarters of the machine's memory where that is less: the system would grant more, and
kill the process once it is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from .._machine import LARGEST, memory
from ..errors import LimitError, ShapeError, UnsupportedError
from ..kernels import dispatch
from ..operators import Spec, View

__all__ = ["LARGEST", "counted", "result_bytes", "too_much", "within_machine"]

MOST_AXES = 32  # what numpy had before version 2, and the engine has


class counted:  # noqa: N801 (a context, as those of contextlib, and a run of a small network enters one)
    """Meanwhile numpy's arrays take no more bytes at once in this thread, and it is silent about NaN and infinity."""

    __slots__ = ("_counting", "_silent")

    def __init__(self, most: int) -> None:
        engine = dispatch.engine()
        self._counting = nullcontext() if engine is None else engine.Counted(most)
        self._silent = np.errstate(all="ignore")

    def __enter__(self) -> None:
        self._counting.__enter__()
        self._silent.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._silent.__exit__(*error)
        self._counting.__exit__(*error)


def within_machine(most: int) -> int:
    """The limit `most`, or what the machine can give."""
    return min(most, memory() // 4 * 3)


def result_bytes(view: View, results: Sequence[Spec], most: int = LARGEST) -> int:
    """The bytes that results of known sizes take together; raises if they are too many, or no sizes of an array."""
    total = addressed = 0
    for spec in results:
        shape = spec.shape
        if shape is not None and len(shape) > MOST_AXES:
            raise UnsupportedError(f"{view.where}: its result would have {len(shape)} axes: at most {MOST_AXES} are supported")
        if spec.static:
            size = math.prod(shape) * spec.dtype.itemsize  # type: ignore[arg-type]
            if not size:
                # numpy reckons with the other sizes where one is 0.
                addressed += math.prod(d or 1 for d in shape) * spec.dtype.itemsize  # type: ignore[union-attr, misc]
            if any(d < 0 for d in shape):  # type: ignore[operator, union-attr]
                raise ShapeError(f"{view.where}: its result would have the shape {shape}")
            total += size
    if total > most or total + addressed > LARGEST:
        raise too_much(view.where, f"its result would take {total or addressed} bytes", most)
    return total


def too_much(where: str, text: str, most: int) -> LimitError:
    """The error for something that does not fit into the limit."""
    return LimitError(
        f"{where}: {text}: more than {most}, the limit that max_bytes and the machine's memory set: "
        "pass a larger max_bytes to load if the model is to be trusted"
    )

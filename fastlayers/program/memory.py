"""What a model may allocate: results are held against the limit by their shapes, before anything is made, and what numpy takes on
the way to them is counted where the compiled engine is there.

The limit is `load`'s `max_bytes`, or three quarters of the machine's memory where that is less: the system would grant more, and
kill the process once it is used.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path

import numpy as np

from ..errors import LimitError, ShapeError, UnsupportedError
from ..operators import Spec, View

__all__ = ["LARGEST", "counted", "result_bytes", "too_much", "within_machine"]

# Without a limit no result takes more bytes; sums of a few such numbers are far from where 64 bits end.
LARGEST = 1 << 46
MOST_AXES = 32  # what numpy had before version 2, and the engine has


@contextmanager
def counted(most: int) -> Iterator[None]:
    """Meanwhile numpy's arrays take no more bytes at once in this thread, and it is silent about NaN and infinity."""
    with _counted(most), np.errstate(all="ignore"):
        yield


def _counted(most: int) -> AbstractContextManager[None]:
    try:
        from ..kernels.aot._engine import Counted  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return nullcontext()
    return Counted(most)  # type: ignore[no-any-return]


@cache
def _machine() -> int:
    """Bytes of memory that the machine has, or the container; LARGEST if it does not tell."""
    found = [LARGEST]
    with suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = Path("/sys/fs/cgroup", name).read_text("ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit():
            found.append(int(text))
    return min(size for size in found if size > 0)


def within_machine(most: int) -> int:
    """The limit `most`, or what the machine can give."""
    return min(most, _machine() // 4 * 3)


def result_bytes(view: View, results: Sequence[Spec], most: int = LARGEST) -> int:
    """How many bytes the results of known sizes take together; raises if they are too many, or no sizes of an array."""
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
